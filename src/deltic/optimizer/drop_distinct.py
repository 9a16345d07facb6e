"""Removes DISTINCT over rows that are already distinct, or whose copies do not matter."""

from __future__ import annotations

from dataclasses import replace

from deltic.expr.nodes import Column, unwidened
from deltic.optimizer.unique_rows import determines_rows
from deltic.plan.node import once_per_node
from deltic.plan.nodes import Aggregate, Distinct, Filter, Join, Plan, Project, Recursion, SetOperation, Table, TemporalFilter, TopK, Window
from deltic.plan.signs import may_be_negative
from deltic.plan.walk import transform
from deltic.stacks import unbounded


def drop_distinct(plan: Plan) -> Plan:
    """Removes DISTINCT if its input has a unique key, or determines a row of each relation that it joins.

    Not if a column can hold -0.0, which DISTINCT changes to 0.0.

    Also removes it from the right side of SEMI, ANTI and NOT IN if no weight is negative, since the number of matches does not matter.

    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("a", BIGINT, False), Field("b", BIGINT))), key=(0,)))
    >>> print(show(drop_distinct(Distinct(t))))
    Table t (a, b)
    >>> print(show(drop_distinct(Distinct(Project(t, (("b", Column(1, BIGINT, True, "b")),))))))
    Distinct
      Project b#1
        Table t (a, b)
    """
    return transform(plan, _drop)


def _drop(plan: Plan) -> Plan:
    match plan:
        case Distinct():
            is_normal = all(_is_normal(plan.input, i) for i in range(len(plan.schema)))
            unique = is_normal and (unique_key(plan.input) is not None or determines_rows(plan.input, unique_key))
            return plan.input if unique else plan
        case Join(kind="semi" | "anti" | "not_in", right=Distinct() as right) if _is_needless(right):
            return replace(plan, right=right.input)
        case _:
            return plan


@once_per_node
def unique_key(plan: Plan) -> frozenset[int] | None:
    """Columns in which no two rows (and no two copies of a row) are equal; None if none are known."""
    match plan:
        case Table(table=table) if table.key:
            return frozenset(table.key) if not any(table.schema[i].type.has_zeros for i in table.key) else None
        case Aggregate():
            return frozenset(range(len(plan.keys)))
        case Distinct() | SetOperation(kind="except" | "intersect"):
            return frozenset(range(len(plan.schema)))
        case Filter() | TemporalFilter() | TopK() | Window():
            return unique_key(plan.input)
        case Project():
            return _projected_key(plan)
        case Join():
            return _joined_key(plan)
        case Recursion():
            return unique_key(plan.body(plan.result))
        case _:
            return None


def _projected_key(plan: Project) -> frozenset[int] | None:
    """The input's key, if all of its columns are passed on."""
    key = unique_key(plan.input)
    kept = {own.index: i for i, (_, expr) in enumerate(plan.columns) if isinstance(own := unwidened(expr), Column)}
    return None if key is None or not key <= kept.keys() else frozenset(kept[i] for i in key)


def _joined_key(plan: Join) -> frozenset[int] | None:
    """Both keys together. A FULL join has none: an unmatched row may equal a row of the other side with NULL keys."""
    left = unique_key(plan.left)
    if plan.kind in ("semi", "anti", "not_in"):
        return left
    right = unique_key(plan.right)
    if left is None or right is None or plan.kind == "full":
        return None
    width = len(plan.left.schema)
    return left | {width + i for i in right}


@unbounded
def _is_normal(plan: Plan, index: int) -> bool:
    """Whether the column cannot hold -0.0."""
    if not plan.schema[index].type.has_zeros:
        return True
    match plan:
        case Distinct() | SetOperation():
            return True
        case Aggregate():
            return index < len(plan.keys) or plan.aggregates[index - len(plan.keys)][1].definition.never_negative_zero
        case Filter() | TemporalFilter() | TopK():
            return _is_normal(plan.input, index)
        case Recursion():
            return _is_normal(plan.body(plan.result), index)
        case Project():
            expr = unwidened(plan.columns[index][1])
            return isinstance(expr, Column) and _is_normal(plan.input, expr.index)
        case _:
            return False


def _is_needless(plan: Distinct) -> bool:
    """Whether the input has the same set of rows: no -0.0, and no negative weight that could cancel another row's weight."""
    return not any(field.type.has_zeros for field in plan.schema) and not may_be_negative(plan.input, None)
