"""The defaults of columns in a catalog and in a state. No row that is stored depends on them, so a change of one fills nothing again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from deltic.errors import CatalogError, Span
from deltic.frontends.statements import ColumnDefault, NewColumn
from deltic.schema import TableSchema
from deltic.session.alterations import Alteration, position_of
from deltic.storage.program import DEFAULTS

Defaults = Mapping[str, ColumnDefault]
"""By column in lower case."""
Notes = Mapping[str, Any]


def defaults_after(before: Defaults, alteration: Alteration, added: Iterable[NewColumn]) -> Defaults:
    """Those of an altered table: a default follows its column to another name, and goes with it. added: the columns that bring theirs."""
    names = alteration.before.schema.names
    after = {
        field.name.lower(): before[name]
        for field, origin in zip(alteration.after.schema, alteration.origins, strict=True)
        if isinstance(origin, int) and (name := names[origin].lower()) in before
    }
    return {**after, **{column.field.name.lower(): column.default for column in added if column.default is not None}}


def changed_defaults(before: Defaults, table: TableSchema, columns: Sequence[tuple[str, Span, ColumnDefault | None]]) -> Defaults:
    """Those of a table after SET DEFAULT or DROP DEFAULT of columns. Raises UnknownName."""
    after = dict(before)
    for name, place, default in columns:
        column = table.schema[position_of(table, name, place)].name.lower()
        after.pop(column, None)
        if default is not None:
            after[column] = default
    return after


def check_without_source(table: TableSchema, defaults: Defaults, span: Span) -> None:
    """Raises CatalogError if a table that has a source has defaults, too."""
    if defaults:
        raise CatalogError(
            f"table {table.name} has a source, whose rows give every column, and a DEFAULT of column {next(iter(defaults))}",
            span=span,
            remedy="leave DEFAULT out; coalesce(column, value) in a view replaces NULL",
        )


def defaults_note(tables: Collection[str], defaults: Mapping[str, Defaults], committed: Notes, dropped: Collection[str]) -> Notes:
    """The notes of new definitions, if the defaults change: those of a catalog, and of tables that only the state has.

    tables, defaults: of the catalog, by table in lower case. dropped: tables that go.
    """
    removed = {*tables, *(name.lower() for name in dropped)}
    kept = {table: texts for table, texts in committed.get(DEFAULTS, {}).items() if table not in removed}
    own = {table: {name: one.text for name, one in columns.items()} for table, columns in defaults.items() if columns}
    return {} if {**kept, **own} == committed.get(DEFAULTS, {}) else {DEFAULTS: {**kept, **own} or None}
