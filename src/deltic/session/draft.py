"""A draft of the catalog, which becomes the session's when a whole script is right."""

from __future__ import annotations

from deltic.errors import CatalogError
from deltic.frontends.statements import CreateTable, DropTable, Statement
from deltic.plan.nodes import Plan
from deltic.schema import TableSchema
from deltic.session.catalog import Catalog


class Draft:
    """The catalog as it grows while a script is read.

    kept: tables of the state that it does not have. dropped: those tables, in lower case, whose rows the script drops.
    """

    def __init__(self, catalog: Catalog, kept: frozenset[str] = frozenset()) -> None:
        self.catalog = catalog
        self.dropped: set[str] = set()
        self._filled = frozenset(catalog.tables) | kept

    def apply(self, statement: Statement) -> None:
        """One statement. A table does not come back in the script that drops it: it would find its old rows."""
        name = statement.table.name if isinstance(statement, CreateTable) else statement.name
        if isinstance(statement, CreateTable) and name.lower() in self.dropped:
            raise CatalogError(
                f"table {name} is dropped and made anew in one script", span=statement.span, remedy="drop it in a script of its own first"
            )
        dropped = isinstance(statement, DropTable) and name.lower() in self._filled
        if not dropped or name.lower() in self.catalog.tables:
            self.catalog = self.catalog.apply(statement)
        if dropped:
            self.dropped.add(name.lower())

    def relation(self, name: str) -> TableSchema | Plan | None:
        return self.catalog.relation(name)

    def names(self) -> tuple[str, ...]:
        return self.catalog.names()
