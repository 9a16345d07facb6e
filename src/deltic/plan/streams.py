"""Streams: the plans that denote one.

A stream is a multiset that holds the rows of the current tick and is then empty, without retractions. What reads a stream is a stream, so
it costs nothing between ticks: a row that was joined is not joined again when the relation changes later. Only `current`, the stream as a
relation that loses its rows in the next tick, `integrate`, all rows so far, and accumulators make relations of streams.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltic.plan.node import once_per_node
from deltic.plan.nodes import (
    Accumulate,
    ByWatermark,
    Expand,
    Filter,
    FlatMap,
    OverTicks,
    Plan,
    Project,
    Table,
    TickAggregate,
    TickRecursion,
    TickTopK,
    Union,
    inputs,
)
from deltic.plan.walk import map_inputs
from deltic.schema import StreamSchema


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
def keeps_ticks(plan: Plan) -> bool:
    """Whether the plan has state that depends on earlier ticks, so that an equal plan that is added later has other rows."""
    return isinstance(plan, OverTicks | ByWatermark | Accumulate | TickRecursion) or any(map(keeps_ticks, inputs(plan)))


@once_per_node
def integrals(plan: Plan) -> frozenset[Plan]:
    """The integrals of streams whose rows make the relation, by linear nodes alone; none if it has other rows, too."""
    match plan:
        case OverTicks(function="integrate") if is_stream(plan.input):
            return frozenset((plan,))
        case Project() | Filter() | Expand() | FlatMap() | Union():
            parts = [integrals(part) for part in inputs(plan)]
            return frozenset[Plan]().union(*parts) if all(parts) else frozenset()
        case _:
            return frozenset()


@once_per_node
def derivative(plan: Plan) -> Plan:
    """The stream of the rows that each tick adds to a relation that has `integrals`."""
    return plan.input if isinstance(plan, OverTicks) else map_inputs(plan, derivative)


@once_per_node
def stored_integrals(plan: Plan) -> frozenset[Plan]:
    """The integrals of streams in the plan whose rows are kept: all but those of which each group keeps sums or first rows."""
    folded = integrals(plan.input) if isinstance(plan, TickAggregate | TickTopK) else frozenset[Plan]()
    own = frozenset[Plan]((plan,) if isinstance(plan, OverTicks) and integrals(plan) else ())
    below: Sequence[Plan] = [part for integral in folded for part in inputs(integral)] or inputs(plan)
    return own.union(*map(stored_integrals, below))


@once_per_node
def is_of_ticks(plan: Plan) -> bool:
    """Whether the node, or what reads it, keeps what past ticks brought: of another plan it would begin again, and not be filled."""
    return is_stream(plan) or isinstance(plan, OverTicks | Accumulate | ByWatermark | TickRecursion)


@once_per_node
def reads_ticks(plan: Plan) -> bool:
    """Whether a node of the plan is of ticks."""
    return is_of_ticks(plan) or any(map(reads_ticks, inputs(plan)))
