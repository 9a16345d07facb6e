"""Joins by a unique key come before LEFT joins of the same side: `(a LEFT JOIN b) JOIN c ON a.x = c.key` is `(a JOIN c) LEFT JOIN b`.

A LEFT JOIN drops no row of a, and a join by a key of c repeats none, so the LEFT JOIN then has fewer rows, or as many. Inner joins that
a LEFT JOIN would separate are one tree, which order_joins orders.
"""

from __future__ import annotations

from dataclasses import replace

from deltic.expr.nodes import Column, Expr, columns_of
from deltic.optimizer.drop_distinct import unique_key
from deltic.plan.columns import choose_columns, columns_of_all, remap
from deltic.plan.node import once_per_node
from deltic.plan.nodes import Join, Plan
from deltic.plan.streams import is_of_ticks, reads_ticks
from deltic.plan.walk import map_inputs
from deltic.stacks import unbounded


@once_per_node
def pull_left_joins_up(plan: Plan) -> Plan:
    """Exchanges inner joins with LEFT joins below them. Plans whose state would begin again (plan/streams.py) stay as they are.

    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> a, b, c = (Table(TableSchema(name, Schema((Field("k", BIGINT, False),)), key=(0,))) for name in "abc")
    >>> k = Column(0, BIGINT, False, "k")
    >>> print(show(pull_left_joins_up(Join(Join(a, b, "left", ((k, k),)), c, "inner", ((k, k),)))))
    Project k#0, k#2, k#1
      Join left on k#0 = k#0
        Join inner on k#0 = k#0
          Table a (k)
          Table c (k)
        Table b (k)
    """
    if is_of_ticks(plan):
        return plan
    plan = map_inputs(plan, pull_left_joins_up)
    return plan if reads_ticks(plan) or not isinstance(plan, Join) else _pulled(plan)


@unbounded
def _pulled(plan: Join) -> Plan:
    """The LEFT join above the inner join, which may be above further ones."""
    left, right = plan.left, plan.right
    if plan.kind != "inner" or not plan.keys or plan.hint is not None or plan.residual is not None:
        return plan
    if not isinstance(left, Join) or left.kind != "left" or not _is_unique(plan):
        return plan
    kept, padded, added = len(left.left.schema), len(left.right.schema), len(right.schema)
    if any(i >= kept for i in columns_of_all(key for key, _ in plan.keys)):
        return plan
    inner = _pulled(replace(plan, left=left.left))
    residual = None if left.residual is None else _past(left.residual, kept, added, inner, left)
    outer = replace(left, left=inner, residual=residual)
    places = (*range(kept), *range(kept + added, kept + added + padded), *range(kept, kept + added))
    return choose_columns(outer, places)


def _past(residual: Expr, kept: int, added: int, inner: Plan, left: Join) -> Expr:
    """The condition of the LEFT join, over a left side with more columns."""
    both = replace(left, kind="inner", left=inner, keys=(), residual=None).schema
    return remap(residual, {i: i if i < kept else i + added for i in columns_of(residual)}, both)


def _is_unique(join: Join) -> bool:
    """Whether a row of the left side matches at most one of the right side."""
    unique = unique_key(join.right)
    return unique is not None and unique <= {key.index for _, key in join.keys if isinstance(key, Column)}
