"""The bytes of `canonical.py` value by value in Python, for changes of a few rows, which on arrays would cost a dozen calls of Arrow.

What always holds: the bytes are those of `canonical.py`, for the types that `is_plain` names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import pyarrow as pa

from deltic.types import INTEGER_BITS, Type

FEW: Final = 16
"""Up to so many values are written here."""
_NULL, _VALUE, _END = b"\x01", b"\x02", b"\x00"
_ESCAPED: Final = b"\x00\xff"
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
