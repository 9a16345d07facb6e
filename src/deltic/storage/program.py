"""ProgramDescription: the program of a state, as the state describes it. Stored as JSON notes of the manifest; read and written only here.

Always: every table and view has its arrangement among the arrangements, its fields fill the arrangement's columns, and references to
columns and fields are valid. A state without a program has the empty description.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Final

from deltic.errors import DelticError, UnknownName
from deltic.schema import Field, Forms, Schema, TableForm, TableSchema, Type, folded
from deltic.storage.parsing import Json, Malformed, count, counts, items, mapping, member, reading, string, truth
from deltic.trace.encoding import Layout
from deltic.trace.identity import Identity

CLOCK: Final = "now_us"
"""The note of the time of the last tick that had one, in microseconds since 1970 UTC."""
REACHED: Final = "time reached"
"""The note of the time, in microseconds since 1970 UTC, that a session was advanced to before it defined the program of the state. If it is
later than CLOCK, it is the time of the next tick."""
ON_TIME: Final = "on time"
"""The note that no row waits in the state that is due at CLOCK or before. States of earlier versions lack it."""
FUNCTIONS: Final = "functions"
"""The note of the user functions that views call: by name, the digests of the code of the functions with that name."""
STRINGS: Final = "strings"
"""The note of the identity of strings."""
VIEWS: Final = "views"
"""The note of the views: by name, their arrangements and fields."""
WATERMARKS: Final = "watermarks"
"""The note of the watermark columns: by table in lower case, [column, its greatest value in microseconds]."""
LATENESS: Final = "lateness"
"""The note of watermarks by which rows are late: by table in lower case, [column, the watermark in microseconds]."""
QUERIES: Final = "queries"
"""The note of the views whose state depends on earlier ticks: by name in lower case, a hash of the query."""
PLANS: Final = "plans"
"""The note of the sizes of tables by which joins were ordered: by the fingerprint of a query, by table, [rows, {column: its values}], with
names in lower case."""
DEFAULTS: Final = "column_defaults"
"""The note of the defaults of columns: by table and by column, in lower case, the expression in SQL. It is there to be shown: those of a
program are what its statements say."""
MOST_US: Final = 1 << 62
Notes = Mapping[str, Json]
PlannedSizes = Mapping[str, tuple[int, Mapping[str, int]]]


@dataclass(frozen=True, slots=True)
class ArrangementDescription:
    """The state of one node: rows of `columns` words and `weights` weights.

    partition: the columns whose hash determines a row's shard; () is the home shard, None any shard. view, table: the relation whose
    content it is. replicated: every shard has all rows. holds: the table whose rows it holds, then the columns in sort order; () if the
    rows are computed. old: written by a version that did not record the partition. ephemeral: of a stream: empty between ticks.
    """

    columns: int
    weights: int
    partition: tuple[int, ...] | None = None
    view: str | None = None
    table: str | None = None
    replicated: bool = False
    holds: tuple[str, ...] = ()
    old: bool = False
    ephemeral: bool = False

    def json(self) -> Json:
        if self.old:
            return [self.columns, self.weights]
        described = {
            "columns": self.columns,
            "weights": self.weights,
            "partition": None if self.partition is None else list(self.partition),
            "view": self.view,
            "table": self.table,
        }
        replicated = {"replicated": True} if self.replicated else {}
        held = {"holds": list(self.holds)} if self.holds else {}
        return {**described, **replicated, **held, **({"ephemeral": True} if self.ephemeral else {})}

    @staticmethod
    def parse(entry: Json) -> ArrangementDescription:
        """Raises Malformed."""
        if isinstance(entry, list):
            if len(entry) != 2:
                raise Malformed("an arrangement: expected its columns and weights")
            columns, weights = counts(entry, "an arrangement")
            return ArrangementDescription(columns, weights, old=True)
        columns = count(member(entry, "columns"), "columns")
        partition = entry.get("partition")
        return ArrangementDescription(
            columns,
            count(member(entry, "weights"), "weights"),
            None if partition is None else counts(partition, "partition", columns - 1),
            _optional(entry, "view"),
            _optional(entry, "table"),
            truth(entry.get("replicated", False), "replicated"),
            tuple(string(name, "holds") for name in items(entry.get("holds", []), "holds")),
            "partition" not in entry,
            truth(entry.get("ephemeral", False), "ephemeral"),
        )


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table: its arrangement, its columns in the user's order, and the names of its key columns. stream: it is one.

    forms: of a table that was altered; () of others.
    """

    arrangement: str
    fields: tuple[Field, ...]
    key: tuple[str, ...] = ()
    stream: bool = False
    forms: Forms = ()

    @property
    def kind(self) -> str:
        return "stream" if self.stream else "table"

    def json(self) -> Json:
        described = {"arrangement": self.arrangement, "fields": [_described(f) for f in self.fields], "key": list(self.key)}
        forms = {"forms": [_described_form(form) for form in self.forms]} if self.forms else {}
        return {**described, **({"stream": True} if self.stream else {}), **forms}

    @staticmethod
    def parse(entry: Json) -> TableDescription:
        """Raises Malformed."""
        key = tuple(string(name, "key") for name in items(member(entry, "key"), "key"))
        fields = _fields(entry)
        if not set(key) <= {f.name for f in fields}:
            raise Malformed(f"key: {', '.join(key)}: expected columns of the table")
        stream = truth(entry.get("stream", False), "stream")
        forms = _forms(entry, fields, key)
        return TableDescription(string(member(entry, "arrangement"), "arrangement"), fields, key, stream, forms)

    @property
    def columns(self) -> tuple[Field, ...]:
        """In the user's order."""
        return self.fields


