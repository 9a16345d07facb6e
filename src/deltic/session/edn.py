"""Stores of entities, attributes and values in a session: their tables as statements for the catalog, and their transactions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from deltic.connectors.fitting import fit
from deltic.connectors.frames import WEIGHT, change_frame
from deltic.errors import CatalogError, Span
from deltic.frontends.edn.kinds import decoded
from deltic.frontends.edn.read import read
from deltic.frontends.edn.schema import EdnAttribute, EdnSchema
from deltic.frontends.edn.transact import StoredDatom, transact
from deltic.frontends.edn.values import Keyword, LocatedForm, form_of
from deltic.frontends.statements import CreateTable, CreateView, Namespace, Statement
from deltic.plan.nodes import Plan, Table
from deltic.plan.signs import as_view
from deltic.schema import Op, TableSchema
from deltic.session.contents import Contents
from deltic.session.draft import Draft
from deltic.session.edn_load import check_unique, fact_rows
from deltic.session.transaction import PendingChanges
from deltic.session.view import View, rows_with

Prepare = Callable[[PendingChanges], Mapping[str, Any]]
"""Adds changes that depend on the last commit, and returns the notes of their tick."""


class Define(Protocol):
    """Applies statements to a draft of the catalog, and installs it with notes: all of them, or none."""

    def __call__(self, statements: Callable[[Draft], Iterable[Statement]], notes: Callable[[], Mapping[str, Any]] = dict, /) -> None: ...


FIRST_ENTITY: Final = 1
FIRST_BESIDE_TABLES: Final = 2**44
"""The first number of a new entity in a store with tables, whose keys are numbers of entities too: the first that Datomic has."""


@dataclass(frozen=True, slots=True)
class Datom:
    """A fact: an entity has a value of an attribute. tx: the epoch of the transaction; added: whether it adds or retracts the fact."""

    e: int
    a: Keyword
    v: Any
    tx: int | None = None
    added: bool = True


@dataclass(frozen=True, slots=True)
class EdnReport:
    """The result of a transaction. tx: its epoch. tempids: the entity of each temporary id."""

    tx: int
    tempids: Mapping[str | int, int]
    stored: tuple[StoredDatom, ...] = field(repr=False)

    @property
    def tx_data(self) -> tuple[Datom, ...]:
        """What it adds and retracts, in order."""
        return tuple(_shown(one, self.tx) for one in self.stored)


def edn_form(data: Any, name: str, *, names: bool = False) -> LocatedForm:
    """The form of a text, or of values of Python; names as in `form_of`. Raises SyntaxFailure, DataError."""
    return read(data, name) if isinstance(data, str) else form_of(data, names=names)


def store_statements(schema: EdnSchema, namespace: Namespace) -> Iterator[Statement]:
    """A table and an index for each attribute that the namespace lacks, and that is not a column. Raises CatalogError."""
    for attribute in schema.stored:
        table, relation = schema.table(attribute), namespace.relation(schema.table_name(attribute))
        span = attribute.span or Span(f":{attribute.name}", 0, len(attribute.name) + 1, "<schema>")
        if relation is None:
            yield CreateTable(table, False, span)
        elif relation != table:
            remedy = "give the store another name"
            raise CatalogError(f"{table.name} exists, and is not the table of :{attribute.name}", span=span, remedy=remedy)
        if namespace.relation(schema.index_name(attribute)) is None:
            yield index_view(schema.index_name(attribute), table, span)


def index_view(name: str, table: TableSchema, span: Span) -> CreateView:
    """The rows of a table as a view, which can be read."""

    def rebind(namespace: Namespace) -> Plan:
        relation = namespace.relation(table.name)
        assert relation == table, "a table is not replaced while a view reads it"
        return as_view(Table(table))

    return CreateView(name, as_view(Table(table)), True, False, False, rebind, span, (table.name,))


class EdnStore:
    """A store of entities, attributes and values, from `Session.edn_store`: each attribute of its schema is a table (e, v) of the session.

    Only transactions keep its constraints: rows that are inserted into the tables otherwise are not checked.
    """

    def __init__(
        self, schema: EdnSchema, contents: Contents, notes: Callable[[], Mapping[str, Any]], commit: Callable[[Prepare], int]
    ) -> None:
        """notes: those of the last commit. commit: commits what a function prepares as one tick, and returns its epoch."""
        self.schema, self._contents, self._notes, self._commit = schema, contents, notes, commit

    @property
    def name(self) -> str:
        """The name of the store."""
        return self.schema.store

    def transact(self, data: Any, *, name: str = "<transaction>") -> EdnReport:
        """One transaction, which is one tick: a vector of entity maps and operations, as a text in EDN or as values of Python.

        Raises QueryError with the place in the text, which errors call `name`, and ConstraintViolation for what the facts do not
        permit; then nothing changes. O(datoms of the transaction · log of the store).
        """
        form = edn_form(data, name)
        done: list[Any] = []

        def prepare(pending: PendingChanges) -> Mapping[str, Any]:
            transacted = transact(form, self.schema, _Facts(self.schema, self._contents), self._next_entity)
            for attribute, rows in transacted.changes().items():
                table = self._table(attribute)
                pending.add_changes(table, change_frame(_frame(rows, table), table))
            done.append(transacted)
            return {self._note: {"next": transacted.next}}

        tx = self._commit(prepare)
        (transacted,) = done
        return EdnReport(tx, transacted.tempids, transacted.datoms)

    def load(self, facts: Mapping[str, Any]) -> int:
        """One transaction that adds facts given as columns, for large numbers of them; returns its epoch.

        facts: by the attribute, such as ":person/name", a frame with the entities `e`, which are numbers, and their values `v`, as other
        frames of the session. Values of keywords, symbols and characters, and those of any kind, are texts in EDN. A value of cardinality
        one replaces that before. Raises QueryError, FrameError, and ConstraintViolation; then nothing changes. O(facts), and of a unique
        attribute O(its facts in the store).
        """
        rows = {}
        for name, frame in facts.items():
            attribute = self.schema.stored_attribute(form_of(name, names=True))
            rows[attribute] = fact_rows(frame, attribute, self._table(attribute))

        def prepare(pending: PendingChanges) -> Mapping[str, Any]:
            greatest = self._next_entity - 1
            for attribute, table in rows.items():
                if attribute.unique is not None:
                    check_unique(table, View(self._contents, self.schema.index_name(attribute), None).to_arrow(), attribute)
                pending.add(self._table(attribute), Op.UPSERT, table)
                for column in table.columns[: 2 if attribute.is_ref else 1]:
                    greatest = max(greatest, pc.max(column).as_py() if len(column) else greatest)
            return {self._note: {"next": greatest + 1}}

        return self._commit(prepare)

    @property
    def _next_entity(self) -> int:
        """The least number of a new entity."""
        note = self._notes().get(self._note) or {"next": FIRST_ENTITY}
        has_tables = any(attribute.column is not None for attribute in self.schema.attributes.values())
        number: int = max(note["next"], FIRST_BESIDE_TABLES) if has_tables else note["next"]
        return number

    def _table(self, attribute: EdnAttribute) -> TableSchema:
        """Its table in the catalog."""
        return self._contents.definitions.catalog.tables[self.schema.table_name(attribute).lower()]

    def datoms(self) -> list[Datom]:
        """All facts of transactions, by attribute in the order of the schema; rows of tables are not among them."""
        datoms: list[Datom] = []
        for attribute in self.schema.stored:
            rows = View(self._contents, self.schema.index_name(attribute), None).rows()
            datoms += (Datom(row["e"], Keyword(attribute.name), decoded(row["v"], attribute.kind)) for row in rows)
        return datoms

    @property
    def _note(self) -> str:
        return f"edn {self.name}"


class _Facts:
    """What a store holds as of the last commit. Values and entities that have been fetched are read once."""

    def __init__(self, schema: EdnSchema, contents: Contents) -> None:
        self._schema, self._contents = schema, contents
        self._values: dict[tuple[str, int], list[Any]] = {}
        self._entities: dict[tuple[str, Any], list[int]] = {}

    def values(self, attribute: EdnAttribute, entity: int) -> Iterable[Any]:
        if (attribute.name, entity) not in self._values:
            self.fetch_values(attribute, (entity,))
        return self._values[attribute.name, entity]

    def entities(self, attribute: EdnAttribute, value: Any) -> Iterable[int]:
        if (attribute.name, value) not in self._entities:
            self.fetch_entities(attribute, (value,))
        return self._entities[attribute.name, value]

    def fetch_values(self, attribute: EdnAttribute, entities: Collection[int]) -> None:
        self._values |= {(attribute.name, entity): [] for entity in entities}
        for entity, value in self._pairs(attribute, "e", entities):
            self._values[attribute.name, entity].append(value)

    def fetch_entities(self, attribute: EdnAttribute, values: Collection[Any]) -> None:
        self._entities |= {(attribute.name, value): [] for value in values}
        for entity, value in self._pairs(attribute, "v", values):
            self._entities[attribute.name, value].append(entity)

    def _pairs(self, attribute: EdnAttribute, column: str, keys: Collection[Any]) -> Iterator[tuple[int, Any]]:
        """(entity, value) where a column has one of several values."""
        index = View(self._contents, self._schema.index_name(attribute), None)
        rows = rows_with(index, [column], [(key,) for key in keys])
        return zip(rows["e"].to_pylist(), rows["v"].to_pylist(), strict=True)


def _frame(rows: Mapping[tuple[int, Any], int], table: TableSchema) -> pa.Table:
    """The rows of an attribute's table with their weights."""
    entities, values = zip(*rows, strict=True)
    column = fit(list(values), table.schema[1], f"table {table.name}")
    return pa.table({"e": pa.array(entities, pa.int64()), "v": column, WEIGHT: pa.array(rows.values(), pa.int64())})


def _shown(one: StoredDatom, tx: int) -> Datom:
    return Datom(one.entity, Keyword(one.attribute.name), decoded(one.value, one.attribute.kind), tx, one.added)
