"""EDN by hand: transactions, queries, their cost, and restarts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import deltic
from deltic.errors import CatalogError, ConstraintViolation, DataError, QueryError, TypeMismatch, UnknownName
from deltic.frontends.edn import Char, Keyword, Symbol
from deltic.session.edn import EdnStore
from edn_stores import facts
from session_rows import touched_rows

SCHEMA = """
{:name {:db/valueType :db.type/string :db/unique :db.unique/identity}
 :email {:db/valueType :db.type/string :db/unique :db.unique/identity}
 :badge {:db/valueType :db.type/long :db/unique :db.unique/value}
 :age {:db/valueType :db.type/long}
 :friend {:db/valueType :db.type/ref :db/cardinality :db.cardinality/many}
 :part {:db/valueType :db.type/ref :db/cardinality :db.cardinality/many :db/isComponent true}
 :aka {:db/valueType :db.type/string :db/cardinality :db.cardinality/many}
 :any {:db/cardinality :db.cardinality/many}}
"""


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        session.edn_store("facts", schema=SCHEMA)
        yield session


@pytest.fixture
def store(session: deltic.Session) -> EdnStore:
    return session.edn_store("facts", schema=SCHEMA)


def data(report: Any) -> list[tuple[int, str, Any, bool]]:
    return [(one.e, one.a.name, one.v, one.added) for one in report.tx_data]


def test_entity_maps_are_new_or_found_by_identity(store: EdnStore) -> None:
    report = store.transact('[{:db/id "a" :name "Ann"} {:db/id -1 :name "Bob" :friend "a"} {:db/id 9 :age 4} {:name "Cat"}]')
    assert report.tempids == {"a": 10, -1: 11} and report.tx == 2
    report = store.transact('[{:db/id -7 :name "Bob" :age 3} {:name "Dan" :_friend -7}]')
    assert report.tempids == {-7: 11}
    assert data(report) == [(11, "age", 3, True), (13, "name", "Dan", True), (11, "friend", 13, True)]
    assert store.transact('[{:name "Bob" :age 3}]').tx_data == ()


def test_two_maps_of_one_identity_are_one_entity(store: EdnStore) -> None:
    report = store.transact('[{:db/id "x" :name "Ann" :age 1} {:db/id "y" :name "Ann" :email "a@b"} {:db/id "z" :email "a@b" :aka ["c"]}]')
    assert report.tempids == {"x": 1, "y": 1, "z": 1}
    assert facts(store) == {(1, "name", "Ann"), (1, "age", 1), (1, "email", "a@b"), (1, "aka", "c")}


def test_nested_maps_components_and_retracted_entities(store: EdnStore) -> None:
    store.transact(
        '[{:name "Car" :part [{:name "Wheel" :part {:name "Hub"}} {:name "Door"}]} {:name "Ann" :friend [[:name "Car"] [:name "Hub"]]}]'
    )
    assert {one for one in facts(store) if one[1] in ("part", "friend")} == {
        (1, "part", 2),
        (2, "part", 3),
        (1, "part", 4),
        (5, "friend", 1),
        (5, "friend", 3),
    }
    store.transact('[[:db/retractEntity [:name "Car"]]]')
    assert facts(store) == {(5, "name", "Ann")}
    assert store.transact('[{:name "New"}]').tx_data[0].e == 6


def test_cardinality_and_retractions(store: EdnStore) -> None:
    store.transact('[[:db/add 1 :age 3] [:db/add 1 :aka "a"] [:db/add 1 :aka "b"]]')
    assert data(store.transact("[[:db/add 1 :age 4]]")) == [(1, "age", 3, False), (1, "age", 4, True)]
    assert data(store.transact('[[:db/retract 1 :age 3] [:db/retract 1 :aka "a"]]')) == [(1, "aka", "a", False)]
    assert data(store.transact("[[:db.fn/retractAttribute 1 :aka] [:db/retract 1 :age]]")) == [(1, "aka", "b", False), (1, "age", 4, False)]
    assert data(store.transact("[[:db/cas 1 :age nil 1] [:db.fn/cas 1 :age 1 2]]"))[-1] == (1, "age", 2, True)


def test_operations_apply_in_order(store: EdnStore) -> None:
    report = store.transact('[[:db/add 1 :name "a"] [:db/add 1 :name "b"] [:db/add 2 :name "a"] [:db/add [:name "a"] :age 1]]')
    assert data(report)[-2:] == [(2, "name", "a", True), (2, "age", 1, True)]
    store.transact('[[:db/retract 2 :name "a"] [:db/add 1 :name "a"]]')
    assert facts(store) == {(1, "name", "a"), (2, "age", 1)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[:db/add 2 :name "Ann"]]', 'the value "Ann" of :name is unique, and entity 1 has it'),
        ("[[:db/add 2 :badge 7]]", "the value 7 of :badge is unique, and entity 1 has it"),
        ("[[:db/cas 1 :age 4 5]]", ":age of entity 1 is 3"),
        ("[[:db/cas 1 :badge nil 5]]", ":badge of entity 1 is 7"),
        ('[[:db/add [:name "Bob"] :age 3]]', 'there is no entity [:name "Bob"]'),
        ('[{:name "Ann" :email "c@d"}]', "the values of the new entity identify two entities, 1 and 2"),
        ('[{:name "Eve" :friend "eve"}]', "the temporary id 'eve' is only a value"),
    ],
)
def test_what_the_facts_do_not_permit_changes_nothing(store: EdnStore, text: str, message: str) -> None:
    store.transact('[{:db/id 1 :name "Ann" :age 3 :badge 7} {:db/id 2 :email "c@d"}]')
    before = facts(store)
    with pytest.raises(ConstraintViolation) as raised:
        store.transact(f"[[:db/add 1 :age 9] {text[1:]}".replace(":age 9", ":age 3"))
    assert raised.value.message == message and raised.value.span is not None
    assert facts(store) == before


def test_transactions_of_python_values(session: deltic.Session, store: EdnStore) -> None:
    values = [7, 7.5, True, ":text", Keyword("k"), Char("c"), datetime(2020, 1, 2, tzinfo=UTC), UUID(int=5), Symbol("s"), 10**30]
    session.edn_transact("facts", [{":db/id": "a", ":name": "Ann", ":any": set(values)}, [":db/add", "a", ":aka", ":b"]])
    found = session.edn("[:find [?x ...] :where [_ :any ?x]]", name="v").result()
    assert {(type(one), one) for one in found} == {(type(one), one) for one in values}
    with pytest.raises(TypeMismatch) as raised:
        store.transact([{":name": "Bob", ":age": "old"}])
    assert raised.value.span is not None and raised.value.span.text == '{:name "Bob", :age "old"}'
    with pytest.raises(DataError, match="is not a value of EDN"):
        store.transact([{":name": object()}])


def test_values_keep_their_text_in_patterns_of_any_attribute(session: deltic.Session) -> None:
    store = session.edn_store(
        "typed",
        schema="""
        {:l {:db/valueType :db.type/long} :d {:db/valueType :db.type/double} :s {:db/valueType :db.type/string}
         :k {:db/valueType :db.type/keyword} :y {:db/valueType :db.type/symbol} :c {:db/valueType :db.type/char}
         :b {:db/valueType :db.type/boolean} :i {:db/valueType :db.type/instant} :u {:db/valueType :db.type/uuid}}""",
    )
    values = {
        "l": -5,
        "d": 1e20,
        "s": 'a "b" \\ \n\r\té',
        "k": Keyword("a/b"),
        "y": Symbol("x"),
        "c": Char("\n"),
        "b": False,
        "i": datetime(1969, 12, 31, 23, 59, 59, 123456, UTC),
        "u": UUID(int=9),
    }
    store.transact([{f":{name}": value for name, value in values.items()}])
    view = session.edn("[:find ?a ?v :where [1 ?a ?v]]", name="all", store="typed")
    assert {a.name: v for a, v in view.result()} == values
    assert {one.a.name: one.v for one in store.datoms()} == values


def test_what_is_absent_is_not_retracted(store: EdnStore) -> None:
    store.transact('[{:db/id 1 :name "Ann" :age 3}]')
    nobody = '[:name "Bob"]'
    operations = f'[:db/retract {nobody} :age 3] [:db/retract {nobody} :age] [:db/retractEntity {nobody}] nil [:db/add 1 :aka "a"]'
    assert data(store.transact(f"[{operations}]")) == [(1, "aka", "a", True)]


def test_forms_of_clauses(session: deltic.Session, store: EdnStore) -> None:
    store.transact('[{:db/id 1 :name "Ann" :age 3 :friend {:name "Bob" :age 5}} {:name "Cat" :age 7}]')
    rules = "[[(knows ?a ?b) (and [?a :friend ?b])]]"
    queries = {
        "[?e :name ?n _] (and [?e :age ?a] (and [(< ?a 6)]))": ["Ann", "Bob"],
        "[$ ?e :name ?n _ _] ($ not [?e :age 3])": ["Bob", "Cat"],
        "[?e :name ?n] ($ or-join [?e] (and (and [?e :age 3]) [?e :friend]) [?e :age 7])": ["Ann", "Cat"],
        "[?e :name ?n] (not (and [?e :age ?a] [(< ?a 6)]))": ["Cat"],
        "($ knows ?e _) [?e :name ?n]": ["Ann"],
    }
    for i, (where, names) in enumerate(queries.items()):
        takes_rules = "knows" in where
        query = f"[:find [?n ...] {':in $ % ' if takes_rules else ''}:where {where}]"
        assert session.edn(query, name=f"v{i}", rules=rules if takes_rules else None).result() == names, where


def test_find_specs_keys_and_with(session: deltic.Session, store: EdnStore) -> None:
    store.transact('[{:name "Ann" :age 3} {:name "Bob" :age 3}]')
    ages = "[?e :age ?a] [?e :name ?n]"
    assert session.edn(f"[:find ?a . :where {ages}]", name="a").result() == 3
    assert session.edn(f"{{:find [[?n ?a]] :where [{ages}]}}", name="b").result() == ("Ann", 3)
    assert session.edn(f"{{:find [[?n ...]] :where [{ages}]}}", name="c").result() == ["Ann", "Bob"]
    assert session.edn(f"[:find ?n :keys person :where {ages}]", name="d").lookup("Bob") == [{"person": "Bob"}]
    assert session.edn(f"[:find ?a :with ?e :where {ages}]", name="e").result() == [(3,), (3,)]
    assert session.edn(f"[:find (sum ?a) (count ?a) (sum ?a) :with ?e :where {ages}]", name="f").rows() == [
        {"sum-a": 6, "count-a": 2, "sum-a-2": 6}
    ]
    assert session.edn("[:find (count ?e) . :where [?e :any]]", name="g").result() is None


def test_order_by_and_limit(session: deltic.Session, store: EdnStore) -> None:
    store.transact('[{:name "Ann" :age 3} {:name "Bob" :age 5} {:name "Cat" :age 5} {:name "Dan" :age 7}]')
    pairs = "[?e :age ?a] [?e :name ?n]"
    sorted_ = session.edn(f"{{:find [?n ?a] :where [{pairs}] :order-by [[?a :desc] [?n]]}}", name="a")
    assert sorted_.result() == [("Dan", 7), ("Bob", 5), ("Cat", 5), ("Ann", 3)]
    oldest = session.edn(f"{{:find [?n ?a] :where [{pairs}] :order-by [[?a :desc] [?n :desc]] :limit 2}}", name="b")
    assert oldest.result() == [("Dan", 7), ("Cat", 5)]
    many = session.edn(f"[:find ?a (count ?n) :where {pairs} :order-by [(count ?n) :desc] :limit 1]", name="c")
    assert many.result() == [(5, 2)]
    first = session.edn(f"[:find [?n ...] :where {pairs} :limit 1]", name="d")
    assert first.result() == ["Ann"]
    second = session.edn(f"[:find [?n ...] :where {pairs} :limit 1 :offset 1]", name="e")
    rest = session.edn(f"{{:find [?n ?a] :where [{pairs}] :order-by [[?a :desc] [?n :asc]] :offset 2}}", name="f")
    ages = session.edn("[:find ?a :with ?e :where [?e :age ?a] :offset 2]", name="g")
    assert second.result() == ["Bob"] and rest.result() == [("Cat", 5), ("Ann", 3)] and ages.result() == [(5,), (7,)]
    store.transact('[[:db/retractEntity [:name "Ann"]] [:db/add [:name "Bob"] :age 9]]')
    assert oldest.result() == [("Bob", 9), ("Dan", 7)] and first.result() == ["Bob"]
    assert oldest.result_changes() == [(("Bob", 9), 1), (("Cat", 5), -1)]
    assert second.result() == ["Cat"] and rest.result() == [("Cat", 5)] and ages.result() == [(9,)]


def test_numbers_of_many_digits(session: deltic.Session) -> None:
    schema = "{:i {:db/valueType :db.type/bigint} :d {:db/valueType :db.type/bigdec} :x {:db/cardinality :db.cardinality/many}}"
    store = session.edn_store("big", schema=schema)
    store.transact("[{:db/id 1 :i 5 :d 1.50M :x [5 1.5M 2.0M]} {:db/id 2 :i 9223372036854775808N :d 2.0M} {:db/id 3 :i -7N :d 1E-18M}]")
    store.transact([{":db/id": 4, ":i": 10**37, ":d": Decimal("0.1")}])
    ask = partial(session.edn, store="big")
    view = ask("[:find ?e ?i ?d :where [?e :i ?i] [?e :d ?d]]", name="a")
    least = Decimal("1E-18")
    rows = [(1, 5, Decimal("1.5")), (2, 2**63, Decimal(2)), (3, -7, least), (4, 10**37, Decimal("0.1"))]
    assert view.result() == rows and {type(i) for _, i, _ in view.result()} == {int}
    assert {(one.e, one.v) for one in store.datoms() if one.a == Keyword("d")} == {(e, d) for e, _, d in rows}
    order = ask("{:find [?i] :where [[_ :i ?i]] :order-by [[?i :desc]] :limit 2}", name="b")
    assert order.result() == [(10**37,), (2**63,)]
    assert ask("[:find [?e ...] :where [?e :i ?i] [?e :d ?d] [(< ?i 6)] [(<= ?d 1.50M)] [(> ?d 0)]]", name="c").result() == [1, 3]
    same = (
        ask("[:find ?e ?v :where [?e :i ?v] [?e :x ?v]]", name="d"),
        ask("[:find ?e ?v :where [?e :d ?e2] [?f :d ?v] [?e :x ?v]]", name="e"),
    )
    assert [one.result() for one in same] == [[(1, 5)], [(1, Decimal("1.5")), (1, Decimal(2))]]
    assert ask("[:find [(sum ?i) (min ?d) (max ?d)] :with ?e :where [?e :i ?i] [?e :d ?d]]", name="f").result() == (
        10**37 + 2**63 - 2,
        least,
        2,
    )
    assert ask("[:find ?e . :where [?e :d 2M]]", name="g").result() == 2
    assert ask("[:find (pull ?e [:i :d]) . :where [?e :i 5]]", name="h").result() == {":i": 5, ":d": Decimal("1.5")}
    for text, digits in (("[[:db/add 1 :i 1%sN]]" % ("0" * 38), "at most 38 digits"), ("[[:db/add 1 :d 1E-19M]]", "18 after it")):
        with pytest.raises(TypeMismatch, match="has too many digits") as raised:
            store.transact(text)
        assert digits in str(raised.value)


def test_tuples(session: deltic.Session, store: EdnStore) -> None:
    store.transact('[{:name "Ann" :age 3 :aka ["x" "y"]} {:name "Bob" :age 3 :aka "y"} {:name "Cat" :age 4 :aka "y"}]')
    same = "[?e :age ?a] [?e :aka ?k] [(tuple ?a ?k) ?t] [?f :age ?b] [?f :aka ?l] [(tuple ?b ?l) ?t]"
    view = session.edn(f"[:find ?n ?t :where {same} [(not= ?e ?f)] [?e :name ?n]]", name="a")
    assert view.result() == [("Ann", (3, "y")), ("Bob", (3, "y"))]
    parts = session.edn("[:find ?k ?n :where [?e :aka ?k] [?e :name ?n] [(tuple ?n ?k 1) ?t] [(untuple ?t) [?n _ ?e]]]", name="b")
    assert parts.result() == [("x", "Ann"), ("y", "Ann")]
    store.transact('[[:db/add [:name "Cat"] :age 3]]')
    assert [row for row, _ in view.result_changes()] == [("Cat", (3, "y"))]


def test_the_n_least_and_greatest_values_touch_few_rows(session: deltic.Session) -> None:
    store = session.edn_store("sizes", schema="{:size {:db/valueType :db.type/long}}")
    view = session.edn("[:find [(min 3 ?s) (max 2 ?s)] :with ?e :where [?e :size ?s]]", name="v", store="sizes")
    store.load({":size": pa.table({"e": range(1, 5_001), "v": [number // 2 for number in range(5_000)]})})
    assert view.result() == ((0, 0, 1), (2499, 2499))
    for entity, expected in ((1, ((0, 1, 1), (2499, 9000))), (2, ((1, 1, 2), (9000, 9000)))):
        store.transact([{":db/id": entity, ":size": 9_000}])
        assert view.result() == expected and session.last_tick is not None
        assert touched_rows(session) < 500


def test_aggregates_over_infinite_numbers(session: deltic.Session) -> None:
    store = session.edn_store("sizes", schema="{:size {:db/valueType :db.type/double}}")
    find = "(count ?s) (min ?s) (max ?s) (sum ?s) (avg ?s) (median ?s) (variance ?s) (min 2 ?s) (distinct ?s)"
    view = session.edn(f"[:find [{find}] :with ?e :where [?e :size ?s]]", name="v", store="sizes")
    inf = float("inf")

    def shown() -> str:
        """NaN is not equal to itself."""
        return repr(view.result())

    store.transact("[{:db/id 1 :size 1.0} {:db/id 2 :size 3.0}]")
    finite = (2, 1.0, 3.0, 4.0, 2.0, 2.0, 1.0, (1.0, 3.0), (1.0, 3.0))
    assert view.result() == finite
    store.transact("[{:db/id 3 :size ##Inf}]")
    assert shown() == repr((3, 1.0, inf, inf, inf, 3.0, float("nan"), (1.0, 3.0), (1.0, 3.0, inf)))
    store.transact("[{:db/id 4 :size ##-Inf}]")
    nan = float("nan")
    assert shown() == repr((4, -inf, inf, nan, nan, 2.0, nan, (-inf, 1.0), (-inf, 1.0, 3.0, inf)))
    store.transact("[[:db/retract 3 :size] [:db/retract 4 :size]]")
    assert view.result() == finite


def test_inputs_are_tables(session: deltic.Session, store: EdnStore) -> None:
    store.transact('[{:name "Ann" :age 3} {:name "Bob" :age 5} {:name "Cat" :age 7}]')
    query = "[:find [?n ...] :in $ ?least [?n ...] [[?a ?label]] :where [?e :name ?n] [?e :age ?a] [(<= ?least ?a)]]"
    view = session.edn(query, name="v", input_kinds={"?least": "long", "?label": "keyword"})
    assert view.result() == []
    view.set_inputs(4, ["Ann", "Bob", "Dan"], [(3, Keyword("x")), (5, Keyword("y"))])
    assert view.result() == ["Bob"]
    view.set_inputs(3, ["Ann", "Bob", "Dan"], [(3, Keyword("x")), (5, Keyword("y"))])
    assert sorted(view.result()) == ["Ann", "Bob"]
    with session.transaction() as tx:
        tx.delete("v input 2", [{"n": "Ann"}])
    assert view.result() == ["Bob"]
    with pytest.raises(DataError, match="1 values for 3 inputs"):
        view.set_inputs(3)
    given = session.edn("[:find ?n ?x :in [?x ...] :where [?e :name ?n] [?e :age ?a] [(< ?a ?x)]]", name="w", inputs=[[4.5]])
    assert given.result() == [("Ann", 4.5)]
    with pytest.raises(QueryError, match="the kind of the input \\?y is not known"):
        session.edn("[:find ?y :in [?y ...] :where [_ :age ?a] [(< ?a ?y)]]", name="x", inputs=[[]])
    part = session.edn("[:find ?n ?l :in [[?n _ ?l]]]", name="y", inputs=[[("Ann", 1, 2.5), ("Ann", 2, 2.5), ("Bob", True, 1.0)]])
    assert part.result() == [("Ann", 2.5), ("Bob", 1.0)]
    given.drop()
    assert "w" not in session.views and "w input 1" not in session.tables
    with pytest.raises(TypeMismatch, match="a is a long, and"):
        view.set_inputs(3, [], [(1.0, Keyword("x"))])


def test_a_transaction_costs_a_query_of_other_attributes_nothing(session: deltic.Session, store: EdnStore) -> None:
    def work(text: str) -> tuple[set[str], int, int]:
        """(the tables that change, the number of nodes that read rows, the rows that they read)."""
        store.transact(text)
        tick = session.last_tick
        assert tick is not None
        rows = [one.rows_in for one in tick.counters.values() if one.rows_in]
        return set(tick.rows_in), len(rows), sum(rows)

    store.transact('[{:db/id 1 :name "Ann" :age 3} {:name "Bob" :friend 7}]')
    without = work("[[:db/add 1 :age 4]]")
    session.edn("[:find ?n ?f :where [?e :name ?n] [?e :friend ?f] [?f :name ?m] (not [?e :aka ?n])]", name="v")
    assert work("[[:db/add 1 :age 5]]") == without and without[0] == {"facts/age"}
    assert work('[[:db/add 1 :name "Cat"]]')[1] > without[1]


def test_stores_grow_and_are_checked(session: deltic.Session, store: EdnStore) -> None:
    grown = session.edn_store("FACTS", schema={":height": {":db/valueType": ":db.type/double"}})
    grown.transact([{":name": "Ann", ":height": 1.5}])
    assert session.edn('[:find ?h . :where [[:name "Ann"] :height ?h]]', name="v", store="facts").result() == 1.5
    with pytest.raises(CatalogError, match="the attribute :age of the store facts is declared otherwise"):
        session.edn_store("facts", schema="{:age {}}")
    with pytest.raises(UnknownName, match="there is no store other"):
        session.edn("[:find ?h :where [_ :height ?h]]", name="w", store="other")
    session.edn_store("other", schema="[{:db/ident :x :db/valueType :db.type/long}]")
    with pytest.raises(UnknownName, match="the session has no store, or several"):
        session.edn("[:find ?h :where [_ :height ?h]]", name="w")


def test_a_restart_continues(tmp_path: Path) -> None:
    rules = "[[(near ?a ?b) [?a :friend ?b]] [(near ?a ?c) (near ?a ?b) [?b :friend ?c]]]"
    query = "[:find ?a ?b :in $ % [?a ...] :where (near ?a ?b)]"
    for part in range(2):
        with deltic.Session(state=tmp_path / "state", shards=3 if part == 0 else None) as session:
            store = session.edn_store("facts", schema=SCHEMA)
            view = session.edn(query, name="v", rules=rules)
            if part == 0:
                store.transact("[{:db/id 1 :friend [2 3]} {:db/id 2 :friend 4}]")
                view.set_inputs([1])
            assert sorted(view.result()) == [(1, 2), (1, 3), (1, 4)]
            assert store.transact([{":name": f"New{part}"}]).tx_data[0].e == 5 + part


def test_sql_and_edn_read_each_other(session: deltic.Session, store: EdnStore) -> None:
    session.edn("[:find ?n ?a :where [?e :name ?n] [?e :age ?a]]", name="ages")
    session.sql("CREATE MATERIALIZED VIEW old AS SELECT n FROM ages JOIN `facts/badge` b ON b.v = ages.a")
    store.transact('[{:name "Ann" :age 7 :badge 1} {:name "Bob" :age 9 :badge 7}]')
    assert session.view("old").rows() == [{"n": "Ann"}]
    assert "MultiwayJoin" not in str(session.explain("ages"))


def test_sql_reads_all_facts_of_a_store(tmp_path: Path) -> None:
    numbers = "CREATE MATERIALIZED VIEW numbers AS SELECT a, count(*) AS n FROM facts GROUP BY a"
    ages = "CREATE MATERIALIZED VIEW ages AS SELECT CAST(v AS BIGINT) AS age FROM facts WHERE a = ':age'"
    for part in range(2):
        with deltic.Session(state=tmp_path / "state") as session:
            store = session.edn_store("facts", schema=SCHEMA)
            session.sql(numbers + (";" + ages if part == 0 else ""))
            if part == 0:
                store.transact('[{:name "Ann" :age 7 :friend [{:name "Bob"} {:name "Cat"}]}]')
                names = [{"e": e, "v": f'"{name}"'} for e, name in ((1, "Ann"), (2, "Bob"), (3, "Cat"))]
                assert session.query("SELECT e, v FROM facts WHERE a = ':name' ORDER BY e").rows() == names
                plan = str(session.explain("ages")).split("circuit")[0]
                assert plan.count("facts/") == 1 and "facts" not in session.views
                assert session.view("ages").rows() == [{"age": 7}]
                height = "{:height {:db/valueType :db.type/double}}"
                session.edn_store("Facts", schema=height).transact("[{:db/id 1 :height 1.5}]")
                assert session.query("SELECT v FROM facts WHERE a = ':height'").rows() == [{"v": "1.5"}]
            rows = {row["a"]: row["n"] for row in session.view("numbers").rows()}
            assert rows == {":name": 3, ":age": 1, ":friend": 2, ":height": 1}


def test_the_relation_of_all_facts_has_the_name_of_the_store_alone(session: deltic.Session) -> None:
    session.sql("CREATE TABLE other (id BIGINT PRIMARY KEY, n STRING)")
    with pytest.raises(CatalogError, match="other exists, and is not the view of the store's facts"):
        session.edn_store("other", schema="{:n {}}")
    assert "other/n" not in session.tables
    session.edn_store("mine", tables={"row": "other"})
    session.apply({"other": [{"id": 3, "n": "a", "_op": "insert"}]})
    facts = [{"e": 3, "a": ":row/id", "v": "3"}, {"e": 3, "a": ":row/n", "v": '"a"'}]
    assert session.query("SELECT * FROM mine ORDER BY a").rows() == facts
    session.sql("DROP VIEW mine; CREATE VIEW mine AS SELECT 1 AS one")
    with pytest.raises(CatalogError, match="mine exists, and is not"):
        session.edn_store("mine", schema="{:n {}}")


def test_the_same_query_without_a_name_is_the_same_view(tmp_path: Path) -> None:
    query, rules = "[:find ?n . :in $ % ?a :where [?e :name ?n] (aged ?e ?a)]", "[[(aged ?e ?a) [?e :age ?a]]]"
    names = []
    for _ in range(2):
        with deltic.Session(state=tmp_path / "state") as session:
            store = session.edn_store("facts", schema=SCHEMA)
            store.transact('[{:db/id 1 :name "Ann" :age 3} {:db/id 2 :name "Bob" :age 4}]')
            views = [session.edn(query, rules=rules, inputs=[age]) for age in (3, 4, 3)]
            assert [view.result() for view in views] == ["Ann", "Bob", "Ann"] and len(session.views) == 2
            pulled = session.edn("[:find (pull ?e [:name]) . :where [?e :age 3]]")
            assert session.edn("[:find (pull ?e  [:name]) .  :where [?e :age 3]]").name == pulled.name
            names.append(session.views)
    assert len(names[0]) == 4 and names[0] == names[1]


def test_a_query_without_a_name_is_another_view_where_it_means_another(session: deltic.Session, store: EdnStore) -> None:
    query = "[:find [?a ...] :where [1 ?a _]]"
    store.transact('[{:db/id 1 :name "Ann"}]')
    before = session.edn(query)
    session.edn_store("facts", schema="{:height {}}").transact("[{:db/id 1 :height 7}]")
    assert [str(one) for one in before.result()] == [":name"]
    assert [str(one) for one in session.edn(query).result()] == [":height", ":name"]
    before.drop()
    assert session.edn(query).name != before.name and len(session.views) == 1


def test_a_cycle_of_patterns_is_one_multiway_join(session: deltic.Session, store: EdnStore) -> None:
    session.edn("[:find ?a ?b ?c :where [?a :friend ?b] [?b :friend ?c] [?a :friend ?c]]", name="triangles")
    assert "MultiwayJoin" in str(session.explain("triangles"))
    store.transact("[{:db/id 1 :friend [2 3]} {:db/id 2 :friend 3}]")
    assert session.view("triangles").rows() == [{"a": 1, "b": 2, "c": 3}]
