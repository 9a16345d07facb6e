"""The maintenance of a multiway join: a delta rule for each occurrence of a relation, and the arrangements that the rules read.

Rule j starts from the rows of its input's change, which bind that input's variables. Then it binds the other shared variables one by one,
and fetches from each other input the variables that only this input has.

The order of the variables is the cheapest. Its cost is the sum over its prefixes of their maximum number: the AGM bound of the variables
bound since the start. A relation of n rows, k of whose m shared variables are bound by the start, counts as n^(1 - k/m): each variable is
assumed to narrow it down equally. n is the number of rows of a constant relation, and the same for all others: the circuit must not depend
on the content of tables, or state would be lost as they grow. Among orders of equal cost, one whose last variable is not part of the result
is preferred, since that variable is summed over without being listed; then the first.
With more than SEARCHED variables not all orders are compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from deltic.aggregates.definition import Measure
from deltic.lowering.agm import Edges, agm_bound
from deltic.lowering.keys import unique_key
from deltic.plan.nodes import MultiwayJoin, Plan, Values

UNKNOWN: Final = 20.0
"""The logarithm of the size of a relation whose size is unknown."""
DIGITS: Final = 6
"""Decimal digits to which bounds are rounded, so that ties are the same on every machine."""
SEARCHED: Final = 7
"""Up to this number of variables all orders are compared; beyond, the next variable is always the one with the least bound."""
BOUNDED: Final = 10
"""Beyond this number the next variable is the one that most relations connect with bound variables, since bounds would take too long."""


@dataclass(frozen=True, slots=True)
class Index:
    """An arrangement: the columns of `source` in the order `order`, the first `shared` of which are not NULL.

    measures: sums of each row that are further weights.
    """

    source: Plan
    order: tuple[int, ...]
    shared: int
    measures: tuple[Measure, ...] = ()


@dataclass(frozen=True, slots=True)
class NeededParts:
    """The parts of a join that are used. kept: the bound variables. listed: those of the result. measures: the sums of each input."""

    kept: frozenset[int]
    listed: frozenset[int]
    measures: tuple[tuple[Measure, ...], ...]

    @staticmethod
    def of(plan: MultiwayJoin) -> NeededParts:
        """The whole join."""
        listed = frozenset(plan.flat[i] for i in plan.output)
        return NeededParts(frozenset(plan.flat), listed, ((),) * len(plan.inputs))


@dataclass(frozen=True, slots=True)
class Bind:
    """Binds a shared variable to the values that all these inputs have under the prefix."""

    variable: int
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Take:
    """Binds the variables that only this input has; if there are none, looks up the weight of the prefix in it."""

    input: int
    variables: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeltaRule:
    """input: the one whose change it starts from. order: that of the bound variables. indexes: the one that it reads of each input."""

    input: int
    order: tuple[int, ...]
    steps: tuple[Bind | Take, ...]
    indexes: tuple[Index, ...]

    @property
    def others(self) -> tuple[Index, ...]:
        """The arrangements that it looks up rows in."""
        return tuple(index for i, index in enumerate(self.indexes) if i != self.input)


@lru_cache(maxsize=256)
def delta_rules(plan: MultiwayJoin, need: NeededParts | None = None) -> tuple[DeltaRule, ...]:
    """A rule for each input, in their order, with as few different indexes as one greedy pass finds."""
    need = need or NeededParts.of(plan)
    shared = _shared_of_inputs(plan)
    orders = [_order(plan, shared, i, need.listed) for i in range(len(plan.inputs))]
    indexes = _Indexes(plan, need, {})
    chosen: dict[tuple[int, int], Index] = {}
    lookups = [_lookup(shared, i, order, other) for i, order in enumerate(orders) for other in range(len(plan.inputs)) if other != i]
    for rule, other, bound, rest in sorted(lookups, key=lambda lookup: len(lookup[2])):
        chosen[rule, other] = indexes.serving(other, bound, rest)
    rules = []
    for i, order in enumerate(orders):
        reads = tuple(indexes.any(i, shared[i]) if other == i else chosen[i, other] for other in range(len(plan.inputs)))
        rules.append(DeltaRule(i, order, tuple(_steps(plan, shared, i, order, need.kept)), reads))
    return tuple(rules)


def size_of(plan: Plan) -> float:
    """The number of rows of a relation, if the plan determines it; else a constant."""
    return 2 ** _size(plan)


def _shared_of_inputs(plan: MultiwayJoin) -> list[frozenset[int]]:
    shared = frozenset(plan.shared)
    return [shared.intersection(variables) for variables in plan.variables]


def _size(plan: Plan) -> float:
    return math.log2(max(2, len(plan.rows))) if isinstance(plan, Values) else UNKNOWN


def _columns(plan: MultiwayJoin, i: int, variables: frozenset[int]) -> frozenset[int]:
    return frozenset(plan.variables[i].index(variable) for variable in variables)


def _order(plan: MultiwayJoin, shared: Sequence[frozenset[int]], start: int, listed: frozenset[int]) -> tuple[int, ...]:
    """The order in which the rule of the input `start` binds variables."""
    bound = shared[start]
    edges = tuple(
        (variables, _size(part) * (1 - len(variables & bound) / len(variables)))
        for i, (part, variables) in enumerate(zip(plan.inputs, shared, strict=True))
        if i != start
    )
    free = frozenset(plan.shared) - bound
    if len(free) <= SEARCHED:
        return _cheapest(free, edges, listed)
    return _greedy(free, edges) if len(free) <= BOUNDED else _connected(free, bound, shared)


def _bound(variables: frozenset[int], edges: Edges) -> float:
    return round(agm_bound(variables, edges), DIGITS)


def _cheapest(free: frozenset[int], edges: Edges, listed: frozenset[int]) -> tuple[int, ...]:
    """The cheapest order, by dynamic programming over all subsets."""
    best: dict[frozenset[int], tuple[float, bool, tuple[int, ...]]] = {frozenset(): (0.0, False, ())}
    for _ in free:
        longer: dict[frozenset[int], tuple[float, bool, tuple[int, ...]]] = {}
        for before, (cost, _, order) in best.items():
            for variable in free - before:
                now = before | {variable}
                whole = (round(cost + 2 ** _bound(now, edges)), now == free and variable in listed, (*order, variable))
                longer[now] = min(whole, longer.get(now, whole))
        best = longer
    return best[free][2]


def _greedy(free: frozenset[int], edges: Edges) -> tuple[int, ...]:
    order: list[int] = []
    while rest := free.difference(order):
        order.append(min(rest, key=lambda variable: (_bound(frozenset((*order, variable)), edges), variable)))
    return tuple(order)


def _connected(free: frozenset[int], start: frozenset[int], shared: Sequence[frozenset[int]]) -> tuple[int, ...]:
    """Repeatedly the variable in most relations that have a bound variable; the first of several."""
    links = {variable: 0 for variable in sorted(free)}
    bound: set[int] = set()
    reached: set[int] = set()
    order: list[int] = []

    def bind(variable: int) -> None:
        bound.add(variable)
        for i, members in enumerate(shared):
            if variable in members and i not in reached:
                reached.add(i)
                for other in members & links.keys():
                    links[other] += 1

    for variable in sorted(start):
        bind(variable)
    while rest := [variable for variable in links if variable not in bound]:
        order.append(max(rest, key=lambda variable: links[variable]))
        bind(order[-1])
    return tuple(order)


Lookup = tuple[int, int, frozenset[int], tuple[int, ...]]
"""(rule, input, the variables of the input that are bound when it is first read, those that are then bound one by one)."""


def _lookup(shared: Sequence[frozenset[int]], rule: int, order: Sequence[int], other: int) -> Lookup:
    return rule, other, shared[other] & shared[rule], tuple(variable for variable in order if variable in shared[other])


Kind = tuple[Plan, frozenset[int], tuple[int, ...], tuple[Measure, ...]]
"""(source, its shared columns, its other kept columns, measures): indexes of one kind differ only in their order."""


@dataclass(frozen=True, slots=True)
class _Indexes:
    """The indexes chosen so far."""

    plan: MultiwayJoin
    need: NeededParts
    by_kind: dict[Kind, list[Index]]

    def _kind(self, i: int, shared: frozenset[int]) -> Kind:
        others = (c for c, variable in enumerate(self.plan.variables[i]) if variable in self.need.kept and c not in shared)
        return self.plan.inputs[i], shared, tuple(others), self.need.measures[i]

    def any(self, i: int, variables: frozenset[int]) -> Index:
        """An index of the input in any order."""
        return self.by_kind[self._kind(i, _columns(self.plan, i, variables))][0]

    def serving(self, i: int, bound: frozenset[int], rest: tuple[int, ...]) -> Index:
        """An index of the input that begins with the bound variables, in any order, and continues with the rest."""
        lead, then = _columns(self.plan, i, bound), tuple(self.plan.variables[i].index(variable) for variable in rest)
        source, shared, others, measures = kind = self._kind(i, lead.union(then))
        indexes = self.by_kind.setdefault(kind, [])
        for index in indexes:
            if frozenset(index.order[: len(lead)]) == lead and index.order[len(lead) : len(shared)] == then:
                return index
        indexes.append(Index(source, (*sorted(lead), *then, *others), len(shared), measures))
        return indexes[-1]


def _steps(
    plan: MultiwayJoin, shared: Sequence[frozenset[int]], start: int, order: Sequence[int], kept: frozenset[int]
) -> Iterator[Bind | Take]:
    """Lookups that only filter prefixes come first, those that multiply them last."""
    bound = set(shared[start])
    waiting = [i for i in range(len(plan.inputs)) if i != start]
    takes = {i: Take(i, tuple(variable for variable in plan.variables[i] if variable in kept - shared[i])) for i in waiting}
    bare = {i for i in waiting if not takes[i].variables}
    done: set[int] = {i for i in bare if not shared[i] <= bound}  # the step that binds their last variable reads their weights
    for variable in (None, *order):
        if variable is not None:
            bound.add(variable)
            yield Bind(variable, tuple(i for i in waiting if variable in shared[i]))
        for i in waiting:
            if i not in done and shared[i] <= bound and (i in bare or _is_unique(plan, i, shared[i])):
                done.add(i)
                yield takes[i]
    yield from (takes[i] for i in waiting if i not in done)


def _is_unique(plan: MultiwayJoin, i: int, variables: frozenset[int]) -> bool:
    key = unique_key(plan.inputs[i])
    return key is not None and _columns(plan, i, variables).issuperset(key)
