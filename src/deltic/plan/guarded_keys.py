"""Equalities that can fail in the condition of a join without keys: rows are looked up by them, and fail where the condition fails.

Such an equality is no key, since a key is evaluated on every row of its side: also where the other side is empty, and on rows that a
condition before it guards. So the join is split. Rows on which no side of the equality fails are joined by it as by any key (`attempt`,
which is NULL on the others). The others are joined with all rows of the other side, and their condition raises the error; there are none
once the tick is committed, unless no pair of them reaches the equality.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from deltic.expr import resolve
from deltic.expr.failing import can_fail
from deltic.expr.functions.attempts import attempt
from deltic.expr.nodes import Expr, calls_python, columns_of
from deltic.plan.columns import conjunction, conjuncts, map_columns, reference, shift
from deltic.plan.equalities import sides
from deltic.plan.join_nodes import Join
from deltic.plan.nodes import Filter, Plan, Project, Values


class GuardedKey(NamedTuple):
    """left = right, over their sides, the part of this number of the condition."""

    left: Expr
    right: Expr
    part: int


def guarded_key(join: Join) -> GuardedKey | None:
    """The first equality between the sides of a join without keys that can fail; None if rows are looked up in another way.

    User functions are not called again, so their results are not looked up. One row of constants needs no lookup.
    """
    if join.keys or join.residual is None or isinstance(join.left, Values) or isinstance(join.right, Values):
        return None
    width = len(join.left.schema)
    for i, part in enumerate(conjuncts(join.residual)):
        if can_fail(part) and not calls_python(part) and (pair := sides(part, width)) is not None:
            return GuardedKey(pair[0], shift(pair[1], -width), i)
    return None


def by_guarded_key(join: Join) -> tuple[Plan, ...] | None:
    """Plans without common rows whose union is an inner join; None if it has no guarded key.

    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.expr.nodes import Column
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t, u = (Table(TableSchema(name, Schema((Field(column, BIGINT, False),)))) for name, column in (("t", "a"), ("u", "b")))
    >>> a, b = Column(0, BIGINT, False, "a"), Column(1, BIGINT, False, "b")
    >>> equal = resolve("=", [resolve("negate", [a]), b])
    >>> for plan in by_guarded_key(Join(t, u, "inner", (), conjunction([resolve("<>", [a, b]), equal]))): print(show(plan))
    Join inner on attempt(negate(a#0)) = b#0 where (a#0 <> b#1)
      Table t (a)
      Table u (b)
    Project a#1, b#0
      Join inner where ((not(fails(negate(a#1))) <= is_null(b#0)) and (((a#1 <> b#0) and (negate(a#1) = b#0)) <=> true))
        Table u (b)
        Filter fails(negate(a#0))
          Table t (a)
    """
    assert join.kind == "inner"
    key = guarded_key(join)
    if key is None:
        return None
    assert join.residual is not None
    parts = conjuncts(join.residual)
    others = parts[: key.part] + parts[key.part + 1 :]
    pair = (_tried(key.left), _tried(key.right))
    plans: list[Plan] = [replace(join, keys=(pair,), residual=conjunction(others) if others else None)]
    left = join.left
    if can_fail(key.left):
        fails = resolve("fails", [key.left])
        few = _exchanged(replace(join, left=Filter(left, fails)))
        plans.append(_in_order(_with_all(few, key.right, key.left), len(left.schema)))
        left = Filter(left, resolve("not", [fails]))
    if can_fail(key.right):
        plans.append(_with_all(replace(join, left=left, right=Filter(join.right, resolve("fails", [key.right]))), key.left, key.right))
    return tuple(plans)


def _tried(expr: Expr) -> Expr:
    return attempt(expr) if can_fail(expr) else expr


def _with_all(join: Join, left: Expr, failing: Expr) -> Join:
    """The join of rows with the few on its right on which `failing` fails, as one by a comparison that is TRUE of every pair.

    Of such a join each shard has all rows of the right side and its share of the left one (lowering/ranges.py).
    """
    assert join.residual is not None
    never = resolve("not", [resolve("fails", [shift(failing, len(join.left.schema))])])
    read = reference(join.left.schema, min(columns_of(left)))
    every = resolve("<=", [never, resolve("is_null", [read])])
    return replace(join, residual=conjunction([every, resolve("is_true", [join.residual])]))


def _exchanged(join: Join) -> Join:
    """The join with its sides exchanged."""
    width, others = len(join.left.schema), len(join.right.schema)
    assert join.residual is not None
    residual = map_columns(join.residual, lambda c: replace(c, index=c.index + others if c.index < width else c.index - width))
    return replace(join, left=join.right, right=join.left, residual=residual)


def _in_order(join: Join, width: int) -> Project:
    """The right columns, `width` of them, before the left ones."""
    schema, others = join.schema, len(join.schema) - width
    return Project(join, tuple((schema[i].name, reference(schema, i)) for i in (*range(others, others + width), *range(others))))
