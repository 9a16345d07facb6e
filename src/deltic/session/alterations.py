"""ALTER TABLE in a catalog: which tables it may alter, what views read, and how a table becomes another from what a state has of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from deltic.errors import CatalogError, Span, UnknownName, Unsupported, did_you_mean
from deltic.expr.nodes import Literal
from deltic.frontends.statements import AlterTable, Timed
from deltic.optimizer.prune_columns import prune_columns
from deltic.plan.nodes import Plan
from deltic.plan.table_forms import columns_read
from deltic.schema import Forms, Schema, StreamSchema, TableForm, TableSchema
from deltic.storage.program import TableDescription

Origins = tuple[int | Literal, ...]
"""For each column of a table its position in the table before, or its value in the rows that the table has."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """What one ALTER TABLE makes of a table."""

    before: TableSchema
    after: TableSchema
    origins: Origins


@dataclass(frozen=True, slots=True)
class Transition:
    """How the rows of a state become those of an altered table: see Origins. forms: of the table in the state."""

    before: TableSchema
    forms: Forms
    after: TableSchema
    origins: Origins


def altered(table: TableSchema, statement: AlterTable, timed: Timed | None) -> Alteration:
    """Raises CatalogError, UnknownName and Unsupported, with the place."""
    _check_alterable(table, statement.span)
    origins: list[int | Literal] = list(range(len(table.schema)))
    fields = list(table.schema.fields)
    for column in statement.added:
        if any(field.name.lower() == column.field.name.lower() for field in fields):
            message = f"table {table.name} has a column {column.field.name} already"
            raise CatalogError(message, span=column.span, remedy="give it another name")
        fields.append(column.field)
        origins.append(column.value)
    if statement.renamed is not None:
        old, place, new, new_place = statement.renamed
        position = position_of(table, old, place)
        _check_kept(table, position, timed, place, "renamed")
        if any(i != position and field.name.lower() == new.lower() for i, field in enumerate(fields)):
            raise CatalogError(f"table {table.name} has a column {new} already", span=new_place, remedy="give it another name")
        fields[position] = replace(fields[position], name=new)
    dropped_positions = _dropped(table, statement, timed)
    kept = [i for i in range(len(fields)) if i not in dropped_positions]
    if not kept:
        raise CatalogError(f"table {table.name} would have no columns", span=statement.span, remedy=f"DROP TABLE {table.name}")
    key = tuple(kept.index(i) for i in table.key)
    after = TableSchema(table.name, Schema(tuple(fields[i] for i in kept)), key)
    return Alteration(table, after, tuple(origins[i] for i in kept))


def _dropped(table: TableSchema, statement: AlterTable, timed: Timed | None) -> set[int]:
    dropped_positions: set[int] = set()
    for name, place in statement.dropped:
        if statement.if_exists and not table.schema.find(name):
            continue
        position = position_of(table, name, place)
        if position in table.key:
            message = f"column {name} is in the primary key of table {table.name}"
            raise CatalogError(message, span=place, remedy="make a new table with another key")
        _check_kept(table, position, timed, place, "dropped")
        dropped_positions.add(position)
    return dropped_positions


def _check_alterable(table: TableSchema, span: Span) -> None:
    if isinstance(table, StreamSchema):
        raise Unsupported(f"{table.name} is a stream, which keeps no rows", span=span, remedy="DROP STREAM, then CREATE STREAM")
    if table.lateness is not None:
        raise Unsupported(f"ALTER TABLE of {table.name}, which has LATENESS, is not supported", span=span, remedy="make a new table")


def _check_kept(table: TableSchema, position: int, timed: Timed | None, place: Span, verb: str) -> None:
    name = table.schema[position].name
    if timed is not None and timed.column.lower() == name.lower():
        message = f"column {name} is the watermark of table {table.name}, and cannot be {verb}"
        raise CatalogError(message, span=place, remedy="make a new table with another watermark")


def position_of(table: TableSchema, name: str, place: Span) -> int:
    """The position of a column. Raises UnknownName."""
    matches = table.schema.find(name)
    if not matches:
        remedy = did_you_mean(name, table.schema.names)
        raise UnknownName(f"table {table.name} has no column {name!r}", span=place, remedy=remedy)
    return matches[0]


def readers(views: Mapping[str, Plan], table: TableSchema, positions: Iterable[int]) -> list[str]:
    """The views that read one of these columns of a table."""
    sought = frozenset(positions)
    return [name for name, plan in views.items() if not sought.isdisjoint(columns_read(prune_columns(plan), table.name.lower()))]


def changed_positions(alteration: Alteration) -> set[int]:
    """The columns of the table before that go, or get another name."""
    before, after = alteration.before.schema, alteration.after.schema
    kept = {origin: i for i, origin in enumerate(alteration.origins) if isinstance(origin, int)}
    return {i for i in range(len(before)) if i not in kept or after[kept[i]].name != before[i].name}


def forms_in_state(
    tables: Iterable[TableSchema], steps: Mapping[str, Sequence[Alteration]], state: Mapping[str, TableDescription]
) -> tuple[dict[str, Forms], list[Transition]]:
    """(by table in lower case, the forms of those that were altered, the tables whose rows in the state must change).

    steps: by table in lower case, what ALTER TABLE has made of it. A table that the state lacks has one form, its own; one that differs
    from the state's otherwise, too.
    """
    by_name = {name.lower(): (name, entry) for name, entry in state.items()}
    forms: dict[str, Forms] = {}
    transitions: list[Transition] = []
    for table in tables:
        key = table.name.lower()
        if key not in by_name:
            continue
        name, entry = by_name[key]
        stored = TableSchema(name, Schema(entry.fields), tuple(Schema(entry.fields).find(column)[0] for column in entry.key))
        if _same(stored, table):
            if entry.forms:
                forms[key] = entry.forms
            continue
        taken = steps.get(key, ())
        first = next((i for i in reversed(range(len(taken))) if _same(taken[i].before, stored)), None)
        if first is None or entry.stream:
            continue
        before = entry.forms or (TableForm(stored, tuple(range(len(stored.schema)))),)
        origins = _composed([step.origins for step in taken[first:]])
        forms[key] = (*before, TableForm(table, _numbers(before, origins)))
        transitions.append(Transition(stored, entry.forms, table, origins))
    return forms, transitions


def _same(one: TableSchema, other: TableSchema) -> bool:
    return type(one) is type(other) and one == other


def _composed(steps: Sequence[Origins]) -> Origins:
    first, *rest = steps
    for origins in rest:
        first = tuple(first[origin] if isinstance(origin, int) else origin for origin in origins)
    return first


def _numbers(before: Forms, origins: Origins) -> tuple[int, ...]:
    """Those of the columns: new ones get numbers that no column had."""
    free = 1 + max(number for form in before for number in form.numbers)
    numbers: list[int] = []
    for origin in origins:
        numbers.append(before[-1].numbers[origin] if isinstance(origin, int) else free)
        free += not isinstance(origin, int)
    return tuple(numbers)
