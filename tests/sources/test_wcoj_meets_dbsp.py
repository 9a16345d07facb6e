"""Each worked example of the published text on worst-case optimal joins over Z-sets, corrected where it errs."""

from __future__ import annotations

import random
from collections import Counter

import deltic
from deltic.wcoj.edn import EdnKeyword
from deltic.wcoj.extender import ZSetPrefixExtender
from deltic.wcoj.index import Atom, IncrementalIndex, Variable
from deltic.wcoj.join import IncrementalGenericJoin, JoinWork, generic_join
from deltic.wcoj.query import FACTS, IncrementalQuery
from deltic.wcoj.trie import ZSetTrie, trie
from join_shapes import added, atoms, joined, nothing, random_changes

A, B, C = (Variable(name) for name in "abc")
TO = EdnKeyword("g/to")
TRIANGLES = """
{:find [?a ?b ?c]
 :where [[?a :g/to ?b]
         [?a :g/to ?c]
         [?b :g/to ?c]]}
"""
CITIES = {("Germany", "Berlin"): 1, ("Germany", "Munich"): -1, ("USA", "NYC"): -1, ("USA", "LA"): 1}
DISTRICTS = {
    ("Germany", "Berlin", "Mitte"): -1,
    ("Germany", "Berlin", "Kreuzberg"): 1,
    ("Germany", "Munich", "Schwabing"): 1,
    ("USA", "NYC", "Brooklyn"): 1,
}


def facts(edges: dict[tuple[int, int], int]) -> list[tuple[tuple[int, EdnKeyword, int], int]]:
    return [((a, TO, b), weight) for (a, b), weight in edges.items()]


def test_the_triangle_query_in_edn() -> None:
    query = IncrementalQuery(TRIANGLES)
    assert query.join(facts({(1, 2): 1, (1, 3): 1, (2, 3): 1, (3, 1): 1})) == ZSetTrie({(1, 2, 3): 1})
    assert query.join(facts({(2, 3): -1})) == ZSetTrie({(1, 2, 3): -1})


def test_two_permutations_of_the_facts_serve_all_rules_of_the_triangle() -> None:
    assert IncrementalQuery(TRIANGLES).permutations == ["AEV", "AVE"]


def test_the_change_of_a_join_of_two_relations() -> None:
    """(R ⋈ S)^Δ = R^Δ ⋈ S^Δ + R⁻¹ ⋈ S^Δ + R^Δ ⋈ S⁻¹, on Z-sets of one column."""
    rng = random.Random(7)
    for _ in range(50):
        old_r, new_r, old_s, new_s = (ZSetTrie({key: rng.randrange(-3, 4) for key in range(4)}) for _ in range(4))
        before, after = old_r.equi_join(old_s), old_r.plus(new_r).equi_join(old_s.plus(new_s))
        change = new_r.equi_join(new_s).plus(old_r.equi_join(new_s)).plus(new_r.equi_join(old_s))
        assert before.plus(change) == after


def test_a_listing_as_a_trie() -> None:
    geo = trie(DISTRICTS.items())
    assert [key for key, _ in geo.items()] == ["Germany", "USA"] and dict(geo.rows()) == DISTRICTS


def test_to_extend_a_prefix_is_to_extend_a_subtree_by_one_level() -> None:
    districts = {"Berlin": ZSetTrie({"Mitte": 1, "Kreuzberg": 1})}
    cities = trie([(("Germany", "Berlin"), 1), (("Germany", "Munich"), 1)])
    extended = cities.extend_leaves(lambda path, weight: districts.get(path[-1], ZSetTrie()).times(weight))
    assert dict(extended.rows()) == {("Germany", "Berlin", "Mitte"): 1, ("Germany", "Berlin", "Kreuzberg"): 1}


def test_extend_leaves_receives_paths_with_their_weights() -> None:
    seen = {}
    trie(CITIES.items()).extend_leaves(lambda path, weight: ZSetTrie({seen.setdefault(path, weight): 1}))
    assert seen == CITIES


def test_extend_leaves_by_the_first_letter_with_twice_the_weight() -> None:
    extended = trie(CITIES.items()).extend_leaves(lambda path, weight: ZSetTrie({path[-1][0]: 2 * weight}))
    assert repr(extended) == "{'Germany': {'Berlin': {'B': 2}, 'Munich': {'M': -2}}, 'USA': {'LA': {'L': 2}, 'NYC': {'N': -2}}}"


