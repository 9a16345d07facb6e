"""Window functions that are composed of others: IGNORE NULLS of lag and lead, nth_value over ranges, frames that end some rows away."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from deltic.expr import Expr, Literal, case, resolve
from deltic.lowering.frames import without_equal_rows
from deltic.lowering.protocol import PlanLowering
from deltic.plan.aggregate_nodes import AggregateCall
from deltic.plan.aggregates import aggregate_value
from deltic.plan.columns import named_columns, reference
from deltic.plan.nodes import Filter, Plan, Project, Union
from deltic.plan.window_nodes import UNBOUNDED, Edge, Window, WindowCall, WindowFrame
from deltic.schema import BIGINT

ROW: Final = Edge("rows")
UP_TO_ROW: Final = WindowFrame(UNBOUNDED, ROW)
FROM_ROW: Final = WindowFrame(ROW, UNBOUNDED)


def is_composed(call: WindowCall) -> bool:
    """Whether the call is computed from others."""
    if call.function in ("lag", "lead"):
        return call.ignore_nulls and call.number != 0 and call.arguments[0].nullable
    kinds = (call.frame.start.kind, call.frame.end.kind)
    return is_shifted(call.frame) or (call.function == "nth_value" and call.number > 1 and kinds != ("rows", "rows"))


def is_shifted(frame: WindowFrame) -> bool:
    """Whether the frame begins with the partition and ends some rows away, or the other way round."""
    edges = {frame.start.kind: frame.start.rows, frame.end.kind: frame.end.rows}
    return edges.keys() == {"unbounded", "rows"} and edges["rows"] != 0


def composed(lowering: PlanLowering, plan: Window) -> Plan:
    """The rows with the value, for each of the calls, which are equal."""
    _, call = plan.calls[0]
    if call.function in ("lag", "lead"):
        rows, value = _nearest(lowering, plan, call)
    elif is_shifted(call.frame):
        rows, value = _shifted(lowering, plan, call)
    else:
        rows, value = _nth(lowering, plan, call)
    row = tuple((field.name, reference(rows.schema, i)) for i, field in enumerate(plan.input.schema))
    return Project(rows, (*row, *((name, value) for name, _ in plan.calls)))


def _with(plan: Window, rows: Plan, call: WindowCall) -> tuple[Plan, Expr]:
    """The rows with the value of one more call over the window of `plan`, and that value."""
    wider = Window(rows, plan.keys, plan.order, (("w", call),))
    return wider, reference(wider.schema, len(rows.schema))


def _nearest(lowering: PlanLowering, plan: Window, call: WindowCall) -> tuple[Plan, Expr]:
    """lag or lead with IGNORE NULLS: of the nearest row that has a value, the value some rows further among such rows."""
    value, *default = call.arguments
    ahead = (call.function == "lead") == (call.number > 0)
    rows, further = _further(lowering, plan, value, abs(call.number) - 1, ahead=ahead, ignore_nulls=True)
    frame = FROM_ROW if ahead else UP_TO_ROW
    function = "first_value" if ahead else "last_value"
    rows, nearest = _with(plan, rows, WindowCall(function, value.type, True, (further, value), 1, True, frame))  # type: ignore[arg-type]
    rows, result = _with(plan, rows, WindowCall("lead" if ahead else "lag", value.type, True, (nearest,)))
    return rows, resolve("coalesce", [result, *default]) if default else result


def _further(lowering: PlanLowering, plan: Window, value: Expr, steps: int, *, ahead: bool, ignore_nulls: bool) -> tuple[Plan, Expr]:
    """The rows with the value so many rows away, or so many rows that have a value; NULL then for rows without one."""
    if not steps:
        return plan.input, value
    rows = without_equal_rows(lowering, plan.input)
    call = WindowCall("lead" if ahead else "lag", value.type, True, (value,), steps)
    if not (ignore_nulls and value.nullable):
        return _with(plan, rows, call)
    valued, _ = _with(plan, Filter(rows, resolve("is_not_null", [value])), call)
    others = Filter(rows, resolve("is_null", [value]))
    columns = named_columns(rows.schema)
    both = Union((valued, Project(others, (*columns, ("w", Literal(None, value.type))))))
    return both, reference(both.schema, len(rows.schema))


def _shifted(lowering: PlanLowering, plan: Window, call: WindowCall) -> tuple[Plan, Expr]:
    """The value over the frame up to, or from, another row: that of the running frame there."""
    starts = call.frame.start.kind == "unbounded"
    shift = call.frame.end.rows if starts else call.frame.start.rows
    rows = without_equal_rows(lowering, plan.input)
    running = replace(call, frame=UP_TO_ROW if starts else FROM_ROW)
    rows, value = _with(plan, rows, running)
    if starts == (shift < 0):  # no row there: the frame is empty
        empty = None if call.aggregate is None else aggregate_value(call.aggregate, [])
        arguments = (value,) if empty is None else (value, Literal(empty, call.type))
        return _with(plan, rows, WindowCall("lag" if starts else "lead", call.type, call.nullable, arguments, abs(shift)))
    frame = WindowFrame(ROW, Edge("rows", shift)) if starts else WindowFrame(Edge("rows", shift), ROW)
    return _with(plan, rows, WindowCall("last_value" if starts else "first_value", call.type, call.nullable, (value,), frame=frame))


def _nth(lowering: PlanLowering, plan: Window, call: WindowCall) -> tuple[Plan, Expr]:
    """Of the first row of the frame the value n - 1 rows further, where the frame has n rows."""
    (value,) = call.arguments
    rows, further = _further(lowering, plan, value, call.number - 1, ahead=True, ignore_nulls=call.ignore_nulls)
    arguments = (further, value) if call.ignore_nulls else (further,)
    rows, first = _with(plan, rows, WindowCall("first_value", call.type, True, arguments, 1, call.ignore_nulls, call.frame))
    counted = AggregateCall("count", (value,) if call.ignore_nulls else (), BIGINT, False)
    rows, count = _with(plan, rows, WindowCall("aggregate", BIGINT, False, frame=call.frame, aggregate=counted))
    return rows, case([(resolve(">=", [count, Literal(call.number, BIGINT)]), first)], None, None)
