"""A draft of the catalog, which becomes the session's if a whole script is valid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from deltic.errors import CatalogError, Span
from deltic.frontends.statements import (
    AlterTable,
    ColumnDefault,
    CreateTable,
    DefinedFunction,
    DropStream,
    DropTable,
    Replan,
    SessionVariable,
    Statement,
)
from deltic.plan.nodes import Plan
from deltic.schema import TableSchema
from deltic.session.catalog import Catalog

DefinitionGuard: TypeAlias = Callable[[Catalog, Span | None], None]
"""Raises CatalogError, with the place of the statement, for a catalog that must not become the session's."""


class DraftedPart(NamedTuple):
    """The definitions of a part of a script: the catalog with them, and of a `Draft` what is `dropped` and `replanned`."""

    catalog: Catalog
    dropped: frozenset[str]
    replanned: frozenset[str]


class Draft:
    """The catalog as it grows while a script is read.

    undeclared: tables of the state that the catalog lacks. dropped: the tables, in lower case, whose rows the script drops. replanned: the
    views, in lower case, that it plans again, and the place of each. guard: of the session.
    """

    def __init__(self, catalog: Catalog, undeclared: frozenset[str] = frozenset(), guard: DefinitionGuard | None = None) -> None:
        self.catalog, self._guard = catalog, guard
        self.dropped: set[str] = set()
        self.replanned: dict[str, Span] = {}
        self._dropped_columns: set[tuple[str, str]] = set()
        self._stored = frozenset(catalog.tables) | undeclared

    def apply(self, statement: Statement) -> None:
        """Applies one statement. A part of a script cannot drop a table and create it again: the new table would have the old rows."""
        name = statement.table.name if isinstance(statement, CreateTable) else statement.name
        if isinstance(statement, CreateTable) and name.lower() in self.dropped:
            raise CatalogError(
                f"table {name} is dropped and created again in one script",
                span=statement.span,
                remedy="drop it in a script of its own first",
            )
        if isinstance(statement, AlterTable):
            self._check_columns(statement)
        if isinstance(statement, Replan):
            self.replanned[statement.name.lower()] = statement.span
        dropped = isinstance(statement, DropTable | DropStream) and name.lower() in self._stored
        if not dropped or name.lower() in self.catalog.tables:
            catalog = self.catalog.apply(statement)
            if self._guard is not None:
                self._guard(catalog, statement.span)
            self.catalog = catalog
        if dropped:
            self.dropped.add(name.lower())

    def cut(self) -> DraftedPart:
        """Ends a part of the script. What it drops is gone, and what it creates is there, when the next one begins."""
        drafted = DraftedPart(self.catalog, frozenset(self.dropped), frozenset(self.replanned))
        self._stored = (self._stored - self.dropped) | frozenset(self.catalog.tables)
        self.dropped, self.replanned, self._dropped_columns = set(), {}, set()
        return drafted

    def _check_columns(self, statement: AlterTable) -> None:
        """A column that is dropped and added again would have the old values, for the table would be as before."""
        table = statement.name.lower()
        for column in statement.added:
            if (table, column.field.name.lower()) in self._dropped_columns:
                raise CatalogError(
                    f"column {column.field.name} of table {statement.name} is dropped and added again in one script",
                    span=column.span,
                    remedy="drop it in a script of its own first",
                )
        self._dropped_columns |= {(table, name.lower()) for name, _ in statement.dropped}

    def relation(self, name: str) -> TableSchema | Plan | None:
        return self.catalog.relation(name)

    def names(self) -> tuple[str, ...]:
        return self.catalog.names()

    def functions(self) -> Mapping[str, DefinedFunction]:
        return self.catalog.functions()

    def defaults(self, table: str) -> Mapping[str, ColumnDefault]:
        return self.catalog.defaults(table)

    def variables(self) -> Mapping[str, SessionVariable]:
        return self.catalog.variables()