def test_get_by_prefix() -> None:
    assert trie(DISTRICTS.items()).get_by_prefix(("Germany", "Berlin")) == ZSetTrie({"Mitte": -1, "Kreuzberg": 1})


def test_a_zset_view_of_inner_levels_and_of_the_last() -> None:
    geo = trie(DISTRICTS.items())
    assert geo.as_zset_view() == ZSetTrie({"Germany": 1, "USA": 1})
    assert geo.get_by_prefix(("Germany",)).as_zset_view() == ZSetTrie({"Berlin": 1, "Munich": 1})
    assert geo.get_by_prefix(("Germany", "Berlin")).as_zset_view() == ZSetTrie({"Mitte": -1, "Kreuzberg": 1})


def test_an_extender_over_a_permutation_of_the_facts() -> None:
    """[?a :g/to ?b] on A, E, V: the fixed part and the prefix lead to the level that is counted, proposed, and joined with."""
    index = IncrementalIndex(Atom(FACTS, (A, TO, B)), (A, B, C))
    assert index.arrangement.columns == (1, 0, 2)
    index.receive_delta({FACTS: facts({(1, 2): 3, (1, 3): -1, (4, 2): 1})})
    extender: ZSetPrefixExtender = index.delta
    assert (extender.count(()), extender.propose(())) == (2, ZSetTrie({1: 1, 4: 1}))
    assert (extender.count((1,)), extender.propose((1,))) == (2, ZSetTrie({2: 3, 3: -1}))
    assert extender.intersect((1,), ZSetTrie({2: 5, 7: 1})) == ZSetTrie({2: 15})
    assert (extender.count((9,)), extender.propose((9,))) == (0, ZSetTrie())


def test_an_index_receives_a_change_and_commits_it() -> None:
    index = IncrementalIndex(Atom("R", (A, B)), (A, B))
    index.receive_delta({"R": [((1, 2), 1)]})
    assert index.delta.propose((1,)) == ZSetTrie({2: 1}) and index.accumulated.propose((1,)) == ZSetTrie()
    index.commit()
    assert index.delta.propose((1,)) == ZSetTrie() and index.accumulated.propose((1,)) == ZSetTrie({2: 1})
    index.receive_delta({"R": [((1, 2), -1), ((1, 3), 2)]})
    assert index.accumulated.propose((1,)) == ZSetTrie({2: 1}) and index.updated.propose((1,)) == ZSetTrie({3: 2})
    index.commit()
    assert index.accumulated.propose((1,)) == ZSetTrie({3: 2})


def test_levels_in_which_a_pattern_participates() -> None:
    query = IncrementalQuery(TRIANGLES)
    indices = [IncrementalIndex(atom, query.generic_join.order) for atom in query.query.where]
    assert [[level for level in range(3) if index.participates_in_level(level)] for index in indices] == [[0, 1], [0, 2], [1, 2]]


def test_a_relations_weight_enters_once_where_its_last_variable_is_bound() -> None:
    """Q(A, B, C) = R(A, B) ⋈ S(B, C) ⋈ T(C, A): at A the weight is 1, at A, B it is R's, at the end the product."""
    query = [Atom("R", (A, B)), Atom("S", (B, C)), Atom("T", (C, A))]
    indices = [IncrementalIndex(atom, (A, B, C)) for atom in query]
    for index in indices:
        index.receive_delta({"R": [((1, 2), 2)], "S": [((2, 3), -3)], "T": [((3, 1), 5)]})
    levels = [[index.delta for index in indices if index.participates_in_level(level)] for level in range(3)]
    partial = [dict(generic_join(levels[:level], JoinWork()).rows()) for level in (1, 2, 3)]
    assert partial == [{(1,): 1}, {(1, 2): 2}, {(1, 2, 3): -30}]


def test_the_query_of_three_relations_follows_their_changes() -> None:
    query = atoms("R(a,b) S(b,c) T(c,a)")
    for seed in range(5):
        join, contents, content = IncrementalGenericJoin(query), nothing(query), ZSetTrie()
        for change in random_changes(random.Random(seed), query):
            contents = added(contents, change)
            content = content.plus(join.join({name: [*rows.items()] for name, rows in change.items()}))
            assert content == joined(query, contents)


