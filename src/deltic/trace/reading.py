"""Reading: the words of a stored relation as columns that users see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from deltic.errors import CorruptState, TooManyRows
from deltic.schema import BIGINT, Field, Schema
from deltic.trace.batch import Batch
from deltic.trace.encoding import Layout, decode_values, decoder
from deltic.trace.export import SMALL, FrameExport
from deltic.trace.strings import StringTable

WEIGHT: Final = "_weight"
"""The column that follows the relation's own columns in a change."""

_WEIGHTS: Final = Field(WEIGHT, BIGINT, False)
_decode_weights: Final = decoder(_WEIGHTS)

ROWS_AT_MOST: Final = 2**31 - 1
"""As many as an Arrow array of strings can have."""


def copied(words: Sequence[np.ndarray], weights: np.ndarray) -> Sequence[np.ndarray]:
    """Each row repeated by its weight. Raises TooManyRows for more rows than can be listed, CorruptState for a negative weight."""
    if (weights == 1).all():
        return words
    if (rows := float(weights.sum(dtype=np.float64))) > ROWS_AT_MOST:
        raise TooManyRows(
            f"there are about {rows:.3g} rows, each as often as its weight says, and at most {ROWS_AT_MOST:,} can be listed",
            remedy="read a view that counts equal rows: GROUP BY its columns; of a stream in Python weighted()",
        )
    if (weights < 0).any():
        raise CorruptState("a stored relation has a row with negative weight", remedy="restore the state folder from a copy")
    return [np.repeat(word, weights) for word in words]


def total_weight(rows: Batch) -> int:
    """The number of rows, each as often as its weight says; exact where the sum is no int64."""
    weights = rows.verified().weights[0]
    return (int((weights >> 32).sum()) << 32) + int((weights & 0xFFFFFFFF).sum())


class Reader:
    """How the words of a relation are read. stored: its fields in stored order. order: the position of each in the user's schema."""

    def __init__(self, stored: Schema, order: Sequence[int]) -> None:
        slices = Layout.of(stored).slices
        positions = [list(order).index(i) for i in range(len(order))]
        self.schema = Schema(tuple(stored[p] for p in positions))
        self._fields = [(f, slices[p]) for f, p in zip(self.schema, positions, strict=True)]
        self._decoders = [(decoder(f), part) for f, part in self._fields]
        self._arrow = self.schema.arrow
        self._changes = self._arrow.append(pa.field(WEIGHT, pa.int64(), False))
        self._no_changes = self._changes.empty_table()
        places = [(f, part.start) for f, part in self._fields]
        self._rows_export = FrameExport.of(places, self._arrow)
        self._export = FrameExport.of([*places, (_WEIGHTS, Layout.of(stored).width)], self._changes)

    def table(self, words: Sequence[np.ndarray], strings: StringTable) -> pa.Table:
        """Rows as the user's columns."""
        return pa.Table.from_arrays(self._arrays(words, strings), schema=self._arrow)

    def values(self, words: Sequence[np.ndarray], strings: StringTable) -> list[list[Any]]:
        """The values of each of the user's columns in Python; what is nested is frozen."""
        return [decode_values(words[part], f, strings) for f, part in self._fields]

    def content(self, whole: Batch, strings: StringTable) -> pa.Table:
        """Rows as the user's columns; a row of weight w is repeated w times."""
        if whole.length <= SMALL and self._rows_export is not None and (whole.weights[0] == 1).all():
            table = self._rows_export.table(whole, strings)
            if table is not None:
                return table
        return self.table(copied(whole.columns, whole.weights[0]), strings)

    def changes(self, change: Batch | None, strings: StringTable) -> pa.Table:
        """A change as the user's columns, then `_weight`."""
        if change is None:
            return self._no_changes
        if self._export is not None and (table := self._export.table(change, strings)) is not None:
            return table
        columns = self._arrays(change.columns, strings)
        return pa.Table.from_arrays([*columns, _decode_weights(change.weights, strings)], schema=self._changes)

    def _arrays(self, words: Sequence[np.ndarray], strings: StringTable) -> list[pa.Array]:
        return [decode(words[part], strings) for decode, part in self._decoders]
