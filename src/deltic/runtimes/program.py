"""What a state knows about the program that it is of, as notes: its arrangements, tables and views; and which changes of it may not be."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from deltic.circuit.functions import functions_of
from deltic.circuit.nodes import Circuit
from deltic.circuit.operator import Tick
from deltic.circuit.operators.table import TableInput
from deltic.errors import DataError, StateError
from deltic.schema import Field, TableSchema

Json = Any
Notes = Mapping[str, Json]

EMPTY: Notes = {"arrangements": {}, "tables": {}, "views": {}}
"""The notes of a state without a program."""


FUNCTIONS = "functions"
"""The note of the users' functions that views are computed by: their names, and for each the digests of the code of those so called."""

CLOCK = "now_us"
"""The note with the time of the last tick that had one, in microseconds since 1970 UTC."""

WATERMARKS = "watermarks"
"""The note of the columns that tell the time: by table in lower case, [column, its greatest value in microseconds]."""

OWN: Final = frozenset((*EMPTY, FUNCTIONS, CLOCK, WATERMARKS, "hash", "id", "strings", "spread"))
"""The notes that only Deltic writes."""


def checked(notes: Notes) -> Notes:
    """Notes from outside. Raises DataError if one is Deltic's own, or is no JSON."""
    for name, note in notes.items():
        if name in OWN:
            raise DataError(
                f"the note {name!r} is Deltic's own", remedy="give it another name, such as one that begins with your program's"
            )
        try:
            json.dumps(note, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"the note {name!r} is no JSON: {error}", expected="None, booleans, numbers, strings, lists and dicts"
            ) from None
    return notes


def next_tick(epoch: int, known: Notes, notes: Notes) -> Tick:
    """The tick after `epoch`, at the time that its notes say, or at that of the tick before. known: the notes before it."""
    before = known.get(CLOCK, 0)
    now = notes.get(CLOCK, before)
    assert now >= before, "the time goes back"
    return Tick(epoch + 1, now, before_us=before)


def backfill(epoch: int, known: Notes, notes: Notes, fresh: frozenset[str]) -> Tick:
    """The tick that fills `fresh`, at the time of the tick before; only where there was none do its notes say the time."""
    now = known.get(CLOCK, notes.get(CLOCK, 0))
    assert notes.get(CLOCK, now) == now
    return Tick(epoch + 1, now, fresh, now)


def described(circuit: Circuit, known: Notes, dropped: Collection[str] = ()) -> dict[str, Json]:
    """The notes of a state with the program `circuit`.

    known: those that it has. Its tables that are not in the circuit are kept, but for those that `dropped` names in any case.
    Raises StateError, naming the first difference, if a table of the circuit is not as the state has it.
    """
    gone = {name.lower() for name in dropped}
    before = {name: entry for name, entry in known["tables"].items() if name.lower() not in gone}
    tables = {name: _described_table(table, circuit.tables[name]) for name, table in declared(circuit).items()}
    check_tables(before, tables)
    mine = {name.lower() for name in tables}
    kept = {name: entry for name, entry in before.items() if name.lower() not in mine}
    return {
        "arrangements": {
            **{entry["arrangement"]: known["arrangements"][entry["arrangement"]] for entry in kept.values()},
            **{name: _described_arrangement(circuit, name) for name in circuit.arrangements},
        },
        "tables": {**kept, **tables},
        "views": {view: _described_view(circuit, name) for view, name in circuit.views.items()},
        FUNCTIONS: functions_of(circuit) or None,
    }


def check_tables(before: Notes, tables: Notes) -> None:
    """Raises StateError, naming the first difference, if one of `tables` is not as it was before. Both by name, as in the note `tables`."""
    known = {name.lower(): (name, entry) for name, entry in before.items()}
    for name, entry in tables.items():
        if found := known.get(name.lower()):
            _check_same(*found, name, entry)


def declared(circuit: Circuit) -> dict[str, TableSchema]:
    """The tables by name."""
    found = (node.operator.table for node in circuit.nodes if isinstance(node.operator, TableInput))
    return {table.name: table for table in found}


def applied(notes: Notes, changed: Notes) -> dict[str, Json]:
    """The notes with the changed ones; None removes one."""
    return {key: value for key, value in {**notes, **changed}.items() if value is not None}


def _described_arrangement(circuit: Circuit, name: str) -> dict[str, Json]:
    spec = circuit.arrangements[name]
    partition = None if spec.partition is None else list(spec.partition)
    described: dict[str, Json] = {"columns": spec.columns, "weights": spec.weights, "partition": partition}
    return {**described, "view": spec.view, "table": spec.table, **({"replicated": True} if spec.replicated else {})}


def _described_table(table: TableSchema, arrangement: str) -> dict[str, Json]:
    key = [table.schema[i].name for i in table.key]
    return {"arrangement": arrangement, "fields": [_described_field(f) for f in table.schema], "key": key}


def _described_view(circuit: Circuit, name: str) -> dict[str, Json]:
    spec = circuit.arrangements[name]
    fields = [_described_field(f) for f in spec.shape.schema]
    return {"arrangement": name, "fields": fields, "order": list(spec.order), "key": spec.key}


def _described_field(field: Field) -> list[Json]:
    return [field.name, field.type.sql, field.nullable]


def _check_same(old_name: str, old: Json, name: str, new: Json) -> None:
    if old["arrangement"] == new["arrangement"]:
        return
    raise StateError(
        f"table {name} is not as the state has it: {_difference(old_name, old, name, new)}",
        expected="the columns, types, NOT NULLs and key that the table was made with",
        remedy=f"declare it as it was, or give it another name; or drop {old_name} in a step of its own and load it again",
    )


def _difference(old_name: str, old: Json, name: str, new: Json) -> str:
    """The first difference, in words."""
    if old_name != name:
        return f"it was called {old_name} and is now called {name}"
    for (was, was_type, was_nullable), (now, now_type, now_nullable) in zip(old["fields"], new["fields"], strict=False):
        if was != now:
            return f"a column was {was} and is now {now}"
        before, after = _typed(was_type, was_nullable), _typed(now_type, now_nullable)
        if before != after:
            return f"column {now} was {before} and is now {after}"
    count = min(len(old["fields"]), len(new["fields"]))
    for entries, verb in ((old["fields"][count:], "is gone"), (new["fields"][count:], "is new")):
        if entries:
            return f"column {entries[0][0]} {verb}"
    if old["key"] != new["key"]:
        return f"its primary key was {_keyed(old['key'])} and is now {_keyed(new['key'])}"
    return "it was stored by another version of Deltic"


def _typed(type_: str, nullable: bool) -> str:
    return type_ if nullable else f"{type_} NOT NULL"


def _keyed(key: list[str]) -> str:
    return f"({', '.join(key)})" if key else "none"