def test_one_edge_can_change_as_many_triangles_as_there_are_common_neighbours() -> None:
    query, n = IncrementalQuery(TRIANGLES), 40
    query.join(facts({(end, c): 1 for end in (0, 1) for c in range(2, n)}))
    assert query.join(facts({(0, 1): 1})) == ZSetTrie({(0, 1, c): 1 for c in range(2, n)})
    assert query.join(facts({(0, 1): -1})) == ZSetTrie({(0, 1, c): -1 for c in range(2, n)})


def test_one_edge_after_a_load_where_the_text_takes_the_change_of_each_level() -> None:
    """At the level of ?a neither of its patterns has a change for a = 1 and the prefix would be lost; the rule of [?b :g/to ?c] has it."""
    query = IncrementalQuery(TRIANGLES)
    query.join(facts({(1, 2): 1, (1, 3): 1}))
    assert query.join(facts({(2, 3): 1})) == ZSetTrie({(1, 2, 3): 1})


def live(session: deltic.Session, name: str) -> Counter[tuple[object, ...]]:
    """The change of a view in the last tick, by row."""
    changes = session.view(name).changes().to_pylist()
    return Counter({tuple(row.values())[:-1]: row["_weight"] for row in changes})


def in_edn(edges: dict[tuple[int, int], int]) -> list[list[object]]:
    """Changes of edges, as operations of a transaction."""
    return [[":db/add" if weight > 0 else ":db/retract", a, ":g/to", b] for (a, b), weight in edges.items()]


GRAPH = "{:g/to {:db/valueType :db.type/ref :db/cardinality :db.cardinality/many}}"
QUERIES = {
    "triangles": TRIANGLES,
    "edges": "{:find [?a ?b] :where [[?a :g/to ?b]]}",
    "first_level": "{:find [?a] :where [[?a :g/to ?b] [?a :g/to ?c]]}",
    "pairs": "{:find [?a ?c] :where [[?a :g/to ?b] [?b :g/to ?c]]}",
    "loops": "{:find [?a] :where [[?a :g/to ?a]]}",
    "from_one": "{:find [?b ?c] :where [[1 :g/to ?b] [?b :g/to ?c]]}",
    "squares": "{:find [?a ?b ?c ?d] :where [[?a :g/to ?b] [?b :g/to ?c] [?c :g/to ?d] [?d :g/to ?a]]}",
}


def test_the_queries_as_live_views() -> None:
    """The triangle query of the text and its variants: after each transaction, the change is that of the join in plain Python.

    A view is a set: it changes where a row gets its first binding, or loses its last one.
    """
    with deltic.Session() as session:
        store = session.edn_store("facts", schema=GRAPH)
        for name, text in QUERIES.items():
            session.edn(text, name=name)
        joins, contents = {name: IncrementalQuery(text) for name, text in QUERIES.items()}, {name: Counter() for name in QUERIES}
        rng, edges = random.Random(11), set[tuple[int, int]]()
        for step in range(12):
            drawn = {(rng.randrange(1, 6), rng.randrange(1, 6)) for _ in range(12 if step == 0 else 1)}
            change = {edge: -1 if edge in edges else 1 for edge in drawn}
            edges ^= drawn
            store.transact(in_edn(change))
            for name, join in joins.items():
                before = set(contents[name])
                for (row,), weight in join.join(facts(change)).rows():
                    contents[name][row] += weight
                contents[name] = +contents[name]
                expected = Counter(dict.fromkeys(set(contents[name]) - before, 1) | dict.fromkeys(before - set(contents[name]), -1))
                assert live(session, name) == expected, name


def test_one_edge_after_a_load_in_a_live_view() -> None:
    with deltic.Session() as session:
        store = session.edn_store("facts", schema=GRAPH)
        session.edn(TRIANGLES, name="triangles")
        store.transact(in_edn({(1, 2): 1, (1, 3): 1}))
        store.transact(in_edn({(2, 3): 1}))
        assert live(session, "triangles") == Counter({(1, 2, 3): 1})
        store.transact(in_edn({(1, 2): -1}))
        assert live(session, "triangles") == Counter({(1, 2, 3): -1})


def test_one_edge_of_a_live_view_can_change_as_many_triangles_as_there_are_common_neighbours() -> None:
    with deltic.Session() as session:
        store, n = session.edn_store("facts", schema=GRAPH), 12
        session.edn(TRIANGLES, name="triangles")
        store.transact(in_edn({(end, c): 1 for end in (100, 101) for c in range(2, n)}))
        store.transact(in_edn({(100, 101): 1}))
        assert live(session, "triangles") == Counter({(100, 101, c): 1 for c in range(2, n)})


