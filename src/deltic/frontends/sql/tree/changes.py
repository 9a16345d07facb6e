"""Statements that change the rows of tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from deltic.errors import Span
from deltic.frontends.sql.tree.expressions import Expression, Name
from deltic.frontends.sql.tree.queries import CommonTable, Query, Source, TableName

Assignments = tuple[tuple[tuple[Name, ...], Expression], ...]
"""(the names before =, the value), …"""


@dataclass(frozen=True, slots=True)
class WithClause:
    """WITH [RECURSIVE] name AS (query), … before a statement."""

    recursive: bool = False
    ctes: tuple[CommonTable, ...] = ()


@dataclass(frozen=True, slots=True)
class InsertRows:
    """INSERT {INTO | OVERWRITE} table [(column, …)] [BY NAME] query. overwrites: all rows of the table go."""

    table: Name
    columns: tuple[Name, ...]
    by_name: bool
    query: Query
    span: Span
    overwrites: bool = False


@dataclass(frozen=True, slots=True)
class UpdateRows:
    """[WITH …] UPDATE table SET column = value, … [WHERE condition]."""

    table: TableName
    assignments: Assignments
    where: Expression | None
    span: Span
    given: WithClause = WithClause()


@dataclass(frozen=True, slots=True)
class DeleteRows:
    """[WITH …] DELETE FROM table [WHERE condition], or TRUNCATE TABLE table."""

    table: TableName
    where: Expression | None
    span: Span
    given: WithClause = WithClause()


@dataclass(frozen=True, slots=True)
class MergeClause:
    """WHEN [NOT] MATCHED [BY SOURCE] [AND condition] THEN action. assignments: None is `UPDATE SET *` and `INSERT *`; () is DELETE."""

    kind: Literal["matched", "not matched", "not matched by source"]
    condition: Expression | None
    action: Literal["update", "insert", "delete"]
    assignments: Assignments | None
    span: Span


@dataclass(frozen=True, slots=True)
class MergeRows:
    """[WITH …] MERGE INTO table USING source ON condition WHEN …"""

    table: TableName
    source: Source
    condition: Expression
    clauses: tuple[MergeClause, ...]
    span: Span
    given: WithClause = WithClause()


@dataclass(frozen=True, slots=True)
class TransactionMark:
    """BEGIN, COMMIT or ROLLBACK."""

    word: Literal["BEGIN", "COMMIT", "ROLLBACK"]
    span: Span


RowChange = InsertRows | UpdateRows | DeleteRows | MergeRows
