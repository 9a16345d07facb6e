"""order: lays rows out so that their words sort in a given order, for top-k and the extremes of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.circuit.terms import Term
from deltic.schema import Type
from deltic.trace.rows import Rows

LEFT_OUT: Final = 4
"""Rows are left out where there are so many times more than wanted."""


@dataclass(frozen=True, slots=True)
class Sort:
    """The words of the result, part by part: an input word, or the order words of a term. constant: a 0 precedes them.

    types: of the fields of the result, where equal words may also be other fields.
    """

    parts: tuple[int | Term, ...]
    constant: bool = False
    types: tuple[Type, ...] = ()

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
            words += (columns[part],) if isinstance(part, int) else part.words(columns, context.strings)
        return Rows(tuple(words), tuple(rows.weights))


@dataclass(frozen=True, slots=True)
class SortFirst:
    """As `Sort`, where only the first `limit` rows of a whole relation are wanted: leaves out most of the others. O(rows)."""

    sort: Sort
    limit: int

    @property
    def name(self) -> str:
        return self.sort.name

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        rows = inputs[0]
        if 0 < LEFT_OUT * self.limit < len(rows) and (rows.weights[0] > 0).all():  # else rows may cancel others
            rows = rows.take(self._candidates(rows, context))
        return self.sort.step((rows,), context)

    def _candidates(self, rows: Rows, context: Context) -> np.ndarray:
        """Positions of the first rows, and of those that the order words up to the first string do not tell from the last of them."""
        columns = tuple(rows.columns)  # none where only the number of rows is read
        tied, first, limit = np.arange(len(rows)), list[np.ndarray](), self.limit
        for part in self.sort.parts:
            is_text = isinstance(part, Term) and part.field.type.has_bytes
            words = (columns[part],) if isinstance(part, int) else part.words(columns, context.strings)
            for word in words[: len(words) - is_text]:  # the id of a string is no order
                tied_words = word if len(tied) == len(word) else word[tied]
                last = np.partition(tied_words, limit - 1)[limit - 1]
                before = tied[tied_words < last]
                first.append(before)
                tied, limit = tied[tied_words == last], limit - len(before)
            if is_text or len(tied) <= LEFT_OUT * self.limit:
                break
        return np.sort(np.concatenate((*first, tied)))
