"""What the parser makes of a statement: Spark's grammar as data, each node with its place.

What always holds: a node's span is exactly the tokens that it was read from, and its parts are those of Spark's own parse tree.
Operators of one level in a row are one node, so no tree is deeper than its text is nested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from deltic.errors import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A name without its quotes."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class ColumnName:
    """A column, and what it is qualified by."""

    parts: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Star:
    """* or table.*, except some columns."""

    qualifier: Name | None
    excluded: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class NumberText:
    """A number as written, its sign with it."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class StringText:
    """The characters of a string."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Keyword:
    """TRUE, FALSE, NULL, and functions without parentheses; in upper case."""

    word: str
    span: Span


@dataclass(frozen=True, slots=True)
class TypedText:
    """DATE '…' and the like."""

    type: Name
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class IntervalText:
    """INTERVAL, amounts with units. to: the second unit of INTERVAL '…' YEAR TO MONTH, or a string that has the units in it."""

    parts: tuple[tuple[Expression, Name], ...]
    compound: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Operation:
    """Operators of one level from left to right, between one operand more; in upper case."""

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Prefix:
    """NOT, -, + or ~."""

    operator: str
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Parenthesised:
    """An expression in parentheses."""

    inner: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class IsTest:
    """IS [NOT] NULL, TRUE, FALSE."""

    operand: Expression
    state: str
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class DistinctTest:
    """IS [NOT] DISTINCT FROM."""

    left: Expression
    right: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class BetweenTest:
    """[NOT] BETWEEN low AND high."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class InList:
    """[NOT] IN (value, …)."""

    operand: Expression
    values: tuple[Expression, ...]
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class InQuery:
    """[NOT] IN (query)."""

    operand: Expression
    query: Query
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class LikeTest:
    """[NOT] LIKE pattern [ESCAPE '…']; ILIKE if `folded`."""

    operand: Expression
    pattern: Expression
    escape: Expression | None
    negated: bool
    folded: bool
    span: Span


@dataclass(frozen=True, slots=True)
class ExistsTest:
    """EXISTS (query)."""

    query: Query
    span: Span


@dataclass(frozen=True, slots=True)
class SearchedCase:
    """CASE [subject] WHEN … THEN … [ELSE …] END."""

    subject: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as written. word: its words before any bracket, in upper case. parts: what stands in <…>; None without that."""

    word: str
    parameters: tuple[str, ...]
    parts: tuple[TypePart, ...] | None
    span: Span


@dataclass(frozen=True, slots=True)
class TypePart:
    """A part of a nested type: a type, with the field's name in a STRUCT. required: it is NOT NULL."""

    name: Name | None
    type: TypeName
    required: bool
    span: Span


@dataclass(frozen=True, slots=True)
class FieldOf:
    """value.field, where the value is more than a name."""

    value: Expression
    field: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Subscript:
    """value[index]."""

    value: Expression
    index: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class CastCall:
    """CAST, TRY_CAST (lenient) or ::."""

    operand: Expression
    type: TypeName
    lenient: bool
    span: Span


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """name([DISTINCT] argument, …) [FILTER (WHERE condition)].

    name: in lower case. keywords: it is written with words between its arguments, which are in the order of the function's own.
    """

    name: str
    arguments: tuple[Expression, ...]
    distinct: bool
    condition: Expression | None
    keywords: bool
    span: Span


@dataclass(frozen=True, slots=True)
class DefinedCall:
    """A call of a function of users. function: its definition. body: of one in SQL, what it returns, its own calls marked as well."""

    name: str
    function: object
    body: Expression | None
    arguments: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ExtractCall:
    """EXTRACT(field FROM source)."""

    field: Name
    source: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class RowValue:
    """Several expressions in parentheses."""

    items: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ScalarQuery:
    """A query in parentheses, where a value is expected."""

    query: Query
    span: Span


@dataclass(frozen=True, slots=True)
class SelectItem:
    """An expression of a select list; several names for one that makes several columns."""

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
    """A table, a view or a CTE in FROM."""

    name: Name
    alias: TableAlias | None
    span: Span


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """A query in FROM."""

    query: Query
    alias: TableAlias | None
    span: Span


@dataclass(frozen=True, slots=True)
class TableCall:
    """A function in FROM. lateral: it may read the relations before it."""

    call: FunctionCall
    alias: TableAlias | None
    lateral: bool
    span: Span


