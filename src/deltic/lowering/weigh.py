"""Sums as weights: a plan as group columns with weights (count, sums), pushed below joins.

For each join key and group, SUM and COUNT over A ⋈ B need only the number of rows and the sums of each side. Each side is arranged in this
form, and the join multiplies: count = count_a · count_b, a sum over A's columns = sum_a · count_b (the ring of sums of factorised IVM).
Values that are only summed are not stored, and a skewed key costs one row.
"""

from __future__ import annotations

from dataclasses import replace

from deltic.aggregates.definition import Measure
from deltic.expr.nodes import Column, Expr
from deltic.lowering.expand import weigh_expand
from deltic.lowering.joins import Side, arranged_by_key, joined, table_side
from deltic.lowering.multiway import weigh_multiway_join
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.streams import none_is_null
from deltic.lowering.weighing import Weighing
from deltic.plan.columns import is_mostly_shared, normalized
from deltic.plan.divided_joins import has_range
from deltic.plan.key_order import with_ordered_keys
from deltic.plan.nodes import Expand, Join, MultiwayJoin, Plan, Project
from deltic.schema import Field, Schema


def weigh(lowering: PlanLowering, plan: Plan, weighing: Weighing, schema: Schema) -> int:
    """The stream of the groups (the fields of `schema`) with weights (count, measures)."""
    return lowering.once((plan, weighing, schema), lambda: _weigh(lowering, plan, weighing, schema))


def _weigh(lowering: PlanLowering, plan: Plan, weighing: Weighing, schema: Schema) -> int:
    if isinstance(plan, Project) and not (isinstance(plan.input, Join) and has_range(plan.input)):
        through = weighing.through([e for _, e in plan.columns])
        if not is_mostly_shared(through.expressions()):
            return weigh(lowering, plan.input, through, schema)
    if isinstance(plan, Join) and _splits(plan, weighing):
        return _weigh_join(lowering, plan, weighing, schema)
    if isinstance(plan, Expand):
        finest = weigh_expand(lowering, plan, weighing, schema, lambda inner, groups: weigh(lowering, plan.input, inner, groups))
        if finest is not None:
            return finest
    if isinstance(plan, MultiwayJoin) and (weighed := weigh_multiway_join(lowering, plan, weighing, schema)) is not None:
        return weighed
    return lowering.streams.map(lowering.relation(plan), weighing.groups, schema, none_is_null(weighing.present), weighing.measures)


def _splits(plan: Join, weighing: Weighing) -> bool:
    """Whether the join can be weighed by side: an inner equijoin, and plain columns, which cannot fail on rows without a match."""
    if plan.kind != "inner" or not plan.keys or plan.residual is not None:
        return False
    return all(isinstance(e, Column) for e in weighing.expressions())


def _weigh_join(lowering: PlanLowering, plan: Join, weighing: Weighing, schema: Schema) -> int:
    plan = with_ordered_keys(plan)
    width = len(plan.left.schema)
    sides = [_weigh_side(lowering, plan, i, weighing, width) for i in (0, 1)]
    counts = [0, 0]
    order = []
    for group in weighing.groups:
        side = _side_of(group, width)
        order.append((side, counts[side]))
        counts[side] += 1
    weights, limbs = [(0, 0)], []
    slots = [1, 1]
    for measure in weighing.measures:
        side = _side_of(measure.argument, width)
        first = len(weights)
        for i in range(measure.width):
            slot = slots[side] + i
            weights.append((slot, 0) if side == 0 else (0, slot))
        slots[side] += measure.width
        limbs += [(first + i, first + i + 1) for i in range(measure.width - 2, -1, -1)]
    return joined(lowering, sides[0], sides[1], order, schema, tuple(weights), tuple(limbs))


def _weigh_side(lowering: PlanLowering, plan: Join, side: int, weighing: Weighing, width: int) -> Side:
    """One side arranged by the join's keys, its groups as payload, its measures as weights."""
    below = (plan.left, plan.right)[side]
    keys = [pair[side] for pair in plan.keys]
    groups, present = ([_over(e, width) for e in exprs if _side_of(e, width) == side] for exprs in (weighing.groups, weighing.present))
    measures = tuple(Measure(m.kind, _over(m.argument, width)) for m in weighing.measures if _side_of(m.argument, width) == side)
    fields = [Field(f"k{i}", k.type, k.nullable) for i, k in enumerate(keys)]
    fields += [Field(f"g{i}", g.type, g.nullable) for i, g in enumerate(groups)]
    inner = Weighing((*map(normalized, keys), *groups), measures, tuple(present))
    stream = weigh(lowering, below, inner, Schema(tuple(fields)))
    places = range(len(keys), len(fields))
    shared = None
    if not measures and not present:
        shared = table_side(lowering, lowering.relation(below), stream, keys, groups, places)
    return shared or arranged_by_key(lowering, stream, keys, places)


def _side_of(expr: Expr, width: int) -> int:
    assert isinstance(expr, Column)
    return int(expr.index >= width)


def _over(expr: Expr, width: int) -> Expr:
    """The column as a column of its own side."""
    assert isinstance(expr, Column)
    return replace(expr, index=expr.index - width) if expr.index >= width else expr
