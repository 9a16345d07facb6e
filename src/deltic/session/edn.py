"""Stores of entities, attributes and values in a session: their tables as statements for the catalog, and their transactions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pyarrow.compute as pc

from deltic.errors import CatalogError, Span
from deltic.frontends.edn.bind_query import bind_facts
from deltic.frontends.edn.kinds import decoded
from deltic.frontends.edn.read import read
from deltic.frontends.edn.schema import EdnAttribute, EdnSchema
from deltic.frontends.edn.transact import transact
from deltic.frontends.edn.transaction_facts import StoredDatom
from deltic.frontends.edn.values import Keyword, LocatedForm, form_of
from deltic.frontends.statements import BoundView, CreateTable, CreateView, Namespace, Rebind, Statement
from deltic.schema import Op, TableSchema
from deltic.session.contents import Contents
from deltic.session.draft import Draft
from deltic.session.edn_load import check_unique, fact_rows
from deltic.session.stored_table import StoredTable
from deltic.session.transaction import PendingChanges

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


def store_statements(schema: EdnSchema, namespace: Namespace, before: EdnSchema | None = None) -> Iterator[Statement]:
    """A table for each attribute that the namespace lacks, and that is not a column, and the plain view of all facts.

    namespace: has what was yielded so far. before: the store's schema, if the session has it. Raises CatalogError.
    """
    for attribute in schema.stored:
        table, relation = schema.table(attribute), namespace.relation(schema.table_name(attribute))
        span = attribute.span or Span(f":{attribute.name}", 0, len(attribute.name) + 1, "<schema>")
        if relation is None:
            yield CreateTable(table, False, span)
        elif relation != table:
            remedy = "give the store another name"
            raise CatalogError(f"{table.name} exists, and is not the table of :{attribute.name}", span=span, remedy=remedy)
    yield from _facts_view(schema, namespace, before)


def _facts_view(schema: EdnSchema, namespace: Namespace, before: EdnSchema | None) -> Iterator[Statement]:
    """The view that has the store's name, where it is not the one that there is. Raises CatalogError."""
    present = namespace.relation(schema.store)
    if present is not None and (before is None or present != bind_facts(before, namespace).plan):
        raise CatalogError(f"{schema.store} exists, and is not the view of the store's facts", remedy="give the store another name")
    facts = bind_facts(schema, namespace)
    if present != facts.plan:
        span = Span(schema.store, 0, len(schema.store), "<schema>")
        yield CreateView(schema.store, facts.plan, False, present is not None, False, _facts_rebinding(schema), span, facts.reads)


def _facts_rebinding(schema: EdnSchema) -> Rebind:
    def rebind(namespace: Namespace) -> BoundView:
        facts = bind_facts(schema, namespace)
        return BoundView(facts.plan, facts.reads)

    return rebind


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
        given = data if type(data) in (list, tuple) else edn_form(data, name)
        done: list[Any] = []

        def prepare(pending: PendingChanges) -> Mapping[str, Any]:
            transacted = transact(given, self.schema, _Facts(self.schema, self._contents), self._next_entity)
            for attribute, rows in transacted.changes().items():
                entities, values = zip(*rows, strict=True)
                pending.add_weighted(self._table(self.schema.attributes[attribute]), (entities, values), [*rows.values()])
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
                    check_unique(table, self._stored(attribute).to_arrow(), attribute)
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
            rows = self._stored(attribute).to_arrow().to_pylist()
            datoms += (Datom(row["e"], Keyword(attribute.name), decoded(row["v"], attribute.kind)) for row in rows)
        return datoms

    def _stored(self, attribute: EdnAttribute) -> StoredTable:
        return StoredTable(self._contents, self.schema.table_name(attribute))

    @property
    def _note(self) -> str:
        return f"edn {self.name}"


class _Facts:
    """What a store holds as of the last commit."""

    def __init__(self, schema: EdnSchema, contents: Contents) -> None:
        self._schema, self._contents = schema, contents

    def values(self, attribute: EdnAttribute, entities: Collection[int]) -> Mapping[int, Sequence[Any]]:
        values: dict[int, list[Any]] = {}
        for entity, value in self._pairs(attribute, ("e",), [(entity,) for entity in entities]):
            values.setdefault(entity, []).append(value)
        return values

    def entities(self, attribute: EdnAttribute, values: Collection[Any]) -> Mapping[Any, Sequence[int]]:
        entities: dict[Any, list[int]] = {}
        for entity, value in self._pairs(attribute, ("v",), [(value,) for value in values]):
            entities.setdefault(value, []).append(entity)
        return entities

    def present(self, attribute: EdnAttribute, pairs: Collection[tuple[int, Any]]) -> Set[tuple[int, Any]]:
        return set(self._pairs(attribute, ("e", "v"), pairs))

    def _pairs(self, attribute: EdnAttribute, columns: Sequence[str], keys: Collection[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """(entity, value) where columns have one of several values."""
        entities, values = StoredTable(self._contents, self._schema.table_name(attribute)).values_with(columns, keys)
        return zip(entities, values, strict=True)


def _shown(one: StoredDatom, tx: int) -> Datom:
    return Datom(one.entity, Keyword(one.attribute.name), decoded(one.value, one.attribute.kind), tx, one.added)
