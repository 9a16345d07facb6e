"""PIVOT and UNPIVOT of a syntax tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltic.errors import Span
from deltic.frontends.sql.tree.expressions import ColumnName, Expression, Name

if TYPE_CHECKING:
    from deltic.frontends.sql.tree.queries import SelectItem, Source, TableAlias


@dataclass(frozen=True, slots=True)
class PivotValue:
    """A value [AS name] of IN; of several columns a row in parentheses."""

    value: Expression
    name: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class PivotedTable:
    """source PIVOT (aggregates FOR columns IN (value, …))."""

    source: Source
    aggregates: tuple[SelectItem, ...]
    columns: tuple[ColumnName, ...]
    values: tuple[PivotValue, ...]
    alias: TableAlias | None
    span: Span


@dataclass(frozen=True, slots=True)
class UnpivotedColumns:
    """column or (column, …) [AS name] of IN."""

    columns: tuple[ColumnName, ...]
    name: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class UnpivotedTable:
    """source UNPIVOT [INCLUDE NULLS] (values FOR name IN (columns, …)). values: the names of the columns of values."""

    source: Source
    values: tuple[Name, ...]
    name: Name
    columns: tuple[UnpivotedColumns, ...]
    include_nulls: bool
    alias: TableAlias | None
    span: Span
