"""Keys that can fail of SEMI and ANTI joins and NOT IN, which are evaluated on pairs of rows (`Join.evaluates_pairs`).

Rows are looked up by keys of which each is NULL where it fails (`attempt`). Rows on which one fails, of either side, raise its error if the
other side has a row for which the keys before it are equal, and this one is not NULL: a semi-join of these few rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from deltic.expr import resolve
from deltic.expr.failing import can_fail
from deltic.expr.functions.attempts import tried
from deltic.expr.functions.failures import FAILS
from deltic.expr.nodes import Expr, Literal
from deltic.plan.columns import is_not_null, is_null, reference
from deltic.plan.guarded_keys import exchanged
from deltic.plan.join_nodes import Join
from deltic.plan.nodes import Aggregate, AggregateCall, Filter, OverTicks, Plan, Union, references
from deltic.plan.streams import is_stream
from deltic.schema import BIGINT


class FailingRows(NamedTuple):
    """The rows of a side, its number, on which the expression fails and is evaluated."""

    side: int
    rows: Plan
    expr: Expr


class TriedKeys(NamedTuple):
    """A join whose keys cannot fail, and what they fail on: with no such rows it denotes what the join of the written keys does."""

    join: Join
    failing: tuple[FailingRows, ...]


def by_tried_keys(join: Join) -> Join:
    """The join by keys that cannot fail; its sides raise the errors.

    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import Field, Schema, TableSchema
    >>> t, u = (Table(TableSchema(name, Schema((Field(column, BIGINT, False),)))) for name, column in (("t", "a"), ("u", "b")))
    >>> a, b = Column(0, BIGINT, False, "a"), Column(0, BIGINT, False, "b")
    >>> print(show(by_tried_keys(Join(t, u, "anti", ((resolve("negate", [a]), b),)))))
    Join anti on attempt(negate(a#0)) = b#0
      Union
        Table t (a)
        Filter is_null(negate(a#0))
          Join semi
            Filter fails(negate(a#0))
              Table t (a)
            Filter (rows#0 > 0)
              Aggregate: rows := count(*)
                Table u (b)
      Table u (b)
    """
    plan, failing = tried_keys(join)
    sides = [
        Union((side, *(Filter(one.rows, is_null(one.expr)) for one in failing if one.side == i)))
        for i, side in enumerate((join.left, join.right))
    ]
    left, right = (side.inputs[0] if len(side.inputs) == 1 else side for side in sides)
    return replace(plan, left=left, right=right)


def tried_keys(join: Join) -> TriedKeys:
    """The join by keys that cannot fail, and apart from it the rows that fail."""
    assert join.evaluates_pairs
    pairs = [(tried(left), tried(right)) for left, right in join.compared]
    failing = []
    for i, pair in enumerate(join.compared):
        is_value = i == len(join.keys)
        before = replace(join, kind="semi", keys=tuple(pairs[:i]), residual=join.residual if is_value else None, value=None)
        for side, expr in enumerate(pair):
            if can_fail(expr):
                sides = before if side == 0 else exchanged(before)
                compared = sides if is_value else replace(sides, right=_not_null(sides.right, pair[1 - side]))
                failing.append(FailingRows(side, _failing(compared, expr), expr))
    value = None if join.value is None else pairs[-1]
    return TriedKeys(replace(join, keys=tuple(pairs[: len(join.keys)]), value=value), tuple(failing))


def _not_null(plan: Plan, expr: Expr) -> Plan:
    """The rows on which the expression is not NULL, or fails."""
    if not can_fail(expr):
        return Filter(plan, is_not_null(expr)) if expr.nullable else plan
    return Filter(plan, resolve("or", [resolve(FAILS, [expr]), is_not_null(tried(expr))]))


def _failing(before: Join, expr: Expr) -> Join:
    """The left rows on which an expression fails, and that have a match; a stream has those of the tick."""
    other = OverTicks(before.right, "current") if is_stream(before.right) else before.right
    if not before.keys and before.residual is None and not references(other):
        other = _any(other)
    return replace(before, left=Filter(before.left, resolve(FAILS, [expr])), right=other)


def _any(plan: Plan) -> Plan:
    """One row if there are any."""
    total = Aggregate(plan, (), (("rows", AggregateCall("count", (), BIGINT, False)),))
    return Filter(total, resolve(">", [reference(total.schema, 0), Literal(0, BIGINT)]))
