"""ASOF joins: each left row with the right row of its keys whose time is the nearest one at or before its own, or at or after it.

The right side becomes one row for each key and time, the least, and the time of the next one, of the same key: the rows between both have
the first one. That is a join of points with intervals, of which the last has no end (plan/ranges.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deltic.errors import Span
from deltic.expr.nodes import Call, Expr, Literal
from deltic.plan.columns import all_columns, compared, conjunction, is_null, not_null, reference, shift
from deltic.plan.equalities import Keys, null_safe
from deltic.plan.nodes import Filter, Join, JoinKind, Plan, Project, TopK, Window, union_of
from deltic.plan.sort_terms import Order
from deltic.plan.window_nodes import WindowCall
from deltic.schema import BOOLEAN, Schema

NEXT: Final = "next"
AFTER: Final = {"greater_equal": "less", "greater": "less_equal", "less_equal": "greater", "less": "greater_equal"}
"""How the left time compares with the time of the right row → how it compares with the time of the next row."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """left `comparison` right: times, over their sides. keys: equalities beside them."""

    left: Expr
    comparison: str
    right: Expr
    keys: Keys


def asof_join(left: Plan, right: Plan, kind: JoinKind, nearest: Nearest, span: Span | None = None) -> Plan:
    """The join, of the schema of an ordinary one. kind: inner, left, right or full.

    A left row has at most one match. Of right rows with equal keys and times it is the least row. A right row is without a match if no
    left row has one that equals it.
    """
    schema = Join(left, right, kind).schema
    followed = _followed(right, nearest)
    condition = _condition(left, followed, nearest)
    inner = Join(left, followed, "inner", nearest.keys, condition, span=span)
    matched = Project(inner, tuple((field.name, reference(inner.schema, i)) for i, field in enumerate(schema)))
    parts: list[Plan] = [matched]
    if kind in ("left", "full"):
        parts.append(_padded(Join(left, followed, "anti", nearest.keys, condition, span=span), schema, 0))
    if kind in ("right", "full"):
        width, own = len(left.schema), all_columns(right.schema)
        matched_rows = Project(matched, tuple((f.name, reference(matched.schema, width + i)) for i, f in enumerate(right.schema)))
        pairs = null_safe(own, [reference(matched_rows.schema, i) for i in range(len(own))])
        parts.append(_padded(Join(right, matched_rows, "anti", pairs), schema, width))
    return union_of(parts)


def _followed(right: Plan, nearest: Nearest) -> Plan:
    """The least row of each key and time, followed by the time of the next one, NULL after the last."""
    keys = tuple(key for _, key in nearest.keys)
    present = not_null((*keys, nearest.right))
    rows = Filter(right, conjunction(present)) if present else right
    least = TopK(rows, (), 1, (*keys, nearest.right))
    order = Order(nearest.right, nearest.comparison.startswith("less"))
    lead = WindowCall("lead", nearest.right.type, True, (nearest.right,))
    return Window(least, keys, (order,), ((NEXT, lead),))


def _condition(left: Plan, followed: Plan, nearest: Nearest) -> Expr:
    """Of a left row with a row of `followed`."""
    width = len(left.schema)
    following = shift(reference(followed.schema, len(followed.schema) - 1), width)
    matches = compared(nearest.comparison, nearest.left, shift(nearest.right, width))
    last = is_null(following)
    before = Call("or", (last, compared(AFTER[nearest.comparison], nearest.left, following)), BOOLEAN, True)
    return conjunction((matches, before))


def _padded(rows: Plan, schema: Schema, start: int) -> Plan:
    """The rows as the columns from `start` on, with NULL in the others."""
    ends = range(start, start + len(rows.schema))
    exprs = (reference(rows.schema, i - start) if i in ends else Literal(None, field.type) for i, field in enumerate(schema))
    return Project(rows, tuple((field.name, expr) for field, expr in zip(schema, exprs, strict=True)))
