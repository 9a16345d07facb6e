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


def is_connected(edges: Sequence[frozenset[int]]) -> bool:
    """Whether every edge is reached from the first one by shared vertices.

    >>> is_connected([frozenset({0, 1}), frozenset({2}), frozenset({1, 2})]), is_connected([frozenset({0}), frozenset({1})])
    (True, False)
    """
    reached, rest = edges[0], list(edges[1:])
    while near := [edge for edge in rest if edge & reached]:
        rest = [edge for edge in rest if not edge & reached]
        reached = reached.union(*near)
    return not rest
