"""first_value and last_value over frames that start, or end, with the partition: one row of it, which a top-k of each partition keeps."""

from __future__ import annotations

from deltic.expr import resolve
from deltic.plan.aggregate_nodes import Aggregate, AggregateCall
from deltic.plan.columns import all_columns
from deltic.plan.nodes import Order, Plan, TopK
from deltic.plan.show import show_expr
from deltic.plan.whole_rows import backwards, whole_rows
from deltic.plan.window_nodes import Edge, Window, WindowCall
from deltic.schema import Schema


def is_of_end(call: WindowCall, schema: Schema) -> bool:
    """Whether the value is that of the first or the last row of the partition. schema: of the rows."""
    frame = call.frame
    if call.function == "last_value":
        is_there = frame.end.kind == "unbounded" and (frame.start.kind in ("unbounded", "peers") or _is_row(frame.start, -1))
        is_there = is_there and all(field.type.is_ordered and not field.type.is_collated for field in schema)
    elif call.function == "first_value" or (call.function == "nth_value" and call.number == 1):
        is_there = frame.start.kind == "unbounded" and (frame.end.kind in ("unbounded", "peers") or _is_row(frame.end, 1))
    else:
        return False
    return is_there and (frame.is_whole or not call.ignore_nulls) and call.type.is_ordered


def _is_row(edge: Edge, sign: int) -> bool:
    """Whether the edge is the row itself, or on this side of it."""
    return edge.kind == "rows" and edge.rows * sign >= 0


def end_of_partition(plan: Window) -> Aggregate:
    """The values for each partition. All calls are of one end; where NULLs are ignored, of one value."""
    _, call = plan.calls[0]
    order = plan.order
    if call.function == "last_value":
        schema = plan.input.schema
        order = backwards((*order, *whole_rows(all_columns(schema))))
    if call.ignore_nulls:
        order = (Order(resolve("is_null", [call.arguments[-1]]), False, True), *order)
    ends: Plan = TopK(plan.input, order, 1, plan.keys)
    keys = tuple((f"key{i}", key) for i, key in enumerate(plan.keys))
    return Aggregate(ends, keys, tuple((name, AggregateCall("any_value", one.arguments[:1], one.type, True)) for name, one in plan.calls))


def kind_of_end(call: WindowCall) -> str:
    """Equal for calls that one row of the partition gives a value to."""
    end = "last" if call.function == "last_value" else "first"
    return f"{end} of {show_expr(call.arguments[-1])}" if call.ignore_nulls else end
