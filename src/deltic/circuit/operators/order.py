"""order: lays rows out so that their words sort in a given order, for top-k and the extremes of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.circuit.terms import Term
from deltic.schema import Type
from deltic.trace.rows import Rows


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
