"""A condition that keeps the first row_numbers makes the window read only these rows: a top-k of each partition."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from deltic.expr.failing import can_fail
from deltic.expr.nodes import Call, Column, Expr, Literal, unwidened
from deltic.plan.columns import conjunction, conjuncts, is_equality
from deltic.plan.nodes import Filter, Plan, TopK, Window
from deltic.plan.walk import transform
from deltic.plan.window_nodes import FRAMED, WindowCall

_FLIPPED: Final = {"greater_equal": "less_equal", "greater": "less", "equal": "equal"}


def limit_windows(plan: Plan) -> Plan:
    """The rows with row_number() <= k are a TopK.

    >>> from deltic.plan.nodes import Order, Table, WindowCall
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, BOOLEAN, INT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("g", BIGINT), Field("x", BIGINT)))))
    >>> (g, x), n = (Column(i, BIGINT, True, name) for i, name in enumerate("gx")), Column(2, INT, False, "n")
    >>> numbered = Window(t, (g,), (Order(x),), (("n", WindowCall("row_number", INT, False)),))
    >>> plan = Filter(numbered, Call("less_equal", (n, Literal(3, INT)), BOOLEAN, False))
    >>> print(show(plan))
    Filter (n#2 <= 3)
      Window of each g#0 by x#1: n := row_number()
        Table t (g, x)
    >>> print(show(limit_windows(plan)))
    Window of each g#0 by x#1: n := row_number()
      TopK 3 of each g#0 by x#1
        Table t (g, x)
    """
    return transform(plan, _limit, Window)


def _limit(plan: Plan) -> Plan:
    if not isinstance(plan, Filter) or not isinstance(plan.input, Window):
        return plan
    window = plan.input
    if not all(reads_no_later_rows(call) for _, call in window.calls):
        return plan
    width = len(window.input.schema)
    numbers = frozenset(width + i for i, (_, call) in enumerate(window.calls) if call.function == "row_number")
    parts, limits = conjuncts(plan.predicate), upper_limits(plan.predicate, numbers)
    if not limits:
        return plan
    least = min(limits.values())
    rest = [part for part in parts if part not in limits or (is_equality(part) and limits[part] > 1)]
    if len(rest) == len(parts) and isinstance(window.input, TopK) and window.input.limit is not None and window.input.limit <= least:
        return plan
    first = replace(window, input=TopK(window.input, window.order, least, window.keys))
    return Filter(first, conjunction(rest)) if rest else first


def reads_no_later_rows(call: WindowCall, *, with_peers: bool = False) -> bool:
    """Whether the value depends on the rows up to the row itself, or `with_peers` up to its last peer, alone."""
    if call.function in ("row_number", "rank", "dense_rank"):
        return True
    if call.function in ("lag", "lead"):
        return call.number >= 0 if call.function == "lag" else call.number <= 0
    end = call.frame.end
    return call.function in FRAMED and ((end.kind == "rows" and end.rows <= 0) or (with_peers and end.kind == "peers"))


def upper_limits(predicate: Expr, numbers: frozenset[int]) -> dict[Expr, int]:
    """Conditions that bound one of these columns from above, each with the greatest value that it allows; none after one that can fail."""
    parts = conjuncts(predicate)
    certain = [part for i, part in enumerate(parts) if not any(map(can_fail, parts[: i + 1]))]
    return {part: limit for part in certain if (limit := _greatest(part, numbers)) is not None}


def _greatest(part: Expr, numbers: frozenset[int]) -> int | None:
    """The greatest value of one of these columns for which the condition may hold; None if it bounds none."""
    if not isinstance(part, Call) or len(part.arguments) != 2:
        return None
    function, (left, right) = part.function, map(unwidened, part.arguments)
    if isinstance(left, Literal):
        function, left, right = _FLIPPED.get(function, ""), right, left
    if function not in _FLIPPED.values() or not (isinstance(left, Column) and left.index in numbers and isinstance(right, Literal)):
        return None
    if not isinstance(right.value, int) or isinstance(right.value, bool):
        return None
    return max(right.value - (function == "less"), 0)
