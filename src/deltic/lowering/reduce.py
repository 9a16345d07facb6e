"""Aggregates by users' functions: of whole groups, whose rows are arranged by group, and over the ticks of a stream."""

from __future__ import annotations

from deltic.circuit.nodes import Shape
from deltic.circuit.operators.accumulate import AccumulateOperator
from deltic.circuit.operators.accumulate_elements import PLAIN, AccumulateElementsOperator, places, tagged
from deltic.circuit.operators.reduce import ReduceOperator
from deltic.expr.nodes import Literal
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.streams import ZERO
from deltic.plan.accumulators import AccumulateElements
from deltic.plan.columns import compared, normalized, reference
from deltic.plan.nodes import Accumulate, Reduce
from deltic.schema import BIGINT, INT, Field, Schema


def lower_reduce(lowering: PlanLowering, plan: Reduce) -> int:
    """The function's rows for each group."""
    streams, builder = lowering.streams, lowering.streams.builder
    gathered, keys, values = _grouped(lowering, plan)
    arranged = streams.arrange(gathered, len(keys))
    target = Schema((*keys, *plan.returned))
    memory = builder.name("reduced", plan.function, target, streams.fingerprint(arranged))
    operator = ReduceOperator(arranged.id, memory, Shape(keys).layout.width, values, plan.returned, plan.function)
    node = streams.keep(operator, arranged, Shape(target), memory, len(keys))
    return _without_constant(lowering, plan, node)


def lower_accumulate(lowering: PlanLowering, plan: Accumulate) -> int:
    """The accumulator of each key."""
    if isinstance(plan, AccumulateElements):
        return _lower_elements(lowering, plan)
    streams, builder = lowering.streams, lowering.streams.builder
    gathered, keys, values = _grouped(lowering, plan)
    target = Schema((*keys, *plan.returned))
    memory = builder.name("accumulated", plan.function, target, builder.fingerprint(gathered))
    operator = AccumulateOperator(memory, Shape(keys).layout.width, values, plan.returned, plan.function)
    node = builder.add(operator, (gathered,), Shape(target), streams.partition(gathered), owns=memory)
    streams.specify_memory(memory, node, len(keys))
    return _without_constant(lowering, plan, node)


def _lower_elements(lowering: PlanLowering, plan: AccumulateElements) -> int:
    """The rows of one tag. All relations of the accumulators read one node."""
    streams, builder = lowering.streams, lowering.streams.builder
    gathered, keys, values = _grouped(lowering, plan)
    target = Schema((*keys, *tagged(plan.returned, plan.parts)))
    memory = builder.name("accumulated", plan.function, target, builder.fingerprint(gathered))
    operator = AccumulateElementsOperator(memory, Shape(keys).layout.width, values, plan.returned, plan.function, plan.parts)
    node = builder.add(operator, (gathered,), Shape(target), streams.partition(gathered), owns=memory)
    streams.specify_memory(memory, node, len(keys))
    elements, plain, _ = places(plan.returned, plan.parts)
    tag = PLAIN if plan.part is None else 1 + plan.part
    columns = [*range(len(plan.keys)), *(len(keys) + i for i in (plain if plan.part is None else elements[plan.part]))]
    is_tagged = compared("equal", reference(target, len(keys)), Literal(tag, INT))
    return streams.map(node, [reference(target, i) for i in columns], plan.schema, is_tagged)


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
