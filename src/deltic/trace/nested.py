"""Nested values as their canonical bytes, and back, by kernels: what `canonical.py` does on arrays.

What always holds: the bytes are those of `canonical.to_bytes`, and `from_bytes(to_bytes(x)) = x`, with one NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deltic.kernels import nested
from deltic.kernels.nested import BIT, DATA, END, KIND, NODE, NULLS, OFFSETS, SIZE, SLOTS, VALIDITY, WIDTH
from deltic.kernels.table import buffer_address
from deltic.schema import Type
from deltic.trace.entries import Located
from deltic.types import struct

Words = npt.NDArray[np.int64]
Offsets = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]
_ALIGNED: Final = 8
"""Bytes to a multiple of which columns begin."""
CHUNK: Final = 1 << 20
"""Bytes that are read at once, with room for as many elements."""


class Damaged(ValueError):
    """Bytes that are no value of the type."""


@dataclass(frozen=True, slots=True)
class _Program:
    """A type as its nodes, in preorder. nodes: int64[k, NODE], with kinds, widths and ends. types, arrow: of each node.

    elements: whether a node is within a LIST. zeros: whether values are written twice if they have a -0.0. partly: whether a value has
    more fields, after those of the nodes.
    """

    nodes: Words
    types: tuple[Type, ...]
    elements: tuple[bool, ...]
    arrow: tuple[pa.DataType, ...]
    zeros: bool
    partly: bool = False

    def stack(self) -> Words:
        return np.empty(nested.FRAME * len(self.types), np.int64)


@cache
def _program(type: Type) -> _Program:
    rows = _nodes(type, 0, False)
    nodes, types, elements = zip(*rows, strict=True)
    return _Program(np.array(nodes, np.int64), types, elements, tuple(type.arrow for type in types), type.has_zeros)


def _nodes(type: Type, first: int, is_element: bool) -> list[tuple[list[int], Type, bool]]:
    """The nodes of a type, from number `first` on: (words, type, whether it is within a LIST)."""
    node, stored = [0] * NODE, type.kind.stored
    rows = [(node, type, is_element)]
    if type.held.name == "STRUCT":
        node[KIND] = nested.STRUCT
        for part in type.held.parts:
            rows += _nodes(part.type, first + len(rows), is_element)
    elif type.is_nested:
        node[KIND] = nested.LIST
        rows += _nodes(type.entries.parts[0].type, first + 1, True)
    elif stored in ("bytes", "none"):
        node[KIND] = nested.TEXT if stored == "bytes" else nested.VOID
    elif stored in ("bits", "decimal"):
        node[KIND], node[WIDTH] = (nested.BITS, 1) if stored == "bits" else (nested.INTEGER, 16)
    else:
        node[KIND], node[WIDTH] = nested.FLOAT if type.is_float else nested.INTEGER, np.dtype(stored).itemsize
    node[END] = first + len(rows)
    return rows


def to_bytes(array: pa.Array, type: Type) -> pa.LargeBinaryArray:
    """As `canonical.to_bytes`. O(bytes)."""
    program = _program(type)
    if array.type != program.arrow[0]:
        array = array.cast(program.arrow[0])
    columns = _Columns(program, program.nodes.tolist(), array, [])
    room = columns.enter(0, array, 0, len(array))
    room = 2 * room + len(array) if program.zeros else room
    offsets, out = np.empty(len(array) + 1, np.int64), np.empty(room, np.uint8)
    nested.write_values(np.array(columns.nodes, np.int64).reshape(-1), program.stack(), offsets, out)
    validity = None
    if array.null_count:
        validity = pa.py_buffer(np.packbits(array.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))
    return pa.Array.from_buffers(pa.large_binary(), len(array), [validity, pa.py_buffer(offsets), pa.py_buffer(out)])


class _Columns(NamedTuple):
    """The columns of the nodes of an array. owner: of their memory. kept: the arrays of entries that are made for MAPs."""

    program: _Program
    nodes: list[list[int]]
    owner: pa.Array
    kept: list[pa.Array]

    def enter(self, node: int, array: pa.Array, start: int, end: int) -> int:
        """Enters the column of a node and those of its parts; returns the bytes that its rows from `start` to `end` take at most."""
        row, n = self.nodes[node], end - start
        if array.null_count and row[KIND] != nested.VOID:  # of which all values are NULL, without a buffer that says so
            row[VALIDITY], row[BIT] = self._address(array.buffers()[0]), array.offset
        match row[KIND]:
            case nested.STRUCT:
                return self._enter_fields(node, array, start, end)
            case nested.LIST:
                return n + self._enter_elements(node, array, start, end)
            case nested.TEXT:
                _, offsets, data = array.buffers()
                first, last = self._enter_offsets(row, array, offsets, start, end)
                if last > first:
                    row[DATA] = self._address(data)
                return n + 2 * (last - first)
            case nested.BITS if n:
                row[DATA], row[BIT] = self._address(array.buffers()[1]), array.offset
            case kind if kind != nested.VOID and n:
                row[DATA] = self._address(array.buffers()[1]) + row[WIDTH] * array.offset
        return n * row[WIDTH]

    def _address(self, buffer: pa.Buffer) -> int:
        return buffer_address(buffer, self.owner)

    def _enter_fields(self, node: int, array: pa.Array, start: int, end: int) -> int:
        room, part = 0, node + 1
        for i in range(array.type.num_fields):
            room += end - start + self.enter(part, array.field(i), start, end)
            part = self.nodes[part][END]
        return room

    def _enter_elements(self, node: int, array: pa.Array, start: int, end: int) -> int:
        type = self.program.types[node]
        columns = self
        if type.name == "MAP":
            array = array.cast(type.entries.arrow)
            self.kept.append(array)
            columns = self._replace(owner=array)
        first, last = columns._enter_offsets(self.nodes[node], array, array.buffers()[1], start, end)
        return last - first + columns.enter(node + 1, array.values, first, last)

    def _enter_offsets(self, row: list[int], array: pa.Array, buffer: pa.Buffer | None, start: int, end: int) -> tuple[int, int]:
        """Enters the offsets of texts or lists; returns the first of them and the last."""
        if start == end or buffer is None:
            return 0, 0
        row[OFFSETS] = self._address(buffer) + 4 * array.offset
        offsets = np.frombuffer(buffer, np.int32)
        return int(offsets[array.offset + start]), int(offsets[array.offset + end])


def from_bytes(values: Located, type: Type) -> pa.Array:
    """As `canonical.from_bytes`, of the bytes of entries. Raises Damaged, and DataError for more than 2 GiB. O(bytes)."""
    values.check_size()
    return _decoded(values, _program(type), 0)


def field_from_bytes(values: Located, type: Type, path: tuple[int, ...]) -> pa.Array:
    """A field of a STRUCT, of a field of it, and so on; NULL where one of them is NULL. Fields after it are not read.

    Raises as `from_bytes`.
    """
    values.check_size()
    return _decoded(values, *_field_program(type, path))


@cache
def _field_program(type: Type, path: tuple[int, ...]) -> tuple[_Program, int]:
    """By which the field is read, and its node."""
    program, node = _program(type) if type.has_zeros else _first_fields(type, path), 0
    for position in path:
        node += 1
        for _ in range(position):
            node = int(program.nodes[node, END])
    return program, node


def _first_fields(type: Type, path: tuple[int, ...]) -> _Program:
    return replace(_program(_up_to(type, path)), partly=True)


def _up_to(type: Type, path: tuple[int, ...]) -> Type:
    """The type without the fields after that at the end of the path."""
    if not path:
        return type
    last = type.parts[path[0]]
    return struct((*type.parts[: path[0]], replace(last, type=_up_to(last.type, path[1:]))))


def _decoded(values: Located, program: _Program, node: int) -> pa.Array:
    """The column of a node."""
    n, size = len(values.places), int(values.offsets[-1] - values.offsets[0])
    if size > CHUNK and n > 1:
        return pa.concat_arrays([_decoded(part, program, node) for part in values.halves()])
    begins = np.empty(n, np.int64)
    results = _Results.of(program, n, size)
    result = results.read(program, values, begins, 0)
    if result == nested.TWICE:
        results = _Results.of(program, n, size)
        result = results.read(program, values, begins, 1)
    if result:
        raise Damaged(f"its bytes are not those of a {program.types[0].sql}")
    try:
        return results.array(program, node)
    except pa.ArrowInvalid as error:
        raise Damaged(f"a text in a {program.types[0].sql} is not UTF-8: {error}") from None


class _Results(NamedTuple):
    """The memory of columns that are read. nodes: int64[k, NODE]. offsets: of texts and lists. out: all else."""

    nodes: Words
    offsets: Offsets
    out: Bytes

    @staticmethod
    def of(program: _Program, n: int, size: int) -> _Results:
        """Room for n values of `size` bytes, each of whose elements takes one at least."""
        nodes = program.nodes.tolist()
        offsets = used = 0
        for row, is_element in zip(nodes, program.elements, strict=True):
            slots = size if is_element else n
            bits = (slots + 7) >> 3
            row[VALIDITY], used = used, used + bits + -bits % _ALIGNED
            match row[KIND]:
                case nested.TEXT:
                    length = size
                case nested.BITS:
                    length = bits
                case _:
                    length = slots * row[WIDTH]
            row[DATA], used = used, used + length + -length % _ALIGNED
            if row[KIND] in (nested.TEXT, nested.LIST):
                row[OFFSETS], offsets = offsets, offsets + slots + 1
        return _Results(np.array(nodes, np.int64), np.zeros(offsets, np.int32), np.zeros(used, np.uint8))

    def read(self, program: _Program, values: Located, begins: Words, again: int) -> int:
        """Reads bytes. begins, again: as the kernel takes them."""
        nodes, entries, partly = self.nodes.reshape(-1), values.entries, int(program.partly)
        result: int = nested.read_values(
            nodes, values.places, entries.starts, entries.arena, partly, again, begins, program.stack(), self.offsets, self.out
        )
        return result

    def array(self, program: _Program, node: int) -> pa.Array:
        """The column of a node."""
        row, kind = self.nodes[node].tolist(), program.arrow[node]
        n, nulls = row[SLOTS], row[NULLS]
        buffers = [self._bytes(row[VALIDITY], (n + 7) >> 3) if nulls else None]
        match row[KIND]:
            case nested.STRUCT:
                return pa.Array.from_buffers(kind, n, buffers, nulls, children=self._parts(program, node, row[END]))
            case nested.LIST:
                buffers.append(self._offsets(row[OFFSETS], n))
                return pa.Array.from_buffers(kind, n, buffers, nulls, children=[self.array(program, node + 1)])
            case nested.TEXT:
                buffers += [self._offsets(row[OFFSETS], n), self._bytes(row[DATA], row[SIZE])]
                texts = pa.Array.from_buffers(kind, n, buffers, nulls)
                texts.validate(full=True)
                return texts
            case nested.VOID:
                return pa.nulls(n, kind)
            case nested.BITS:
                buffers.append(self._bytes(row[DATA], (n + 7) >> 3))
            case _:
                buffers.append(self._bytes(row[DATA], n * row[WIDTH]))
        return pa.Array.from_buffers(kind, n, buffers, nulls)

    def _parts(self, program: _Program, node: int, end: int) -> list[pa.Array]:
        parts, part = [], node + 1
        while part < end:
            parts.append(self.array(program, part))
            part = int(self.nodes[part, END])
        return parts

    def _bytes(self, start: int, size: int) -> pa.Buffer:
        return pa.py_buffer(self.out[start : start + size])

    def _offsets(self, start: int, n: int) -> pa.Buffer:
        return pa.py_buffer(self.offsets[start : start + n + 1])
