"""The sources and sinks that a running pipeline has opened: statements that would change them are refused (ADR 0384)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from deltic.errors import CatalogError, Span
from deltic.pipeline.delivery import other_columns
from deltic.schema import Schema
from deltic.session.catalog import Catalog
from deltic.session.view_definitions import SinkDefinition

REMEDY: Final = "close the pipeline first: its next start takes the tables and sinks that its program then has"

Opened: TypeAlias = Mapping[str, tuple[str, object]]
"""By key, the name of a source or sink, and what of it must stay."""


class OpenedDefinitions:
    """The sources and sinks of a catalog, and the columns of the views of `changes` sinks."""

    def __init__(self, catalog: Catalog) -> None:
        self._sources: Opened = {
            key: (catalog.tables[key].name, (replace(catalog.tables[key], name=key), source)) for key, source in catalog.sources.items()
        }
        self._sinks: Opened = {key: (sink.name, (sink.view.lower(), sink.sink)) for key, sink in catalog.sinks.items()}
        self._columns = {
            key: catalog.views[sink.view.lower()].plan.schema for key, sink in catalog.sinks.items() if sink.sink.mode == "changes"
        }

    def check(self, catalog: Catalog, span: Span | None) -> None:
        """Raises CatalogError unless a new catalog has the same. span: the place of the statement."""
        now = OpenedDefinitions(catalog)
        _check("table {}", "reads its source", "table {} with a source", "reads the sources", self._sources, now._sources, span)
        _check("sink {}", "writes it", "sink {}", "writes the sinks", self._sinks, now._sinks, span)
        for key, columns in now._columns.items():
            self._check_columns(catalog.sinks[key], self._columns[key], columns, span)

    def _check_columns(self, sink: SinkDefinition, before: Schema, now: Schema, span: Span | None) -> None:
        if (differing := other_columns(before, now)) is not None:
            was, shown = differing
            raise CatalogError(
                f"view {sink.view} cannot have the columns {shown}: a running pipeline writes its changes to sink {sink.name}",
                span=span,
                expected=f"{was}, since the content of a sink is never altered",
                remedy="give the view another name; or close the pipeline first, and give the sink a new name and an empty location",
            )


def _check(kept: str, use: str, added: str, does: str, before: Opened, now: Opened, span: Span | None) -> None:
    for key, (name, definition) in before.items():
        if key not in now or now[key][1] != definition:
            change = "changed" if key in now else "dropped"
            raise CatalogError(f"{kept.format(name)} cannot be {change}: a running pipeline {use}", span=span, remedy=REMEDY)
    for key, (name, _) in now.items():
        if key not in before:
            message = f"{added.format(name)} cannot be created: a running pipeline {does} that it started with"
            raise CatalogError(message, span=span, remedy=REMEDY)
