"""Pending rows: the changes of a table that its node receives, not yet checked against the table.

A row has one weight, the table's words in the user's column order, and then two more words:

- op: the kind of change, a code of `deltic.schema.Op`;
- ordinal: its position among the tick's changes, which orders the changes of a key and identifies the row in errors; or UNORDERED.

They are sent to the table's shard as plain Rows. Only this module depends on the positions of the two words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from deltic.schema import BIGINT, Field, Op, Schema
from deltic.trace.entries import Words
from deltic.trace.rows import Rows

UNORDERED: Final = -1
"""The ordinal of a row whose position in the tick is unknown."""

_SUFFIX: Final = (Field("_op", BIGINT, False), Field("_ordinal", BIGINT, False))
INSERT, DELETE_ROW, UPSERT, DELETE_KEY, UPDATE, WEIGHT = (int(op) for op in Op)
"""The codes of ops as plain integers: NumPy takes 3 µs more to compare an array, however small, with a member of an enumeration."""

_ADDING: Final = (INSERT, UPSERT, UPDATE)


@dataclass(slots=True)
class PendingRows:
    """Rows in this format; a view without copies. owned: whether nobody else reads the memory of the rows."""

    rows: Rows
    owned: bool = False

    def free(self) -> None:
        """Leaves no rows here: whoever reads them has them, and lets them go when they have been read."""
        self.rows = Rows.empty(len(self.rows.columns), len(self.rows.weights))

    @classmethod
    def of(cls, words: tuple[Words, ...], ops: Words, ordinals: Words, weights: Words) -> PendingRows:
        """words: those of the table, int64[n] each. ops, ordinals, weights: int64[n]; the weight is 1 unless the op is WEIGHT."""
        return cls(Rows((*words, ops, ordinals), (weights,)))

    @staticmethod
    def schema(table: Schema) -> Schema:
        """The fields of a row of a table with this schema."""
        return Schema((*table.fields, *_SUFFIX))

    @property
    def words(self) -> tuple[Words, ...]:
        return self.rows.columns[:-2]

    @property
    def ops(self) -> Words:
        return self.rows.columns[-2]

    @property
    def ordinals(self) -> Words:
        return self.rows.columns[-1]

    @property
    def weights(self) -> Words:
        return self.rows.weights[0]

    @property
    def added(self) -> npt.NDArray[np.bool_]:
        return added(self.ops, self.weights)

    def as_operations(self) -> PendingRows:
        """The same changes, with INSERT and DELETE_ROW in place of weights, once for each copy: for rows that meet operations."""
        weighted = self.ops == WEIGHT
        if not weighted.any():
            return self
        copies = np.repeat(np.arange(len(self)), np.where(weighted, np.abs(self.weights), 1))
        ops = np.where(weighted, np.where(self.weights > 0, INSERT, DELETE_ROW), self.ops)[copies]
        words = tuple(word[copies] for word in self.words)
        return PendingRows.of(words, ops, self.ordinals[copies], np.ones(len(copies), np.int64))

    @staticmethod
    def concat(parts: Sequence[PendingRows]) -> PendingRows:
        """All rows of one or more parts of the same table."""
        return PendingRows(Rows.concat([part.rows for part in parts]))

    def __len__(self) -> int:
        return len(self.rows)


def added(ops: Words, weights: Words) -> npt.NDArray[np.bool_]:
    """bool[n]: whether a change adds a row to its table."""
    adding: npt.NDArray[np.bool_] = np.isin(ops, _ADDING) | ((ops == WEIGHT) & (weights > 0))
    return adding
