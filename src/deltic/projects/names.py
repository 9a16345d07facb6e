"""Names of one to three parts, relative to the catalog and schema of a project."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Self

from deltic.errors import CatalogError
from deltic.frontends.dataframes.expressions import name_parts
from deltic.frontends.sql.parse_dataset import dotted
from deltic.types import backquoted

CATALOG: Final = "spark_catalog"
SCHEMA: Final = "default"


@dataclass(frozen=True, slots=True)
class Names:
    """catalog, schema: what names are relative to. home: those of the project, which keys leave out."""

    catalog: str = CATALOG
    schema: str = SCHEMA
    home: tuple[str, str] = (CATALOG, SCHEMA)

    @classmethod
    def of(cls, catalog: str | None, schema: str | None) -> Self:
        """Those of a project."""
        home = (catalog or CATALOG, schema or SCHEMA)
        return cls(*home, home)

    def within(self, catalog: str | None, schema: str | None) -> Self:
        """After SET CATALOG or USE SCHEMA."""
        return replace(self, catalog=catalog or self.catalog, schema=schema or self.schema)

    def parts(self, name: str) -> tuple[str, str, str]:
        """(catalog, schema, name). Raises CatalogError for more parts, as of a catalog with nested schemas."""
        parts = name_parts(name)
        if len(parts) > 3:
            raise CatalogError(f"the name {name} has {len(parts)} parts", expected="at most three: catalog.schema.table")
        own = [self.catalog, self.schema]
        return tuple([*own[: 3 - len(parts)], *parts])  # type: ignore[return-value]

    def key(self, name: str) -> str:
        """The name in lower case, without the parts that are the project's own: equal for names of one relation."""
        catalog, schema, last = (part.lower() for part in self.parts(name))
        home = tuple(part.lower() for part in self.home)
        if (catalog, schema) == home:
            return last
        return dotted([schema, last] if catalog == home[0] else [catalog, schema, last])

    def identifier(self, name: str) -> str:
        """The name in SQL for a server whose current schema is the project's."""
        catalog, schema, last = self.parts(name)
        return quoted([last] if (catalog, schema) == self.home else [catalog, schema, last])


def quoted(parts: Iterable[str]) -> str:
    """A name in SQL."""
    return ".".join(map(backquoted, parts))
