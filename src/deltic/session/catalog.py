"""The catalog: what names mean. Immutable; a script makes a new one, which takes the old one's place when all of it is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from deltic.connectors.frames import OP, WEIGHT
from deltic.errors import CatalogError, QueryError, Span
from deltic.frontends.sql import CreateTable, CreateView, DropTable, DropView, Statement, bind_query
from deltic.plan.nodes import Plan
from deltic.schema import Schema, TableSchema

RESERVED = (OP, WEIGHT)


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A view as it was asked for. `plan` is its query over base tables; views below it are inlined."""

    name: str
    plan: Plan
    materialized: bool
    statement: CreateView


@dataclass(frozen=True, slots=True)
class Catalog:
    """Tables and views by their names in lower case, in the order of their definition."""

    tables: Mapping[str, TableSchema] = field(default_factory=lambda: MappingProxyType({}))
    views: Mapping[str, ViewDefinition] = field(default_factory=lambda: MappingProxyType({}))

    def relation(self, name: str) -> TableSchema | Plan | None:
        """What a query means by `name`."""
        key = name.lower()
        if key in self.tables:
            return self.tables[key]
        return self.views[key].plan if key in self.views else None

    def names(self) -> tuple[str, ...]:
        """All names, for suggestions."""
        return (*(t.name for t in self.tables.values()), *(v.name for v in self.views.values()))

    def apply(self, statement: Statement) -> Catalog:
        """The catalog after one statement; raises CatalogError."""
        match statement:
            case CreateTable():
                return self._create_table(statement)
            case CreateView():
                return self._create_view(statement)
            case DropTable():
                return self._drop(statement.name, "table", statement.if_exists, statement.span)
            case DropView():
                return self._drop(statement.name, "view", statement.if_exists, statement.span)

    def _create_table(self, statement: CreateTable) -> Catalog:
        table = statement.table
        _check_names(table.schema, "table", table.name, statement.span)
        if self._taken(table.name, statement.span, may_exist=statement.if_not_exists):
            return self
        return replace(self, tables={**self.tables, table.name.lower(): table})

    def _create_view(self, statement: CreateView) -> Catalog:
        key = statement.name.lower()
        _check_names(statement.plan.schema, "view", statement.name, statement.span)
        if statement.or_replace and key in self.views:
            return self._replace_view(statement)
        if self._taken(statement.name, statement.span, may_exist=statement.if_not_exists):
            return self
        definition = ViewDefinition(statement.name, statement.plan, statement.materialized, statement)
        return replace(self, views={**self.views, key: definition})

    def _replace_view(self, statement: CreateView) -> Catalog:
        """The view in its old place, and every view that reads it bound anew."""
        key = statement.name.lower()
        if key in self._upstream(statement):
            raise CatalogError(f"view {statement.name} would read itself", span=statement.span)
        views = dict(self.views)
        views[key] = ViewDefinition(statement.name, statement.plan, statement.materialized, statement)
        stale = {key}
        for name, view in list(views.items()):
            if name != key and stale & {d.lower() for d in view.statement.depends_on}:
                stale.add(name)
                views[name] = _rebound(view, Catalog(self.tables, views), statement)
        return replace(self, views=views)

    def _upstream(self, statement: CreateView) -> set[str]:
        """Names of all views that the statement's query reads, directly or not."""
        found: set[str] = set()
        todo = [d.lower() for d in statement.depends_on]
        while todo:
            name = todo.pop()
            if name not in found and name in self.views:
                found.add(name)
                todo += [d.lower() for d in self.views[name].statement.depends_on]
        return found

    def _taken(self, name: str, span: Span | None, *, may_exist: bool) -> bool:
        key = name.lower()
        if key not in self.tables and key not in self.views:
            return False
        if may_exist:
            return True
        kind = "table" if key in self.tables else "view"
        remedy = "drop it first, or use CREATE OR REPLACE" if kind == "view" else "drop it first, or use CREATE TABLE IF NOT EXISTS"
        raise CatalogError(f"{kind} {name} is defined already", span=span, remedy=remedy)

    def _drop(self, name: str, kind: str, if_exists: bool, span: Span | None) -> Catalog:
        key = name.lower()
        mine, other = (self.tables, self.views) if kind == "table" else (self.views, self.tables)
        if key not in mine:
            if key in other:
                real = "view" if kind == "table" else "table"
                raise CatalogError(f"{name} is a {real}", span=span, remedy=f"use DROP {real.upper()}")
            if if_exists:
                return self
            raise CatalogError(
                f"there is no {kind} {name}",
                span=span,
                expected=f"one of {', '.join(d.name for d in mine.values())}" if mine else None,
                remedy=f"DROP {kind.upper()} IF EXISTS passes over what is not there",
            )
        readers = [v.name for v in self.views.values() if key in {d.lower() for d in v.statement.depends_on}]
        if readers:
            raise CatalogError(f"{kind} {name} is read by view {readers[0]}", span=span, remedy=f"drop {', '.join(readers)} first")
        left = {n: d for n, d in mine.items() if n != key}
        return Catalog(left, self.views) if kind == "table" else Catalog(self.tables, left)  # type: ignore[arg-type]


def _check_names(schema: Schema, kind: str, name: str, span: Span | None) -> None:
    """Columns that change frames and `changes()` add may not be there already."""
    for taken in RESERVED:
        if schema.find(taken):
            raise CatalogError(
                f"{kind} {name} has a column {taken}, which stands for something else in changes",
                span=span,
                expected=f"column names other than {' and '.join(RESERVED)}",
                remedy="give the column another name",
            )


def _rebound(view: ViewDefinition, catalog: Catalog, cause: CreateView) -> ViewDefinition:
    try:
        plan = bind_query(view.statement.text, view.name, catalog)
    except QueryError as error:
        raise CatalogError(
            f"view {view.name} reads {cause.name} and would no longer be right: {error.message}",
            span=cause.span,
            remedy=f"drop {view.name} first, or keep the columns that it reads",
        ) from error
    return replace(view, plan=plan)
