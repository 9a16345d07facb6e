"""Queries of streams that are rejected: those without a meaning for one tick's rows, and those that would keep all rows."""

from __future__ import annotations

from typing import Final, NoReturn

from deltic.errors import Span, Unsupported
from deltic.expr.nodes import Expr
from deltic.plan.columns import conjuncts
from deltic.plan.node import once_per_node
from deltic.plan.nodes import (
    Accumulate,
    ByWatermark,
    Filter,
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
from deltic.plan.streams import is_stream
from deltic.plan.time_joins import is_pairing, paired, time_bounds
from deltic.plan.walk import nodes
from deltic.schema import StreamSchema

_AS_RELATION: Final = "current(), the stream as a relation of this tick's rows, or a table, which keeps all rows"
_WITHIN: Final = "JOIN … ON … AND b.at BETWEEN a.at - INTERVAL 1 HOUR AND a.at + INTERVAL 1 HOUR, by columns with LATENESS of both streams"


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
    for pairing, above in _pairings(plan, every):
        _check_pairing(pairing, above)
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
            case OverTicks(function="batched") if not is_stream(node.input):
                _refuse("batched() of a relation, which has all rows in every tick", node, "use it on a stream")


def _check_feedback(plan: TickRecursion) -> None:
    names = {name for name, _ in plan.relations}
    for node in (node for _, body in plan.relations for node in nodes(body)):
        if isinstance(node, OverTicks | ByWatermark | Accumulate) and not names.isdisjoint(name for name, _ in references(node)):
            remedy = "feed back a copy of it, which is one tick older"
            _refuse(f"the feedback {plan.result} is read over ticks in its own body", plan, remedy)


def _pairings(plan: Plan, every: list[Plan]) -> list[tuple[Join, tuple[Expr, ...]]]:
    """The joins of two streams, each with the conditions of the filter above it."""
    pairings: list[tuple[Join, tuple[Expr, ...]]] = [(plan, ())] if isinstance(plan, Join) and is_pairing(plan) else []
    for node in every:
        above = conjuncts(node.predicate) if isinstance(node, Filter) else ()
        pairings += [(below, above) for below in inputs(node) if isinstance(below, Join) and is_pairing(below)]
    return pairings


def _check_pairing(join: Join, above: tuple[Expr, ...]) -> None:
    if join.kind != "inner":
        _refuse("a join of two streams that is not an inner one", join, f"use for one of them {_AS_RELATION}")
    if paired(join, above) is not None:
        return
    bounds, remedy = time_bounds(join, above), f"bound the times, or use for one of them {_AS_RELATION}"
    if bounds is None or (bounds.least is None and bounds.most is None):
        _refuse("a join of two streams without bounds on their times, which would keep all rows", join, remedy, _WITHIN)
    kept, other = (bounds.left, bounds.right) if bounds.most is None else (bounds.right, bounds.left)
    what = f"rows of {other.table.name} of any time can be joined with one of {kept.table.name}, so that all of these would be kept"
    _refuse(f"a join of two streams with a bound of their times on one side: {what}", join, remedy, _WITHIN)


def _check_join(join: Join | MultiwayJoin) -> None:
    streams = [is_stream(part) for part in inputs(join)]
    if sum(streams) > 1 or not isinstance(join, Join) or not any(streams):
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


def _refuse(what: str, plan: Plan, remedy: str, expected: str | None = None) -> NoReturn:
    raise Unsupported(what, span=_place(plan), expected=expected, remedy=remedy)


def _place(plan: Plan) -> Span | None:
    """The place where a stream is read, or else a table."""
    tables = [node for node in nodes(plan) if isinstance(node, Table) and node.span is not None]
    streams = [table for table in tables if isinstance(table.table, StreamSchema)]
    return next((table.span for table in (*streams, *tables)), None)
