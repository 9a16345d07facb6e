"""Queries of a syntax tree, and the relations of FROM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deltic.errors import Span
from deltic.frontends.sql.tree.expressions import DefinedCall, Expression, FunctionCall, Name, NumberText, OrderTerm, TypeName, WindowText
from deltic.frontends.sql.tree.pipes import PipeQuery
from deltic.frontends.sql.tree.pivots import PivotedTable, UnpivotedTable


@dataclass(frozen=True, slots=True)
class SelectItem:
    """An item of a select list; it has several names if it returns several columns."""

    expression: Expression
    names: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TableAlias:
    """[AS] name [(column, …)]."""

    name: Name
    columns: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TableName:
    """A table, a view or a CTE in FROM. stream: after STREAM, in a project of Declarative Pipelines."""

    name: Name
    alias: TableAlias | None
    span: Span
    stream: bool = False


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """A query in FROM. lateral: it may read the preceding relations."""

    query: Query
    alias: TableAlias | None
    span: Span
    lateral: bool = False


@dataclass(frozen=True, slots=True)
class DefinedTable:
    """A call of a table function in SQL: its query, which sees the catalog alone. name: of the function."""

    query: Query
    name: str
    alias: TableAlias | None
    span: Span


@dataclass(frozen=True, slots=True)
class ArgumentRows:
    """The rows that LATERAL calls a table function in SQL for, in the FROM of the function's query; their columns are hidden."""

    span: Span


@dataclass(frozen=True, slots=True)
class DefinedLateral:
    """LATERAL f(argument, …): a table function in SQL over columns of the relations before it.

    query: it reads ArgumentRows, and returns the function's columns, then those of the ArgumentRows. by_row: these are the rows before
    LATERAL with the arguments; else the different arguments alone. arguments: cast to the types of the parameters. rows: the qualifier of
    the columns of the ArgumentRows. columns: those that the function declares, with their types.
    """

    query: Query
    name: str
    by_row: bool
    parameters: tuple[str, ...]
    arguments: tuple[Expression, ...]
    rows: str
    columns: tuple[tuple[Name, TypeName], ...]
    alias: TableAlias | None
    span: Span


@dataclass(frozen=True, slots=True)
class TableCall:
    """A table function in FROM. lateral: it may read the preceding relations."""

    call: FunctionCall | DefinedCall
    alias: TableAlias | None
    lateral: bool
    span: Span


@dataclass(frozen=True, slots=True)
class NearestBy:
    """APPROX or EXACT NEAREST [count] BY DISTANCE or, if `greatest`, SIMILARITY ranking."""

    count: NumberText | None
    greatest: bool
    ranking: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class JoinClause:
    """One join. kind: the words before JOIN, or "," for a comma. condition: of ON. columns: of USING. match: of an ASOF JOIN, which is not
    in its kind, the MATCH_CONDITION. nearest: in place of a condition."""

    kind: str
    natural: bool
    right: Source
    condition: Expression | None
    columns: tuple[Name, ...]
    span: Span
    match: Expression | None = None
    nearest: NearestBy | None = None


@dataclass(frozen=True, slots=True)
class JoinedTables:
    """A relation and its joins, from left to right. alias: that of the whole in parentheses."""

    first: Source
    joins: tuple[JoinClause, ...]
    alias: TableAlias | None
    span: Span


@dataclass(frozen=True, slots=True)
class LateralView:
    """LATERAL VIEW [OUTER] call name AS column, …"""

    call: FunctionCall | DefinedCall
    outer: bool
    name: Name | None
    columns: tuple[Name, ...]
    span: Span


KeyNumbers = tuple[int, ...]
"""Positions of keys of GROUP BY, from 0."""


@dataclass(frozen=True, slots=True)
class GroupClause:
    """GROUP BY. every: written GROUP BY ALL; if a column is named `all`, that is the key.

    sets: the grouping sets of ROLLUP, CUBE and GROUPING SETS; None without these.
    """

    keys: tuple[Expression, ...]
    every: bool
    span: Span
    sets: tuple[KeyNumbers, ...] | None = None


@dataclass(frozen=True, slots=True)
class NamedWindow:
    """name AS window, in the clause WINDOW."""

    name: Name
    window: WindowText
    span: Span


@dataclass(frozen=True, slots=True)
class SelectQuery:
    """SELECT without ORDER BY and LIMIT."""

    items: tuple[SelectItem, ...]
    distinct: bool
    hint: Span | None
    source: Source | None
    laterals: tuple[LateralView, ...]
    where: Expression | None
    group: GroupClause | None
    having: Expression | None
    span: Span
    qualify: Expression | None = None
    windows: tuple[NamedWindow, ...] = ()


@dataclass(frozen=True, slots=True)
class ValuesQuery:
    """VALUES row, …; parentheses around a single value are optional."""

    rows: tuple[Expression, ...]
    alias: TableAlias | None
    span: Span


@dataclass(frozen=True, slots=True)
class SetQuery:
    """UNION, EXCEPT or INTERSECT of two queries, or a chain of UNIONs with one quantifier. by_name: UNION BY NAME."""

    operator: str
    distinct: bool
    parts: tuple[Query, ...]
    span: Span
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class CommonTable:
    """name [(column, …)] [MAX RECURSION LEVEL n] AS (query)."""

    name: Name
    columns: tuple[Name, ...]
    limit: int | None
    query: Query
    span: Span


@dataclass(frozen=True, slots=True)
class LimitClause:
    """[LIMIT count] [OFFSET offset]; a count of None is LIMIT ALL, or no LIMIT."""

    count: Expression | None
    offset: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class WholeQuery:
    """[WITH …] query [ORDER BY …] [LIMIT …], or any query in parentheses."""

    ctes: tuple[CommonTable, ...]
    recursive: bool
    body: Query
    order: tuple[OrderTerm, ...]
    limit: LimitClause | None
    span: Span


@dataclass(frozen=True, slots=True)
class PipedRows:
    """The rows before a step of a PipeQuery, as the FROM of what the step means. relation: bound, with the names of its
    columns; None until then."""

    relation: object
    span: Span


Source = (
    TableName
    | DerivedTable
    | DefinedTable
    | ArgumentRows
    | DefinedLateral
    | TableCall
    | ValuesQuery
    | JoinedTables
    | PivotedTable
    | UnpivotedTable
    | PipedRows
)


@dataclass(frozen=True, slots=True)
class GivenQuery:
    """A query that is no text. bind: (the environment) -> its plan."""

    bind: Callable[[Any], Any]
    span: Span


Query = SelectQuery | ValuesQuery | SetQuery | WholeQuery | PipeQuery | GivenQuery
QUERIES = (SelectQuery, ValuesQuery, SetQuery, WholeQuery, PipeQuery, GivenQuery)
