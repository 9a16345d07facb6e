"""Streams: the plans that denote one.

A stream is a multiset that holds the rows of the current tick and is then empty, without retractions. What reads a stream is a stream, so
it costs nothing between ticks: a row that was joined is not joined again when the relation changes later. Only `current`, the stream as a
relation that loses its rows in the next tick, `integrate`, all rows so far, and accumulators make relations of streams.
"""

from __future__ import annotations

from deltic.plan.node import once_per_node
from deltic.plan.nodes import Accumulate, ByWatermark, OverTicks, Plan, Table, inputs
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
