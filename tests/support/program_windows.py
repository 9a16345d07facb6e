"""Random window functions over the rows of a plan: those that the engines keep up to date."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from deltic.aggregates import aggregate_function
from deltic.expr import Expr, Literal, cast, resolve
from deltic.frontends.sql.bind_window import with_whole_rows
from deltic.plan.aggregate_nodes import AggregateCall
from deltic.plan.nodes import Order
from deltic.plan.window_nodes import UNBOUNDED, WHOLE, Edge, Window, WindowCall, WindowFrame
from deltic.schema import BIGINT, BINARY, DAY_TO_SECOND, DOUBLE, INT, INTEGER_BITS, STRING, TIMESTAMP, TIMESTAMP_NTZ

if TYPE_CHECKING:
    from program_plans import Bound, Programs, Sized

MANY = 10**6  # more rows than any partition has
LISTS = ("collect_list", "collect_list", "listagg", "collect_set", "mode", "percentile")
"""Aggregates that read all rows of their frames."""
OF_PEERS = WindowFrame(Edge("peers"), Edge("peers"))
UP_TO_PEERS = WindowCall(
    "aggregate", BIGINT, False, frame=WindowFrame(UNBOUNDED, Edge("peers")), aggregate=AggregateCall("count", (), BIGINT, False)
)


def window_of(programs: Programs, source: Sized, *, lists: bool = False) -> tuple[Window, tuple[Bound, ...]]:
    """(the plan, the bounds of its calls). lists: with lists in the order of the window."""
    rng, scalars = programs.rng, programs.scalars
    keys = tuple(scalars.any(source, 1)[0] for _ in range(rng.choice([0, 1, 1, 2])))
    if not lists and rng.random() < 0.12:
        return _sessions(programs, source, keys)
    order, distances = [], list[WindowFrame]()
    for _ in range(rng.choice([1, 1, 2])):
        number = scalars.column(source, lambda type: type.is_integer or type.is_float) if rng.random() < 0.4 else None
        term, bound = number or scalars.any(source, 1)
        order.append(Order(term, rng.random() < 0.5, rng.random() < 0.5))
        distances = _by_distance(order[0], bound) if len(order) == 1 else []
    calls = [_call(programs, source, distances) for _ in range(rng.randint(1, 3))]
    if lists:
        calls += [(_list(programs, source, order, distances), None) for _ in range(rng.randint(1, 2))]
    plan = Window(source.plan, keys, tuple(order), tuple((f"w{i}", call) for i, (call, _) in enumerate(calls)))
    return plan, tuple(bound for _, bound in calls)


def _by_distance(term: Order, bound: Bound) -> list[WindowFrame]:
    """Frames by RANGE with distances, where none is beyond the numbers of the type."""
    if term.expr.type.is_float:
        distance = Literal(1.5, term.expr.type)
    elif term.expr.type.is_integer and bound is not None and bound + 2 < 1 << (INTEGER_BITS[term.expr.type.name] - 1):
        distance = Literal(2, term.expr.type)
    else:
        return []
    back, ahead = (Edge("range", limit=resolve(sign, [term.expr, distance])) for sign in ("+-" if term.descending else "-+"))
    peers = Edge("peers")
    edges = ((back, peers), (back, ahead), (UNBOUNDED, back), (ahead, UNBOUNDED), (peers, ahead), (UNBOUNDED, ahead))
    return [WindowFrame(*pair) for pair in edges]


def _sessions(programs: Programs, source: Sized, keys: tuple[Expr, ...]) -> tuple[Window, tuple[Bound, ...]]:
    """The start of each row's session, of times or small numbers."""
    rng = programs.rng
    column = programs.scalars.column(source, lambda type: type in (TIMESTAMP, TIMESTAMP_NTZ))
    if column is not None and rng.random() < 0.7:
        latest = datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC if column[0].type == TIMESTAMP else None)
        start = resolve("least", [resolve("coalesce", [column[0], Literal(latest, column[0].type)]), Literal(latest, column[0].type)])
        gap: Expr = Literal(datetime.timedelta(hours=rng.choice([1, 30, 9_000])), DAY_TO_SECOND)
    else:
        number = programs.scalars.column(source, lambda type: type.is_integer)
        value = Literal(rng.randint(0, 3), BIGINT) if number is None else cast(number[0], BIGINT)
        start = resolve("%", [resolve("coalesce", [value, Literal(0, BIGINT)]), Literal(20, BIGINT)])
        start = resolve("coalesce", [start, Literal(0, BIGINT)])
        gap = Literal(rng.randint(1, 4), BIGINT)
    call = WindowCall("session_start", start.type, False, (start, resolve("+", [start, gap])))
    return Window(source.plan, keys, (Order(start, False, True),), (("w0", call),)), (20 if start.type == BIGINT else None,)


