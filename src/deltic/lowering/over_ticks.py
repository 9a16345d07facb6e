"""Relations in other ticks, and weights as a column. State is partitioned by whole rows, so that it can be resharded."""

from __future__ import annotations

from deltic.circuit.nodes import ArrangementSpec, Shape
from deltic.circuit.operators.over_ticks import OverTicksOperator
from deltic.circuit.operators.weighted import WeightedOperator
from deltic.lowering.protocol import PlanLowering
from deltic.plan.nodes import OverTicks, Plan, Weighted


def lower_over_ticks(lowering: PlanLowering, plan: OverTicks) -> int:
    """At the root, where the clock ticks once per epoch."""
    assert not lowering.scoped
    streams, builder = lowering.streams, lowering.streams.builder
    node, width = _spread(lowering, plan.input)
    arrangement, partition = None, streams.partition(node)
    parts = (plan.size,) if plan.size else ()
    memory = builder.name(plan.function, builder.fingerprint(node), *parts)
    if plan.function in ("integrate", "stamp") and not builder.nodes[node].stream:
        arranged = streams.arrange(node, len(plan.input.schema))
        node, arrangement = arranged.node, arranged.id
    operator = OverTicksOperator(plan.function, memory, width, arrangement, plan.size)
    reads = () if arrangement is None else (arrangement,)
    stream = builder.add(operator, (node,), Shape(plan.schema), partition, owns=memory, reads=reads)
    builder.specify(ArrangementSpec(memory, Shape(plan.schema), builder.nodes[stream].level, len(plan.schema)))
    return stream


def lower_weighted(lowering: PlanLowering, plan: Weighted) -> int:
    streams = lowering.streams
    node, width = _spread(lowering, plan.input)
    arranged = streams.arrange(node, len(plan.input.schema))
    operator = WeightedOperator(arranged.id, width)
    return streams.builder.add(operator, (arranged.node,), Shape(plan.schema), streams.partition(node), reads=(arranged.id,))


def _spread(lowering: PlanLowering, plan: Plan) -> tuple[int, int]:
    """(the plan's stream with equal rows on one shard, the number of words of a row)."""
    stream = lowering.relation(plan)
    width = lowering.streams.shape(stream).layout.width
    return (lowering.streams.gather(stream, width) if width else lowering.streams.exchange(stream, ())), width
