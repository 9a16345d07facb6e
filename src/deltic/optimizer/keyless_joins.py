"""Joins without an equality that compare each change with all rows of the other side, or with all that satisfy one comparison."""

from __future__ import annotations

from collections.abc import Iterator

from deltic.optimizer.drop_limits import has_one_row
from deltic.plan.columns import conjuncts
from deltic.plan.divided_joins import is_divided
from deltic.plan.nodes import Join, Plan, Values
from deltic.plan.null_patterns import has_possible_keys
from deltic.plan.ranges import overlap_of, range_of
from deltic.plan.walk import nodes


def keyless_joins(plan: Plan) -> Iterator[Join]:
    """The joins of an optimized plan without an equality that looks rows up, both sides of which may have many rows that change.

    >>> from deltic.plan.nodes import Aggregate, Table
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("a", BIGINT),))))
    >>> len(list(keyless_joins(Join(t, t, "left")))), len(list(keyless_joins(Join(t, Aggregate(t, (), ()), "left"))))
    (1, 0)
    """
    return (join for join in _without_equality(plan) if _compares(join))


def one_sided_joins(plan: Plan) -> Iterator[Join]:
    """The joins of an optimized plan that look rows up by one comparison alone, and test other conditions on all of them.

    >>> from deltic.expr.nodes import Call, Column
    >>> from deltic.plan.nodes import Table
    >>> from deltic.schema import BIGINT, BOOLEAN, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("a", BIGINT), Field("b", BIGINT)))))
    >>> a, b, c, d = (Column(i, BIGINT, True) for i in range(4))
    >>> def both(one, other): return Join(t, t, "left", (), Call("and", (one, other), BOOLEAN, True))
    >>> below, above, within = (Call("less", pair, BOOLEAN, True) for pair in ((a, c), (b, d), (c, b)))
    >>> len(list(one_sided_joins(both(below, above)))), len(list(one_sided_joins(both(below, within))))
    (1, 0)
    """
    return (join for join in _without_equality(plan) if _tests_more(join))


def _without_equality(plan: Plan) -> Iterator[Join]:
    for node in nodes(plan):
        if isinstance(node, Join) and not (_has_equality(node) or _is_small(node.left) or _is_small(node.right)):
            yield node


def _has_equality(join: Join) -> bool:
    """Whether rows are looked up by one, be it a key or a part of the condition."""
    return bool(join.keys) or is_divided(join) or has_possible_keys(join)


def _tests_more(join: Join) -> bool:
    """Whether there is a condition beside the one comparison by which rows are looked up."""
    if join.residual is None or len(conjuncts(join.residual)) == 1 or overlap_of(join) is not None:
        return False
    by = range_of(join)
    return by is not None and not by.is_interval


def _compares(join: Join) -> bool:
    """Whether it compares rows: EXISTS without a condition asks whether there is one, and NOT IN looks up a value."""
    return range_of(join) is None if join.residual is not None else join.kind in ("inner", "left", "right", "full")


def _is_small(plan: Plan) -> bool:
    """At most one row, or constants."""
    return isinstance(plan, Values) or has_one_row(plan)
