"""Queries in pipe syntax: a query, and the steps that its rows pass through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltic.errors import Span
from deltic.frontends.sql.tree.expressions import ColumnName, Expression, Name, OrderTerm

if TYPE_CHECKING:
    from deltic.frontends.sql.tree.pivots import PivotedTable, UnpivotedTable
    from deltic.frontends.sql.tree.queries import JoinClause, LimitClause, Query, SelectItem, SelectQuery


@dataclass(frozen=True, slots=True)
class PipeSelect:
    """|> SELECT …, with GROUP BY as a SELECT has it. query: without FROM."""

    query: SelectQuery
    span: Span


@dataclass(frozen=True, slots=True)
class PipeWhere:
    """|> WHERE condition."""

    condition: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class PipeExtend:
    """|> EXTEND expression [AS name], …: more columns."""

    items: tuple[SelectItem, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PipeSet:
    """|> SET column = expression, …, one after the other."""

    assignments: tuple[tuple[Name, Expression], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PipeDrop:
    """|> DROP column, …"""

    columns: tuple[ColumnName, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PipeAlias:
    """|> AS name."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class PipeJoin:
    """|> … JOIN relation …"""

    join: JoinClause
    span: Span


@dataclass(frozen=True, slots=True)
class PipeCombine:
    """|> UNION, EXCEPT or INTERSECT [ALL] query."""

    operator: str
    distinct: bool
    by_name: bool
    right: Query
    span: Span


@dataclass(frozen=True, slots=True)
class PipeAggregate:
    """|> AGGREGATE aggregate, … [GROUP BY key [AS name], …]."""

    items: tuple[SelectItem, ...]
    keys: tuple[SelectItem, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PipeOrder:
    """|> ORDER BY term, …"""

    terms: tuple[OrderTerm, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PipeLimit:
    """|> LIMIT n OFFSET m."""

    limit: LimitClause
    span: Span


@dataclass(frozen=True, slots=True)
class PipePivot:
    """|> PIVOT (…) or UNPIVOT (…), of the rows before it."""

    clause: PivotedTable | UnpivotedTable
    span: Span


PipeStep = (
    PipeSelect
    | PipeWhere
    | PipeExtend
    | PipeSet
    | PipeDrop
    | PipeAlias
    | PipeJoin
    | PipeCombine
    | PipeAggregate
    | PipeOrder
    | PipeLimit
    | PipePivot
)


@dataclass(frozen=True, slots=True)
class PipeQuery:
    """query |> step |> step …"""

    first: Query
    steps: tuple[PipeStep, ...]
    span: Span
