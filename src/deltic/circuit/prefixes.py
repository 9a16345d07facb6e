"""Prefixes: the words that a rule of a multiway join has bound so far, with weights, and what a step makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deltic.circuit.measures import carry_pairs
from deltic.circuit.operator import Context, Delta
from deltic.circuit.rules import Filter, Limb, Rule, Scaling, Stage
from deltic.errors import WeightOverflow
from deltic.trace.rows import Rows
from deltic.trace.sums import split64
from deltic.trace.weights import multiply, products

Words = npt.NDArray[np.int64]

PIECE = 1 << 16
"""Prefixes that a step works on at once: what waits for later steps is some such pieces, however much a join has in between."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """n prefixes. columns: int64[n] for each position that is still read. weights: int64[n] for each product so far.

    In scopes, the iterations at which they are due stand at the negative positions, that of the outermost scope at -1.
    """

    columns: Mapping[int, Words]
    weights: tuple[Words, ...]

    @staticmethod
    def of(rule: Rule, change: Delta) -> Prefixes:
        """What a rule starts from."""
        columns = {position: change.columns[word] for position, word in enumerate(rule.start)}
        started = Prefixes(columns, tuple(change.weights[factor] for factor in rule.plan.factors))
        return started if rule.plan.scaling is None else started.scaled(rule.plan.scaling)

    def __len__(self) -> int:
        return len(self.weights[0])

    def pieces(self) -> Iterator[Prefixes]:
        """All of them, at most PIECE at a time."""
        if len(self) <= PIECE:
            yield self
            return
        for start in range(0, len(self), PIECE):
            part = slice(start, start + PIECE)
            yield Prefixes({p: c[part] for p, c in self.columns.items()}, tuple(w[part] for w in self.weights))

    def key(self, positions: Sequence[int]) -> list[Words]:
        return [self.columns[p] for p in positions]

    def take(self, rows: np.ndarray, kept: Sequence[int] | None = None) -> Prefixes:
        """These rows; kept: of these positions, as far as they are there."""
        columns = {p: c[rows] for p, c in self.columns.items() if kept is None or p < 0 or p in kept}
        return Prefixes(columns, tuple(w[rows] for w in self.weights))

    def scaled(self, scaling: Scaling) -> Prefixes:
        """Weights multiplied with words."""
        weights = tuple(
            self.weights[column] if word is None else multiply(_limb(self.columns[word[0]], word[1]), self.weights[column])
            for column, word in zip(scaling.columns, scaling.words, strict=True)
        )
        return Prefixes(self.columns, weights)

    def kept(self, predicate: Filter, context: Context) -> Prefixes:
        """Those of which the predicate holds."""
        rows = Rows(self.key(predicate.words), (np.arange(len(self)),))
        left = predicate.map.step((rows,), context)
        return self if len(left) == len(self) else self.take(left.weights[0])

    def extended(self, stage: Stage, source: Words, bound: Mapping[int, Words], weights: Sequence[Words], context: Context) -> Prefixes:
        """What a step makes of them: row i is prefix source[i] with the words `bound`, by position. weights: those that the step gives."""
        rows = self.take(source, stage.kept)
        carried = _products(stage, rows.weights, tuple(weights)) if stage.pairs else rows.weights
        rows = Prefixes({**rows.columns, **bound}, carried)
        if stage.scaling is not None:
            rows = rows.scaled(stage.scaling)
        if stage.step.predicate is not None:
            rows = rows.kept(stage.step.predicate, context)
        return rows


def _limb(words: Words, limb: Limb) -> Words:
    return words if limb == "whole" else split64(words)[int(limb == "low")]


def _products(stage: Stage, left: tuple[Words, ...], right: tuple[Words, ...]) -> tuple[Words, ...]:
    try:
        return _multiplied(stage, left, right)
    except WeightOverflow:
        if not stage.limbs:
            raise
        return _multiplied(stage, *carry_pairs(stage.limbs, stage.pairs, left, right))


def _multiplied(stage: Stage, left: tuple[Words, ...], right: tuple[Words, ...]) -> tuple[Words, ...]:
    return products([left[i] for i, _ in stage.pairs], [right[j] for _, j in stage.pairs])
