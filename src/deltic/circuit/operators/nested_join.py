"""join_trace in nested scopes: the lookups of `join.py`, at the times of `nested.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Delta
from deltic.circuit.operators.join import JoinOperator
from deltic.circuit.operators.nested import NestedBilinear, Words
from deltic.circuit.scopes import ScopeContext, ScopedTrace
from deltic.trace.counters import Counters
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine


@dataclass(frozen=True, slots=True)
class NestedJoin(NestedBilinear):
    """`flat` at times in scopes."""

    flat: JoinOperator
    depths: tuple[int, int]

    @property
    def width(self) -> tuple[int, int]:
        return len(self.flat.output), len(self.flat.weights)

    def trace(self, side: int, scopes: ScopeContext) -> ScopedTrace:
        flat, depth = self.flat, self.depths[side]
        columns, weights = flat.widths[side]
        return scopes.trace((flat.left, flat.right)[side], columns + depth, weights, depth)

    def products(self, delta: Delta, side: int, spine: Spine, scopes: ScopeContext) -> Iterator[tuple[Rows, Words]]:
        flat, width, depth = self.flat, self.flat.widths[1 - side][0], self.depths[1 - side]
        other_words = [word for other, word in flat.output if other != side]
        words = (*other_words, *range(width, width + depth))
        source, matches, weights = _probed(spine, flat.sought(delta, side), words, scopes.counters)
        yield flat.matched(delta, side, source, matches[: len(other_words)], weights), matches[len(other_words) :]


def _probed(spine: Spine, keys: Sequence[np.ndarray], words: tuple[int, ...], counters: Counters) -> tuple[np.ndarray, Words, Words]:
    """As probe(), without the rows of other shards: in a scope that is spread, the joined relation has keys of every shard."""
    share = spine.share
    if share is None:
        return probe(spine, keys, words, counters)
    source, matches, weights = probe(spine, keys, (*words, *share.key), counters)
    shard_key = range(1 + len(words), 1 + len(matches))
    own = share._replace(key=tuple(shard_key)).of(Rows((source, *matches), weights))
    return own.columns[0], tuple(own.columns[1 : shard_key.start]), tuple(own.weights)
