"""The AGM bound: the maximum number of rows of a join, from the sizes of its relations (Atserias, Grohe and Marx, FOCS 2008).

A fractional edge cover assigns each relation a weight x ≥ 0 such that, for each variable, the weights of its relations sum to at least 1.
Then the join has at most Π sizeᵢ^xᵢ rows, and the minimum over all covers is attained by some relations. Its logarithm is a linear program.
Sizes are base 2 logarithms here.

The dual program is solved: assign each variable y ≥ 0 such that those of each relation sum to at most its size, and maximize their sum. It
is feasible at 0 and has one column for each variable, so the plain simplex method suffices; Bland's rule prevents cycling. The cover is
read off the last dictionary and certifies the bound (weak duality).
"""

from __future__ import annotations

from functools import lru_cache

Edges = tuple[tuple[frozenset[int], float], ...]
"""Relations, each as (its variables, the logarithm of its size)."""

Program = tuple[int, tuple[tuple[tuple[int, ...], float], ...]]
"""(number of variables, relations as (variables, size)); variables are numbered from 0, ascending."""

EXACT = 1e-9
"""Numbers that differ by less are equal: coefficients are small fractions, and bounds are compared to six digits."""


def agm_bound(variables: frozenset[int], edges: Edges) -> float:
    """The logarithm of the bound for a join projected to `variables`, each of which occurs in an edge.

    >>> triangle = tuple((frozenset(pair), 20.0) for pair in ((0, 1), (0, 2), (1, 2)))
    >>> agm_bound(frozenset({0, 1, 2}), triangle), agm_bound(frozenset({0}), triangle)
    (30.0, 20.0)
    """
    return _solved(_program(variables, edges))


def _program(variables: frozenset[int], edges: Edges) -> Program:
    """The least size for each set of variables that occurs in an edge, with variables renumbered so that joins of one shape are equal."""
    number = {variable: i for i, variable in enumerate(sorted(variables))}
    sizes: dict[tuple[int, ...], float] = {}
    for edge, size in edges:
        if members := tuple(sorted(number[variable] for variable in edge if variable in number)):
            sizes[members] = min(size, sizes.get(members, size))
    return len(number), tuple(sorted(sizes.items()))


@lru_cache(maxsize=4096)
def _solved(program: Program) -> float:
    """The maximum sum of y. Each row is the slack of one relation, as a function of the nonbasic variables."""
    count, relations = program
    rows = [[size, *(-float(variable in members) for variable in range(count))] for members, size in relations]
    goal = [0.0] + [1.0] * count
    outside, basis = list(range(count)), list(range(count, count + len(rows)))
    while entering := [j for j in range(1, count + 1) if goal[j] > EXACT]:
        j = min(entering, key=lambda j: outside[j - 1])
        limits = [(row[0] / -row[j], basis[i], i) for i, row in enumerate(rows) if row[j] < -EXACT]
        assert limits, "each variable occurs in a relation"
        least = min(limits)[0]
        _, _, i = min((limit for limit in limits if limit[0] <= least + EXACT), key=lambda limit: limit[1])
        _pivot(rows, goal, i, j)
        basis[i], outside[j - 1] = outside[j - 1], basis[i]
    _certify(program, goal, {outside[j] - count: -goal[j + 1] for j in range(count) if outside[j] >= count})
    return goal[0]


def _pivot(rows: list[list[float]], goal: list[float], i: int, j: int) -> None:
    """Column j enters the basis in row i: solves row i for it, and substitutes it everywhere else."""
    pivot = rows[i][j]
    entering = [-value / pivot for value in rows[i]]
    entering[j] = 1 / pivot
    rows[i] = entering
    for row in (*(row for k, row in enumerate(rows) if k != i), goal):
        if factor := row[j]:
            row[j] = 0.0
            for k, value in enumerate(entering):
                row[k] += factor * value


def _certify(program: Program, goal: list[float], cover: dict[int, float]) -> None:
    """Asserts that the weights of the relations are a cover whose bound equals the sum, so that both are optimal."""
    count, relations = program
    for variable in range(count):
        assert sum(weight for i, weight in cover.items() if variable in relations[i][0]) >= 1 - 1e-6, program
    assert abs(sum(weight * relations[i][1] for i, weight in cover.items()) - goal[0]) < 1e-6, program
