"""Rows in a recursion that come all at once, and then stay: those of a correlated subquery over relations that are complete before it.

Such a subquery is computed for the distinct values that it reads of the rows around it, as in `FROM c, LATERAL (SELECT max(e.at) FROM e
WHERE e.at > c.at)`. A recursive relation decides only for which values it is computed; what it gives for each of them is fixed. So its
aggregates need not be monotone. A plan is complete by *arrivals*, rows of sets that only grow: of each combination of them it has no row
before they have all arrived, and then all rows that it will ever have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from deltic.expr.nodes import Call, Column, Expr
from deltic.plan.nodes import (
    Aggregate,
    Distinct,
    Expand,
    Filter,
    FlatMap,
    Join,
    Plan,
    Project,
    Reference,
    SetOperation,
    TopK,
    Union,
)
from deltic.plan.unnest import distinct_values
from deltic.stacks import unbounded

LOOKUPS: Final = ("left", "semi", "anti", "not_in")
"""The kinds of joins that decide about each left row by its matches."""

_ALTERNATIVES: Final = 8
"""As many ways in which a plan is complete are considered."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A row of the set `rows`. places: the columns of a plan that have its values."""

    rows: Plan
    places: tuple[int, ...]


Arrivals = frozenset[Arrival]


@dataclass(frozen=True, slots=True)
class Completeness:
    """reads: whether a plan reads a recursive relation. is_set: whether its rows are distinct, and each of them stays as it is.

    ways: of each plan for which they were found, since a plan is a DAG.
    """

    reads: Callable[[Plan], bool]
    is_set: Callable[[Plan], bool]
    ways: dict[Plan, tuple[Arrivals, ...]] = field(default_factory=dict)

    @unbounded
    def by(self, plan: Plan) -> tuple[Arrivals, ...]:
        """By which arrivals the plan is complete, in each of several ways; () if it is not, or that is not known."""
        if not self.reads(plan):
            return (frozenset(),)
        if plan not in self.ways:
            self.ways[plan] = tuple(dict.fromkeys(self._by(plan)))[:_ALTERNATIVES]
        return self.ways[plan]

    def _by(self, plan: Plan) -> Sequence[Arrivals]:
        match plan:
            case Reference():
                return self._own(plan)
            case Distinct():
                return (*self.by(plan.input), *self._own(plan))
            case Filter() | Expand() | FlatMap():
                return self.by(plan.input)
            case Project():
                return _moved(self.by(plan.input), _places([expr for _, expr in plan.columns]))
            case Aggregate():
                return _moved(self.by(plan.input), _places([expr for _, expr in plan.keys]))
            case TopK():
                keys = _places(plan.keys).keys()
                return [way for way in self.by(plan.input) if keys >= {i for one in way for i in one.places}]
            case Join():
                return self._joined(plan)
            case Union():
                return self._common(plan.inputs)
            case SetOperation():
                return self._common((plan.left, plan.right))
            case _:
                return ()

    def _own(self, plan: Plan) -> tuple[Arrivals, ...]:
        return (frozenset([Arrival(plan, tuple(range(len(plan.schema))))]),) if self.is_set(plan) else ()

    def _common(self, plans: Sequence[Plan]) -> list[Arrivals]:
        first, *others = (self.by(plan) for plan in plans)
        return [way for way in first if all(way in ways for ways in others)]

    def _joined(self, plan: Join) -> Sequence[Arrivals]:
        if plan.kind in LOOKUPS:
            return self.by(plan.left) if self.has_all_matches(plan) else ()
        if plan.kind != "inner":
            return ()
        equal, width = _equal(plan.keys), len(plan.left.schema)
        ways = [
            left | {Arrival(one.rows, tuple(width + i for i in one.places)) for one in right if not _is_among(one, left, equal)}
            for left, right in product(self.by(plan.left), self.by(plan.right))
        ]
        same = [(one.index, width + i) for i, exprs in equal.items() for one in exprs if isinstance(one, Column)]
        every = {i: i for i in range(len(plan.schema))}
        return [
            *ways,
            *_moved(ways, every | {there: here for here, there in same}),  # a projection may keep either side of a key
            *_moved(ways, every | dict(same)),
        ]

    def has_all_matches(self, plan: Join) -> bool:
        """Whether the right side has all rows that will ever match a left row when that comes."""
        equal = _equal(plan.keys)
        lefts = self.by(plan.left)
        return any(
            all(any(_is_among(one, left, equal) for left in lefts) or _has_arrived(one, plan.left, equal) for one in right)
            for right in self.by(plan.right)
        )


def _moved(ways: Sequence[Arrivals], places: Mapping[int, int]) -> list[Arrivals]:
    return [
        frozenset(Arrival(one.rows, tuple(places[i] for i in one.places)) for one in way)
        for way in ways
        if all(i in places for one in way for i in one.places)
    ]


def _places(exprs: Sequence[Expr]) -> dict[int, int]:
    """Column → the place of an expression that is this column."""
    return {expr.index: i for i, expr in reversed([*enumerate(exprs)]) if isinstance(expr, Column)}


def _equal(keys: Sequence[tuple[Expr, Expr]]) -> dict[int, list[Expr]]:
    """Column of the right side → what is equal to it on the left side of a join; NULL is a value like any other in STRUCTs."""
    equal: dict[int, list[Expr]] = {}
    for left, right in keys:
        match left, right:
            case Call(function="make_struct"), Call(function="make_struct"):
                pairs = [*zip(left.arguments, right.arguments, strict=True)]
            case _:
                pairs = [(left, right)]
        for one, other in pairs:
            if isinstance(other, Column):
                equal.setdefault(other.index, []).append(one)
    return equal


def _is_among(one: Arrival, arrivals: Arrivals, equal: Mapping[int, Sequence[Expr]]) -> bool:
    """Whether the row that the right side is complete by is one that the left side is complete by."""
    return any(
        each.rows == one.rows
        and all(
            any(isinstance(expr, Column) and expr.index == here for expr in equal.get(there, ()))
            for here, there in zip(each.places, one.places, strict=True)
        )
        for each in arrivals
    )


def _has_arrived(one: Arrival, left: Plan, equal: Mapping[int, Sequence[Expr]]) -> bool:
    """Whether the row is of the distinct values that the left rows have."""
    if not isinstance(one.rows, Distinct) or not all(i in equal for i in one.places):
        return False
    choices = product(*(equal[i] for i in one.places))
    return any(distinct_values(left, [*zip(one.rows.schema.names, exprs, strict=True)]) == one.rows for exprs in choices)
