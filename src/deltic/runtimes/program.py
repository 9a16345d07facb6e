"""Programs of a state: the description of a dataflow, checks of changed tables, and the time of a tick."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from deltic.circuit.copies import copies
from deltic.circuit.functions import functions_of
from deltic.circuit.nodes import ArrangementSpec, Dataflow
from deltic.circuit.operator import BEGINNING, Tick
from deltic.circuit.operators.table import TableInput
from deltic.errors import DataError, StateError
from deltic.purity import shown
from deltic.schema import Field, Forms, StreamSchema, TableSchema
from deltic.storage.manifest import NO_TICK, last_tick, without_tick
from deltic.storage.program import (
    CLOCK,
    LATENESS,
    PROGRAM_NOTES,
    ArrangementDescription,
    ProgramDescription,
    TableDescription,
    ViewDescription,
)
from deltic.trace.batch import Batch
from deltic.trace.entries import Words

Json = Any
Notes = Mapping[str, Json]
_RESERVED: Final = PROGRAM_NOTES | {NO_TICK}


def checked(notes: Notes) -> Notes:
    """Notes from users. Raises DataError if a name is reserved or not a string, or a value is not JSON."""
    if not isinstance(notes, Mapping) or not all(isinstance(name, str) for name in notes):
        raise DataError(f"invalid notes {shown(notes)}", expected="a dict of values by names, which are strings")
    for name, note in notes.items():
        if name in _RESERVED:
            raise DataError(
                f"the note name {name!r} is reserved", remedy="use another name, such as one that begins with the name of your program"
            )
        try:
            json.dumps(note, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"the note {name!r} is not valid JSON: {error}", expected="None, booleans, numbers, strings, lists and dicts"
            ) from None
    return notes


def next_tick(epoch: int, committed: Notes, notes: Notes, *, amends: bool = False, listed: int = 0) -> Tick:
    """The tick after `epoch`, at the time in its notes, or else at that of the tick before.

    committed: the notes before it. amends, listed: see Tick.
    """
    now = notes.get(CLOCK, committed.get(CLOCK))
    before = committed.get(CLOCK, now)
    assert now is None or now >= before, "time must not decrease"
    after = last_tick(epoch, committed)
    return Tick(epoch + 1, now, before_us=before, watermarks=_watermarks(committed, notes), amends=amends, since=after + 1, listed=listed)


def noted(epoch: int, committed: Notes, notes: Notes) -> Notes:
    """The notes of a commit after `epoch` that is no tick. committed: the notes before it."""
    return {**notes, **without_tick(epoch, committed)}


def shown_strings(circuit: Dataflow, changes: Mapping[str, Batch]) -> Iterator[Words]:
    """The string ids in views over streams, whose content are the changes of the last tick. changes: by view."""
    for view, change in changes.items():
        spec = circuit.arrangements.get(circuit.views.get(view, ""))
        if spec is not None and spec.ephemeral:
            yield from (change.columns[place] for place in spec.strings)


def backfill(epoch: int, committed: Notes, notes: Notes, fresh: frozenset[str]) -> Tick:
    """The tick that fills `fresh`, at the time of the tick before; if there was none, at the time in its notes."""
    now = committed.get(CLOCK, notes.get(CLOCK))
    assert notes.get(CLOCK, now) == now
    return Tick(epoch + 1, now, fresh, now, _watermarks(committed, committed))


def _watermarks(committed: Notes, notes: Notes) -> dict[str, tuple[int, int]]:
    """By table: as of the tick before, and of the one with these notes."""
    if not committed.get(LATENESS) and not notes.get(LATENESS):
        return {}
    before = {table: watermark for table, (_, watermark, _) in committed.get(LATENESS, {}).items()}
    after = notes.get(LATENESS, committed.get(LATENESS)) or {}
    return {table: (before.get(table, BEGINNING), watermark) for table, (_, watermark, _) in after.items()}


def described(circuit: Dataflow, description: ProgramDescription, dropped: Collection[str] = ()) -> ProgramDescription:
    """The description of a state with the program `circuit`.

    description: that of the state before. Its tables that are not in the circuit are kept, except `dropped` ones (names in any case).
    Raises StateError, naming the first difference, if a table of the circuit differs from that of the state.
    """
    excluded = {name.lower() for name in dropped}
    before = {name: table for name, table in description.tables.items() if name.lower() not in excluded}
    tables = {one.table.name: _described_table(one.table, circuit.tables[one.table.name], one.forms) for one in _sources(circuit)}
    check_tables(before, tables)
    own = {name.lower() for name in tables}
    kept = {name: table for name, table in before.items() if name.lower() not in own}
    holds = {copy.arrangement: (copy.table, *copy.columns) for copy in copies(circuit)}
    return replace(
        description,
        arrangements={
            **{table.arrangement: description.arrangements[table.arrangement] for table in kept.values()},
            **{name: _described_arrangement(spec, holds.get(name, ())) for name, spec in circuit.arrangements.items()},
        },
        tables={**kept, **tables},
        views={view: _described_view(name, circuit.arrangements[name]) for view, name in circuit.views.items()},
        functions={name: tuple(digests) for name, digests in functions_of(circuit).items()},
    )


def with_prepared(circuit: Dataflow, description: ProgramDescription) -> ProgramDescription:
    """The description of a state with arrangements of the circuit that it lacks, and all that it has."""
    new = {name: _described_arrangement(spec, ()) for name, spec in circuit.arrangements.items() if name not in description.arrangements}
    return replace(description, arrangements={**description.arrangements, **new})


def check_tables(before: Mapping[str, TableDescription], tables: Mapping[str, TableDescription]) -> None:
    """Raises StateError, naming the first difference, if one of `tables` differs from the one before. Both by name."""
    by_name = {name.lower(): (name, table) for name, table in before.items()}
    for name, table in tables.items():
        if old := by_name.get(name.lower()):
            _check_same(*old, name, table)


def declared(circuit: Dataflow) -> dict[str, TableSchema]:
    """The tables of the circuit, by name."""
    return {source.table.name: source.table for source in _sources(circuit)}


def forms_of(circuit: Dataflow) -> dict[str, Forms]:
    """By table in lower case, of those that were altered."""
    return {source.table.name.lower(): source.forms for source in _sources(circuit) if source.forms}


def _sources(circuit: Dataflow) -> list[TableInput]:
    return [node.operator for node in circuit.nodes if isinstance(node.operator, TableInput)]


def applied(notes: Notes, changed: Notes) -> dict[str, Json]:
    """The notes with the changed ones; None removes a note."""
    return {key: value for key, value in {**notes, **changed}.items() if value is not None}


def _described_arrangement(spec: ArrangementSpec, holds: tuple[str, ...]) -> ArrangementDescription:
    return ArrangementDescription(
        spec.columns, spec.weights, spec.partition, spec.view, spec.table, spec.replicated, holds, ephemeral=spec.ephemeral
    )


def _described_table(table: TableSchema, arrangement: str, forms: Forms) -> TableDescription:
    key = tuple(table.schema[i].name for i in table.key)
    return TableDescription(arrangement, table.schema.fields, key, isinstance(table, StreamSchema), forms)


def _described_view(name: str, spec: ArrangementSpec) -> ViewDescription:
    return ViewDescription(name, spec.shape.schema.fields, spec.order, spec.key)


def _check_same(old_name: str, old: TableDescription, name: str, new: TableDescription) -> None:
    if old.arrangement == new.arrangement:
        return
    raise StateError(
        f"table {name} differs from the table in the state: {_difference(old_name, old, name, new)}",
        expected="the columns, types, NOT NULL constraints and primary key that the table was created with",
        remedy=f"declare the table as it was, and ALTER TABLE to add, drop or rename columns; or rename the table; "
        f"or drop {old_name} first, in a separate step, and load it again",
    )


def _difference(old_name: str, old: TableDescription, name: str, new: TableDescription) -> str:
    """A description of the first difference."""
    if old.stream != new.stream:
        return f"it was a {old.kind} and is now a {new.kind}"
    if old_name != name:
        return f"its name was {old_name} and is now {name}"
    for was, now in zip(old.fields, new.fields, strict=False):
        if was.name != now.name:
            return f"the column {was.name} is now {now.name}"
        before, after = _typed(was), _typed(now)
        if before != after:
            return f"column {now.name} was {before} and is now {after}"
    shared = min(len(old.fields), len(new.fields))
    for fields, verb in ((old.fields[shared:], "is missing"), (new.fields[shared:], "is new")):
        if fields:
            return f"column {fields[0].name} {verb}"
    if old.key != new.key:
        return f"its primary key was {_keyed(old.key)} and is now {_keyed(new.key)}"
    return "another version of Deltic stored it"


def _typed(field: Field) -> str:
    return field.type.sql if field.nullable else f"{field.type.sql} NOT NULL"


def _keyed(key: tuple[str, ...]) -> str:
    return f"({', '.join(key)})" if key else "none"
