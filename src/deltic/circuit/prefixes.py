"""Prefixes: the words that a rule of a multiway join has bound so far, with weights, and how a step extends them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from deltic.circuit.measures import carry_pairs
from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.keys import key_words
from deltic.circuit.rules import Limb, PlannedStep, PrefixFilter, Rule, Scaling
from deltic.errors import WeightOverflow
from deltic.trace.rows import Rows
from deltic.trace.sums import split64
from deltic.trace.weights import multiply, products

Words = npt.NDArray[np.int64]

PIECE = 1 << 16
"""Prefixes that a step processes at once: a few such pieces are held for later steps, however large the intermediate results are."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """n prefixes. columns: int64[n] for each position that is still read. weights: int64[n] for each product so far.

    In scopes, negative positions hold the iterations at which they are due, -1 that of the outermost scope.
    """

    columns: Mapping[int, Words]
    weights: tuple[Words, ...]

    @staticmethod
    def of(rule: Rule, change: Delta) -> Prefixes:
        """The first prefixes of a rule."""
        columns = dict(enumerate(key_words(change, rule.start)))
        started = Prefixes(columns, tuple(change.weights[factor] for factor in rule.plan.factors))
        return started if rule.plan.scaling is None else started.scaled(rule.plan.scaling)

    def __len__(self) -> int:
        return len(self.weights[0])

    def pieces(self) -> Iterator[Prefixes]:
        """All prefixes, at most PIECE at a time."""
        if len(self) <= PIECE:
            yield self
            return
        for start in range(0, len(self), PIECE):
            part = slice(start, start + PIECE)
            yield Prefixes({p: c[part] for p, c in self.columns.items()}, tuple(w[part] for w in self.weights))

    def key(self, positions: Sequence[int]) -> list[Words]:
        return [self.columns[p] for p in positions]

    def take(self, rows: np.ndarray, kept: Sequence[int] | None = None) -> Prefixes:
        """The prefixes at the positions `rows`. kept: the columns to keep, if present; None for all."""
        columns = {p: c[rows] for p, c in self.columns.items() if kept is None or p < 0 or p in kept}
        return Prefixes(columns, tuple(w[rows] for w in self.weights))

    def scaled(self, scaling: Scaling) -> Prefixes:
        """Weights multiplied with words."""
        weights = tuple(
            self.weights[column] if word is None else multiply(_limb(self.columns[word[0]], word[1]), self.weights[column])
            for column, word in zip(scaling.columns, scaling.words, strict=True)
        )
        return Prefixes(self.columns, weights)

    def kept(self, predicate: PrefixFilter, context: Context) -> Prefixes:
        """The prefixes for which the predicate is true."""
        rows = Rows(self.key(predicate.words), (np.arange(len(self)),))
        left = predicate.map.step((rows,), context)
        return self if len(left) == len(self) else self.take(left.weights[0])

    def extended(
        self, planned: PlannedStep, source: Words, bound: Mapping[int, Words], weights: Sequence[Words], context: Context
    ) -> Prefixes:
        """The prefixes after a step: row i is prefix source[i] with the words `bound`, by position. weights: those of the step."""
        rows = self.take(source, planned.kept)
        carried = _products(planned, rows.weights, tuple(weights)) if planned.pairs else rows.weights
        rows = Prefixes({**rows.columns, **bound}, carried)
        if planned.scaling is not None:
            rows = rows.scaled(planned.scaling)
        if planned.step.predicate is not None:
            rows = rows.kept(planned.step.predicate, context)
        return rows


NO_PREFIXES: Final = Prefixes({}, (np.empty(0, np.int64),))


def _limb(words: Words, limb: Limb) -> Words:
    return words if limb == "whole" else split64(words)[int(limb == "low")]


def _products(planned: PlannedStep, left: tuple[Words, ...], right: tuple[Words, ...]) -> tuple[Words, ...]:
    try:
        return _multiplied(planned, left, right)
    except WeightOverflow:
        if not planned.limbs:
            raise
        return _multiplied(planned, *carry_pairs(planned.limbs, planned.pairs, left, right))


def _multiplied(planned: PlannedStep, left: tuple[Words, ...], right: tuple[Words, ...]) -> tuple[Words, ...]:
    return products([left[i] for i, _ in planned.pairs], [right[j] for _, j in planned.pairs])
