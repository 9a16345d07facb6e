"""NEAREST joins: each left row with the right rows of its least or greatest ranking."""

from __future__ import annotations

from typing import Final
from typing import Literal as OneOf

from deltic.errors import Span
from deltic.expr.nodes import Column, Expr, OuterColumn, columns_of
from deltic.plan.columns import is_not_null, map_columns, named_columns, reference
from deltic.plan.nodes import DependentJoin, Filter, Plan, Project, TopK
from deltic.plan.sort_terms import Order
from deltic.plan.subquery_nodes import outer_number

MOST: Final = 100_000
"""The most rows for one left row, as in Spark."""


def nearest_join(
    left: Plan, right: Plan, kind: OneOf["inner", "left"], ranking: Expr, count: int, *, greatest: bool, span: Span | None = None
) -> DependentJoin:
    """The join, to be unnested. ranking: over (left, right). count: at most so many right rows for each left row.

    Right rows whose ranking is NULL are never found. Of equal rankings the first rows by their columns are.
    """
    width = len(left.schema)
    outer = {i: reference(left.schema, i) for i in columns_of(ranking) if i < width}
    given = {i: OuterColumn(outer_number(), column.type, column.nullable, column.name) for i, column in outer.items()}

    def within(column: Column) -> Expr:
        return given[column.index] if column.index < width else reference(right.schema, column.index - width)

    own = named_columns(right.schema)
    ranked = Project(right, (*own, ("ranking", map_columns(ranking, within))))
    rank = reference(ranked.schema, len(own))
    rows = Filter(ranked, is_not_null(rank)) if rank.nullable else ranked
    first = TopK(rows, (Order(rank, greatest, False),), count)
    nearest_rows = Project(first, tuple((name, reference(first.schema, i)) for i, (name, _) in enumerate(own)))
    return DependentJoin(left, nearest_rows, kind, tuple((given[i].number, column) for i, column in outer.items()), None, span=span)