@dataclass(frozen=True, slots=True)
class ViewDescription:
    """A view: its arrangement, its fields as stored, the position of each in the user's schema, and the number of key fields."""

    arrangement: str
    fields: tuple[Field, ...]
    order: tuple[int, ...]
    key: int

    def json(self) -> Json:
        fields = [_described(f) for f in self.fields]
        return {"arrangement": self.arrangement, "fields": fields, "order": list(self.order), "key": self.key}

    @staticmethod
    def parse(entry: Json) -> ViewDescription:
        """Raises Malformed."""
        fields = _fields(entry)
        order = counts(member(entry, "order"), "order")
        if sorted(order) != list(range(len(fields))):
            raise Malformed(f"order: {list(order)} is not a permutation of {len(fields)} columns")
        arrangement = string(member(entry, "arrangement"), "arrangement")
        return ViewDescription(arrangement, fields, order, count(member(entry, "key"), "key", len(fields)))

    @property
    def columns(self) -> tuple[Field, ...]:
        """In the user's order."""
        return tuple(self.fields[self.order.index(i)] for i in range(len(self.order)))


@dataclass(frozen=True, slots=True)
class ProgramDescription:
    """arrangements: by id. tables, views: by name as the user wrote it. functions, now_us, reached_us, on_time, watermarks, lateness,
    queries, plans, defaults: see FUNCTIONS, CLOCK, REACHED, ON_TIME, WATERMARKS, LATENESS, QUERIES, PLANS, DEFAULTS.

    id: identifies the state permanently. hash_version: version of the hash functions of shards and string ids. identity: the key of the
    latter. spread: the number of shards under which state without a partition was filled. None, of queries and plans too: not recorded.
    """

    arrangements: Mapping[str, ArrangementDescription] = field(default_factory=dict)
    tables: Mapping[str, TableDescription] = field(default_factory=dict)
    views: Mapping[str, ViewDescription] = field(default_factory=dict)
    functions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    watermarks: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    lateness: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    now_us: int | None = None
    reached_us: int | None = None
    on_time: bool = False
    id: str | None = None
    hash_version: int | None = None
    identity: Identity | None = None
    spread: int | None = None
    queries: Mapping[str, str] | None = None
    plans: Mapping[str, PlannedSizes] | None = None
    defaults: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @staticmethod
    def of(notes: Notes) -> ProgramDescription:
        """The description in these notes. O(program). Raises CorruptState."""
        return ProgramDescription().after({name: notes[name] for name in _PARTS if name in notes})

    def after(self, changes: Notes) -> ProgramDescription:
        """The description after these changes of notes, where None removes a note. O(changes). Raises CorruptState."""
        changed = [name for name in _PARTS if name in changes] if changes else ()
        if not changed:
            return self
        with reading("the description of the program"):
            parts = {part: parse(changes[name]) for name in changed for part, parse in [_PARTS[name]]}
            after = replace(self, **parts)
            if parts.keys() & {"arrangements", "tables", "views"}:
                after._check()
            return after

    def notes(self) -> dict[str, Json]:
        """The notes that a new program sets."""
        return {
            "arrangements": {name: entry.json() for name, entry in self.arrangements.items()},
            "tables": {name: entry.json() for name, entry in self.tables.items()},
            "views": {name: entry.json() for name, entry in self.views.items()},
            FUNCTIONS: {name: list(digests) for name, digests in self.functions.items()} or None,
        }

    def default_of(self, table: str, column: str) -> str | None:
        """The default of a column of a table, in SQL; None without one."""
        return self.defaults.get(table.lower(), {}).get(column.lower())

    def view(self, name: str) -> tuple[str, ViewDescription]:
        """(the view's name as defined, the view), by a name in any case. Raises UnknownName, which lists the views."""
        names = {view.lower(): view for view in self.views}
        if (defined := names.get(folded(name, "view"))) is not None:
            return defined, self.views[defined]
        expected = f"one of {', '.join(self.views)}" if self.views else "a state with a materialized view"
        if (table := next((table for table in self.tables if table.lower() == name.lower()), None)) is not None:
            kind = self.tables[table].kind
            remedy = "deltic sql STATE -c 'SELECT …' reads the rows of a table beside the writer" if kind == "table" else None
            raise UnknownName(f"{table} is a {kind} of the state, not a view", expected=expected, remedy=remedy)
        near = get_close_matches(name.lower(), names, 1)
        raise UnknownName(
            f"the state has no view {name}",
            expected=expected,
            remedy=f"did you mean {names[near[0]]}?" if near else None,
        )

    def arrangement_of(self, view: str) -> str | None:
        """The arrangement of a view, by its name in any case; None if there is no such view."""
        return next((entry.arrangement for name, entry in self.views.items() if name.lower() == view.lower()), None)

    @property
    def has_streams(self) -> bool:
        """Whether a view is a stream, whose content is that of the last tick."""
        return any(self.arrangements[view.arrangement].ephemeral for view in self.views.values())

    @property
    def called(self) -> dict[str, tuple[str, str]]:
        """By arrangement: ("table", "stream" or "view", its name)."""
        return {
            **{entry.arrangement: (entry.kind, name) for name, entry in self.tables.items()},
            **{entry.arrangement: ("view", name) for name, entry in self.views.items()},
        }

    def _check(self) -> None:
        entries: Iterable[tuple[str, TableDescription | ViewDescription]] = [*self.tables.items(), *self.views.items()]
        for name, entry in entries:
            if (arrangement := self.arrangements.get(entry.arrangement)) is None:
                raise Malformed(f"{name}: the arrangement {entry.arrangement} is not described")
            width = Layout.of(Schema(entry.fields)).width
            if not arrangement.old and (arrangement.columns, arrangement.weights) != (width, 1):
                raise Malformed(f"{name}: {arrangement.columns} columns and {arrangement.weights} weights hold {width} words and a weight")


