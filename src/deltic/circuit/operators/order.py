"""Lays rows out so that their words sort in a given order, for top-k and for MIN and MAX; and the limbs of exact float sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.extremes import STRING_WORDS, order_words
from deltic.circuit.operator import Context, Delta
from deltic.schema import DOUBLE, STRING, Field
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import decode, words_of
from deltic.trace.rows import Rows
from deltic.trace.sums import float_limbs, normalise_limbs

Words = tuple[np.ndarray, ...]
MARKER = np.int64(np.iinfo(np.int64).min)
DOUBLE_VALUE = Field("value", DOUBLE, False)


@dataclass(frozen=True, slots=True)
class Term:
    """The field whose words begin at `start`, in one direction. Flagged terms have a word that puts NULLs first or last."""

    start: int
    field: Field
    descending: bool = False
    nulls_first: bool = True

    @property
    def flagged(self) -> bool:
        return self.field.nullable

    @property
    def width(self) -> int:
        value = STRING_WORDS + 1 if self.field.type == STRING else words_of(self.field.type, False)
        return self.flagged + value

    def words(self, columns: Words, context: Context) -> Words:
        width = words_of(self.field.type, self.field.nullable)
        value = columns[self.start : self.start + width]
        flags: Words = ()
        if self.flagged:
            split = width > words_of(self.field.type, False)
            null = value[0] == 0 if split else value[0] == MARKER
            flags = (np.where(null, 0, 1) if self.nulls_first else null.astype(np.int64),)
            value = value[1:] if split else value
        return (*flags, *order_words(value, self.field, self.descending, context.strings))


@dataclass(frozen=True, slots=True)
class Sort:
    """Words of the result, part by part: a word of the input as it is, or those of a term. `constant` puts a 0 before them."""

    parts: tuple[int | Term, ...]
    constant: bool = False

    @property
    def name(self) -> str:
        return "order"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        rows = inputs[0]
        columns = tuple(rows.columns)
        words: list[np.ndarray] = [np.zeros(len(rows), np.int64)] if self.constant else []
        for part in self.parts:
            words += (columns[part],) if isinstance(part, int) else part.words(columns, context)
        return Rows(tuple(words), tuple(rows.weights))


@dataclass(frozen=True, slots=True)
class Limbs:
    """explode: (group words, a DOUBLE) becomes (group words, slot, position) with limbs as weights, whose sum is exact."""

    key: int
    slot: int

    @property
    def name(self) -> str:
        return "limbs"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        rows = inputs[0]
        values = decode(rows.columns[self.key :], DOUBLE_VALUE, context.strings).to_numpy()
        row, position, limb = float_limbs(values, rows.weights[0])
        group = tuple(c[row] for c in rows.columns[: self.key])
        return self._carried(Rows((*group, np.full(len(row), self.slot, np.int64), position), (limb,)))

    @staticmethod
    def _carried(rows: Rows) -> Delta:
        """Consolidated, with limbs that have grown large carried into the next position, so that sums of batches do not overflow."""
        batch = consolidate(rows)
        row, position, limb = normalise_limbs(batch.columns[-1], batch.weights[0])
        if not len(row):
            return batch
        more = (*(c[row] for c in batch.columns[:-1]), position)
        columns = tuple(np.concatenate([a, b]) for a, b in zip(batch.columns, more, strict=True))
        return consolidate(Rows(columns, (np.concatenate([batch.weights[0], limb]),)))
