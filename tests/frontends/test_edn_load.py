"""Facts that are loaded from frames are those that a transaction would add, and the schema of a store is found in its state."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import deltic
from deltic.errors import ConstraintViolation, DataError, FrameError, SyntaxFailure, TypeMismatch, UnknownName
from deltic.frontends.edn.values import Char, form_of, write
from deltic.session.edn import EdnStore
from edn_oracle import Facts, untyped
from edn_programs import ATTRIBUTES, COMPONENTS, MANY, REFS, SCHEMA, UNIQUE
from edn_stores import facts, load, stored
from parts import slow
from seeds import rotating

TYPES = """
{:name {:db/valueType :db.type/string :db/unique :db.unique/identity}
 :aka {:db/valueType :db.type/string :db/cardinality :db.cardinality/many :db/unique :db.unique/value}
 :friend {:db/valueType :db.type/ref :db/cardinality :db.cardinality/many}
 :size {:db/valueType :db.type/double} :price {:db/valueType :db.type/bigdec} :big {:db/valueType :db.type/bigint}
 :born {:db/valueType :db.type/instant} :id {:db/valueType :db.type/uuid} :kind {:db/valueType :db.type/keyword} :any {}}
"""


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        session.edn_store("facts", schema=TYPES)
        yield session


@pytest.fixture
def store(session: deltic.Session) -> EdnStore:
    return session.edn_store("facts", schema="{:age {:db/valueType :db.type/long}}")


def frame(*facts: tuple[int, Any]) -> list[dict[str, Any]]:
    return [{"e": entity, "v": value} for entity, value in facts]


def test_frames_are_facts(session: deltic.Session, store: EdnStore) -> None:
    view = session.edn("[:find ?n ?m :where [?e :friend ?f] [?e :name ?n] [?f :name ?m]]", name="v")
    names = pa.table({"v": ["Ann", "Bob", "Cat"], "e": [1, 2, 3]})
    epoch = store.load({":name": names, ":friend": frame((1, 2), (2, 9), (1, 2)), ":age": frame((1, 30), (2, 31), (1, 32))})
    assert epoch == session.epoch and view.result() == [("Ann", "Bob")]
    assert {one for one in facts(store) if one[1] == "age"} == {(1, "age", 32), (2, "age", 31)}
    store.load({":age": frame((2, 33), (9, 1)), ":name": frame((1, "Al"), (7, "Ann"))})
    assert facts(store) >= {(2, "age", 33), (1, "age", 32), (1, "name", "Al"), (7, "name", "Ann")} and len(facts(store)) == 9
    assert store.transact('[{:db/id "new" :age 1}]').tempids == {"new": 10}


def test_values_of_all_kinds(store: EdnStore) -> None:
    moment, number = datetime(2020, 1, 2, tzinfo=UTC), UUID(int=5)
    values = {":size": -0.0, ":price": Decimal("1.50"), ":big": Decimal(10**30), ":born": moment, ":id": str(number), ":kind": ":a/b"}
    store.load({name: frame((1, value)) for name, value in values.items()} | {":any": frame((1, "1.50M"), (2, "\\newline"), (3, '"x"'))})
    shown = {(e, a): v for e, a, v in facts(store)}
    assert [shown[1, name] for name in ("price", "big", "born", "id")] == [Decimal("1.5"), 10**30, moment, number]
    assert str(shown[1, "size"]) == "0.0" and shown[1, "kind"] == deltic.Keyword("a/b")
    assert [shown[e, "any"] for e in (1, 2, 3)] == [Decimal("1.5"), Char("\n"), "x"]


@pytest.mark.parametrize(
    ("frames", "error", "message"),
    [
        ({":name": [(1, "x"), (2, "x")]}, ConstraintViolation, 'the value "x" of :name is unique, and would be of entities 1 and 2'),
        ({":name": [(3, "Ann")]}, ConstraintViolation, 'the value "Ann" of :name is unique'),
        ({":aka": [(1, "b"), (2, "a")]}, ConstraintViolation, 'the value "a" of :aka is unique'),
        ({":friend": [(1, -2)]}, DataError, "-2 as a value of :friend"),
        ({":age": [(-1, 3)]}, DataError, ":age of entity -1"),
        ({":age": [(1, "old")]}, FrameError, "facts/age"),
        ({":size": [(1, float("nan"))]}, TypeMismatch, "##NaN is equal to no value"),
        ({":kind": [(1, "x")]}, DataError, "'x' as a value of :kind: the values of :kind are not of kind symbol"),
        ({":any": [(1, "[1]")]}, DataError, "a collection is not a value"),
        ({":id": [(1, "x")]}, DataError, "invalid UUID"),
        ({":nam": [(1, "x")]}, UnknownName, "has no attribute :nam"),
        ({"name": [(1, "x")]}, SyntaxFailure, "is not an attribute"),
    ],
)
def test_what_is_refused_changes_nothing(store: EdnStore, frames: dict[str, Any], error: type[Exception], message: str) -> None:
    store.transact('[{:db/id 1 :name "Ann" :aka "a"}]')
    before = facts(store)
    with pytest.raises(error) as raised:
        store.load({":age": frame((5, 5))} | {name: frame(*rows) for name, rows in frames.items()})
    assert message in str(raised.value) and facts(store) == before


@pytest.mark.parametrize("seed", [0, *slow(*rotating(30))])
def test_a_load_is_the_transaction_of_its_additions(seed: int) -> None:
    """A random store that is loaded into another one, with facts of its own."""
    rng, content = random.Random(seed), Facts(MANY, REFS, UNIQUE, COMPONENTS)
    with deltic.Session(shards=1 + seed % 3) as session:
        load(session.edn_store("one", schema=SCHEMA), content, rng, 60)
        before = Facts(MANY, REFS, UNIQUE, COMPONENTS)
        other = session.edn_store("other", schema=SCHEMA)
        load(other, before, rng, 20)
        frames = {
            f":{name}": frame(*((e, _given(name, v)) for e, a, v in content.datoms if a == name))
            for name in ATTRIBUTES
            if any(a == name for _, a, _ in content.datoms)
        }
        try:
            other.load(frames)
        except ConstraintViolation:
            kept = {one for one in before.datoms if one[1] in MANY or not any(one[:2] == new[:2] for new in content.datoms)}
            values = [(a, v) for _, a, v in kept | content.datoms if a in UNIQUE]
            assert len(set(values)) < len(values) and stored(other) == before.datoms
            return
        kept = {one for one in before.datoms if one[1] in MANY or not any(one[:2] == new[:2] for new in content.datoms)}
        assert stored(other) == kept | content.datoms


def _given(attribute: str, value: Any) -> Any:
    """A value in a frame."""
    return write(form_of(untyped(value))) if attribute in ("k", "x") else value[1]


def test_the_schema_is_in_the_state(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path / "state") as session:
        session.edn_store("Facts", schema="{:a {:db/unique :db.unique/value} :c {:db/valueType :db.type/ref :db/isComponent true}}")
        session.edn_store("facts", schema="{:k {:db/valueType :db.type/keyword :db/cardinality :db.cardinality/many}}")
    with deltic.Session(state=tmp_path / "state") as session:
        store = session.edn_store("facts")
        assert store.name == "Facts" and store.schema.text == (
            "{:a {:db/unique :db.unique/value}, :c {:db/valueType :db.type/ref, :db/isComponent true},"
            " :k {:db/valueType :db.type/keyword, :db/cardinality :db.cardinality/many}}"
        )
        store.transact("[{:a 1 :k [:x :y]}]")
        with pytest.raises(SyntaxFailure, match="the schema has no attributes"):
            session.edn_store("others")
