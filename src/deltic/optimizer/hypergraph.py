"""Acyclicity of hypergraphs: the reduction of Graham, and of Yu and Özsoyoğlu (GYO).

Vertices are the variables of a join, edges its relations. The reduction repeatedly removes vertices in a single edge and edges contained in
another edge. An acyclic hypergraph is reduced to nothing; otherwise its cyclic core remains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def cyclic_core(edges: Sequence[frozenset[int]]) -> tuple[int, ...]:
    """The numbers of the edges that remain after the reduction; () iff the hypergraph is acyclic.

    >>> cyclic_core([frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2}), frozenset({2, 3})])
    (0, 1, 2)
    >>> cyclic_core([frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2}), frozenset({0, 1, 2})])
    ()
    """
    remaining = dict(enumerate(edges))
    while True:
        degree = Counter(vertex for edge in remaining.values() for vertex in edge)
        shrunk = {i: frozenset(vertex for vertex in edge if degree[vertex] > 1) for i, edge in remaining.items()}
        ears = [i for i, edge in shrunk.items() if not edge or any(_within(i, edge, j, other) for j, other in shrunk.items())]
        if not ears and shrunk == remaining:
            return tuple(remaining)
        remaining = {i: edge for i, edge in shrunk.items() if i not in ears}


def _within(i: int, edge: frozenset[int], j: int, other: frozenset[int]) -> bool:
    """Whether edge i is contained in edge j; among equal edges the later ones are contained in the first."""
    return edge < other or (edge == other and j < i)


def components(edges: Sequence[frozenset[int]]) -> list[list[int]]:
    """The numbers of the edges of each connected component, in order of their first edges.

    >>> components([frozenset({0, 1}), frozenset({2}), frozenset({1, 3}), frozenset()])
    [[0, 2], [1], [3]]
    """
    remaining, parts = dict(enumerate(edges)), []
    while remaining:
        first = min(remaining)
        part, reached = [first], remaining.pop(first)
        while near := [i for i, edge in remaining.items() if edge & reached]:
            reached = reached.union(*(remaining.pop(i) for i in near))
            part += near
        parts.append(sorted(part))
    return parts
