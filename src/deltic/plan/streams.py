"""Streams: the plans that denote one, and the queries that are rejected.

A stream is a multiset that holds the rows of the current tick and is then empty, without retractions. What reads a stream is a stream, so
it costs nothing between ticks: a row that was joined is not joined again when the relation changes later. Only `current`, the stream as a
relation that loses its rows in the next tick, `integrate`, all rows so far, and accumulators make relations of streams.
"""

from __future__ import annotations

from typing import Final, NoReturn

from deltic.errors import Span, Unsupported
from deltic.plan.node import once_per_node
from deltic.plan.nodes import (
    Accumulate,
    ByWatermark,
    Join,
    MultiwayJoin,
    OverTicks,
    Plan,
    Recursion,
    SetOperation,
    Table,
    TickRecursion,
    Union,
    inputs,
    references,
)
from deltic.plan.walk import nodes
from deltic.schema import StreamSchema

_AS_RELATION: Final = "current(), the stream as a relation of this tick's rows, or a table, which keeps all rows"


@once_per_node
def is_stream(plan: Plan) -> bool:
    """Whether the plan denotes a stream."""
    match plan:
        case Table():
            return isinstance(plan.table, StreamSchema)
        case ByWatermark():
            return plan.phase == "closed"
        case OverTicks(function="integrate" | "current") | Accumulate():
            return False
        case _:
            return any(map(is_stream, inputs(plan)))


@once_per_node
def check_streams(plan: Plan) -> None:
    """Raises Unsupported where a stream is combined with what has no meaning for one tick's rows."""
    every = list(nodes(plan))
    for node in every:
        if isinstance(node, Recursion) and is_stream(node):
            what = "feedback" if isinstance(node, TickRecursion) else "recursion"
            _refuse(f"a stream in a {what}, which is defined for relations", node, f"use {_AS_RELATION}")
        if isinstance(node, TickRecursion):
            _check_feedback(node)
    for node in every:
        match node:
            case Join() | MultiwayJoin():
                _check_join(node)
            case Union() if len({is_stream(part) for part in node.inputs}) > 1:
                _refuse("UNION of a stream and a relation", node, f"use {_AS_RELATION}")
            case SetOperation() if is_stream(node):
                _refuse("EXCEPT or INTERSECT of a stream", node, f"use {_AS_RELATION}")
            case OverTicks(function="delta0" | "stamp") if is_stream(node.input):
                _refuse(f"{node.function} of a stream", node, "use it on a relation")
            case Accumulate() if not is_stream(node.input):
                _refuse("stream_aggregate of a relation, which keeps its rows", node, "use aggregate")
            case OverTicks(function="current") if not is_stream(node.input):
                _refuse("current() of a relation, which is a relation already", node, "leave it out")


def _check_feedback(plan: TickRecursion) -> None:
    names = {name for name, _ in plan.relations}
    for node in (node for _, body in plan.relations for node in nodes(body)):
        if isinstance(node, OverTicks | ByWatermark | Accumulate) and not names.isdisjoint(name for name, _ in references(node)):
            remedy = "feed back a copy of it, which is one tick older"
            _refuse(f"the feedback {plan.result} is read over ticks in its own body", plan, remedy)


def _check_join(join: Join | MultiwayJoin) -> None:
    streams = [is_stream(part) for part in inputs(join)]
    if sum(streams) > 1:
        _refuse("a join of two streams, which would only join rows of one tick", join, f"use for one of them {_AS_RELATION}")
    if not isinstance(join, Join) or not any(streams):
        return
    left, right = streams
    if right and join.kind in ("anti", "not_in"):
        _refuse("a negated stream: the rows that are not in it change at every tick", join, f"use {_AS_RELATION}")
    if (left and join.kind in ("right", "full")) or (right and join.kind in ("left", "full")):
        _refuse(
            "an outer join that keeps all rows of a relation at every tick of a stream",
            join,
            f"keep the stream's rows, or use {_AS_RELATION}",
        )


def _refuse(what: str, plan: Plan, remedy: str) -> NoReturn:
    raise Unsupported(what, span=_place(plan), remedy=remedy)


def _place(plan: Plan) -> Span | None:
    """The place where a stream is read, or else a table."""
    tables = [node for node in nodes(plan) if isinstance(node, Table) and node.span is not None]
    streams = [table for table in tables if isinstance(table.table, StreamSchema)]
    return next((table.span for table in (*streams, *tables)), None)
