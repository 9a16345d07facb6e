"""Sums that ride in the weight: a plan as group columns with (count, sums) for weights, pushed below joins.

SUM and COUNT over A ⋈ B need of A only, for each join key and group column of A's, how many rows and the sums of A's measures;
the same for B. Each side is arranged so, and the join multiplies: count = count_a · count_b, a sum over A's columns = sum_a · count_b
(factorised IVM's ring of sums). No value that is only summed is ever stored, and a skewed key costs one row.
"""

from __future__ import annotations

from dataclasses import replace

from deltic.aggregates.definition import Measure
from deltic.expr.nodes import Column, Expr
from deltic.lowering.joins import Side, arranged_by_key, joined, meaning_of, table_side, with_ordered_keys
from deltic.lowering.multiway import weigh_multiway_join
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.streams import is_not_null, normalized
from deltic.lowering.weighing import Weighing
from deltic.plan.nodes import Join, MultiwayJoin, Plan, Project
from deltic.schema import Field, Schema


def weigh(lowering: PlanLowering, plan: Plan, wanted: Weighing, schema: Schema) -> int:
    """The stream of the groups (the fields of `schema`) with weights (count, measures)."""
    return lowering.once((plan, wanted, schema), lambda: _weigh(lowering, plan, wanted, schema))


def _weigh(lowering: PlanLowering, plan: Plan, wanted: Weighing, schema: Schema) -> int:
    if isinstance(plan, Project):
        return weigh(lowering, plan.input, wanted.through([e for _, e in plan.columns]), schema)
    if isinstance(plan, Join) and _splits(plan, wanted):
        return _weigh_join(lowering, plan, wanted, schema)
    if isinstance(plan, MultiwayJoin) and (weighed := weigh_multiway_join(lowering, plan, wanted, schema)) is not None:
        return weighed
    return lowering.streams.map(lowering.relation(plan), wanted.groups, schema, is_not_null(wanted.present), wanted.measures)


def _splits(plan: Join, wanted: Weighing) -> bool:
    """Whether all that is wanted are plain columns, each of one side, which cannot fail on rows that do not join."""
    if plan.kind != "inner" or not plan.keys or plan.residual is not None:
        return False
    return all(isinstance(e, Column) for e in (*wanted.groups, *wanted.present, *(m.argument for m in wanted.measures)))


def _weigh_join(lowering: PlanLowering, plan: Join, wanted: Weighing, schema: Schema) -> int:
    plan = with_ordered_keys(plan)
    width = len(plan.left.schema)
    sides = [_weigh_side(lowering, plan, i, wanted, width) for i in (0, 1)]
    seen = [0, 0]
    order = []
    for group in wanted.groups:
        at = _side_of(group, width)
        order.append((at, seen[at]))
        seen[at] += 1
    weights, limbs = [(0, 0)], []
    slots = [1, 1]
    for measure in wanted.measures:
        at = _side_of(measure.argument, width)
        first = len(weights)
        for i in range(measure.width):
            slot = slots[at] + i
            weights.append((slot, 0) if at == 0 else (0, slot))
        slots[at] += measure.width
        limbs += [(first + i, first + i + 1) for i in range(measure.width - 2, -1, -1)]
    return joined(lowering, sides[0], sides[1], order, schema, tuple(weights), tuple(limbs))


def _weigh_side(lowering: PlanLowering, plan: Join, at: int, wanted: Weighing, width: int) -> Side:
    """One side arranged by the join's keys, its groups as payload, its measures as weights."""
    below = (plan.left, plan.right)[at]
    keys = [pair[at] for pair in plan.keys]
    groups, present = ([_over(e, width) for e in exprs if _side_of(e, width) == at] for exprs in (wanted.groups, wanted.present))
    measures = tuple(Measure(m.kind, _over(m.argument, width)) for m in wanted.measures if _side_of(m.argument, width) == at)
    fields = [Field(f"k{i}", k.type, False) for i, k in enumerate(keys)]
    fields += [Field(f"g{i}", g.type, g.nullable) for i, g in enumerate(groups)]
    inner = Weighing((*map(normalized, keys), *groups), measures, (*present, *keys))
    stream = weigh(lowering, below, inner, Schema(tuple(fields)))
    places = range(len(keys), len(fields))
    shared = None
    if not measures and not present:
        shared = table_side(lowering, lowering.relation(below), keys, groups, meaning_of(lowering, stream, places))
    return shared or arranged_by_key(lowering, stream, keys, places)


def _side_of(expr: Expr, width: int) -> int:
    assert isinstance(expr, Column)
    return int(expr.index >= width)


def _over(expr: Expr, width: int) -> Expr:
    """The column as one of its own side."""
    assert isinstance(expr, Column)
    return replace(expr, index=expr.index - width) if expr.index >= width else expr
