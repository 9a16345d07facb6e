"""join_trace: Δ(A ⋈ B) = ΔA ⋈ (B + ΔB) + A ⋈ ΔB over the old versions of two arrangements. Bilinear.

Work is in proportion to the changes and their matches: only the changes' keys are looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.measures import carry_pairs
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.errors import WeightOverflow
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.weights import products

Words = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Rows of two arrangements whose first `key` words are equal.

    output: (side, word) for each output word; side 0 is left. weights: (left weight, right weight) whose product each output
    weight is. widths: (columns, weights) of the two arrangements. limbs: pairs (high, low) of *output* weights that stand for
    high·2^32 + low; where a product of a low limb would leave 64 bits its carry moves into the high limb first.
    """

    left: str
    right: str
    key: int
    widths: tuple[tuple[int, int], tuple[int, int]]
    output: tuple[tuple[int, int], ...]
    weights: tuple[tuple[int, int], ...] = ((0, 0),)
    limbs: tuple[tuple[int, int], ...] = ()

    @property
    def name(self) -> str:
        return "join_trace"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        left, right = inputs
        parts = []
        if len(left):
            parts.append(self._match(left, 0, context.old(self.right, *self.widths[1]).with_batch(as_batch(right)), context))
        if len(right):
            parts.append(self._match(right, 1, context.old(self.left, *self.widths[0]), context))
        parts = [part for part in parts if len(part)]
        if len(parts) == 1:
            return parts[0]
        return Rows.concat(parts) if parts else Rows.empty(len(self.output), len(self.weights))

    def _match(self, delta: Delta, side: int, spine: Spine, context: Context) -> Rows:
        """Rows of `delta`, which is the change of `side`, with what `spine`, the other side, has under their keys."""
        theirs = [word for other, word in self.output if other != side]
        source, found, their_weights = probe(spine, delta.columns[: self.key], theirs, context.counters)
        return self.matched(delta, side, source, found, their_weights)

    def matched(self, delta: Delta, side: int, source: np.ndarray, found: Sequence[np.ndarray], their_weights: Words) -> Rows:
        """The joined rows of `delta`, which is the change of `side`: its row source[i] with match i of the other side.

        found: the other side's words of the output, in its order.
        """
        if not len(source):
            return Rows.empty(len(self.output), len(self.weights))
        if not _each_once(source, len(delta)):
            delta = delta.take(source)
        found_words = iter(found)
        columns = tuple(next(found_words) if other != side else delta.columns[word] for other, word in self.output)
        if len(their_weights) == 1 and (their_weights[0] == 1).all():
            return Rows(columns, tuple(delta.weights[pair[side]] for pair in self.weights))
        mine, other_side = (delta.weights, their_weights) if side == 0 else (their_weights, delta.weights)
        return Rows(columns, self._products(mine, other_side))

    def _products(self, left: Words, right: Words) -> Words:
        try:
            return self._multiplied(left, right)
        except WeightOverflow:
            if not self.limbs:
                raise
            left, right = carry_pairs(self.limbs, self.weights, left, right)
            return self._multiplied(left, right)

    def _multiplied(self, left: Words, right: Words) -> Words:
        return products([left[i] for i, _ in self.weights], [right[j] for _, j in self.weights])


def _each_once(source: np.ndarray, length: int) -> bool:
    """Whether every key has just one match, as where a foreign key finds its primary key."""
    return len(source) == length and bool((source[1:] > source[:-1]).all())
