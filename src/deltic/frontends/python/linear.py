"""The most general linear operators: a logic maps a row to updates (row, time, weight).

A time is a datetime with a zone; an integer, the microseconds since 1970-01-01 UTC; or None, the least time. The row is present from that
time on: at now ∨ time. On batches a logic returns its updates as one record batch, whose columns `_time` and `_weight` are the times
(TIMESTAMP or int64) and the weights.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import EvaluationError
from deltic.expr.table_functions import ROW
from deltic.frontends.python.functions import wrapper_of
from deltic.plan.columns import choose_columns, reference
from deltic.plan.nodes import Bound, Plan, TemporalFilter
from deltic.purity import name_of, shown
from deltic.schema import BIGINT, TIMESTAMP, Field, Schema

Time = datetime.datetime | int | None
Update = tuple[Any, Time, int]
Logic = Callable[[Any], Iterable[Update]]

TIME: Final = Field("_time", TIMESTAMP, True)
WEIGHT: Final = Field("_weight", BIGINT, False)
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def composed(logics: tuple[Logic, ...]) -> Logic:
    """The composition of the logics: times are joined, weights multiplied."""
    first, *others = logics

    @wrapper_of("followed_by", *logics)
    def logic(row: Any) -> list[Update]:
        updates = list(first(row))
        for other in others:
            updates = [
                (made, joined(instant(time), instant(later)), weight * times)
                for before, time, weight in updates
                for made, later, times in other(before)
            ]
        return updates

    return logic if others else first


def composed_batches(logics: tuple[Callable[[pa.RecordBatch], pa.RecordBatch], ...]) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """As `composed`, for logics on batches; each takes the columns of the one before it, without those that begin with `_`."""
    first, *others = logics

    @wrapper_of("followed_by", *logics)
    def logic(batch: pa.RecordBatch) -> pa.RecordBatch:
        updates = _parts(first, batch)
        for other in others:
            below = updates
            updates = _parts(other, pa.RecordBatch.from_pydict({name: below[name] for name in below if name not in UPDATE}))
            origin = updates[ROW]
            updates[TIME.name] = pc.max_element_wise(below[TIME.name].take(origin), updates[TIME.name])
            updates[WEIGHT.name] = pc.multiply_checked(below[WEIGHT.name].take(origin), updates[WEIGHT.name])
            updates[ROW] = below[ROW].take(origin)
        return pa.RecordBatch.from_pydict(updates)

    return logic if others else first


UPDATE: Final = (ROW, TIME.name, WEIGHT.name)


def _parts(logic: Callable[..., Any], batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """The columns of a logic's updates for a batch, times in microseconds since 1970 UTC. Raises EvaluationError."""
    given = logic(batch)
    if not isinstance(given, pa.RecordBatch) or not set(UPDATE) <= set(given.schema.names):
        raise EvaluationError(
            f"the function {name_of(logic)} returned {shown(given)}", expected=f"a record batch with the columns {', '.join(UPDATE)}"
        )
    columns = dict(zip(given.schema.names, given.columns, strict=True))
    columns[TIME.name] = columns[TIME.name].cast(TIMESTAMP.arrow).cast(pa.int64())
    return columns


def joined(one: datetime.datetime | None, other: datetime.datetime | None) -> datetime.datetime | None:
    """The join of two times: the later one."""
    return one if other is None else other if one is None else max(one, other)


def instant(time: Any) -> Any:
    """A time as a datetime or None; other values are returned unchanged, and refused later as a TIMESTAMP. Raises EvaluationError."""
    if not isinstance(time, int) or isinstance(time, bool):
        return time
    try:
        return EPOCH + datetime.timedelta(microseconds=time)
    except OverflowError:
        raise EvaluationError(f"the time {time} µs is outside the years 1 to 9999", expected="microseconds since 1970-01-01 UTC") from None


def updates(logic: Logic) -> Callable[[Any], list[tuple[Any, ...]]]:
    """The logic's updates as rows of the columns, the time and the weight."""

    @wrapper_of("updates", logic)
    def rows(row: Any) -> list[tuple[Any, ...]]:
        return [(*(made if isinstance(made, tuple) else (made,)), instant(time), weight) for made, time, weight in logic(row)]

    return rows


def with_update(made: Schema) -> Schema:
    """The schema of the rows of `updates`."""
    return Schema((*made, TIME, WEIGHT))


def updated(plan: Plan) -> Plan:
    """The rows without their last column, the time, present from that time on."""
    time = len(plan.schema) - 1
    return first_columns(TemporalFilter(plan, (Bound(reference(plan.schema, time), optional=True),)), time)


def bounded(plan: Plan, columns: int, bounds: Mapping[str, int]) -> Plan:
    """The first columns of the rows whose bounds include now. bounds: the columns of `lower` and `upper`."""
    lower, upper = (tuple(Bound(reference(plan.schema, bounds[side])) for side in (name,) if side in bounds) for name in ("lower", "upper"))
    return first_columns(TemporalFilter(plan, lower, upper), columns)


def first_columns(plan: Plan, columns: int) -> Plan:
    """The first columns of the rows."""
    return choose_columns(plan, range(columns))
