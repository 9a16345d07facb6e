"""Binds a query that is answered once: its rows have the order of its ORDER BY, which a view has not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deltic.errors import QueryError
from deltic.expr import Column
from deltic.expr.collating import key_of
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_limit import GREATEST_LIMIT
from deltic.frontends.sql.bind_query import bind_tree
from deltic.frontends.sql.environment import Environment
from deltic.plan.columns import named_columns, reference
from deltic.plan.nodes import Order, Plan, Project, TopK
from deltic.plan.signs import as_view


@dataclass(frozen=True, slots=True)
class BoundAnswer:
    """A plan whose first `width` columns are the answer's; `order` reads columns of it, from `width` on. explained: after EXPLAIN."""

    plan: Plan
    width: int
    order: tuple[Order, ...] = ()
    explained: bool = False


def bind_answer(query: tree.Query, env: Environment) -> BoundAnswer:
    """The plan of a query and its order. Raises QueryError."""
    ordered = _ordered(query)
    plan = bind_tree(query if ordered is None else ordered, env)
    if not plan.schema:
        raise QueryError("the query has no columns", span=query.span, expected="at least one column")
    if ordered is None:
        return BoundAnswer(as_view(plan, "the query"), len(plan.schema))
    columns = named_columns(plan.schema)
    first: Plan = plan
    if isinstance(plan, Project) and isinstance(plan.input, TopK) and all(isinstance(expr, Column) for _, expr in plan.columns):
        first, columns = plan.input, tuple((name, expr) for name, expr in plan.columns if isinstance(expr, Column))
    if not isinstance(first, TopK) or not first.order:
        return BoundAnswer(as_view(plan, "the query"), len(plan.schema))
    rows = first.input if first.limit == GREATEST_LIMIT and not first.offset else first
    sorted_by = tuple((f"order{i}", key_of(term.expr)) for i, term in enumerate(first.order, 1))
    wide = as_view(Project(rows, (*columns, *sorted_by)), "the query")
    order = tuple(replace(term, expr=reference(wide.schema, len(columns) + i)) for i, term in enumerate(first.order))
    return BoundAnswer(wide, len(columns), order)


def _ordered(query: tree.Query) -> tree.Query | None:
    """A query that has an order at its end, with a limit, so that the order is a part of its plan; None if it has none."""
    if isinstance(query, tree.PipeQuery):
        if not any(isinstance(step, tree.PipeOrder) for step in query.steps):
            return None
        return replace(query, steps=(*query.steps, tree.PipeLimit(_all(query), query.span)))
    if not isinstance(query, tree.WholeQuery):
        return None
    if query.order:
        limit = query.limit or _all(query)
        return replace(query, limit=limit if limit.count is not None else replace(limit, count=_all(query).count))
    if query.limit is not None or (body := _ordered(query.body)) is None:
        return None
    return replace(query, body=body)


def _all(query: tree.Query) -> tree.LimitClause:
    return tree.LimitClause(tree.NumberText(str(GREATEST_LIMIT), query.span), None, query.span)
