"""Joins that compare each change with all rows of the other side, since no equality is their key, and no comparison a range."""

from __future__ import annotations

from collections.abc import Iterator

from deltic.optimizer.drop_limits import has_one_row
from deltic.plan.nodes import Join, Plan, Values
from deltic.plan.ranges import range_of
from deltic.plan.walk import nodes


def keyless_joins(plan: Plan) -> Iterator[Join]:
    """The joins of an optimized plan without a key, both sides of which may have many rows that change.

    >>> from deltic.plan.nodes import Aggregate, Table
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("a", BIGINT),))))
    >>> len(list(keyless_joins(Join(t, t, "left")))), len(list(keyless_joins(Join(t, Aggregate(t, (), ()), "left"))))
    (1, 0)
    """
    for node in nodes(plan):
        if isinstance(node, Join) and not node.keys and _compares(node) and not (_is_small(node.left) or _is_small(node.right)):
            yield node


def _compares(join: Join) -> bool:
    """Whether it compares rows: EXISTS without a condition asks whether there is one, and NOT IN looks up a value."""
    return range_of(join) is None if join.residual is not None else join.kind in ("inner", "left", "right", "full")


def _is_small(plan: Plan) -> bool:
    """At most one row, or constants."""
    return isinstance(plan, Values) or has_one_row(plan)