def _described(f: Field) -> Json:
    return [f.name, f.type.sql, f.nullable]


def _fields(entry: Json) -> tuple[Field, ...]:
    return tuple(_field(field_entry) for field_entry in items(member(entry, "fields"), "fields"))


def _field(entry: Json) -> Field:
    match entry:
        case [str(name), str(sql), bool(nullable)]:
            try:
                return Field(name, Type.parse(sql), nullable)
            except (DelticError, ValueError, AssertionError) as error:
                raise Malformed(f"column {name}: {error}") from None
    raise Malformed("fields: expected a name, a type, and whether it may be NULL")


def _described_form(form: TableForm) -> Json:
    table = form.table
    fields = [_described(field) for field in table.schema]
    return {"name": table.name, "fields": fields, "key": list(table.key), "numbers": list(form.numbers)}


def _forms(entry: Json, fields: tuple[Field, ...], key: tuple[str, ...]) -> Forms:
    forms = tuple(_form(form) for form in items(entry.get("forms", []), "forms"))
    own = [(form.table.schema.fields, tuple(form.table.schema.names[i] for i in form.table.key)) for form in forms[-1:]]
    if own not in ([], [(fields, key)]):
        raise Malformed("forms: the last one is not the table")
    types: dict[int, tuple[Type, bool]] = {}
    for form in forms:
        for number, column in zip(form.numbers, form.table.schema, strict=True):
            if types.setdefault(number, (column.type, column.nullable)) != (column.type, column.nullable):
                raise Malformed(f"forms: column {column.name} has two types")
    return forms


