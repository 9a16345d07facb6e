"""Outer joins become inner joins where later nodes drop the rows that they pad with NULLs.

A column is rejected if each row in which it is NULL contributes nothing to the result: a filter, a join key or a temporal bound above is
not TRUE on it. If a column of the padded side is rejected, no padded row counts: LEFT and RIGHT joins become inner, and FULL joins become
LEFT, RIGHT or inner. Inner joins may be reordered, and may form a multiway join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltic.expr.functions import resolve
from deltic.expr.nodes import WIDENED, Expr, Literal, columns_of
from deltic.optimizer.fold import fold_condition, is_never
from deltic.optimizer.rejected_nulls import NONE, nulls_passed, nulls_rejected, union
from deltic.plan.columns import all_columns, reference, substitute
from deltic.plan.node import once_per_node
from deltic.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    FlatMap,
    Join,
    JoinKind,
    MultiwayJoin,
    Plan,
    Project,
    SetOperation,
    TemporalFilter,
    Union,
    inputs,
)
from deltic.plan.walk import map_inputs


@once_per_node
def form_inner_joins(plan: Plan) -> Plan:
    """Converts every outer join whose padded rows are dropped later.

    >>> from deltic.expr.nodes import Column, Literal
    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("a", BIGINT), Field("b", BIGINT)))))
    >>> a, b = Column(0, BIGINT, True, "a"), Column(3, BIGINT, True, "b")
    >>> plan = Filter(Join(t, t, "left", ((a, a),)), resolve("greater", [b, Literal(0, BIGINT)]))
    >>> print(show(plan))
    Filter (b#3 > 0)
      Join left on a#0 = a#0
        Table t (a, b)
        Table t (a, b)
    >>> print(show(form_inner_joins(plan)))
    Filter (b#3 > 0)
      Join inner on a#0 = a#0
        Table t (a, b)
        Table t (a, b)
    """
    return _formed(plan, NONE)


@once_per_node
def _formed(plan: Plan, rejected: frozenset[int]) -> Plan:
    """The plan without the padded rows in which a rejected column is NULL."""
    if isinstance(plan, Join):
        return _formed_join(plan, rejected)
    if isinstance(plan, Filter):
        plan = _with_matches_alone(plan)
    below = iter(_rejected_below(plan, rejected))
    return map_inputs(plan, lambda part: _formed(part, next(below)))


def _with_matches_alone(plan: Filter) -> Filter:
    """The filter over an inner join, if it is over a left join and TRUE of no row without a match, whose right columns are all NULL.

    In `x > hi OR x < lo` no column alone is rejected.
    """
    project = plan.input if isinstance(plan.input, Project) else None
    join = plan.input if project is None else project.input
    condition = plan.predicate if project is None else substitute(plan.predicate, [expr for _, expr in project.columns])
    if not isinstance(join, Join) or join.kind != "left" or max(columns_of(condition), default=0) < len(join.left.schema):
        return plan
    missing: list[Expr] = [*all_columns(join.left.schema), *(Literal(None, field.type) for field in join.right.schema)]
    if not is_never(fold_condition(substitute(condition, missing))):
        return plan
    inner = _widened(replace(join, kind="inner"), join)
    return replace(plan, input=inner if project is None else replace(project, input=inner))


def _rejected_below(plan: Plan, rejected: frozenset[int]) -> Sequence[frozenset[int]]:
    """The rejected columns of each input."""
    match plan:
        case Filter():
            return (rejected | nulls_rejected(plan.predicate),)
        case TemporalFilter():
            bounds = (bound for side in (plan.lower, plan.upper) for bound in side if not bound.optional)
            return (rejected | union(nulls_passed(bound.moment) for bound in bounds),)
        case Project():
            return (union(nulls_passed(plan.columns[i][1]) for i in rejected),)
        case Aggregate() if plan.keys:
            return (union(nulls_passed(plan.keys[i][1]) for i in rejected if i < len(plan.keys)),)
        case FlatMap():
            return (frozenset(i for i in rejected if i < len(plan.input.schema)),)
        case MultiwayJoin():
            return _rejected_below_multiway(plan, rejected)
        case Distinct() | Union() | SetOperation():
            return [rejected] * len(inputs(plan))
        case _:
            return [NONE] * len(inputs(plan))


def _rejected_below_multiway(plan: MultiwayJoin, rejected: frozenset[int]) -> list[frozenset[int]]:
    shared = {i for i, variable in enumerate(plan.flat) if variable in plan.shared}
    condition = NONE if plan.condition is None else nulls_rejected(plan.condition)
    whole = shared | {plan.output[i] for i in rejected} | condition
    widths = [len(part.schema) for part in plan.inputs]
    return [frozenset(i for i in range(width) if start + i in whole) for start, width in zip(plan.starts, widths, strict=True)]


def _formed_join(plan: Join, rejected: frozenset[int]) -> Plan:
    width = len(plan.left.schema)
    kind = _kind(plan.kind, any(i < width for i in rejected), any(i >= width for i in rejected))
    left, right = (_formed(side, below) for side, below in zip((plan.left, plan.right), _sides(plan, kind, rejected), strict=True))
    same = left is plan.left and right is plan.right
    if kind == plan.kind:
        return plan if same else replace(plan, left=left, right=right)
    return _widened(replace(plan, kind=kind, left=left, right=right), plan)


def _kind(kind: JoinKind, left: bool, right: bool) -> JoinKind:
    """The kind of join without padded rows, if a column of the left or right side is rejected."""
    match kind:
        case "left" if right:
            return "inner"
        case "right" if left:
            return "inner"
        case "full" if left or right:
            return "inner" if left and right else "left" if left else "right"
        case _:
            return kind


def _sides(plan: Join, kind: JoinKind, rejected: frozenset[int]) -> tuple[frozenset[int], frozenset[int]]:
    """The rejected columns of both sides of the join as `kind`. The rows of a preserved side stay, whatever the condition on them."""
    width = len(plan.left.schema)
    condition = NONE if plan.residual is None or kind == "not_in" else nulls_rejected(plan.residual)
    whole = rejected | condition
    above = (frozenset(i for i in rejected if i < width), frozenset(i - width for i in rejected if i >= width))
    matched = (
        frozenset(i for i in whole if i < width) | union(nulls_passed(key) for key, _ in plan.keys),
        frozenset(i - width for i in whole if i >= width) | union(nulls_passed(key) for _, key in plan.keys),
    )
    match kind:
        case "inner" | "semi":
            return matched
        case "left" | "anti" | "not_in":
            return above[0], matched[1]
        case "right":
            return matched[0], above[1]
        case "full":
            return NONE, NONE


def _widened(join: Join, before: Join) -> Plan:
    """The join with the nullability of the join before, which readers depend on."""
    wide = [field.nullable for field in before.schema]
    if [field.nullable for field in join.schema] == wide:
        return join
    own = [reference(join.schema, i) for i in range(len(wide))]
    columns = (resolve(WIDENED, [expr]) if wider and not expr.nullable else expr for expr, wider in zip(own, wide, strict=True))
    return Project(join, tuple(zip(join.schema.names, columns, strict=True)))
