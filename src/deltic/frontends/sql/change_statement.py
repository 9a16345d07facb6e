"""A statement that changes rows: it is bound to be checked, and again when it runs if what it read is different then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_change import BoundChange, bind_change
from deltic.frontends.sql.column_defaults import defaults_of
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.nesting import shallow
from deltic.frontends.sql.statement_time import with_time
from deltic.frontends.sql.user_functions import marked
from deltic.frontends.statements import ColumnDefault, DefinedFunction, Namespace
from deltic.plan.nodes import Plan
from deltic.schema import TableSchema


class ChangeStatement:
    """INSERT, UPDATE, DELETE, MERGE or TRUNCATE."""

    __slots__ = ("_bound", "_is_timed", "_now_us", "_read", "node")

    def __init__(self, node: tree.RowChange) -> None:
        self.node = node
        self._bound: BoundChange | None = None
        self._read: _ReadRelations
        self._now_us: int
        self._is_timed: bool

    def bind(self, catalog: Namespace, now_us: int) -> BoundChange:
        """Its queries over the relations of a catalog, at a time in microseconds since 1970 UTC. Raises QueryError."""
        if self._bound is not None and (self._now_us == now_us or not self._is_timed) and self._read.are_those_of(catalog):
            return self._bound
        self._bound, self._read, self._now_us = None, _ReadRelations(catalog), now_us
        with shallow(self.node.span):
            timed = with_time(self.node, now_us)
            called, _ = marked(timed, self._read)
            bound = bind_change(called, Environment(self._read), now_us)
        self._is_timed = timed is not self.node or any(self._read.initial.values())
        self._bound = bound
        return bound


class _ReadRelations:
    """A namespace that notes what is read of it. initial: the defaults, which may read the time, by table."""

    def __init__(self, catalog: Namespace) -> None:
        self._catalog = catalog
        self._functions = catalog.functions()
        self._relations: dict[str, TableSchema | Plan | None] = {}
        self.initial: dict[str, Mapping[str, ColumnDefault]] = {}

    def are_those_of(self, catalog: Namespace) -> bool:
        """Whether another namespace has the same for all that was read."""
        return (
            catalog.functions() is self._functions
            and all(catalog.relation(name) is relation for name, relation in self._relations.items())
            and all(defaults_of(catalog, table) == defaults for table, defaults in self.initial.items())
        )

    def relation(self, name: str) -> TableSchema | Plan | None:
        found = self._relations[name] = self._catalog.relation(name)
        return found

    def names(self) -> Iterable[str]:
        return self._catalog.names()

    def functions(self) -> Mapping[str, DefinedFunction]:
        return self._functions

    def defaults(self, table: str) -> Mapping[str, ColumnDefault]:
        found = self.initial[table] = defaults_of(self._catalog, table)
        return found
