"""The AGM bound: how many rows a join can have at most, by the sizes of its relations (Atserias, Grohe and Marx, FOCS 2008).

A fractional edge cover gives each relation a weight x ≥ 0 so that the weights of the relations around each variable sum up to 1 or more.
Then the join has at most Π sizeᵢ^xᵢ rows, and for the cover that makes this least there are relations that reach it. Its logarithm is a
linear program. Sizes are logarithms here, base 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

Edges = tuple[tuple[frozenset[int], float], ...]
"""Relations: their variables, and the logarithm of their size."""

EXACT = 3
"""Up to so many variables the vertices of the program are known: covers by whole relations, and halves of the three of a triangle."""


def agm_bound(variables: frozenset[int], edges: Edges) -> float:
    """The logarithm of the bound for a join onto `variables`, of which each stands in some edge.

    >>> triangle = tuple((frozenset(pair), 20.0) for pair in ((0, 1), (0, 2), (1, 2)))
    >>> agm_bound(frozenset({0, 1, 2}), triangle), agm_bound(frozenset({0}), triangle)
    (30.0, 20.0)
    """
    sizes = _smallest(variables, edges)
    return _exact(variables, sizes) if len(variables) <= EXACT else _solved(variables, sizes)


def _smallest(variables: frozenset[int], edges: Edges) -> dict[frozenset[int], float]:
    """For each set of variables that an edge has among these, the least size."""
    sizes: dict[frozenset[int], float] = {}
    for edge, size in edges:
        if here := edge & variables:
            sizes[here] = min(size, sizes.get(here, size))
    return sizes


def _exact(variables: frozenset[int], sizes: Mapping[frozenset[int], float]) -> float:
    edges = list(sizes)
    covers = [cover for n in range(len(variables) + 1) for cover in combinations(edges, n) if variables <= frozenset().union(*cover)]
    found = [sum(sizes[edge] for edge in cover) for cover in covers]
    pairs = [size for edge, size in sizes.items() if len(edge) == 2]
    if len(variables) == len(pairs) == 3:
        found.append(sum(pairs) / 2)
    return min(found)


def _solved(variables: frozenset[int], sizes: Mapping[frozenset[int], float]) -> float:
    from scipy.optimize import linprog  # noqa: PLC0415  takes a while to import, and few programs have joins of so many variables

    edges = list(sizes)
    covered = [[-float(variable in edge) for edge in edges] for variable in sorted(variables)]
    result = linprog([sizes[edge] for edge in edges], A_ub=covered, b_ub=[-1.0] * len(covered), bounds=(0, None), method="highs")
    assert result.status == 0, result.message
    return float(result.fun)
