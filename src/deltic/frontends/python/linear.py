"""Linear operators at their most general: a logic gives for one row the updates (row, time, weight) that it stands for.

`time` is an instant or None, which is at or before every other. The row counts from that instant on: at now ∨ time.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from deltic.expr.nodes import Call, Case, Literal
from deltic.frontends.python.functions import standing_for
from deltic.plan.columns import reference
from deltic.plan.nodes import Bound, FlatMap, Plan, Project, TemporalFilter
from deltic.schema import BIGINT, BOOLEAN, TIMESTAMP, Field, Schema

Update = tuple[Any, datetime.datetime | None, int]
Logic = Callable[[Any], Iterable[Update]]

ALWAYS: Final = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
"""Before all that a TIMESTAMP can be."""


def composed(logics: tuple[Logic, ...]) -> Logic:
    """One logic that does in one pass what these do one after the other: times are joined, weights multiplied."""
    first, *others = logics

    @standing_for("followed_by", *logics)
    def logic(row: Any) -> list[Update]:
        found = list(first(row))
        for other in others:
            found = [(after, joined(at, due), weight * times) for row, at, weight in found for after, due, times in other(row)]
        return found

    return logic if others else first


def joined(one: datetime.datetime | None, other: datetime.datetime | None) -> datetime.datetime | None:
    """The later of both."""
    return one if other is None else other if one is None else max(one, other)


def updates(logic: Logic) -> Callable[[Any], list[tuple[Any, ...]]]:
    """The logic's updates as rows of the columns, the time and the weight."""

    @standing_for("updates", logic)
    def rows(row: Any) -> list[tuple[Any, ...]]:
        return [((*made, time, weight) if isinstance(made, tuple) else (made, time, weight)) for made, time, weight in logic(row)]

    return rows


def with_update(made: Schema) -> Schema:
    """The columns of the rows of `updates`."""
    return Schema((*made, Field("_time", TIMESTAMP, True), Field("_weight", BIGINT, False)))


def updated(plan: Plan, made: Schema) -> Plan:
    """Rows of updates as the rows, from their times on, as often as their weights say."""
    time = reference(plan.schema, len(made))
    there = Call("is_not_null", (time,), BOOLEAN, False)
    moment = Case(((there, time),), Literal(ALWAYS, TIMESTAMP), TIMESTAMP, True)
    current = TemporalFilter(plan, (Bound(moment),))
    repeated = FlatMap(current, "repeat_row", (reference(plan.schema, len(made) + 1),), ())
    return first_columns(repeated, len(made))


def bounded(plan: Plan, columns: int, bounds: Mapping[str, int]) -> Plan:
    """The first columns of the rows whose time it is. bounds: the columns of `lower` and `upper`."""
    lower, upper = (tuple(Bound(reference(plan.schema, bounds[side])) for side in (name,) if side in bounds) for name in ("lower", "upper"))
    return first_columns(TemporalFilter(plan, lower, upper), columns)


def first_columns(plan: Plan, columns: int) -> Plan:
    """The rows without what stands behind these columns."""
    return Project(plan, tuple((plan.schema[i].name, reference(plan.schema, i)) for i in range(columns)))
