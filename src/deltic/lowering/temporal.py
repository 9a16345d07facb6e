"""Temporal filters: the bounds become columns, computed in the pass of the operators before, and a queue holds rows that are due later."""

from __future__ import annotations

from deltic.circuit.nodes import ArrangementSpec, Shape
from deltic.circuit.operators.temporal_filter import OptionalTemporalFilter, TemporalFilterOperator
from deltic.lowering.protocol import PlanLowering
from deltic.plan.columns import all_columns
from deltic.plan.nodes import TemporalFilter
from deltic.schema import BIGINT, TIMESTAMP, Field, Schema


def lower_temporal_filter(lowering: PlanLowering, plan: TemporalFilter) -> int:
    """The stream of the rows whose bounds contain the current time."""
    assert not lowering.scoped, "a temporal filter reads a recursive relation"
    streams, builder, schema = lowering.streams, lowering.streams.builder, plan.input.schema
    bounds = (*plan.lower, *plan.upper)
    fields = schema.fields + tuple(Field(f"bound{i}", TIMESTAMP, True) for i in range(len(bounds)))
    exprs = [*all_columns(schema), *(bound.moment for bound in bounds)]
    mapped = streams.map(lowering.relation(plan.input), exprs, Schema(fields))
    partition = streams.partition(mapped)
    width = Shape(schema).layout.width
    placed = [(streams.shape(mapped).layout.slices[len(schema) + i].start, bound.offset) for i, bound in enumerate(bounds)]
    lower, upper = tuple(placed[: len(plan.lower)]), tuple(placed[len(plan.lower) :])
    optional = tuple(word for (word, _), bound in zip(placed, bounds, strict=True) if bound.optional)
    queue = builder.name("queue", lower, upper, *([optional] if optional else []), builder.fingerprint(mapped))
    operator = TemporalFilterOperator(streams.schema(mapped), queue, width, lower, upper)
    if optional:
        operator = OptionalTemporalFilter(streams.schema(mapped), queue, width, lower, upper, optional)
    kept = partition if partition is not None and all(word < width for word in partition) else None
    node = builder.add(operator, (mapped,), Shape(schema), kept, owns=queue)
    waiting = Shape(Schema((Field("due", BIGINT, False), *schema.fields)))
    queue_partition = None if kept is None else tuple(word + 1 for word in kept)
    builder.specify(ArrangementSpec(queue, waiting, builder.nodes[node].level, 1, partition=queue_partition))
    return node
