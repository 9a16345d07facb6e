"""Whether a hypergraph is acyclic: the reduction of Graham, and of Yu and Özsoyoğlu (GYO).

Vertices are the variables of a join, edges its relations. A vertex in one edge alone goes, and so does an edge that lies within another,
until neither is left. An acyclic hypergraph goes down to nothing; of another its cyclic core is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def cyclic_core(edges: Sequence[frozenset[int]]) -> tuple[int, ...]:
    """The numbers of the edges that the reduction leaves; () iff the hypergraph is acyclic.

    >>> cyclic_core([frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2}), frozenset({2, 3})])
    (0, 1, 2)
    >>> cyclic_core([frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2}), frozenset({0, 1, 2})])
    ()
    """
    left = dict(enumerate(edges))
    while True:
        met = Counter(vertex for edge in left.values() for vertex in edge)
        shrunk = {i: frozenset(vertex for vertex in edge if met[vertex] > 1) for i, edge in left.items()}
        ears = [i for i, edge in shrunk.items() if not edge or any(_within(i, edge, j, other) for j, other in shrunk.items())]
        if not ears and shrunk == left:
            return tuple(left)
        left = {i: edge for i, edge in shrunk.items() if i not in ears}


def _within(i: int, edge: frozenset[int], j: int, other: frozenset[int]) -> bool:
    """Whether edge i lies within edge j; of equal edges the later ones lie within the first."""
    return edge < other or (edge == other and j < i)


def components(edges: Sequence[frozenset[int]]) -> list[list[int]]:
    """The numbers of the edges that shared vertices connect, component by component, in order of their first edges.

    >>> components([frozenset({0, 1}), frozenset({2}), frozenset({1, 3}), frozenset()])
    [[0, 2], [1], [3]]
    """
    left, parts = dict(enumerate(edges)), []
    while left:
        first = min(left)
        part, reached = [first], left.pop(first)
        while near := [i for i, edge in left.items() if edge & reached]:
            reached = reached.union(*(left.pop(i) for i in near))
            part += near
        parts.append(sorted(part))
    return parts
