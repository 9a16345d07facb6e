"""The stores of a session, and its queries in EDN over them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from deltic.errors import CatalogError, UnknownName
from deltic.frontends.edn.read import read
from deltic.frontends.edn.schema import EdnSchema, schema_of
from deltic.frontends.edn.table_attributes import with_tables, without_dropped
from deltic.frontends.edn.values import LocatedForm, form_of, write
from deltic.frontends.statements import AlterDefaults, AlterTable, Namespace, Statement
from deltic.schema import folded
from deltic.session.contents import Contents
from deltic.session.draft import Draft
from deltic.session.edn import Define, EdnStore, Prepare, edn_form, store_statements
from deltic.session.edn_view import EdnDefinition, EdnView
from deltic.session.view import View

SCHEMA_NOTE: Final = "edn schema "
"""The note of a store's schema has this before the store's name."""
TABLES_NOTE: Final = "edn tables "
"""Likewise that of its tables: {"tables": as of `edn_store`, "columns": what the schema adds to them, "attributes": all names in order};
null if it has none."""


def stored_tables(notes: Mapping[str, Any], store: str) -> Mapping[str, str]:
    """The tables of a store in a state, as of `edn_store`."""
    tables: Mapping[str, str] = (notes.get(f"{TABLES_NOTE}{store}") or {"tables": {}})["tables"]
    return tables


@dataclass(frozen=True, slots=True)
class _Stored:
    """A store in the state. columns: what the schema adds to those of its tables. names: of all its attributes, in order."""

    schema: EdnSchema
    columns: EdnSchema
    names: Sequence[str]

    def extended(self, declared: EdnSchema, tables: Mapping[str, str] | None, namespace: Namespace) -> EdnSchema:
        """With what is declared now. tables: None for those that the store has had."""
        tables = self.schema.tables if tables is None else tables
        present = with_tables(EdnSchema(self.schema.store, {}), tables, namespace).attributes
        columns = {name: self.columns.attributes.get(name, one) for name, one in present.items()}
        attributes = {**columns, **self.schema.attributes}
        ordered = {name: attributes[name] for name in self.names if name in attributes}
        return with_tables(EdnSchema(self.schema.store, {**ordered, **declared.attributes}), tables, namespace)


def stored_schemas(notes: Mapping[str, Any]) -> dict[str, str]:
    """The names of the stores in a state, and their schemas as texts."""
    return {name.removeprefix(SCHEMA_NOTE): text for name, text in notes.items() if name.startswith(SCHEMA_NOTE)}


def _read(store: str, text: str) -> EdnSchema:
    return EdnSchema(store, {}) if text == "{}" else schema_of(store, read(text, "<schema>"))


def _name_of(
    query: LocatedForm, rules: LocatedForm | None, schema: EdnSchema, kinds: Mapping[str, str], values: Sequence[LocatedForm]
) -> str:
    """A name that the same query over the same attributes has in every session. kinds, values: of inputs."""
    attributes = sorted((one.name, write(one.options), one.column.table if one.column else "") for one in schema.attributes.values())
    texts = [write(one) for one in (query, *(() if rules is None else (rules,)))]
    meaning = (schema.store.lower(), attributes, texts, sorted(kinds.items()), [write(one) for one in values])
    return f"query {hashlib.sha256(repr(meaning).encode()).hexdigest()[:16]}"


class EdnStores:
    """The stores by their names in lower case."""

    def __init__(
        self,
        contents: Contents,
        notes: Callable[[], Mapping[str, Any]],
        define: Define,
        commit: Callable[[Prepare], int],
        view: Callable[[str], View],
    ) -> None:
        """notes, commit: as of EdnStore. view: returns a view by its name."""
        self._contents, self._notes, self._define, self._commit, self._view = contents, notes, define, commit, view
        self._stores: dict[str, EdnStore] = {}

    def open(self, name: str, schema: Any, tables: Mapping[str, str] | None, text_name: str) -> EdnStore:
        """See `Session.edn_store`."""
        key = folded(name, "store")
        stored = self._stored(name)
        is_known = bool(tables) or stored is not None or key in self._stores
        declared = EdnSchema(name, {}) if schema is None and is_known else schema_of(name, edn_form(schema or {}, text_name, names=True))

        def statements(draft: Draft) -> Iterator[Statement]:
            nonlocal declared
            before = without_dropped(self._stores[key].schema, draft) if key in self._stores else None
            if before is None and stored is not None:
                declared = stored.extended(declared, tables, draft)
            else:
                declared = with_tables(declared, tables or {}, draft)
            if before is not None:
                declared = before.extended(declared)
            return store_statements(declared, draft, before)

        self._define(statements, lambda: self._schema_notes(declared))
        store = self._stores.setdefault(key, EdnStore(declared, self._contents, self._notes, self._commit))
        store.schema = declared
        return store

    def _stored(self, name: str) -> _Stored | None:
        """A store in the state."""
        texts = {store.lower(): (store, text) for store, text in stored_schemas(self._notes()).items()}
        if name.lower() not in texts:
            return None
        store, text = texts[name.lower()]
        schema, kept = _read(store, text), self._notes().get(f"{TABLES_NOTE}{store}")
        if kept is None:
            return _Stored(schema, EdnSchema(store, {}), tuple(schema.attributes)) if schema.attributes else None
        return _Stored(replace(schema, tables=kept["tables"]), _read(store, kept["columns"]), kept["attributes"])

    def _schema_notes(self, schema: EdnSchema) -> dict[str, Any]:
        """The notes of a store's schema."""
        notes: dict[str, Any] = {f"{SCHEMA_NOTE}{schema.store}": schema.text}
        if schema.tables:
            kept = {"tables": dict(schema.tables), "columns": schema.columns_text, "attributes": list(schema.attributes)}
            return {**notes, f"{TABLES_NOTE}{schema.store}": kept}
        return {**notes, f"{TABLES_NOTE}{schema.store}": None} if f"{TABLES_NOTE}{schema.store}" in self._notes() else notes

    def check(self, statement: object) -> None:
        """Raises CatalogError for ALTER TABLE of the table of an attribute, whose columns are those of a store."""
        if not isinstance(statement, AlterTable | AlterDefaults):
            return
        for store in self._stores.values():
            if statement.name.lower() in {store.schema.table_name(attribute).lower() for attribute in store.schema.stored}:
                message = f"table {statement.name} is that of an attribute of the store {store.name}, and cannot be altered"
                raise CatalogError(message, span=statement.span, remedy="give the store another attribute")

    def store(self, name: str | None) -> EdnStore:
        """A store by its name; None is the only one. Raises UnknownName."""
        if name is None and len(self._stores) == 1:
            return next(iter(self._stores.values()))
        store = None if name is None else self._stores.get(folded(name, "store"))
        if store is None:
            names = [one.name for one in self._stores.values()]
            what = "the session has no store, or several" if name is None else f"there is no store {name}"
            raise UnknownName(what, expected=f"one of {', '.join(names)}" if names else "a store of edn_store")
        return store

    def query(
        self, query: Any, name: str | None, store: str | None, rules: Any, inputs: Sequence[Any], input_kinds: Mapping[str, str] | None
    ) -> EdnView:
        """See `Session.edn`."""
        form, given = edn_form(query, "<query>"), None if rules is None else edn_form(rules, "<rules>")
        schema = without_dropped(self.store(store).schema, self._contents.definitions.catalog)
        values, declared = list(map(form_of, inputs)), input_kinds or {}
        view = _name_of(form, given, schema, declared, values) if name is None else name
        folded(view, "view")
        definition = EdnDefinition.of(view, form, given, schema, declared, values)
        self._define(lambda draft: () if name is None and draft.relation(view) is not None else definition.statements(lambda: draft))
        kinds = definition.bound(self._contents.definitions.catalog).kinds
        answer = EdnView(self._view(view), definition, kinds, self._commit, self._define)
        if values:
            answer.set_inputs(*values)
        return answer
