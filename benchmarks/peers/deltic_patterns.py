"""Deltic without increments: after every tick a new session loads all current edges."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.checks import Change
from benchmarks.engine import Answer
from benchmarks.patterns import PATTERNS, Embedded, Pattern
from benchmarks.peers.edge_set import EdgeSet


class Recompute:
    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.edges = EdgeSet()

    def prepare(self, edges: Change) -> Change:
        return edges

    def tick(self, prepared: Change) -> pa.Table:
        self.edges.apply(prepared)
        source, target = self.edges.ends()
        fresh = Embedded(self.pattern)
        fresh.tick(fresh.prepare((np.ones_like(source), source, target)))
        return fresh.session.view("found").to_arrow()

    def answer(self, read: pa.Table) -> Answer:
        return Answer([np.asarray(read[name].combine_chunks()).astype(np.int64) for name in self.pattern.names], None)


def engine(pattern: str) -> Recompute:
    return Recompute(PATTERNS[pattern])
