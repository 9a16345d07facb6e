"""Joins whose condition has an OR of which each branch looks rows up: unions of joins, one for each branch.

`t.a = u.a OR t.b = u.b` is the join by a, and that by b of the pairs for which the first equality is not TRUE. A branch over one side, such
as `u.a IS NULL` beside `t.a = u.a`, joins the rows of that side for which it is TRUE with all rows of the other one, which are its matches.
So with a branch by a range (plan/ranges.py), also under keys of which one side has one row each. As with any key, other conditions are
evaluated on the pairs that match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from deltic.expr import resolve
from deltic.expr.failing import can_fail
from deltic.expr.functions.signature import flattened
from deltic.expr.nodes import Call, Expr, calls_python, columns_of
from deltic.plan.columns import conjunction, conjuncts, disjunction, shift
from deltic.plan.equalities import sides
from deltic.plan.guarded_keys import every_pair, exchanged, in_order, is_guarded
from deltic.plan.join_nodes import Join
from deltic.plan.nodes import Filter, Plan, Values
from deltic.plan.outside_ranges import has_outside_range, has_value
from deltic.plan.ranges import comparison, range_of

MOST: Final = 8
"""Branches of an OR by which a join is divided: each may arrange both sides once more."""


class _Alternatives(NamedTuple):
    """The branches of an OR, the part of this number of the condition."""

    part: int
    branches: Sequence[Expr]


def has_alternatives(join: Join) -> bool:
    """Whether rows are looked up by the branches of an OR."""
    return _alternatives(join) is not None


def by_alternatives(join: Join) -> tuple[Plan, ...] | None:
    """Plans without common pairs whose union is an inner join; None if its condition has no such OR.

    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.expr.nodes import Column
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t, u = (Table(TableSchema(name, Schema((Field("a", BIGINT), Field("b", BIGINT))))) for name in "tu")
    >>> a, b, c, d = (Column(i, BIGINT, True, name) for i, name in enumerate("abab"))
    >>> either = resolve("or", [resolve("=", [a, c]), resolve("=", [b, d]), resolve("is_null", [d])])
    >>> for plan in by_alternatives(Join(t, u, "inner", (), either)): print(show(plan))
    Join inner on a#0 = a#0
      Table t (a, b)
      Table u (a, b)
    Join inner on b#1 = b#1 where not(((a#0 = a#2) <=> true))
      Table t (a, b)
      Table u (a, b)
    Join inner where ((not(is_null(b#3)) <= is_null(a#0)) and not(((a#0 = a#2) <=> true)) and not(((b#1 = b#3) <=> true)))
      Table t (a, b)
      Filter is_null(b#1)
        Table u (a, b)
    """
    assert join.kind == "inner"
    if (alternatives := _alternatives(join)) is None:
        return None
    assert join.residual is not None
    parts = conjuncts(join.residual)
    before, after = parts[: alternatives.part], parts[alternatives.part + 1 :]
    plans = []
    for i, branch in enumerate(alternatives.branches):
        plans.append(_branch(join, branch, alternatives.branches[:i], before, after))
    return tuple(plans)


def _branch(join: Join, branch: Expr, earlier: Sequence[Expr], before: Sequence[Expr], after: Sequence[Expr]) -> Plan:
    """The pairs of one branch for which the earlier ones are not TRUE. before, after: the other conditions, by their order."""
    width = len(join.left.schema)
    if not any(_keys(branch, width)) and _side(branch, width) is None:
        join, earlier = _without(join, branch, earlier)
    before = (*before, *map(_is_not, earlier))
    if keys := list(_keys(branch, width)):
        pairs = tuple((left, shift(right, -width)) for _, (left, right) in keys)
        rest = [part for part in conjuncts(branch) if part not in [equal for equal, _ in keys]]
        return replace(join, keys=pairs, residual=_all([*before, *rest, *after]))
    side = _side(branch, width)
    if side is None:
        return replace(join, residual=_all([*before, branch, *after]))
    others = replace(join, residual=_all([*before, *after]))
    if side == "right":
        return _with_few(replace(others, right=Filter(join.right, shift(branch, -width))), branch)
    turned = exchanged(replace(others, left=Filter(join.left, branch)))
    return in_order(_with_few(turned, shift(branch, len(join.right.schema))), width)


def _without(join: Join, branch: Expr, earlier: Sequence[Expr]) -> tuple[Join, Sequence[Expr]]:
    """The join without the rows for which a branch over their side is TRUE, and the other branches: a match does not test the former again.

    branch: a range. Of a NULL among its operands it is not TRUE, but may fail.
    """
    width, others = len(join.left.schema), list[Expr]()
    compared = comparison(branch, width)
    present = () if compared is None else (compared.lesser, compared.greater)
    for other in earlier:
        side = _side(other, width)
        if side is None:
            others.append(other)
        elif can_fail(branch) or not (isinstance(other, Call) and other.function == "is_null" and other.arguments[0] in present):
            condition = _is_not(other)
            if side == "left":
                join = replace(join, left=Filter(join.left, condition))
            else:
                join = replace(join, right=Filter(join.right, shift(condition, -width)))
    return join, others


def _with_few(join: Join, condition: Expr) -> Join:
    """The join with the few rows on its right for which a condition is TRUE, by `every_pair` unless rows are looked up in another way."""
    if join.keys or has_alternatives(join) or is_guarded(join) or range_of(join) is not None:
        return join
    every = every_pair(join, _is_not(condition))
    return replace(join, residual=conjunction([every] if join.residual is None else [every, join.residual]))


def _is_not(condition: Expr) -> Expr:
    """Whether a condition is FALSE or NULL."""
    return resolve("not", [resolve("is_true", [condition]) if condition.nullable else condition])


def _all(parts: Sequence[Expr]) -> Expr | None:
    return conjunction(parts) if parts else None


def _alternatives(join: Join) -> _Alternatives | None:
    width = len(join.left.schema)
    if join.residual is None or isinstance(join.left, Values) or isinstance(join.right, Values):
        return None
    if not width or not len(join.right.schema) or is_guarded(join):
        return None
    if join.keys and not (has_value(join, left=True) or has_value(join, left=False)):
        return None
    inner = replace(join, kind="inner", value=None)
    for i, part in enumerate(conjuncts(join.residual)):
        branches = _with_outside(inner, _branches(part, width))
        if 1 < len(branches) <= MOST and not calls_python(part) and _serve(inner, branches):
            return _Alternatives(i, _in_order(branches, width))
    return None


def _in_order(branches: Sequence[Expr], width: int) -> Sequence[Expr]:
    """Branches over one side before the ranges, whose matches then need not be tested again; as written if one can fail, or has a key."""
    if any(can_fail(branch) or any(_keys(branch, width)) for branch in branches):
        return branches
    return sorted(branches, key=lambda branch: _side(branch, width) is None)


def _branches(part: Expr, width: int) -> Sequence[Expr]:
    if not isinstance(part, Call) or sides(part, width) is not None:
        return ()
    if part.function == "or":
        return flattened("or", part.arguments)
    if part.function == "in":
        value, *others = part.arguments
        return [resolve("=", [value, other]) for other in others]
    return ()


def _with_outside(join: Join, branches: Sequence[Expr]) -> Sequence[Expr]:
    """The branches, with two ranges as one if they are outside of two bounds: the second one need not test the first on its matches."""
    width = len(join.left.schema)
    ranges = [branch for branch in branches if _side(branch, width) is None and not any(_keys(branch, width))]
    if len(ranges) != 2 or not has_outside_range(replace(join, residual=(outside := disjunction(ranges)))):
        return branches
    return [*(branch for branch in branches if branch not in ranges), outside]


def _serve(join: Join, branches: Sequence[Expr]) -> bool:
    """Whether all branches look rows up, and better than the condition does."""
    width = len(join.left.schema)
    keyed = [any(True for _ in _keys(branch, width)) for branch in branches]
    others = [branch for branch, has_key in zip(branches, keyed, strict=True) if not has_key and _side(branch, width) is None]
    if any(range_of(ranged) is None and not has_outside_range(ranged) for branch in others for ranged in [replace(join, residual=branch)]):
        return False
    if any(keyed):
        return not join.keys
    by = range_of(join)
    return bool(others) and (by is None or not by.is_interval)


def _keys(branch: Expr, width: int) -> Iterator[tuple[Expr, tuple[Expr, Expr]]]:
    """The equalities of a branch that cannot fail, each with its sides."""
    for part in conjuncts(branch):
        if (pair := sides(part, width)) is not None and not can_fail(part):
            yield part, pair


def _side(branch: Expr, width: int) -> str | None:
    """The side over which a branch is, if it cannot fail."""
    read = columns_of(branch)
    if not read or can_fail(branch):
        return None
    return "left" if max(read) < width else "right" if min(read) >= width else None
