"""join_trace: Δ(A ⋈ B) = ΔA ⋈ (B + ΔB) + A ⋈ ΔB over the old versions of two arrangements. Bilinear.

Work is in proportion to the changes and their matches: only the changes' keys are looked up. Linear operators behind a join are applied to
the matches before these are written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deltic.circuit.measures import carry_pairs
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.operators.chain import ARROW, Chain
from deltic.circuit.operators.selection_vector import SelectionVector
from deltic.errors import WeightOverflow
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.weights import products

Words = tuple[np.ndarray, ...]


class Match(NamedTuple):
    """What a change of a side meets: its row rows[i] with match i of the other side, whose words of the output are `found`."""

    delta: Delta
    side: int
    rows: np.ndarray
    found: Sequence[np.ndarray]
    weights: Words


@dataclass(frozen=True, slots=True)
class JoinOperator:
    """Rows of two arrangements whose first `key` words are equal.

    output: (side, word) for each output word; side 0 is left. weights: (left weight, right weight) whose product each output
    weight is. widths: (columns, weights) of the two arrangements. limbs: pairs (high, low) of *output* weights that stand for
    high·2^32 + low; where a product of a low limb would leave 64 bits its carry moves into the high limb first. behind: what is applied to
    the matches; nothing of it can fail, since matches are not consolidated.
    """

    left: str
    right: str
    key: int
    widths: tuple[tuple[int, int], tuple[int, int]]
    output: tuple[tuple[int, int], ...]
    weights: tuple[tuple[int, int], ...] = ((0, 0),)
    limbs: tuple[tuple[int, int], ...] = ()
    behind: Chain | None = None

    @property
    def name(self) -> str:
        return "join_trace" if self.behind is None else f"join_trace{ARROW}{self.behind.name}"

    @property
    def eager(self) -> bool:
        return self.behind is not None and self.behind.eager

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        left, right = inputs
        found = []
        if len(left):
            found.append(self._match(left, 0, context.old(self.right, *self.widths[1]).with_batch(as_batch(right)), context))
        if len(right):
            found.append(self._match(right, 1, context.old(self.left, *self.widths[0]), context))
        if self.behind is not None:
            return self.behind.applied([self._gathered(match, self.behind) for match in found if len(match.rows)], context)
        parts = [self.matched(*match) for match in found if len(match.rows)]
        if len(parts) == 1:
            return parts[0]
        return Rows.concat(parts) if parts else Rows.empty(len(self.output), len(self.weights))

    def _match(self, delta: Delta, side: int, spine: Spine, context: Context) -> Match:
        """Rows of `delta`, which is the change of `side`, with what `spine`, the other side, has under their keys."""
        theirs = [word for other, word in self.output if other != side]
        return Match(delta, side, *probe(spine, delta.columns[: self.key], theirs, context.counters))

    def _gathered(self, match: Match, behind: Chain) -> SelectionVector:
        """The joined rows, as what is behind takes them."""
        rows, side = match.rows, match.side
        positions = None if _each_once(rows, len(match.delta)) else rows
        mine = match.delta.weights if positions is None else tuple(weight[positions] for weight in match.delta.weights)
        found = iter(match.found)
        words = tuple(next(found) if other != side else match.delta.columns[word] for other, word in self.output)
        fields = [(words[at], int(self.output[at.start][0] != side)) for at in behind.layout.slices]
        return SelectionVector(behind.source, fields, (self._weighed(mine, side, match.weights), 1), [positions, None], len(rows))

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
        return Rows(columns, self._weighed(delta.weights, side, their_weights))

    def _weighed(self, mine: Words, side: int, theirs: Words) -> Words:
        """The weights of joined rows, from those of both sides; `mine` are those of `side`."""
        if len(theirs) == 1 and (theirs[0] == 1).all():
            return tuple(mine[pair[side]] for pair in self.weights)
        return self._products(mine, theirs) if side == 0 else self._products(theirs, mine)

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