def test_the_query_of_three_relations_as_a_live_view() -> None:
    """Q(A, B, C) = R(A, B) ⋈ S(B, C) ⋈ T(C, A) over three attributes, beside the join of three relations in plain Python."""
    query, rng = atoms("R(a,b) S(b,c) T(c,a)"), random.Random(5)
    reference = "{:db/valueType :db.type/ref :db/cardinality :db.cardinality/many}"
    with deltic.Session() as session:
        store = session.edn_store("facts", schema=f"{{:R {reference} :S {reference} :T {reference}}}")
        view = session.edn("[:find ?a ?b ?c :where [?a :R ?b] [?b :S ?c] [?c :T ?a]]")
        assert "MultiwayJoin" in str(session.explain(view.name))
        join, rows = IncrementalGenericJoin(query), set[tuple[str, int, int]]()
        for step in range(12):
            drawn = {(rng.choice("RST"), rng.randrange(1, 4), rng.randrange(1, 4)) for _ in range(10 if step == 0 else 2)}
            weights = {row: -1 if row in rows else 1 for row in drawn}
            rows ^= drawn
            store.transact([[":db/add" if weight > 0 else ":db/retract", a, f":{name}", b] for (name, a, b), weight in weights.items()])
            deltas = {name: [((a, b), weight) for (of, a, b), weight in weights.items() if of == name] for name in "RST"}
            assert live(session, view.name) == Counter({row: weight for (row,), weight in join.join(deltas).rows()})


GEOGRAPHY = """
{:country {:db/unique :db.unique/identity}
 :city     {:db/valueType :db.type/string}
 :district {:db/valueType :db.type/string}
 :cities   {:db/valueType :db.type/ref :db/cardinality :db.cardinality/many :db/isComponent true}
 :parts    {:db/valueType :db.type/ref :db/cardinality :db.cardinality/many :db/isComponent true}}
"""


def test_the_listing_as_live_views() -> None:
    """The flat listing is a query, the trie a pulled tree, and a level, seen as a set of keys, a query with fewer variables."""
    listing = "[?g :country ?country] [?g :cities ?c] [?c :city ?city] [?c :parts ?d] [?d :district ?district]"
    with deltic.Session() as session:
        store = session.edn_store("geo", schema=GEOGRAPHY)
        flat = session.edn(f"[:find ?country ?city ?district :where {listing}]")
        tree = session.edn("[:find [(pull ?g [{:cities [:city {:parts [:district]}]}]) ...] :where [?g :country]]")
        countries = session.edn(f"[:find [?country ...] :where {listing}]")
        cities = session.edn(f'[:find [?city ...] :where {listing} [?g :country "Germany"]]')
        letters = session.edn("[:find ?city ?letter :where [?c :city ?city] [(subs ?city 0 1) ?letter]]")
        store.transact(
            """[{:country "Germany" :cities [{:city "Berlin" :parts [{:district "Mitte"} {:district "Kreuzberg"}]}
                                             {:city "Munich" :parts {:district "Schwabing"}}]}
                {:country "USA" :cities {:city "NYC" :parts {:district "Brooklyn"}}}]"""
        )
        assert set(flat.result()) == set(DISTRICTS)
        assert countries.result() == [*trie(DISTRICTS.items()).as_zset_view()] == ["Germany", "USA"]
        assert cities.result() == ["Berlin", "Munich"]
        assert letters.result() == [("Berlin", "B"), ("Munich", "M"), ("NYC", "N")]
        berlin = {":city": "Berlin", ":parts": [{":district": "Mitte"}, {":district": "Kreuzberg"}]}
        munich = {":city": "Munich", ":parts": [{":district": "Schwabing"}]}
        assert tree.result()[0] == {":cities": [berlin, munich]}
        store.transact('[[:db/add [:country "USA"] :cities "la"] {:db/id "la" :city "LA" :parts {:district "Venice"}}]')
        assert flat.result_changes() == [(("USA", "LA", "Venice"), 1)] and countries.result_changes() == []
        (part,) = (one.e for one in store.datoms() if one.v == "Mitte")
        store.transact([[":db/retractEntity", part]])
        assert flat.result_changes() == [(("Germany", "Berlin", "Mitte"), -1)] and countries.result_changes() == []
        assert [weight for _, weight in tree.result_changes()] == [-1, 1]
