"""Stores whose attributes are columns of tables."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import CatalogError, TypeMismatch, UnknownName, Unsupported
from deltic.session.edn import FIRST_BESIDE_TABLES, EdnStore
from edn_oracle import Datoms, Facts, answer, untyped
from edn_programs import COMPONENTS, MANY, REFS, SCHEMA, UNIQUE
from edn_stores import load, transact
from edn_views import contents, define, shown
from parts import slow
from seeds import rotating

USERS = "CREATE TABLE users (id INT PRIMARY KEY, name STRING, age INT, height FLOAT, boss BIGINT, born DATE)"
REFERENCES = "{:person/boss {:db/valueType :db.type/ref} :tag {:db/valueType :db.type/keyword :db/cardinality :db.cardinality/many}}"


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        session.sql(USERS)
        yield session


@pytest.fixture
def store(session: deltic.Session) -> EdnStore:
    store = session.edn_store("facts", schema=REFERENCES, tables={"person": "users"})
    names = ("id", "name", "age", "height", "boss")
    rows = [(1, "Ann", 40, 1.5, None), (2, "Bob", 30, None, 1), (3, "Cat", 20, 1.75, 2)]
    session.apply({"users": [{**dict(zip(names, row, strict=True)), "born": None, "_op": "upsert"} for row in rows]})
    return store


def test_rows_are_facts(session: deltic.Session, store: EdnStore) -> None:
    names = session.edn("[:find ?n ?m :where [?e :person/name ?n] [?e :person/boss ?b] [?b :person/name ?m]]", name="bosses")
    without = session.edn("[:find [?n ...] :where [?e :person/name ?n] [(missing? $ ?e :person/height)]]", name="without")
    typed = session.edn("[:find ?a ?v :where [1 ?a ?v]]", name="typed")
    tree = session.edn('[:find (pull ?e [:person/name {:person/_boss ...}]) . :where [?e :person/name "Ann"]]', name="tree")
    assert names.result() == [("Bob", "Ann"), ("Cat", "Bob")] and without.result() == ["Bob"]
    assert {a.name: v for a, v in typed.result()} == {"person/id": 1, "person/name": "Ann", "person/age": 40, "person/height": 1.5}
    assert tree.result() == {":person/name": "Ann", ":person/_boss": [{":person/name": "Bob", ":person/_boss": [{":person/name": "Cat"}]}]}
    with session.transaction() as tx:
        tx.delete("users", [{"id": 2}])
    assert names.result() == [] and tree.result() == {":person/name": "Ann"}
    assert [name for name in session.tables if name.startswith("facts/")] == ["facts/tag"]


def test_facts_beside_rows(session: deltic.Session, store: EdnStore) -> None:
    report = store.transact('[{:db/id 3 :tag [:a :b]} {:db/id "new" :tag :a}]')
    assert report.tempids == {"new": FIRST_BESIDE_TABLES}
    view = session.edn("[:find ?n ?t :where [?e :person/name ?n] [?e :tag ?t]]", name="v")
    assert [(name, tag.name) for name, tag in view.result()] == [("Cat", "a"), ("Cat", "b")]
    store.transact("[[:db/retractEntity 3]]")
    assert view.result() == [] and store.datoms()[0].e == FIRST_BESIDE_TABLES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[:db/add 1 :person/age 3]]", ":person/age is a column of the table users"),
        ("[{:db/id 1 :person/name 3}]", ":person/name is a column of the table users"),
        ("[{:tag :a :person/_boss 3}]", ":person/boss is a column of the table users"),
    ],
)
def test_columns_are_not_changed_by_transactions(store: EdnStore, text: str, message: str) -> None:
    with pytest.raises(Unsupported) as raised:
        store.transact(text)
    assert message in str(raised.value) and raised.value.span is not None


def test_tables_are_checked(session: deltic.Session) -> None:
    session.sql("CREATE TABLE pairs (a INT, b INT, PRIMARY KEY (a, b)); CREATE TABLE named (a STRING PRIMARY KEY)")
    for table in ("pairs", "named"):
        with pytest.raises(CatalogError, match=f"the rows of {table} are not entities"):
            session.edn_store("facts", tables={"x": table})
    with pytest.raises(UnknownName, match="there is no table user"):
        session.edn_store("facts", tables={"x": "user"})
    with pytest.raises(TypeMismatch, match="has values of kind long"):
        session.edn_store("facts", tables={"x": "users"}, schema="{:x/age {:db/valueType :db.type/string}}")
    with pytest.raises(CatalogError, match="has one value"):
        session.edn_store("facts", tables={"x": "users"}, schema="{:x/age {:db/cardinality :db.cardinality/many}}")


def test_columns_of_other_types_are_refused_by_name(session: deltic.Session) -> None:
    session.sql("CREATE TABLE births (id BIGINT PRIMARY KEY, born DATE, place STRING)")
    with pytest.raises(Unsupported, match="the column of :birth/born is of type DATE"):
        session.edn_store("facts", tables={"birth": "births"}, schema="{:birth/born {:db/valueType :db.type/instant}}")
    session.edn_store("facts", tables={"birth": "births"})
    with pytest.raises(Unsupported, match=":birth/born is a column of type DATE, whose values are no facts") as raised:
        session.edn("[:find ?b :where [_ :birth/born ?b]]", name="v")
    assert raised.value.span is not None and raised.value.span.text == "[:find ?b :where [_ :birth/born ?b]]"


STAFF = "CREATE TABLE staff (id BIGINT PRIMARY KEY, a STRING, b STRING)"
ALL = "[:find ?a ?v :where [_ ?a ?v]]"


def _facts(session: deltic.Session) -> dict[str, Any]:
    return {attribute.name: value for attribute, value in session.edn(ALL).result()}


def test_columns_are_those_of_the_altered_table(session: deltic.Session) -> None:
    session.sql(f"{STAFF}; INSERT INTO staff VALUES (1, 'A', 'B')")
    session.edn_store("c", tables={"staff": "staff"})
    for change in ("DROP COLUMN a", "RENAME COLUMN a TO z"):
        with pytest.raises(CatalogError, match="column a of table staff is read by view c"):
            session.sql(f"ALTER TABLE staff {change}")
    session.sql("ALTER TABLE staff ADD COLUMN z STRING DEFAULT 'Z'")
    assert session.edn("[:find ?n . :where [_ :staff/b ?n]]").result() == "B"
    session.edn_store("c", tables={"staff": "staff"})
    assert _facts(session) == {"staff/id": 1, "staff/a": "A", "staff/b": "B", "staff/z": "Z"}
    with pytest.raises(CatalogError, match="column z of table staff is read by views c, query "):
        session.sql("ALTER TABLE staff DROP COLUMN z")


def test_columns_that_were_dropped_are_no_attributes(session: deltic.Session) -> None:
    session.sql(f"{STAFF}; INSERT INTO staff VALUES (1, 'A', 'B')")
    session.edn_store("c", tables={"staff": "staff"})
    session.sql("DROP VIEW c; ALTER TABLE staff ADD COLUMN z STRING DEFAULT 'Z'; ALTER TABLE staff DROP COLUMN a")
    assert session.edn("[:find ?n . :where [_ :staff/b ?n]]").result() == "B"
    with pytest.raises(UnknownName, match="the store c has no attribute :staff/a"):
        session.edn("[:find ?n . :where [_ :staff/a ?n]]")
    assert _facts(session) == {"staff/id": 1, "staff/b": "B"}
    session.edn_store("c", tables={"staff": "staff"})
    assert _facts(session) == {"staff/id": 1, "staff/b": "B", "staff/z": "Z"}


def test_a_store_in_a_state_has_its_tables(tmp_path: Path) -> None:
    """And what its schema adds to their columns, of those that there are."""
    state = tmp_path / "state"
    with deltic.Session(state=state) as session:
        session.sql(f"{STAFF}; INSERT INTO staff VALUES (1, 'A', 'B')")
        schema = "{:staff/id {:db/valueType :db.type/ref} :x/n {:db/valueType :db.type/long} :staff/a {:db/unique :db.unique/identity}}"
        attributes = session.edn_store("c", schema=schema, tables={"staff": "staff"}).schema.attributes
        assert session.edn_store("c").schema.attributes == attributes
        session.edn_store("tables", tables={"staff": "staff"})
        found = session.edn(ALL, store="c").result()
        assert list(session.edn_store("tables").schema.attributes) == ["staff/id", "staff/a", "staff/b"]
    with deltic.Session(state=state) as session:
        with pytest.raises(UnknownName, match="there is no table staff"):
            session.edn_store("c")
        session.sql(STAFF)
        assert list(session.edn_store("c").schema.attributes.items()) == list(attributes.items())
        assert list(session.edn_store("tables").schema.attributes) == ["staff/id", "staff/a", "staff/b"]
        assert session.edn(ALL, store="c").result() == session.edn(ALL, store="tables").result() == found != []
    with deltic.Session(state=state) as session:
        session.sql(f"{STAFF}; ALTER TABLE staff DROP COLUMN a")
        assert list(session.edn_store("c").schema.attributes) == ["staff/id", "x/n", "staff/b"]
    with deltic.Session(state=state) as session:
        assert list(session.edn_store("c", tables={}).schema.attributes) == ["x/n"]
        assert list(session.edn_store("c").schema.attributes) == ["x/n"]
    with deltic.Session(state=state) as session:
        assert list(session.edn_store("c").schema.attributes) == ["x/n"]


# random stores, some of whose attributes are columns

COLUMNS = {"n": "BIGINT", "d": "DOUBLE", "s": "STRING", "b": "BOOLEAN", "r": "BIGINT"}
ROWS = f"CREATE TABLE rows (id BIGINT PRIMARY KEY, {', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})"
_NAME = re.compile(rf":({'|'.join(COLUMNS)})(?=[\s)\]])")


def renamed(datoms: Datoms) -> Datoms:
    """The same facts, with those of columns as a store with tables has them."""
    facts = {(entity, f"row/{name}" if name in COLUMNS else name, value) for entity, name, value in datoms}
    return facts | {(entity, "row/id", ("long", entity)) for entity, name, _ in datoms if name in COLUMNS}


def rows(datoms: Datoms) -> dict[int, dict[str, Any]]:
    """The rows of the table."""
    made: dict[int, dict[str, Any]] = {}
    for entity, name, (_, value) in datoms:
        if name in COLUMNS:
            made.setdefault(entity, {"id": entity, **dict.fromkeys(COLUMNS)})[name] = value
    return made


@pytest.mark.parametrize("seed", [0, *slow(*rotating(15))])
def test_random_queries_over_tables(seed: int, request: pytest.FixtureRequest) -> None:
    few = request.node.get_closest_marker("slow") is None
    rng, facts = random.Random(seed), Facts(MANY, REFS, UNIQUE, COMPONENTS)
    with deltic.Session() as session, deltic.Session() as plain:
        source = plain.edn_store("facts", schema=SCHEMA)
        session.sql(ROWS)
        declared = "".join(line for line in SCHEMA.splitlines(keepends=True) if line[2:3] not in COLUMNS).replace("\n{", "{")
        declared = re.sub(r"^\s*\{?", "{:row/r {:db/valueType :db.type/ref} ", declared)
        store = session.edn_store("facts", schema=declared, tables={"row": "rows"})
        load(source, facts, rng, 40)
        texts = define(plain, seed, 3 if few else 30)
        views = {}
        for name, (_, query, rules) in texts.items():
            texts_of = [None if text is None else _NAME.sub(r":row/\1", text) for text in (query, rules)]
            views[name] = session.edn(texts_of[0], name=name, rules=texts_of[1]), *texts_of
        before: tuple[dict[int, Any], set[Any]] = {}, set()
        for _ in range(2 if few else 5):
            now = rows(facts.datoms), {one for one in facts.datoms if one[1] not in COLUMNS}
            changes = [{**row, "_op": "upsert"} for row in now[0].values()]
            changes += [{**row, "_op": "delete"} for entity, row in before[0].items() if entity not in now[0]]
            session.apply({"rows": changes})
            own = [[":db/retract", e, f":{a}", untyped(v)] for e, a, v in before[1] - now[1]]
            store.transact([*own, *([":db/add", e, f":{a}", untyped(v)] for e, a, v in now[1])])
            before = now
            for view, query, rules in views.values():
                assert query is not None
                assert contents(view) == shown(answer(query, renamed(facts.datoms), rules=rules)), query
            transact(source, facts, rng, rng.choice([1, 5]))


def test_a_restart_keeps_tables(tmp_path: Path) -> None:
    for i in range(2):
        with deltic.Session(state=tmp_path / "state") as session:
            session.sql(USERS)
            store = session.edn_store("facts", schema=REFERENCES, tables={"person": "users"})
            view = session.edn("[:find ?n . :where [?e :person/name ?n] [?e :tag :a]]", name="v")
            if i == 0:
                session.apply({"users": [{"id": 1, "name": "Ann", "age": 1, "height": None, "boss": None, "born": None, "_op": "upsert"}]})
                store.transact("[[:db/add 1 :tag :a]]")
            assert view.result() == "Ann"


def test_the_tables_of_a_store_are_not_altered(session: deltic.Session, store: EdnStore) -> None:
    for change in ("ADD COLUMN k INT", "RENAME COLUMN v TO w", "DROP COLUMN v"):
        with pytest.raises(CatalogError, match="is that of an attribute of the store facts, and cannot be altered") as caught:
            session.sql(f"ALTER TABLE `FACTS/tag` {change}")
        assert caught.value.span is not None
    store.transact("[[:db/add 1 :tag :new]]")
    assert session.edn("[:find [?t ...] :where [1 :tag ?t]]", name="tags").result() != []


def test_a_table_whose_columns_are_attributes_gets_another_column(session: deltic.Session, store: EdnStore) -> None:
    names = session.edn("[:find ?e ?n :where [?e :person/name ?n]]", name="names")
    session.sql("ALTER TABLE users ADD COLUMN city STRING DEFAULT 'Bern'")
    session.sql("INSERT INTO users VALUES (4, 'Dan', 50, NULL, NULL, NULL, 'Rome')")
    store.transact("[[:db/add 4 :tag :new]]")
    assert sorted(names.result()) == [(1, "Ann"), (2, "Bob"), (3, "Cat"), (4, "Dan")]
    assert session.query("SELECT city FROM users WHERE id > 2 ORDER BY id").rows() == [{"city": "Bern"}, {"city": "Rome"}]
    with pytest.raises(CatalogError, match="is read by view"):
        session.sql("ALTER TABLE users DROP COLUMN name")
