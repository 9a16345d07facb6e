"""aggregate by a user's function: rows arranged by group, and the operator that reads the groups that change."""

from __future__ import annotations

from deltic.circuit.nodes import Shape
from deltic.circuit.operators.reduce import ReduceOperator
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.streams import ZERO, normalized
from deltic.plan.columns import reference
from deltic.plan.nodes import Reduce
from deltic.schema import BIGINT, Field, Schema


def lower_reduce(lowering: PlanLowering, plan: Reduce) -> int:
    assert not lowering.scoped, "a function of whole groups reads a recursive relation"
    streams, builder = lowering.streams, lowering.streams.builder
    schema = plan.input.schema
    keys = [Field(name, expr.type, expr.nullable) for name, expr in plan.keys] or [Field("all", BIGINT, False)]
    exprs = [normalized(expr) for _, expr in plan.keys] or [ZERO]
    values = Schema(tuple(schema[i] for i in plan.values))
    mapped = streams.map(lowering.relation(plan.input), [*exprs, *(reference(schema, i) for i in plan.values)], Schema((*keys, *values)))
    width = Shape(Schema(tuple(keys))).layout.width
    gathered = streams.gather(mapped, width) if plan.keys else streams.exchange(mapped, ())
    arranged = streams.arrange(gathered, len(keys))
    target = Schema((*keys, *plan.returned))
    memory = builder.name("reduced", plan.function, target, streams.fingerprint(arranged))
    operator = ReduceOperator(arranged.id, memory, width, values, plan.returned, plan.function)
    node = builder.add(operator, (arranged.node,), Shape(target), arranged.partition, owns=memory, reads=(arranged.id,))
    streams.specify_memory(memory, node, len(keys))
    if plan.keys:
        return node
    return streams.map(node, [reference(target, i + 1) for i in range(len(plan.returned))], plan.schema)
