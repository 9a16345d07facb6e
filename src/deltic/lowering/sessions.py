"""Sessions of event time: the rows are joined with the start of the session that their own is in."""

from __future__ import annotations

from dataclasses import replace

from deltic.circuit.nodes import ArrangementSpec, Shape
from deltic.circuit.operators.order import Sort
from deltic.circuit.operators.sessions import SessionsOperator
from deltic.expr import Call, Expr, Literal, resolve
from deltic.expr.rows.casts import EPOCH
from deltic.lowering.joins import joined
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.window_rows import by_partition, side_of, sorted_rows
from deltic.plan.nodes import Order
from deltic.plan.window_nodes import Window
from deltic.plan.windows import origin
from deltic.schema import TIMESTAMP, Field, Schema


def lower_sessions(lowering: PlanLowering, plan: Window) -> int:
    """The intervals (partition, start, end), each once, are put together to sessions, and the rows joined with them."""
    streams, builder = lowering.streams, lowering.streams.builder
    _, call = plan.calls[0]
    order = tuple(Order(_not_null(time), False, True) for time in call.arguments)
    rows = sorted_rows(lowering, replace(plan, order=order), whole=False)
    assert rows.width == rows.key + 2
    held = by_partition(lowering, rows.stream, bool(plan.keys), rows.width, rows.key)
    words = Schema(streams.schema(held.node).fields[: rows.width])
    own = builder.add(Sort(tuple(range(rows.width))), (held.node,), Shape(words), held.partition)
    intervals = by_partition(lowering, lowering.distinct(own), bool(plan.keys), rows.width, rows.key)
    memory = builder.name("sessions", streams.fingerprint(intervals))
    operator = SessionsOperator(intervals.id, memory, rows.key, _is_uniform(plan))
    shape = Shape(Schema((*words, Field("session", call.type, False))))
    node = builder.add(operator, (intervals.node,), shape, intervals.partition, owns=memory, reads=(intervals.id,))
    builder.specify(ArrangementSpec(memory, Shape(words), builder.nodes[node].level, rows.width, partition=intervals.partition))
    right = by_partition(lowering, node, bool(plan.keys), rows.width, rows.key)
    width = len(plan.input.schema)
    sides = [side_of(lowering, arrangement, rows.width) for arrangement in (held, right)]
    return joined(lowering, sides[0], sides[1], [*((0, i) for i in range(width)), (1, 0)], plan.schema)


def _is_uniform(plan: Window) -> bool:
    """Whether all intervals are of one length."""
    start, end = (origin(plan.input, time)[1] for time in plan.calls[0][1].arguments)
    match end:
        case Call("add_microseconds", (time, Literal())):
            return time == start
        case _:
            return False


def _not_null(time: Expr) -> Expr:
    """The time of a row that has one."""
    if not time.nullable:
        return time
    return resolve("coalesce", [time, Literal(EPOCH if time.type == TIMESTAMP else EPOCH.replace(tzinfo=None), time.type)])
