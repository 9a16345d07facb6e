"""Random window functions over the rows of a plan: those that the engines keep up to date."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from deltic.aggregates.definition import First, Linear
from deltic.plan.aggregate_nodes import AggregateCall
from deltic.plan.nodes import Order
from deltic.plan.window_nodes import UNBOUNDED, WHOLE, Edge, Window, WindowCall, WindowFrame
from deltic.schema import BIGINT, DOUBLE, INT

if TYPE_CHECKING:
    from program_plans import Bound, Programs, Sized

MANY = 10**6  # more rows than any partition has
UP_TO_PEERS = WindowCall(
    "aggregate", BIGINT, False, frame=WindowFrame(UNBOUNDED, Edge("peers")), aggregate=AggregateCall("count", (), BIGINT, False)
)


def window_of(programs: Programs, source: Sized) -> tuple[Window, tuple[Bound, ...]]:
    """(the plan, the bounds of its calls)."""
    rng, scalars = programs.rng, programs.scalars
    keys = tuple(scalars.any(source, 1)[0] for _ in range(rng.choice([0, 1, 1, 2])))
    order = []
    for _ in range(rng.randint(1, 2)):
        descending = rng.random() < 0.5
        order.append(Order(scalars.any(source, 1)[0], descending, rng.random() < 0.5))
    calls = [_call(programs, source) for _ in range(rng.randint(1, 3))]
    plan = Window(source.plan, keys, tuple(order), tuple((f"w{i}", call) for i, (call, _) in enumerate(calls)))
    return plan, tuple(bound for _, bound in calls)


def _call(programs: Programs, source: Sized) -> tuple[WindowCall, Bound]:
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
            "frame",
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
            return WindowCall(rng.choice(["lag", "lead"]), value.type, True, (value,), rng.randint(-1, 3)), bound
        case "frame":
            value, bound = programs.scalars.any(source, 1)
            start = rng.randint(-3, 2)
            frame = WindowFrame(Edge("rows", start), Edge("rows", start + rng.randint(0, 3)))
            function = rng.choice(["first_value", "last_value", "nth_value"])
            return WindowCall(function, value.type, True, (value,), rng.randint(1, 3), rng.random() < 0.5, frame), bound
        case "sums":
            call, bound = programs.call(source)
            return WindowCall("aggregate", call.type, call.nullable, frame=_frame(rng, call), aggregate=call), bound
        case _:
            call, bound = programs.call(source)
            return WindowCall("aggregate", call.type, call.nullable, aggregate=call), bound


def _frame(rng: Random, call: AggregateCall) -> WindowFrame:
    """A frame over which the aggregate is kept up to date."""
    if call.distinct or call.user is not None or not isinstance(call.definition.state, Linear | First):
        return WHOLE
    start = rng.randint(-3, 2)
    of_rows = WindowFrame(Edge("rows", start), Edge("rows", start + rng.randint(0, 3)))
    edge = rng.choice([Edge("peers"), Edge("rows")])
    return rng.choice([of_rows, WindowFrame(UNBOUNDED, edge), WindowFrame(edge, UNBOUNDED)])
