"""A condition that keeps the first ranks makes the window read only the rows that have them: peers of the rows of a top-k."""

from __future__ import annotations

from dataclasses import replace

from deltic.optimizer.limit_windows import reads_no_later_rows, upper_limits
from deltic.plan.columns import reference
from deltic.plan.equalities import null_safe
from deltic.plan.nodes import Aggregate, Filter, Join, Plan, Project, TopK, Window
from deltic.plan.streams import is_stream
from deltic.plan.walk import transform


def limit_ranks(plan: Plan) -> Plan:
    """The rows with rank() <= k or dense_rank() <= k are joined with the first rows, or the first terms.

    >>> from deltic.expr.nodes import Call, Column, Literal
    >>> from deltic.plan.nodes import Order, Table, WindowCall
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, BOOLEAN, INT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("g", BIGINT, False), Field("x", BIGINT, False)))))
    >>> (g, x), n = (Column(i, BIGINT, False, name) for i, name in enumerate("gx")), Column(2, INT, False, "n")
    >>> ranked = Window(t, (g,), (Order(x),), (("n", WindowCall("rank", INT, False)),))
    >>> print(show(limit_ranks(Filter(ranked, Call("less_equal", (n, Literal(3, INT)), BOOLEAN, False)))))
    Filter (n#2 <= 3)
      Window of each g#0 by x#1: n := rank()
        Join semi on g#0 = key0#0, x#1 = term0#1
          Table t (g, x)
          TopK 3 of each key0#0 by term0#1
            Project key0 := g#0, term0 := x#1
              Table t (g, x)
    """
    return transform(plan, _limit)


def _limit(plan: Plan) -> Plan:
    if not isinstance(plan, Filter) or not isinstance(plan.input, Window) or is_stream(plan.input.input):
        return plan
    window = plan.input
    terms = [term.expr for term in window.order]
    if not all(reads_no_later_rows(call, with_peers=True) for _, call in window.calls):
        return plan
    if any(expr.type.is_collated for expr in (*window.keys, *terms)):
        return plan
    width = len(window.input.schema)
    for function in ("rank", "dense_rank"):
        numbers = frozenset(width + i for i, (_, call) in enumerate(window.calls) if call.function == function)
        limits = upper_limits(plan.predicate, numbers)
        if limits and not _is_limited(window.input, least := min(limits.values())):
            return replace(plan, input=replace(window, input=_limited(window, least, distinct=function == "dense_rank")))
    return plan


def _limited(window: Window, limit: int, *, distinct: bool) -> Plan:
    """The rows whose terms are among the first ones of their partition. distinct: equal terms count once."""
    terms = [term.expr for term in window.order]
    names = (*(f"key{i}" for i in range(len(window.keys))), *(f"term{i}" for i in range(len(terms))))
    columns = tuple(zip(names, (*window.keys, *terms), strict=True))
    rows: Plan = Aggregate(window.input, columns, ()) if distinct else Project(window.input, columns)
    values = [reference(rows.schema, i) for i in range(len(names))]
    order = tuple(replace(term, expr=value) for term, value in zip(window.order, values[len(window.keys) :], strict=True))
    first = TopK(rows, order, limit, tuple(values[: len(window.keys)]))
    return Join(window.input, first, "semi", null_safe([expr for _, expr in columns], values))


def _is_limited(rows: Plan, limit: int) -> bool:
    """Whether the rule has been applied."""
    while isinstance(rows, Project):
        rows = rows.input
    return isinstance(rows, Join) and rows.kind == "semi" and isinstance(rows.right, TopK) and rows.right.limit == limit