def _call(programs: Programs, source: Sized, distances: Sequence[WindowFrame]) -> tuple[WindowCall, Bound]:
    rng = programs.rng
    match rng.choice(
        [
            "row_number",
            "rank",
            "dense_rank",
            "ntile",
            "percent_rank",
            "cume_dist",
            "count",
            "lag",
            "lag",
            "pick",
            "pick",
            "sums",
            "sums",
            "all",
            "all",
        ]
    ):
        case "row_number" | "rank" | "dense_rank" | "ntile" as function:
            return WindowCall(function, INT, False, number=rng.randint(1, 4)), MANY
        case "percent_rank" | "cume_dist" as function:
            return WindowCall(function, DOUBLE, False), None
        case "count":
            return UP_TO_PEERS, MANY
        case "lag":
            value, bound = programs.scalars.any(source, 1)
            ignores = rng.random() < 0.4
            return WindowCall(rng.choice(["lag", "lead"]), value.type, True, (value,), rng.randint(-1, 3), ignores), bound
        case "pick":
            value, bound = programs.scalars.any(source, 1)
            function = rng.choice(["first_value", "last_value", "nth_value"])
            frame = _frame(rng, distances)
            return WindowCall(function, value.type, True, (value,), rng.randint(1, 3), rng.random() < 0.5, frame), bound
        case "sums":
            call, bound = programs.call(source)
            return WindowCall("aggregate", call.type, call.nullable, frame=_frame(rng, distances), aggregate=call), bound
        case _:
            call, bound = programs.call(source)
            return WindowCall("aggregate", call.type, call.nullable, aggregate=call), bound


def _list(programs: Programs, source: Sized, order: Sequence[Order], distances: Sequence[WindowFrame]) -> WindowCall:
    """A value of all rows of a frame; a list has them in the order of the window."""
    rng, scalars = programs.rng, programs.scalars
    name, number = rng.choice(LISTS), scalars.column(source, lambda type: type.is_numeric)
    arguments: tuple[Expr, ...] = (scalars.any(source, 1)[0],)
    if name == "listagg":
        value = resolve("hex", arguments) if arguments[0].type == BINARY else arguments[0]  # not all bytes are text
        arguments = (cast(value, STRING), Literal("-", STRING))
    elif name == "percentile":
        arguments = (Literal(1, INT) if number is None else number[0], Literal(rng.choice((0.0, 0.3, 1.0)), DOUBLE))
    signature = aggregate_function(name).rule(name, [argument.type for argument in arguments], None)
    arguments = tuple(cast(argument, type) for argument, type in zip(arguments, signature.arguments, strict=True))
    where = scalars.predicate(source, 1) if rng.random() < 0.25 else None
    call = AggregateCall(name, arguments, signature.result, signature.nullable, False, where)
    if call.is_listing:
        directions = tuple((term.descending, term.nulls_first) for term in order)
        call = replace(call, arguments=(*arguments, *(term.expr for term in order)), directions=directions)
    frame = rng.choice((WHOLE, OF_PEERS)) if rng.random() < 0.2 else _frame(rng, distances)
    return with_whole_rows(WindowCall("aggregate", call.type, call.nullable, frame=frame, aggregate=call), order, source.schema)


def _frame(rng: Random, distances: Sequence[WindowFrame]) -> WindowFrame:
    if distances and rng.random() < 0.5:
        return rng.choice(distances)
    start = rng.randint(-3, 2)
    of_rows = WindowFrame(Edge("rows", start), Edge("rows", start + rng.randint(0, 3)))
    edge = rng.choice([Edge("peers"), Edge("rows"), Edge("rows", rng.choice([-2, -1, 1, 2]))])
    return rng.choice([of_rows, WindowFrame(UNBOUNDED, edge), WindowFrame(edge, UNBOUNDED), WindowFrame(UNBOUNDED, Edge("peers"))])
