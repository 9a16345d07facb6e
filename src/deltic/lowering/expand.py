"""Grouping sets: the rows, or the sums of the finest groups, once for each set.

An aggregate that is a sum is added up by all keys first: a change is repeated for each set once per finest group that it touches, not once
per row, and sums are still pushed below joins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deltic.circuit.nodes import Shape
from deltic.circuit.operators.expand import NUMBER, ExpandOperator
from deltic.expr.nodes import Expr, columns_of
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.weighing import Weighing
from deltic.plan.columns import normalized, reference
from deltic.plan.nodes import Expand
from deltic.schema import Field, Schema


def lower_expand(lowering: PlanLowering, plan: Expand) -> int:
    """The stream of the expanded rows."""
    width = len(plan.input.schema)
    target = plan.schema
    columns = [*(reference(plan.input.schema, i) for i in range(width)), *(expr for _, expr in plan.keys)]
    rows = lowering.streams.map(lowering.relation(plan.input), columns, Schema(target.fields[:-1]))
    fields = [*((i, 0) for i in range(width)), *((width + i, mask) for i, mask in enumerate(_masks(plan))), (NUMBER, 0)]
    return _expanded(lowering, rows, target, fields, plan, merged=False)


Weigh = Callable[[Weighing, Schema], int]


def weigh_expand(lowering: PlanLowering, plan: Expand, weighing: Weighing, schema: Schema, weigh: Weigh) -> int | None:
    """The groups with their sums, from those of the finest groups; None if a sum reads what the sets change.

    weigh: as of the input of the plan.
    """
    width = len(plan.input.schema)
    parts = [_part(plan, group, width) for group in weighing.groups]
    read = (*weighing.present, *(measure.argument for measure in weighing.measures))
    if any(part is None for part in parts) or any(i >= width for expr in read for i in columns_of(expr)):
        return None
    masks = [0, *_masks(plan)]
    given = [*(reference(plan.input.schema, i) for i in range(width)), *(expr for _, expr in plan.keys)]
    kept = [i for i, part in enumerate(parts) if part != NUMBER]
    inner = Weighing(tuple(weighing.groups[i] for i in kept), weighing.measures, weighing.present).through(given)
    plain = Schema(tuple(Field(schema[i].name, group.type, group.nullable) for i, group in zip(kept, inner.groups, strict=True)))
    finest = lowering.streams.conform(weigh(inner, plain), Schema(tuple(schema[i] for i in kept)))
    fields = [(NUMBER, 0) if part == NUMBER else (kept.index(i), masks[part]) for i, part in enumerate(parts) if part is not None]
    return _expanded(lowering, finest, schema, fields, plan, merged=True)


def _part(plan: Expand, group: Expr, width: int) -> int | None:
    """Which key of the plan the group is, from 1; 0 if it reads the input alone, NUMBER for the number of the set, None for all else."""
    columns = columns_of(group)
    if all(i < width for i in columns):
        return 0
    if len(columns) > 1:
        return None
    column = reference(plan.schema, next(iter(columns)))
    if group not in (column, normalized(column)):
        return None
    return NUMBER if column.index == width + len(plan.keys) else 1 + column.index - width


def _masks(plan: Expand) -> list[int]:
    """The bit of each key; 0 for one that every set has."""
    return [mask if any(number & mask for number in plan.sets) else 0 for mask in plan.masks]


def _expanded(lowering: PlanLowering, rows: int, target: Schema, fields: Sequence[tuple[int, int]], plan: Expand, *, merged: bool) -> int:
    streams = lowering.streams
    shape = streams.shape(rows)
    operator = ExpandOperator(shape.schema, target, tuple(fields), plan.sets, merged)
    partition = streams.partition(rows)
    return streams.builder.add(operator, (rows,), Shape(target, shape.weights), () if partition == () else None)
