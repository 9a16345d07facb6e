"""Reads the bytes of `canonical.py` for whole columns: the part at one place of all values at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltic.canonical_rows import END, ESCAPED, NULL, VALUE
from deltic.canonical_writing import BINARY, Bytes, Positions, sign, text_buffers, windows
from deltic.types import Type

_WIDTHS: Final = {"bits": 1, "decimal": 16}


class Damaged(ValueError):
    """Bytes that are no value of the type."""


def values_of_bytes(values: pa.Array, type: Type, *, last: bool) -> pa.Array:
    """The values; of one that is written twice the second writing if `last`, else the first. Raises Damaged."""
    return _read(values, type, lambda reader: reader.whole(type, last))


def field_of_bytes(values: pa.Array, type: Type, path: tuple[int, ...]) -> pa.Array:
    """The field at a path in STRUCTs, none of which is written twice. What comes after the field is not read. Raises Damaged."""
    return _read(values, type, lambda reader: reader.field(type, path, reader.starts, reader.ends))


def _read(values: pa.Array, type: Type, read: Callable[[CanonicalReader], pa.Array]) -> pa.Array:
    """What `read` returns for the bytes that are not NULL, and NULL elsewhere."""
    given = values.drop_null() if values.null_count else values
    try:
        decoded = read(CanonicalReader(given))
    except (IndexError, pa.ArrowInvalid):
        raise Damaged(f"the bytes of a {type.sql} end within it") from None
    if len(given) == len(values):
        return decoded
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return _scattered(decoded, valid)


def _scattered(values: pa.Array, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """The values, in order, where `valid`; NULL elsewhere."""
    return values.take(pa.array(np.cumsum(valid) - 1, mask=~valid))


class CanonicalReader:
    """n values end to end. data: with a 00 after the last. starts, ends: int64[n]."""

    def __init__(self, values: pa.BinaryArray) -> None:
        offsets, given = text_buffers(values)
        self.data: Bytes = np.append(given, np.uint8(0))
        self.starts, self.ends = offsets[:-1], offsets[1:]

    @cached_property
    def _terminators(self) -> Positions:
        """Where a 00 is that no FF follows."""
        zeros = np.flatnonzero(self.data == 0)
        terminators: Positions = zeros[self.data[np.minimum(zeros + 1, len(self.data) - 1)] != ESCAPED[1]]
        return terminators

    def whole(self, type: Type, last: bool) -> pa.Array:
        """The values, as `values_of_bytes` returns them."""
        if type.name == "ARRAY" and (numbers := self._arrays_of_numbers(type)) is not None:
            return numbers
        values, ends = self.values(type, self.starts)
        twice = np.flatnonzero(ends != self.ends)
        if not len(twice):
            return values
        again, finished = self.values(type, ends[twice] + 1)
        if (ends > self.ends).any() or (finished != self.ends[twice]).any():
            raise Damaged(f"bytes after a {type.sql}")
        if not last:
            return values
        order = np.arange(len(values))
        order[twice] = len(values) + np.arange(len(twice))
        return pa.concat_arrays([values, again]).take(pa.array(order))

    def field(self, type: Type, path: tuple[int, ...], positions: Positions, ends: Positions) -> pa.Array:
        """The field at a path in STRUCTs that begin at these positions, in values that end at `ends`; NULL where one on the path is."""
        for part in type.parts[: path[0]]:
            positions = self._after(part.type, positions)
        field = type.parts[path[0]].type
        if len(path) == 1:
            values, after = self.tagged(field, positions)
            if (after > ends).any():
                raise Damaged(f"a {type.sql} ends within a field")
            return values
        present = self._present(field, positions)
        inner = self.field(field, path[1:], positions[present] + 1, ends[present])
        return inner if present.all() else _scattered(inner, present)

    def values(self, type: Type, positions: Positions) -> tuple[pa.Array, Positions]:
        """The values that begin at these positions, and where they end."""
        match type.kind.stored:
            case "bytes" if type.held.name == "STRUCT":
                return self._structs(type, positions)
            case "bytes" if type.is_nested:
                return self._lists(type, positions)
            case "bytes":
                return self._texts(type, positions)
            case "none":
                raise Damaged("a value of type VOID")
            case _:
                return self._numbers(type, positions), positions + _width(type)

    def tagged(self, type: Type, positions: Positions) -> tuple[pa.Array, Positions]:
        """Values after their tags, NULL where that says so."""
        present = self._present(type, positions)
        if present.all() and len(positions):
            return self.values(type, positions + 1)
        if not present.any():
            return pa.nulls(len(positions), type.arrow), positions + 1
        values, after = self.values(type, positions[present] + 1)
        ends = positions + 1
        ends[present] = after
        return _scattered(values, present), ends

    def _present(self, type: Type, positions: Positions) -> npt.NDArray[np.bool_]:
        """Which tags at these positions come before a value."""
        tags = self.data[positions]
        present: npt.NDArray[np.bool_] = tags == VALUE[0]
        if not present.all() and (tags[~present] != NULL[0]).any():
            raise Damaged(f"an invalid tag in the bytes of a {type.sql}")
        return present

    def _after(self, type: Type, positions: Positions) -> Positions:
        """Where parts with tags at these positions end."""
        stored = type.kind.stored
        if stored == "none" or type.held.is_nested:
            return self.tagged(type, positions)[1]
        present = self._present(type, positions)
        if stored != "bytes":
            return positions + 1 + _width(type) * present
        ends = positions + 1
        ends[present] = self._text_ends(ends[present]) + 1
        return ends

    def _structs(self, type: Type, positions: Positions) -> tuple[pa.Array, Positions]:
        columns = []
        for part in type.held.parts:
            column, positions = self.tagged(part.type, positions)
            columns.append(column)
        if not columns:
            return pa.array([()] * len(positions), type.arrow), positions
        return pa.StructArray.from_arrays(columns, fields=list(type.arrow)), positions

    def _lists(self, type: Type, positions: Positions) -> tuple[pa.Array, Positions]:
        """Element by element, of all values that have one more."""
        element = type.entries.parts[0].type
        positions, active = positions.copy(), np.arange(len(positions))
        pieces: list[pa.Array] = [pa.array([], element.arrow)]
        owners: list[Positions] = [np.empty(0, np.int64)]
        while len(active):
            ended = self.data[positions[active]] == END[0]
            positions[active[ended]] += 1
            active = active[~ended]
            if len(active):
                piece, positions[active] = self.tagged(element, positions[active])
                pieces.append(piece)
                owners.append(active)
        owner = np.concatenate(owners)
        elements = pa.concat_arrays(pieces).take(pa.array(np.argsort(owner, kind="stable")))
        offsets = pa.array(np.append(0, np.cumsum(np.bincount(owner, minlength=len(positions)))).astype(np.int32))
        if type.name == "MAP":
            keys, values = elements.flatten()
            return pa.MapArray.from_arrays(offsets, keys, values, type=type.arrow), positions
        return pa.ListArray.from_arrays(offsets, elements, type=type.arrow), positions

    def _arrays_of_numbers(self, type: Type) -> pa.Array | None:
        """All ARRAYs at once if no element is NULL, so that the number of elements follows from that of bytes; else None."""
        element = type.parts[0].type
        if element.kind.stored in ("bytes", "none") or not len(self.starts):
            return None
        width = 1 + _width(element)
        counts, rest = np.divmod(self.ends - self.starts - 1, width)
        if rest.any() or (counts < 0).any():
            return None
        after = np.cumsum(counts)
        tags = np.repeat(self.starts - width * (after - counts), counts) + width * np.arange(after[-1])
        if (self.data[tags] != VALUE[0]).any() or (self.data[self.ends - 1] != END[0]).any():
            return None
        offsets = pa.array(np.append(0, after).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, self._numbers(element, tags + 1), type=type.arrow)

    def _text_ends(self, positions: Positions) -> Positions:
        """Where the 00 after each text is."""
        ends: Positions = self._terminators[np.searchsorted(self._terminators, positions)]
        return ends

    def _texts(self, type: Type, positions: Positions) -> tuple[pa.Array, Positions]:
        ends = self._text_ends(positions)
        offsets = np.append(0, np.cumsum(ends - positions))
        bytes_ = self.data[np.arange(offsets[-1]) + np.repeat(positions - offsets[:-1], ends - positions)]
        texts = pa.Array.from_buffers(BINARY, len(positions), [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(bytes_)])
        if (bytes_ == 0).any():
            texts = pc.replace_substring(texts, ESCAPED, END)
        return texts.cast(type.arrow), ends + 1

    def _numbers(self, type: Type, positions: Positions) -> pa.Array:
        stored, width = type.kind.stored, _width(type)
        if stored == "bits":
            return pa.array(self.data[positions] != 0)
        if stored == "decimal":
            words = windows(self.data, np.dtype(">u8"))
            high, low = (words[positions + byte].astype(np.uint64) for byte in (0, 8))
            values: npt.NDArray[Any] = np.stack([low, high ^ np.uint64(1 << 63)], axis=1)
        else:
            bits, negative = windows(self.data, np.dtype(f">u{width}"))[positions].astype(f"u{width}"), sign(width)
            values = np.where(bits & negative, bits ^ negative, ~bits) if type.is_float else bits ^ negative
        return pa.Array.from_buffers(type.arrow, len(positions), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _width(type: Type) -> int:
    """The bytes of a number."""
    stored = type.kind.stored
    return _WIDTHS.get(stored) or np.dtype(stored).itemsize
