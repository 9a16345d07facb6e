"""Equalities that can fail in the condition of a join without keys: rows are looked up by them, and fail where the condition fails.

Such an equality is no key, since a key is evaluated on every row of its side: also where the other side is empty, and on rows that a
condition before it guards. So the join is split. Rows on which no side of the equality fails are joined by it as by any key (`attempt`,
which is NULL on the others). The others are joined with all rows of the other side, and their condition raises the error; there are none
once the tick is committed, unless no pair of them reaches the equality. As with any key, other conditions are evaluated on the pairs that
match, and raise no error for pairs whose equality is FALSE or NULL. In the same way the pairs are found on which a condition fails,
for a view whose errors are isolated (plan/isolate.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from deltic.expr import resolve
from deltic.expr.failing import can_fail
from deltic.expr.functions.attempts import tried
from deltic.expr.functions.failures import FAILS
from deltic.expr.nodes import Call, Column, Expr, Literal, calls_python, columns_of
from deltic.plan.columns import choose_columns, conjunction, conjuncts, map_columns, reference, shift
from deltic.plan.equalities import sides
from deltic.plan.join_nodes import Join
from deltic.plan.nodes import Filter, Plan, Project, Values
from deltic.schema import DOUBLE

_INFALLIBLE: Final = frozenset(("and", "or", "not", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "same"))
"""Functions that fail only where an argument does."""
_ARITHMETIC: Final = ("add", "subtract", "multiply", "negate", "abs")
"""So do these, of DOUBLEs."""


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


def is_guarded(join: Join) -> bool:
    """Whether rows are looked up by a guarded key, or are those that fail."""
    return guarded_key(join) is not None or failing_sides(join) is not None


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
    pair = (tried(key.left), tried(key.right))
    matching = replace(join, keys=(pair,), residual=conjunction(others) if others else None)
    return matching, *pairs_that_fail(join, [side for side in key[:1] if can_fail(side)], [side for side in key[1:2] if can_fail(side)])


def by_failing_rows(join: Join) -> tuple[Plan, ...] | None:
    """Plans without common rows whose union is an inner join of the pairs on which an expression fails; None if that is not its condition.

    The expression fails only where a part of it over one of the sides does (plan/isolate.py has the errors of a view so).
    """
    if (failing_parts := failing_sides(join)) is None:
        return None
    assert join.kind == "inner"
    return tuple(pairs_that_fail(join, *failing_parts))


def failing_sides(join: Join) -> tuple[list[Expr], list[Expr]] | None:
    """Of a join whose condition is that an expression fails the parts that can, over either side; None if both sides decide together."""
    if join.keys or join.residual is None or isinstance(join.left, Values) or isinstance(join.right, Values):
        return None
    width = len(join.left.schema)
    if not 0 < width < len(join.schema):
        return None
    for part in conjuncts(join.residual):
        failing_parts: tuple[list[Expr], list[Expr]] = ([], [])
        if isinstance(part, Call) and part.function == FAILS and not calls_python(part) and _gather(part.arguments, width, failing_parts):
            return failing_parts[0], [shift(expr, -width) for expr in failing_parts[1]]
    return None


def _gather(exprs: Sequence[Expr], width: int, failing_parts: tuple[list[Expr], list[Expr]]) -> bool:
    """Adds the parts over one side that can fail; False if anything else can."""
    for expr in exprs:
        read = columns_of(expr)
        if not can_fail(expr):
            continue
        if read and (max(read) < width or min(read) >= width):
            failing_parts[min(read) >= width].append(expr)
        elif not isinstance(expr, Call) or (parts := _fallible_parts(expr, width)) is None or not _gather(parts, width, failing_parts):
            return False
    return True


def _fallible_parts(call: Call, width: int) -> Sequence[Expr] | None:
    """Expressions of which some fails where the call does, on other rows too if an argument is NULL; None if there are no such ones."""
    if call.function in _INFALLIBLE or (call.function in _ARITHMETIC and call.type == DOUBLE):
        return call.arguments
    if call.function == "divide" and call.type == DOUBLE:
        dividend, divisor = call.arguments
        if len({i < width for i in columns_of(divisor)}) == 1:
            return dividend, replace(call, arguments=(Literal(1.0, DOUBLE), divisor))
    return None


def pairs_that_fail(join: Join, lefts: Sequence[Expr], rights: Sequence[Expr]) -> Iterator[Plan]:
    """The join for the rows on which some of these expressions over the sides fail."""
    left, right = (resolve(FAILS, exprs) if exprs else None for exprs in (lefts, rights))
    return pairs_as_written(join, left, right)


def pairs_as_written(join: Join, left: Expr | None, right: Expr | None) -> Iterator[Plan]:
    """The join for the few rows on which a condition over their side is TRUE, by its own condition as it is written."""
    assert join.residual is not None
    written = resolve("is_true", [join.residual])
    rows = join.left
    if left is not None:
        few = exchanged(replace(join, left=Filter(rows, left), residual=written))
        yield in_order(_with_all(few, left), len(rows.schema))
        rows = Filter(rows, resolve("not", [left]))
    if right is not None:
        yield _with_all(replace(join, left=rows, right=Filter(join.right, right), residual=written), right)


def _with_all(join: Join, condition: Expr) -> Join:
    """The join with the few rows on its right for which a condition is TRUE; without keys, as one by `every_pair`."""
    assert join.residual is not None
    if join.keys:
        return join
    never = resolve("not", [shift(condition, len(join.left.schema))])
    return replace(join, residual=conjunction([every_pair(join, never), join.residual]))


def every_pair(join: Join, never: Expr) -> Expr:
    """A comparison that is TRUE of every pair of rows. never: of the right side, FALSE on each of its rows, which are few.

    Of a join by it each shard has all rows of the right side and its share of the left one (lowering/ranges.py).
    """
    return resolve("<=", [never, resolve("is_null", [reference(join.left.schema, 0)])])


def exchanged(join: Join) -> Join:
    """The join with its sides exchanged."""
    width, others = len(join.left.schema), len(join.right.schema)

    def moved(column: Column) -> Column:
        return replace(column, index=column.index + others if column.index < width else column.index - width)

    residual = None if join.residual is None else map_columns(join.residual, moved)
    keys = tuple((right, left) for left, right in join.keys)
    return replace(join, left=join.right, right=join.left, keys=keys, residual=residual)


def in_order(join: Join, width: int) -> Project:
    """The right columns, `width` of them, before the left ones."""
    others = len(join.schema) - width
    return choose_columns(join, (*range(others, others + width), *range(others)))
