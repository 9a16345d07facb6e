"""Aggregates by users' functions: of whole groups, whose rows are arranged by group, and over the ticks of a stream."""

from __future__ import annotations

from deltic.circuit.nodes import Shape
from deltic.circuit.operators.accumulate import AccumulateOperator
from deltic.circuit.operators.reduce import ReduceOperator
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.streams import ZERO, normalized
from deltic.plan.columns import reference
from deltic.plan.nodes import Accumulate, Reduce
from deltic.schema import BIGINT, Field, Schema


def lower_reduce(lowering: PlanLowering, plan: Reduce) -> int:
    """The function's rows for each group."""
    streams, builder = lowering.streams, lowering.streams.builder
    gathered, keys, values = _grouped(lowering, plan)
    arranged = streams.arrange(gathered, len(keys))
    target = Schema((*keys, *plan.returned))
    memory = builder.name("reduced", plan.function, target, streams.fingerprint(arranged))
    operator = ReduceOperator(arranged.id, memory, Shape(keys).layout.width, values, plan.returned, plan.function)
    node = builder.add(operator, (arranged.node,), Shape(target), arranged.partition, owns=memory, reads=(arranged.id,))
    streams.specify_memory(memory, node, len(keys))
    return _without_constant(lowering, plan, node)


def lower_accumulate(lowering: PlanLowering, plan: Accumulate) -> int:
    """The accumulator of each key."""
    streams, builder = lowering.streams, lowering.streams.builder
    gathered, keys, values = _grouped(lowering, plan)
    target = Schema((*keys, *plan.returned))
    memory = builder.name("accumulated", plan.function, target, builder.fingerprint(gathered))
    operator = AccumulateOperator(memory, Shape(keys).layout.width, values, plan.returned, plan.function)
    node = builder.add(operator, (gathered,), Shape(target), streams.partition(gathered), owns=memory)
    streams.specify_memory(memory, node, len(keys))
    return _without_constant(lowering, plan, node)


def _grouped(lowering: PlanLowering, plan: Reduce) -> tuple[int, Schema, Schema]:
    """(the stream of keys and values, each group on one shard, the fields of the key, those of the values)."""
    assert not lowering.scoped, "a function of whole groups reads a recursive relation"
    streams, schema = lowering.streams, plan.input.schema
    keys = Schema(tuple(Field(name, expr.type, expr.nullable) for name, expr in plan.keys) or (Field("all", BIGINT, False),))
    exprs = [normalized(expr) for _, expr in plan.keys] or [ZERO]
    values = Schema(tuple(schema[i] for i in plan.values))
    columns = [*exprs, *(reference(schema, i) for i in plan.values)]
    mapped = streams.map(lowering.relation(plan.input), columns, Schema((*keys, *values)))
    gathered = streams.gather(mapped, Shape(keys).layout.width) if plan.keys else streams.exchange(mapped, ())
    return gathered, keys, values


def _without_constant(lowering: PlanLowering, plan: Reduce, node: int) -> int:
    """The rows without the key that stands for all rows, if there is no other."""
    schema = lowering.streams.schema(node)
    return node if plan.keys else lowering.streams.map(node, [reference(schema, i + 1) for i in range(len(plan.returned))], plan.schema)
