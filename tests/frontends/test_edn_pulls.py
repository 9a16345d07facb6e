"""Pulls: trees as DataScript makes them, that follow transactions, and what a change of one costs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import CatalogError, QueryError, SubscriberError, UnknownName
from deltic.frontends.edn.parse import parse_query
from deltic.frontends.edn.read import read
from deltic.frontends.edn.tree import PullTerm
from deltic.session.edn import EdnStore
from deltic.session.edn_view import EdnView
from edn_oracle import Facts, answer
from edn_programs import ATTRIBUTES, COMPONENTS, MANY, REFS, SCHEMA, UNIQUE, PullMaker
from edn_pull_oracle import PullOracle, canonical, typed_tree
from edn_stores import load, transact
from parts import slow
from seeds import rotating

FAMILY = """
{:name   {:db/unique :db.unique/identity :db/valueType :db.type/string}
 :aka    {:db/cardinality :db.cardinality/many :db/valueType :db.type/string}
 :child  {:db/cardinality :db.cardinality/many :db/valueType :db.type/ref}
 :friend {:db/cardinality :db.cardinality/many :db/valueType :db.type/ref}
 :enemy  {:db/cardinality :db.cardinality/many :db/valueType :db.type/ref}
 :father {:db/valueType :db.type/ref}
 :part   {:db/cardinality :db.cardinality/many :db/valueType :db.type/ref :db/isComponent true}}
"""
FACTS = """
[{:db/id 1 :name "Petr" :aka ["Devil" "Tupen"] :child [2 3]} {:db/id 2 :name "David" :father 1} {:db/id 3 :name "Thomas" :father 1}
 {:db/id 4 :name "Lucy" :friend 5 :enemy 6} {:db/id 5 :name "Elizabeth" :friend 6 :enemy 7}
 {:db/id 6 :name "Matthew" :father 3 :friend 7 :enemy 8}
 {:db/id 7 :name "Eunan" :friend 8 :enemy 4} {:db/id 8 :name "Kerri"}
 {:db/id 10 :name "Part A" :part [11 15]} {:db/id 11 :name "Part A.A" :part 12} {:db/id 12 :name "Part A.A.A"} {:db/id 15 :name "Part A.B"}]
