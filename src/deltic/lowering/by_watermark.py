"""Windows by the watermark of a table: the end becomes a column. State is partitioned by whole rows, so that it can be resharded."""

from __future__ import annotations

from deltic.circuit.nodes import ArrangementSpec, Shape
from deltic.circuit.operators.watermark import WatermarkOperator
from deltic.lowering.protocol import PlanLowering
from deltic.plan.columns import all_columns
from deltic.plan.nodes import ByWatermark
from deltic.schema import BIGINT, TIMESTAMP, Field, Schema


def lower_by_watermark(lowering: PlanLowering, plan: ByWatermark) -> int:
    """The stream of the rows of open windows, or of those that a tick closes."""
    assert not lowering.scoped, "windows of a recursive relation"
    streams, builder, schema = lowering.streams, lowering.streams.builder, plan.input.schema
    width = Shape(schema).layout.width
    rows = lowering.relation(plan.input)
    placed = streams.gather(rows, width) if width else streams.exchange(rows, ())
    columns = [*all_columns(schema), plan.end.moment]
    timed = plan.end.moment.type == TIMESTAMP
    mapped = streams.map(placed, columns, Schema((*schema.fields, Field("end", plan.end.moment.type, timed))))
    partition = streams.partition(placed)
    assert partition is not None
    table = plan.table.name.lower()
    queue = builder.name("windows", table, plan.phase == "closed", plan.end.offset, builder.fingerprint(mapped))
    operator = WatermarkOperator(plan.table, queue, width, plan.end.offset, plan.phase, timed)
    node = builder.add(operator, (mapped,), Shape(schema), partition, owns=queue)
    waiting = Shape(Schema((Field("end", BIGINT, False), *schema.fields)))
    builder.specify(ArrangementSpec(queue, waiting, builder.nodes[node].level, 1, partition=tuple(word + 1 for word in partition)))
    return node
