"""What views over edges hold after every tick of a feed: from scratch, but `triangles` and `cliques`, which take one edge after another.

A feed has rows (tick, weight, source, target), as those of benchmarks.workloads; nodes are numbers from 0 to `nodes` - 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import checks
from benchmarks.checks import Change, Words
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
    """All nodes reachable from the root, including it: breadth first, one level at a time."""
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


Neighbours = dict[int, set[int]]


def triangles(feed: Feed) -> Iterator[Change]:
    """How t(x, y, z) := g(x, y), g(x, z), g(y, z) changes: columns (weight, x, y, z)."""
    out: Neighbours = defaultdict(set)
    into: Neighbours = defaultdict(set)
    for tick in _edge_by_edge(feed, out, into):
        rows: list[tuple[int, int, int, int]] = []
        for weight, a, b in tick:
            rows += [(weight, a, b, z) for z in out[a] & out[b]]
            rows += [(weight, x, a, b) for x in into[a] & into[b]]
            rows += [(weight, a, y, b) for y in out[a] & into[b]]
        yield tuple(np.array(rows, np.int64).reshape(-1, 4).T)


def cliques(feed: Feed) -> Iterator[int]:
    """The number of k(a, b, c, d) with edges ab, ac, ad, bc, bd, cd."""
    out: Neighbours = defaultdict(set)
    into: Neighbours = defaultdict(set)
    total = 0

    def beside(place: int, node: int, other: int) -> set[int]:
        """The nodes that may be at `other` when the node is at `place`."""
        return out[node] if place < other else into[node]

    for tick in _edge_by_edge(feed, out, into):
        for weight, a, b in tick:
            for first, second in combinations(range(4), 2):
                third, fourth = (place for place in range(4) if place not in (first, second))
                fourths = beside(first, a, fourth) & beside(second, b, fourth)
                for node in beside(first, a, third) & beside(second, b, third):
                    total += weight * len(fourths & beside(third, node, fourth))
        yield total


def _edge_by_edge(feed: Feed, out: Neighbours, into: Neighbours) -> Iterator[Iterator[tuple[int, int, int]]]:
    """Every tick's edges (weight, source, target); an added edge joins both sets after its turn, a removed one leaves them before."""
    for tick in checks.split(feed, int(feed[-1, 0]) + 1):
        yield _turns(tick, out, into)


def _turns(tick: Change, out: Neighbours, into: Neighbours) -> Iterator[tuple[int, int, int]]:
    for weight, source, target in zip(*(column.tolist() for column in tick), strict=True):
        assert source != target, "a loop would occur at several places of one row"
        assert (weight < 0) == (target in out[source]), "the feed holds an edge twice, or deletes an absent one"
        if weight < 0:
            out[source].remove(target)
            into[target].remove(source)
        yield weight, source, target
        if weight > 0:
            out[source].add(target)
            into[target].add(source)


def cycles(feed: Feed) -> Iterator[int]:
    """The number of q(a, b, c, d) with edges ab, bc, cd, da: the trace of the adjacency matrix's fourth power."""
    for edges in _matrices(feed):
        two = edges @ edges
        yield int(two.multiply(two.T).sum())


def bow_ties(feed: Feed) -> Iterator[int]:
    """The number of w(a, b, c, d, e) with edges ab, bc, ca, ad, de, ea: two directed triangles through each a."""
    for edges in _matrices(feed):
        around = (edges @ edges).multiply(edges.T).sum(axis=1)
        yield sum(int(triangles) ** 2 for triangles in np.asarray(around).ravel())


def _matrices(feed: Feed) -> Iterator[Any]:
    """The edges present after every tick as a sparse matrix of 0 and 1."""
    nodes = _nodes(feed)
    for source, target in _present(feed, nodes):
        yield sparse.csr_array((np.ones(len(source), np.int64), (source, target)), (nodes, nodes))


def _nodes(feed: Feed) -> int:
    return int(feed[:, 2:].max()) + 1


def _present(feed: Feed, nodes: int) -> Iterator[tuple[Words, Words]]:
    """The edges present after every tick, sorted."""
    present = np.zeros(0, np.int64)
    for weight, source, target in checks.split(feed, int(feed[-1, 0]) + 1):
        edges = source * nodes + target
        removed, added = np.sort(edges[weight < 0]), np.sort(edges[weight > 0])
        assert np.isin(removed, present).all() and not np.isin(added, present).any(), (
            "the feed holds an edge twice, or deletes an absent one"
        )
        present = np.delete(present, np.searchsorted(present, removed))
        present = np.insert(present, np.searchsorted(present, added), added)
        yield present // nodes, present % nodes
