"""The bytes of `canonical.py` value by value in Python, for changes of a few rows, which on arrays would cost a dozen calls of Arrow.

What always holds: the bytes and values are those of `canonical.py`, for the types that `is_plain` names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import pyarrow as pa

from deltic.types import INTEGER_BITS, Type

FEW: Final = 16
"""Up to so many values are written and read here."""
_NULL, _VALUE, _END = b"\x01", b"\x02", b"\x00"
_ESCAPED: Final = b"\x00\xff"
Read = Callable[[bytes, int], tuple[Any, int]]
Write = Callable[[Any], bytes]


@cache
def is_plain(type: Type) -> bool:
    """Whether the type has only integers, BOOLEAN, STRING and BINARY in it, whose Python values have one form."""
    if type.held.parts:
        return all(is_plain(part.type) for part in type.held.parts)
    return type.is_integer or type.name in ("BOOLEAN", "STRING", "BINARY")


def to_bytes(array: pa.Array, type: Type) -> pa.BinaryArray:
    """As `canonical.to_bytes`."""
    write = _writer(type)
    return pa.array([None if value is None else write(value) for value in array.to_pylist()], pa.binary())


def from_bytes(values: pa.Array, type: Type) -> pa.Array:
    """As `canonical.from_bytes`. Raises IndexError or ValueError for bytes that are no value of the type."""
    read = _reader(type)
    decoded = []
    for value in values.to_pylist():
        one, end = (None, 0) if value is None else read(value, 0)
        if value is not None and end != len(value):
            raise ValueError(f"bytes after a {type.sql}")
        decoded.append(one)
    return pa.array(decoded, type.arrow)


@cache
def _writer(type: Type) -> Write:
    if type.held.name == "STRUCT":
        fields = [(part.name, _tagging(part.type)) for part in type.held.parts]
        return lambda value: b"".join([write(value[name]) for name, write in fields])
    if type.name == "MAP":
        key, item = (_tagging(part.type) for part in type.parts)
        return lambda value: b"".join([_VALUE + key(k) + item(v) for k, v in value]) + _END
    if type.name == "ARRAY":
        element = _tagging(type.parts[0].type)
        return lambda value: b"".join(map(element, value)) + _END
    if type.is_integer:
        width, half = INTEGER_BITS[type.name] // 8, 1 << INTEGER_BITS[type.name] - 1
        return lambda value: int.to_bytes(value + half, width, "big")
    if type.name == "BOOLEAN":
        return lambda value: bytes((value,))
    return lambda value: (value.encode() if isinstance(value, str) else value).replace(_END, _ESCAPED) + _END


def _tagging(type: Type) -> Write:
    write = _writer(type)
    return lambda value: _NULL if value is None else _VALUE + write(value)


@cache
def _reader(type: Type) -> Read:
    if type.held.name == "STRUCT":
        return _struct_reader(type.held)
    if type.is_nested:
        return _list_reader(type)
    if type.is_integer:
        width, half = INTEGER_BITS[type.name] // 8, 1 << INTEGER_BITS[type.name] - 1

        def integer(data: bytes, position: int) -> tuple[Any, int]:
            return int.from_bytes(data[position : position + width], "big") - half, position + width

        return integer
    if type.name == "BOOLEAN":
        return lambda data, position: (data[position] != 0, position + 1)
    return _text_reader(type)


def _text_reader(type: Type) -> Read:
    def text(data: bytes, position: int) -> tuple[Any, int]:
        end = data.index(_END, position)
        while data[end + 1 : end + 2] == b"\xff":
            end = data.index(_END, end + 1)
        value = data[position:end].replace(_ESCAPED, _END)
        return value if type.name == "BINARY" else value.decode(), end + 1

    return text


def _untagging(type: Type) -> Read:
    read = _reader(type)

    def tagged(data: bytes, position: int) -> tuple[Any, int]:
        if data[position] == _NULL[0]:
            return None, position + 1
        if data[position] != _VALUE[0]:
            raise ValueError(f"an invalid tag in the bytes of a {type.sql}")
        return read(data, position + 1)

    return tagged


def _struct_reader(type: Type) -> Read:
    fields = [(part.name, _untagging(part.type)) for part in type.parts]

    def struct(data: bytes, position: int) -> tuple[Any, int]:
        values = {}
        for name, read in fields:
            values[name], position = read(data, position)
        return values, position

    return struct


def _list_reader(type: Type) -> Read:
    """Of an ARRAY; of a MAP the pairs of its entries."""
    element = _untagging(type.entries.parts[0].type)
    is_map = type.name == "MAP"

    def elements(data: bytes, position: int) -> tuple[Any, int]:
        values = []
        while data[position] != _END[0]:
            value, position = element(data, position)
            values.append(tuple(value.values()) if is_map else value)
        return values, position + 1

    return elements
