"""Definitions of tables and views in a syntax tree."""

from __future__ import annotations

from dataclasses import dataclass

from deltic.errors import Span
from deltic.frontends.sql.tree.expressions import Expression, IntervalText, Name, NumberText, TypeName
from deltic.frontends.sql.tree.queries import Query


@dataclass(frozen=True, slots=True)
class LatenessDefinition:
    """LATENESS delay [AHEAD ahead], each an interval or a number."""

    delay: IntervalText | NumberText
    ahead: IntervalText | NumberText | None


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """name type [NOT NULL] [DEFAULT default] [PRIMARY KEY] [lateness] [COMMENT 'comment']."""

    name: Name
    type: TypeName
    required: bool
    key: bool
    span: Span
    lateness: LatenessDefinition | None = None
    comment: str | None = None
    default: Expression | None = None


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """PRIMARY KEY (column, …)."""

    columns: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """The name and columns of CREATE TABLE and DECLARE RECURSIVE VIEW."""

    name: Name
    parts: tuple[ColumnDefinition | KeyDefinition, ...]
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class TableAlteration:
    """ALTER TABLE: one of `added`, `dropped`, `renamed` (the old name, the new one) and `defaults` is given. span: the statement's.

    defaults: SET DEFAULT of columns; None is DROP DEFAULT.
    """

    table: Name
    added: tuple[ColumnDefinition, ...]
    dropped: tuple[Name, ...]
    renamed: tuple[Name, Name] | None
    if_exists: bool
    span: Span
    defaults: tuple[tuple[Name, Expression | None], ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """A parameter of a function. default: its value if a call omits it."""

    name: Name
    type: TypeName
    default: Expression | None


@dataclass(frozen=True, slots=True)
class TableResult:
    """RETURNS TABLE [(column type, …)]."""

    columns: tuple[FunctionParameter, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """CREATE FUNCTION. result: None if it is the type of the body, which is a query where it is a table. span: the statement's."""

    name: Name
    parameters: tuple[FunctionParameter, ...]
    result: TypeName | TableResult | None
    body: Expression | Query
    or_replace: bool
    if_not_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class VariableDeclaration:
    """DECLARE [OR REPLACE] VARIABLE. default: None is NULL."""

    names: tuple[Name, ...]
    type: TypeName | None
    default: Expression | None
    or_replace: bool
    span: Span


@dataclass(frozen=True, slots=True)
class VariableAssignments:
    """SET VAR name = expression, …; None is DEFAULT."""

    assignments: tuple[tuple[Name, Expression | None], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ViewDeclaration:
    """DECLARE RECURSIVE VIEW."""

    table: TableDefinition
    limit: int | None


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """CREATE VIEW: a name for a query. span: the statement's. emits: the place of EMIT ON WINDOW CLOSE."""

    name: Name
    columns: tuple[Name, ...]
    materialized: bool
    or_replace: bool
    if_not_exists: bool
    query: Query
    span: Span
    emits: Span | None = None
