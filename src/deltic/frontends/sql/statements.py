"""The statements of a script, bound."""

from __future__ import annotations

from dataclasses import dataclass

from deltic.errors import Span
from deltic.plan.nodes import Plan
from deltic.schema import TableSchema


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE [IF NOT EXISTS]."""

    table: TableSchema
    if_not_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] [MATERIALIZED | TEMPORARY] VIEW [IF NOT EXISTS].

    materialized: False for a plain or temporary view, which is only a name for its query.
    text: the statement as written; span: its name. depends_on: the catalog's relations that it reads, sorted.
    """

    name: str
    plan: Plan
    materialized: bool
    or_replace: bool
    if_not_exists: bool
    text: str
    span: Span
    depends_on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP [MATERIALIZED] VIEW [IF EXISTS]."""

    name: str
    if_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE [IF EXISTS]."""

    name: str
    if_exists: bool
    span: Span


Statement = CreateTable | CreateView | DropView | DropTable
