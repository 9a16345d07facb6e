"""Columns of one change as Arrow arrays, for all operators that read the change in one tick."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deltic.expr.nodes import FieldPath
from deltic.schema import Field
from deltic.trace.encoding import Words, decode, decode_field
from deltic.trace.strings import StringTable


class DecodedChange:
    """Decodes each field of a change at its first use, and keeps the Arrow array until the tick ends.

    The stage creates one for each stream that several operators read. All of them read it with the same schema, so a field's position
    determines its words.
    """

    __slots__ = ("_columns", "_distinct", "_fields")

    def __init__(self) -> None:
        self._columns: dict[int, pa.Array] = {}
        self._fields: dict[FieldPath, pa.Array] = {}
        self._distinct: dict[int, tuple[pa.Array, pa.Array]] = {}

    def column(self, position: int, words: Words, field: Field, strings: StringTable) -> pa.Array:
        """The values of the field at `position`, in the order of the rows."""
        if position not in self._columns:
            self._columns[position] = decode(words, field, strings)
        return self._columns[position]

    def has(self, position: int) -> bool:
        """Whether the whole field at `position` is decoded."""
        return position in self._columns

    def field(self, path: FieldPath, words: Words, field: Field, strings: StringTable) -> pa.Array:
        """The values of a field of the STRUCTs at a position."""
        if path not in self._fields:
            self._fields[path] = decode_field(words[0], field.type, path[1], strings)
        return self._fields[path]

    def distinct(self, position: int, ids: npt.NDArray[np.int64], field: Field, strings: StringTable) -> tuple[pa.Array, pa.Array]:
        """See `distinct_strings`."""
        if position not in self._distinct:
            self._distinct[position] = distinct_strings(ids, field, strings)
        return self._distinct[position]


def distinct_strings(ids: npt.NDArray[np.int64], field: Field, strings: StringTable) -> tuple[pa.Array, pa.Array]:
    """The distinct strings of a column, and for each row the position of its string among them. O(n log n)."""
    distinct, inverse = np.unique(ids, return_inverse=True)
    return decode((distinct,), field, strings), pa.array(inverse)