def _form(entry: Json) -> TableForm:
    fields = _fields(entry)
    key = counts(member(entry, "key"), "the key of a form", len(fields) - 1)
    numbers = counts(member(entry, "numbers"), "the numbers of columns")
    if len(numbers) != len(fields) or len(set(numbers)) != len(numbers):
        raise Malformed(f"numbers: {list(numbers)}: expected one for each of {len(fields)} columns")
    return TableForm(TableSchema(string(member(entry, "name"), "name"), Schema(fields), key), numbers)


def _optional(entry: Json, name: str) -> str | None:
    return None if entry.get(name) is None else string(entry[name], name)


def _entries(parse: Callable[[Json], Any], what: str) -> Callable[[Json], Mapping[str, Any]]:
    return lambda value: {name: parse(entry) for name, entry in mapping({} if value is None else value, what).items()}


def _digests(entry: Json) -> tuple[str, ...]:
    return tuple(string(digest, "a digest") for digest in items(entry, "digests"))


def _texts(entry: Json) -> Mapping[str, str]:
    return _entries(lambda text: string(text, "a default"), "defaults of columns")(entry)


def _hash(entry: Json) -> str:
    return string(entry, "a hash of a query")


def _planned(entry: Json) -> PlannedSizes:
    return _entries(_size, "sizes of tables")(entry)


def _size(entry: Json) -> tuple[int, Mapping[str, int]]:
    match entry:
        case [rows, values]:
            return count(rows, "rows"), _entries(lambda number: count(number, "values"), "values of columns")(values)
    raise Malformed("sizes of tables: expected rows, and values by column")


def _mark(entry: Json) -> tuple[str, int]:
    match entry:
        case [str(column), latest]:
            return column, _time(latest, f"the greatest {column}")
    raise Malformed("watermarks: expected a column and its greatest value")


def _late(entry: Json) -> tuple[str, int, int]:
    match entry:
        case [str(column), watermark, greatest]:
            return column, _word(watermark, f"the watermark of {column}"), _word(greatest, f"the greatest {column}")
    raise Malformed("lateness: expected a column, its watermark and its greatest value")


def _word(value: Json, what: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63:
        return value
    raise Malformed(f"{what}: expected an integer of 64 bits")


def _time(value: Json, what: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_US:
        return value
    raise Malformed(f"{what}: expected microseconds")


def _or_none(parse: Callable[[Json, str], Any], what: str) -> Callable[[Json], Any]:
    return lambda value: None if value is None else parse(value, what)


_PARTS: Final[Mapping[str, tuple[str, Callable[[Json], Any]]]] = {
    "arrangements": ("arrangements", _entries(ArrangementDescription.parse, "arrangements")),
    "tables": ("tables", _entries(TableDescription.parse, "tables")),
    VIEWS: ("views", _entries(ViewDescription.parse, "views")),
    FUNCTIONS: ("functions", _entries(_digests, FUNCTIONS)),
    WATERMARKS: ("watermarks", _entries(_mark, WATERMARKS)),
    LATENESS: ("lateness", _entries(_late, LATENESS)),
    CLOCK: ("now_us", _or_none(_time, CLOCK)),
    REACHED: ("reached_us", _or_none(_time, REACHED)),
    ON_TIME: ("on_time", lambda value: truth(value or False, ON_TIME)),
    "id": ("id", _or_none(string, "id")),
    "hash": ("hash_version", _or_none(count, "hash")),
    STRINGS: ("identity", lambda value: None if value is None else Identity.of_note(value)),
    "spread": ("spread", _or_none(count, "spread")),
    QUERIES: ("queries", lambda value: None if value is None else _entries(_hash, QUERIES)(value)),
    PLANS: ("plans", lambda value: None if value is None else _entries(_planned, PLANS)(value)),
    DEFAULTS: ("defaults", _entries(_texts, DEFAULTS)),
}
"""By note: the field that holds it, and its parser."""
PROGRAM_NOTES: Final = frozenset(_PARTS)
"""The notes that users cannot write."""
EMPTY: Final[Notes] = {"arrangements": {}, "tables": {}, "views": {}}
"""The notes of a state without a program."""