@dataclass(frozen=True, slots=True)
class JoinClause:
    """What a relation is joined with. kind: the words before JOIN, or "," for a comma. condition: of ON; columns: of USING."""

    kind: str
    natural: bool
    right: Source
    condition: Expression | None
    columns: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class JoinedTables:
    """A relation and what it is joined with, from left to right. alias: of the whole in parentheses."""

    first: Source
    joins: tuple[JoinClause, ...]
    alias: TableAlias | None
    span: Span


@dataclass(frozen=True, slots=True)
class LateralView:
    """LATERAL VIEW [OUTER] call name AS column, …"""

    call: FunctionCall
    outer: bool
    name: Name | None
    columns: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class GroupClause:
    """GROUP BY. every: it may be GROUP BY ALL, whose one key is the column `all` where there is one."""

    keys: tuple[Expression, ...]
    every: bool
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


@dataclass(frozen=True, slots=True)
class ValuesQuery:
    """VALUES row, …; a row of one value stands without parentheses, too."""

    rows: tuple[Expression, ...]
    alias: TableAlias | None
    span: Span


@dataclass(frozen=True, slots=True)
class SetQuery:
    """UNION, EXCEPT or INTERSECT of two queries, and UNION of several with one quantifier."""

    operator: str
    distinct: bool
    parts: tuple[Query, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CommonTable:
    """name [(column, …)] [MAX RECURSION LEVEL n] AS (query)."""

    name: Name
    columns: tuple[Name, ...]
    limit: int | None
    query: Query
    span: Span


@dataclass(frozen=True, slots=True)
class OrderTerm:
    """A term of ORDER BY."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class LimitClause:
    """LIMIT count; None is LIMIT ALL."""

    count: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class WholeQuery:
    """[WITH …] query [ORDER BY …] [LIMIT …], and any query in parentheses."""

    ctes: tuple[CommonTable, ...]
    recursive: bool
    body: Query
    order: tuple[OrderTerm, ...]
    limit: LimitClause | None
    span: Span


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """name type [NOT NULL] [PRIMARY KEY]."""

    name: Name
    type: TypeName
    required: bool
    key: bool
    span: Span


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """PRIMARY KEY (column, …)."""

    columns: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """The head of CREATE TABLE, and of DECLARE RECURSIVE VIEW."""

    name: Name
    parts: tuple[ColumnDefinition | KeyDefinition, ...]
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """A parameter of a function, and its value where a call leaves it out."""

    name: Name
    type: TypeName
    default: Expression | None


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """CREATE FUNCTION. result: None if it is the type of the body. span: the statement's."""

    name: Name
    parameters: tuple[FunctionParameter, ...]
    result: TypeName | None
    body: Expression
    or_replace: bool
    if_not_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class ViewDeclaration:
    """DECLARE RECURSIVE VIEW."""

    table: TableDefinition
    limit: int | None


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """CREATE VIEW: a name for a query. span: the statement's."""

    name: Name
    columns: tuple[Name, ...]
    materialized: bool
    or_replace: bool
    if_not_exists: bool
    query: Query
    span: Span


Expression = (
    ColumnName
    | Star
    | NumberText
    | StringText
    | Keyword
    | TypedText
    | IntervalText
    | FieldOf
    | Subscript
    | Operation
    | Prefix
    | Parenthesised
    | IsTest
    | DistinctTest
    | BetweenTest
    | InList
    | InQuery
    | LikeTest
    | ExistsTest
    | SearchedCase
    | CastCall
    | FunctionCall
    | DefinedCall
    | ExtractCall
    | RowValue
    | ScalarQuery
)
Source = TableName | DerivedTable | TableCall | ValuesQuery | JoinedTables
Query = SelectQuery | ValuesQuery | SetQuery | WholeQuery
QUERIES = (SelectQuery, ValuesQuery, SetQuery, WholeQuery)


def unnest(node: Expression) -> Expression:
    """The expression without parentheses around it."""
    while isinstance(node, Parenthesised):
        node = node.inner
    return node


def parts(node: object) -> Iterator[object]:
    """The nodes that a node is made of, one level deep."""
    kind: Any = type(node)
    waiting = [getattr(node, name) for name in _field_names(kind)]
    for value in waiting:
        if isinstance(value, tuple):
            waiting.extend(value)
        elif type(value).__module__ == __name__:  # not a definition that a node refers to
            yield value


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def walk(node: object, enters: Callable[[object], bool] = lambda _: True) -> Iterator[object]:
    """The node and all in it, but for what is in nodes that are not entered."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        if enters(one):
            waiting.extend(parts(one))
