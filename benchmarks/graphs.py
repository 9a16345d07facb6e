"""What recursive views over edges hold after every tick of a feed, each time computed from scratch with NumPy.

A feed has rows (tick, weight, source, target), as those of benchmarks.workloads; nodes are numbers from 0 to `nodes` - 1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import checks
from benchmarks.checks import Words
from benchmarks.workloads import Feed


def closure(feed: Feed) -> Iterator[tuple[Words, Words]]:
    """All (source, target) with a way of one edge or more: Warshall's algorithm on rows of bits, nodes² / 8 bytes."""
    nodes = _nodes(feed)
    for source, target in _present(feed, nodes):
        adjacent = np.zeros((nodes, -(-nodes // 64) * 64), np.uint8)
        adjacent[source, target] = 1
        bits = np.packbits(adjacent, axis=1).view(np.uint64)
        for through in range(nodes):
            byte, bit = divmod(through, 8)
            before = (bits.view(np.uint8)[:, byte] >> (7 - bit)) & 1
            bits[np.flatnonzero(before)] |= bits[through]
        start, end = np.nonzero(np.unpackbits(bits.view(np.uint8), axis=1))
        yield start.astype(np.int64), end.astype(np.int64)


def reachability(feed: Feed, root: int = 0) -> Iterator[tuple[Words]]:
    """The root and all nodes that there is a way to from it: breadth first, a level at a time."""
    nodes = _nodes(feed)
    for source, target in _present(feed, nodes):
        first = np.searchsorted(source, np.arange(nodes + 1))
        reached = np.zeros(nodes, bool)
        level = np.array([root])
        while len(level):
            reached[level] = True
            counts = first[level + 1] - first[level]
            within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            ahead = np.unique(target[np.repeat(first[level], counts) + within])
            level = ahead[~reached[ahead]]
        yield (np.flatnonzero(reached).astype(np.int64),)


def _nodes(feed: Feed) -> int:
    return int(feed[:, 2:].max()) + 1


def _present(feed: Feed, nodes: int) -> Iterator[tuple[Words, Words]]:
    """The edges that are there after every tick, sorted."""
    present = np.zeros(0, np.int64)
    for weight, source, target in checks.split(feed, int(feed[-1, 0]) + 1):
        edges = source * nodes + target
        gone, new = np.sort(edges[weight < 0]), np.sort(edges[weight > 0])
        assert np.isin(gone, present).all() and not np.isin(new, present).any(), "the feed holds an edge twice, or deletes an absent one"
        present = np.delete(present, np.searchsorted(present, gone))
        present = np.insert(present, np.searchsorted(present, new), new)
        yield present // nodes, present % nodes
