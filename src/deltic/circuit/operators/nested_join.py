"""join_trace in nested scopes: every pair of changes is joined once, and its product is due at the join of their times.

A change of one side is joined with all changes of the other side so far, later iterations of past epochs included. A product is due at the
greater of both iterations, in each scope; products that are due later wait in a queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.due import split_by_time
from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.join import JoinOperator
from deltic.circuit.scopes import Nest, ScopedTrace, nest_of
from deltic.trace.counters import Counters
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class NestedJoin:
    """`flat` at times in scopes. depths: those of the scopes of the two arrangements: this scope or one around it."""

    flat: JoinOperator
    depths: tuple[int, int]

    @property
    def name(self) -> str:
        return self.flat.name

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        nest = nest_of(context)
        left, right = inputs
        parts = nest.awaited()
        if len(left):
            parts.append(self._match(left, 0, self._trace(1, nest).now, nest))
        if len(right):
            trace = self._trace(0, nest)
            parts.append(self._match(right, 1, trace.before if len(left) else trace.now, nest))
        parts = [part for part in parts if len(part)]
        return Rows.concat(parts) if parts else Rows.empty(len(self.flat.output), len(self.flat.weights))

    def _trace(self, side: int, nest: Nest) -> ScopedTrace:
        flat, depth = self.flat, self.depths[side]
        columns, weights = flat.widths[side]
        return nest.trace((flat.left, flat.right)[side], columns + depth, weights, depth)

    def _match(self, delta: Delta, side: int, spine: Spine, nest: Nest) -> Rows:
        """The products of `delta`, the change of `side`, that are due now; the others are postponed. spine: the other side."""
        flat, width, depth = self.flat, self.flat.widths[1 - side][0], self.depths[1 - side]
        other_words = [word for other, word in flat.output if other != side]
        words = (*other_words, *range(width, width + depth))
        source, matches, weights = _probed(spine, flat.sought(delta, side), words, nest.counters)
        rows = flat.matched(delta, side, source, matches[: len(other_words)], weights)
        now, later = split_by_time(matches[len(other_words) :], nest.time)
        for time, positions in later:
            nest.postpone(time, rows.take(positions))
        return rows if now is None else rows.take(now)


def _probed(spine: Spine, keys: Sequence[np.ndarray], words: tuple[int, ...], counters: Counters) -> tuple[np.ndarray, Words, Words]:
    """As probe(), without the rows of other shards: in a scope that is spread, the joined relation has keys of every shard."""
    share = spine.share
    if share is None:
        return probe(spine, keys, words, counters)
    source, matches, weights = probe(spine, keys, (*words, *share.key), counters)
    shard_key = range(1 + len(words), 1 + len(matches))
    own = share._replace(key=tuple(shard_key)).of(Rows((source, *matches), weights))
    return own.columns[0], tuple(own.columns[1 : shard_key.start]), tuple(own.weights)
