"""join_trace: Δ(A ⋈ B) = ΔA ⋈ (B + ΔB) + A ⋈ ΔB over the old versions of two arrangements. Bilinear.

Only the keys of the changes are looked up: O(changes + matches). Linear operators after the join run on the matches before these are
written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from deltic.circuit.measures import carry_pairs
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.operators.chain import ARROW, Chain
from deltic.circuit.operators.keys import Keys, key_words
from deltic.circuit.operators.selection_vector import SelectionVector
from deltic.errors import WeightOverflow
from deltic.trace.cancelling import uncancelled
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.weights import products
from deltic.types import OMITTED

Words = tuple[np.ndarray, ...]


class Match(NamedTuple):
    """The matches of a side's change: its row rows[i] with match i of the other side. matches: the output words of the other side."""

    delta: Delta
    side: int
    rows: np.ndarray
    matches: Sequence[np.ndarray]
    weights: Words


@dataclass(frozen=True, slots=True)
class JoinOperator:
    """Rows of two arrangements whose first `key` words are equal, or as `keys` says.

    output: (side, word) for each output word; side 0 is left. weights: for each output weight its factors (left weight, right weight).
    widths: (columns, weights) of the two arrangements. limbs: pairs (high, low) of *output* weights whose value is high·2^32 + low; if a
    product of a low limb would leave 64 bits, its carry first moves into the high limb. chain: the operators applied to the matches; none
    of them can fail, since matches are not consolidated. keys: for each side the words of its change that the other side is looked up by,
    if the keys of both differ in flag words; see `key_words`.
    """

    left: str
    right: str
    key: int
    widths: tuple[tuple[int, int], tuple[int, int]]
    output: tuple[tuple[int, int], ...]
    weights: tuple[tuple[int, int], ...] = ((0, 0),)
    limbs: tuple[tuple[int, int], ...] = ()
    chain: Chain | None = None
    keys: Keys = field(default=(), metadata={OMITTED: True})

    @property
    def name(self) -> str:
        return "join_trace" if self.chain is None else f"join_trace{ARROW}{self.chain.name}"

    @property
    def eager(self) -> bool:
        return self.chain is not None and self.chain.eager

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        left, right = inputs
        matches = []
        if len(left):
            matches.append(self._match(left, 0, context.old(self.right, *self.widths[1]).with_batch(as_batch(right)), context))
        if len(right):
            matches.append(self._match(right, 1, context.old(self.left, *self.widths[0]), context))
        if self.chain is not None:
            return self._chained(self.chain, [match for match in matches if len(match.rows)], context)
        parts = [self.matched(*match) for match in matches if len(match.rows)]
        if len(parts) == 1:
            return parts[0]
        return Rows.concat(parts) if parts else Rows.empty(len(self.output), len(self.weights))

    def _match(self, delta: Delta, side: int, spine: Spine, context: Context) -> Match:
        """The matches of `delta`, the change of `side`, in `spine`, the trace of the other side.

        Of rows that cancel for this join, since they differ in words that it does not read, none is looked up.
        """
        other_words = [word for other, word in self.output if other != side]
        keys = self.sought(delta, side)
        read = [*keys, *(delta.columns[word] for other, word in self.output if other == side)]
        kept = uncancelled(read, [delta.weights[pair[side]] for pair in self.weights])
        if kept is not None and not len(kept):
            return Match(delta, side, kept, (), ())
        rows, *found = probe(spine, keys if kept is None else [word[kept] for word in keys], other_words, context.counters)
        return Match(delta, side, rows if kept is None else kept[rows], *found)

    def sought(self, delta: Delta, side: int) -> Sequence[np.ndarray]:
        """The keys to look up in the other side for `delta`, the change of `side`."""
        return key_words(delta, self.keys[side]) if self.keys else delta.columns[: self.key]

    def _chained(self, chain: Chain, matches: Sequence[Match], context: Context) -> Delta:
        """The chain's result on the joined rows."""
        parts: list[Rows] = []
        left: list[Match] = []
        for match in matches:
            passed = None if context.passes is None else context.passes(chain, len(match.rows), partial(self._part, match), context)
            if passed is None:
                left.append(match)
            else:
                parts.append(passed)
        if left or not parts:
            parts.append(chain.applied([self._gathered(match, chain) for match in left], context))
        return Rows.concat(parts)

    def _part(self, match: Match, start: int, end: int) -> Rows:
        """The joined rows from match `start` to `end`."""
        weights = tuple(weight[start:end] for weight in match.weights)
        return self.matched(match.delta, match.side, match.rows[start:end], [words[start:end] for words in match.matches], weights)

    def _gathered(self, match: Match, chain: Chain) -> SelectionVector:
        """The joined rows as input of the chain."""
        rows, side = match.rows, match.side
        positions = None if _each_once(rows, len(match.delta)) else rows
        weights = match.delta.weights if positions is None else tuple(weight[positions] for weight in match.delta.weights)
        matches = iter(match.matches)
        words = tuple(next(matches) if other != side else match.delta.columns[word] for other, word in self.output)
        fields = [(words[part], int(self.output[part.start][0] != side)) for part in chain.layout.slices]
        return SelectionVector(chain.source, fields, (self._weighed(weights, side, match.weights), 1), [positions, None], len(rows))

    def matched(self, delta: Delta, side: int, source: np.ndarray, matches: Sequence[np.ndarray], other_weights: Words) -> Rows:
        """The joined rows of `delta`, the change of `side`: its row source[i] with match i of the other side.

        matches: the output words of the other side, in output order.
        """
        if not len(source):
            return Rows.empty(len(self.output), len(self.weights))
        if not _each_once(source, len(delta)):
            delta = delta.take(source)
        other_words = iter(matches)
        columns = tuple(next(other_words) if other != side else delta.columns[word] for other, word in self.output)
        return Rows(columns, self._weighed(delta.weights, side, other_weights))

    def _weighed(self, weights: Words, side: int, other: Words) -> Words:
        """The weights of joined rows. weights: those of `side`. other: those of the other side."""
        if len(other) == 1 and (other[0] == 1).all():
            return tuple(weights[pair[side]] for pair in self.weights)
        return self._products(weights, other) if side == 0 else self._products(other, weights)

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
    """Whether every key has exactly one match, as when a foreign key matches a primary key."""
    return len(source) == length and bool((source[1:] > source[:-1]).all())