"""
PART = {
    ":name": "Part A",
    ":part": [
        {":db/id": 11, ":name": "Part A.A", ":part": [{":db/id": 12, ":name": "Part A.A.A"}]},
        {":db/id": 15, ":name": "Part A.B"},
    ],
}
PULLS: list[tuple[str, int, Any]] = [
    ("[:name :aka]", 1, {":name": "Petr", ":aka": ["Devil", "Tupen"]}),
    ("[:name :father :db/id]", 6, {":name": "Matthew", ":father": {":db/id": 3}, ":db/id": 6}),
    ("[:name :_child]", 2, {":name": "David", ":_child": [{":db/id": 1}]}),
    ("[:name {:_father [:name]}]", 1, {":name": "Petr", ":_father": [{":name": "David"}, {":name": "Thomas"}]}),
    ("[:name :part]", 10, PART),
    ("[:name :_part]", 11, {":name": "Part A.A", ":_part": {":db/id": 10}}),
    ("[:name {:_part [:name]}]", 11, {":name": "Part A.A", ":_part": {":name": "Part A"}}),
    ("[*]", 1, {":db/id": 1, ":name": "Petr", ":aka": ["Devil", "Tupen"], ":child": [{":db/id": 2}, {":db/id": 3}]}),
    ("[[:name :as :first-name] * :_child]", 2, {":db/id": 2, ":first-name": "David", ":father": {":db/id": 1}, ":_child": [{":db/id": 1}]}),
    ("[(limit :aka 1)]", 1, {":aka": ["Devil"]}),
    ("[{(:child :limit 1) [:name]}]", 1, {":child": [{":name": "David"}]}),
    ("[:father]", 1, None),
    ('[(default :aka "bar")]', 2, {":aka": "bar"}),
    ("[[:father :as :bar :default false]]", 1, {":bar": False}),
    ('[[:name :as "Name"] [:aka :as :alias]]', 1, {"Name": "Petr", ":alias": ["Devil", "Tupen"]}),
    ("[:name {:father [:name]}]", 1, {":name": "Petr"}),
    ("[:name {:child [:aka]}]", 1, {":name": "Petr"}),
    ("[:name {:part [:name]}]", 10, {":name": "Part A", ":part": [{":name": "Part A.A"}, {":name": "Part A.B"}]}),
    ("[:name {:part 1}]", 10, {":name": "Part A", ":part": [{":name": "Part A.A"}, {":name": "Part A.B"}]}),
    ("[:db/id {:friend 1 :enemy 1}]", 7, {":db/id": 7, ":friend": [{":db/id": 8}], ":enemy": [{":db/id": 4, ":friend": [{":db/id": 5}]}]}),
]


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        yield session


@pytest.mark.parametrize("pulls", [PULLS[4::7], *slow(PULLS)], ids=len)
def test_trees_are_datascripts(session: deltic.Session, pulls: list[tuple[str, int, Any]]) -> None:
    store = session.edn_store("facts", schema=FAMILY)
    store.transact(FACTS)
    for i, (pattern, entity, tree) in enumerate(pulls):
        query = f"[:find (pull ?e {pattern}) . :where [(ground {entity}) ?e] [?e :name]]"
        assert session.edn(query, name=f"v{i}").result() == tree, pattern


def test_recursion_ends_at_an_entity_of_its_path(session: deltic.Session) -> None:
    store = session.edn_store("facts", schema=FAMILY)
    store.transact(FACTS)
    view = session.edn('[:find (pull ?e [:db/id :name {:friend ...}]) . :where [?e :name "Lucy"]]', name="friends")
    names = {4: "Lucy", 5: "Elizabeth", 6: "Matthew", 7: "Eunan", 8: "Kerri"}

    def nested(*entities: int) -> dict[str, Any]:
        first, *rest = entities
        return {":db/id": first, ":name": names[first]} | ({":friend": [nested(*rest)]} if rest else {})

    before = view.result()
    assert before == nested(4, 5, 6, 7, 8)
    store.transact("[[:db/add 8 :friend 4]]")
    after = nested(4, 5, 6, 7, 8, 4)
    place = after
    for _ in range(5):
        place = place[":friend"][0]
    place[":friend"] = [{":db/id": 5}]
    assert view.result() == after
    assert view.result_changes() == [((before,), -1), ((after,), 1)]


@pytest.mark.slow
def test_a_tree_may_be_deeper_than_the_stack(session: deltic.Session) -> None:
    depth = 1_500
    store = session.edn_store("facts", schema=FAMILY)
    store.transact([{":db/id": i, ":name": f"n{i}", ":friend": i + 1} for i in range(1, depth)])
    tree = session.edn('[:find (pull ?e [:name {:friend ...}]) . :where [?e :name "n1"]]', name="v").result()
    count = 1
    while ":friend" in tree:
        (tree,), count = tree[":friend"], count + 1
    assert count == depth - 1 and tree == {":name": f"n{depth - 1}"}


@pytest.mark.parametrize("levels", [4, *slow(7)])
def test_a_change_of_one_datom_in_a_large_tree_is_one_row(session: deltic.Session, levels: int) -> None:
    """A tree whose nodes have three children each: of 1,093 nodes on seven levels."""
    store = session.edn_store("facts", schema=FAMILY)
    inner, count = 3 ** (levels - 1) // 2, 3**levels // 2
    parts = [
        {":db/id": i, ":name": f"n{i}"} | ({":part": [3 * i - 1, 3 * i, 3 * i + 1]} if i <= inner else {}) for i in range(1, count + 1)
    ]
    store.transact(parts)
    view = session.edn('[:find (pull ?e [:name {:part ...}]) . :where [?e :aka "root"]]', name="v")
    store.transact('[[:db/add 1 :aka "root"]]')
    before = view.result()
    store.transact(f'[[:db/add {count} :name "changed"]]')
    tick = session.last_tick
    assert tick is not None
    assert sum(one.rows_in for one in tick.counters.values()) <= 30
    assert session.view("v pull 1").changes().num_rows == 2
    assert view.result() != before and view.result_changes() == [((before,), -1), ((view.result(),), 1)]
    store.transact(f"[[:db/add {count} :friend 7]]")
    assert view.result_changes() == []


def test_pulls_beside_other_elements(session: deltic.Session) -> None:
    store = session.edn_store("facts", schema=FAMILY)
    store.transact(FACTS)
    query = "[:find (pull ?c [:name]) (count ?f) (pull ?c [:db/id :_friend]) :where [?c :father ?f]]"
    assert session.edn(query, name="v").result() == [
        ({":name": "David"}, 1, {":db/id": 2}),
        ({":name": "Thomas"}, 1, {":db/id": 3}),
        ({":name": "Matthew"}, 1, {":db/id": 6, ":_friend": [{":db/id": 5}]}),
    ]
    numbers = session.edn("[:find [(pull ?c [:db/id]) ...] :where [?c :father]]", name="w")
    assert numbers.result() == [{":db/id": 2}, {":db/id": 3}, {":db/id": 6}] and list(numbers.schema.names) == ["c"]
    store.transact("[[:db/retract 2 :father 1]]")
    assert numbers.result_changes() == [(({":db/id": 2},), -1)]


def test_subscribers_receive_changed_trees(session: deltic.Session) -> None:
    store = session.edn_store("facts", schema=FAMILY)
    store.transact(FACTS)
    view = session.edn('[:find (pull ?e [:name {:child [:name]}]) :where [?e :aka "Devil"]]', name="v")
    received: list[list[tuple[Any, int]]] = []
    end = view.subscribe_results(received.append)
    before = {":name": "Petr", ":child": [{":name": "David"}, {":name": "Thomas"}]}
    store.transact('[[:db/add 3 :name "Tom"]]')
    store.transact('[[:db/add 3 :friend 4] [:db/add 4 :name "Lu"]]')
    after = {":name": "Petr", ":child": [{":name": "David"}, {":name": "Tom"}]}
    assert received == [[((before,), -1), ((after,), 1)]]
    store.transact('[[:db/retract 1 :aka "Devil"]]')
    assert received[1:] == [[((after,), -1)]]
    end()
    store.transact('[[:db/add 1 :aka "Devil"]]')
    assert len(received) == 2
    with pytest.raises(SubscriberError, match="expected a function of a list"):
        view.subscribe_results(7)  # type: ignore[arg-type]
    view.subscribe_results(received.append)
    view.drop()
    assert not {"v", "v pull 1"} & {*session.views}
    store.transact('[[:db/add 3 :name "Thomas"]]')
    assert len(received) == 2


def test_a_pull_is_dropped_with_its_query(session: deltic.Session) -> None:
    """The rows of trees alone cannot be dropped after the query; without them the query has no trees, but its other columns."""
    store = session.edn_store("facts", schema=FAMILY)
    store.transact(FACTS)
    query = '[:find ?n (pull ?e [:name]) :where [?e :aka "Devil"] [?e :name ?n]]'
    view = session.edn(query, name="v")
    with pytest.raises(CatalogError, match="v is read by view v pull 1"):
        session.sql("DROP VIEW v")
    session.sql("DROP VIEW `v pull 1`")
    for use in (view.result, view.result_changes, lambda: view.subscribe_results(print)):
        with pytest.raises(UnknownName, match="v pull 1"):
            use()
    store.transact('[[:db/add 1 :name "Pete"]]')
    assert [row["n"] for row in view.rows()] == ["Pete"]
    view.drop()
    assert session.edn(query, name="v").result() == [("Pete", {":name": "Pete"})]


def test_a_restart_keeps_trees(tmp_path: Path) -> None:
    query = '[:find (pull ?e [:name {:part ...}]) . :where [?e :name "Part A"]]'
    for i in range(2):
        with deltic.Session(state=tmp_path / "state", shards=3 if i == 0 else None) as session:
            store = session.edn_store("facts", schema=FAMILY)
            view = session.edn(query, name="v")
            if i == 0:
                store.transact(FACTS)
            else:
                store.transact("[[:db/retractEntity 12]]")
            assert (":part" in view.result()[":part"][0]) == (i == 0)


# random pulls

QUERIES = ("[:find ?a (pull ?a {}) :where [?a :n]]", "[:find (pull ?b {}) :where [_ :f ?b]]", "[:find (pull ?a {}) ?b :where [?a :f ?b]]")


def define(session: deltic.Session, seed: int, count: int) -> dict[str, tuple[EdnView, str]]:
    """Valid random pulls as views."""
    rng, views = random.Random(seed), dict[str, tuple[EdnView, str]]()
    while len(views) < count:
        query = rng.choice(QUERIES).format(PullMaker(rng).pattern())
        try:
            name = f"p{len(views)}"
            views[name] = session.edn(query, name=name), query
        except QueryError:
            continue
    return views


def expected(query: str, facts: Facts) -> Counter[Any]:
    find = parse_query(read(query)).find
    oracle = PullOracle(facts.datoms, ATTRIBUTES, MANY, REFS, COMPONENTS, ("x",))
    (pull,) = (one for one in find if isinstance(one, PullTerm))
    assert pull.span is not None
    rows = answer(query[: pull.span.start] + pull.variable.name + query[pull.span.end :], facts.datoms)
    return Counter(
        canonical(
            [oracle.tree(one.pattern, value[1]) if isinstance(one, PullTerm) else value for one, value in zip(find, row, strict=True)]
        )
        for row in rows
    )


def contents(view: EdnView) -> Counter[Any]:
    return Counter(canonical(typed_tree(list(row))) for row in view.result())


def check(views: dict[str, tuple[EdnView, str]], facts: Facts) -> dict[str, Counter[Any]]:
    """The contents of the views."""
    shown = {name: contents(view) for name, (view, _) in views.items()}
    for name, (_, query) in views.items():
        assert shown[name] == expected(query, facts), (name, query)
    return shown


def follow(session: deltic.Session, store: EdnStore, facts: Facts, rng: random.Random, views: dict[str, tuple[EdnView, str]]) -> None:
    """One transaction: the trees are those of the oracle, and differ from those before by the changes."""
    before = {name: contents(view) for name, (view, _) in views.items()}
    epoch = session.epoch
    transact(store, facts, rng, rng.choice([1, 1, 2, 5]))
    for name, rows in check(views, facts).items():
        if session.epoch > epoch:
            changed = before[name].copy()
            for row, weight in views[name][0].result_changes():
                changed[canonical(typed_tree(list(row)))] += weight
            assert +changed == rows and min(changed.values(), default=0) >= 0, views[name][1]


def run(seed: int, count: int, steps: int, **options: Any) -> None:
    rng, facts = random.Random(seed), Facts(MANY, REFS, UNIQUE, COMPONENTS)
    with deltic.Session(**options) as session:
        store = session.edn_store("facts", schema=SCHEMA)
        load(store, facts, rng, 40)
        views = define(session, seed, count)
        for _ in range(steps):
            follow(session, store, facts, rng, views)


@pytest.mark.parametrize(("seed", "shards"), [(0, 1), *slow(*((seed, 1 + seed % 3) for seed in rotating(20)))])
def test_random_trees_follow_transactions(seed: int, shards: int, request: pytest.FixtureRequest) -> None:
    few = request.node.get_closest_marker("slow") is None
    run(seed, 3 if few else 30, 3 if few else 6, shards=shards)


@pytest.mark.slow
@pytest.mark.spark
def test_random_trees_on_spark(spark: Any, tmp_path: Path) -> None:
    for seed in rotating(3):
        run(seed, 5, 2, spark=spark, state=tmp_path / f"state{seed}", shards=2)
