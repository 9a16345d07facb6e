"""Each worked example of the published text on worst-case optimal joins in differential dataflow."""

from __future__ import annotations

import random
from itertools import permutations

from deltic.wcoj.index import IncrementalIndex, Variable
from deltic.wcoj.join import IncrementalGenericJoin, JoinWork, generic_join
from deltic.wcoj.naive import NaiveJoin
from deltic.wcoj.trie import ZSetTrie
from join_shapes import added, atoms, joined, nothing, random_changes

X, Y, Z = (Variable(name) for name in "xyz")
TRIANGLES = atoms("g(x,y) g(x,z) g(y,z)")
EDGES = {(1, 2): 1, (1, 3): 1, (1, 4): 1, (2, 3): 1, (2, 4): 1, (3, 4): 1, (5, 1): 1}
FOUND = {(1, 2, 3): 1, (1, 2, 4): 1, (1, 3, 4): 1, (2, 3, 4): 1}


def indices(order: tuple[Variable, ...], edges: dict[tuple[int, int], int]) -> list[IncrementalIndex]:
    made = [IncrementalIndex(atom, order) for atom in TRIANGLES]
    for index in made:
        index.receive_delta({"g": [*edges.items()]})
    return made


def test_the_triangles_of_a_graph() -> None:
    assert IncrementalGenericJoin(TRIANGLES).join({"g": [*EDGES.items()]}) == ZSetTrie(FOUND)


def test_each_edge_is_extended_by_the_end_that_proposes_fewest() -> None:
    """(x, y) = (1, 2): 1 has three ends and 2 has two, so 2 proposes 3 and 4, and both are ends of 1."""
    _, xz, yz = indices((X, Y, Z), EDGES)
    assert (xz.delta.count((1, 2)), yz.delta.count((1, 2))) == (3, 2)
    assert yz.delta.propose((1, 2)) == xz.delta.intersect((1, 2), yz.delta.propose((1, 2))) == ZSetTrie({3: 1, 4: 1})


def test_work_for_a_prefix_is_the_fewest_that_extend_it() -> None:
    """Of a hub with 1,000 ends and an edge to a node with two ends, the latter alone are looked at."""
    edges = {(0, end): 1 for end in range(1, 1_001)} | {(1, 2): 1, (1, 5_000): 1}
    _, xz, yz = indices((X, Y, Z), edges)
    assert min(xz.delta.count((0, 1)), yz.delta.count((0, 1))) == 2
    join = IncrementalGenericJoin(TRIANGLES)
    join.join({"g": [(edge, 1) for edge in edges if edge != (0, 1)]})
    assert join.join({"g": [((0, 1), 1)]}) == ZSetTrie({(0, 1, 2): 1})
    assert join.work.proposed + join.work.looked_up < 20


def test_any_order_of_attributes_gives_the_triangles() -> None:
    for order in permutations((X, Y, Z)):
        levels = [[index.delta for index in indices(order, EDGES) if index.participates_in_level(level)] for level in range(3)]
        places = [order.index(variable) for variable in (X, Y, Z)]
        actual = {tuple(row[place] for place in places): weight for row, weight in generic_join(levels, JoinWork()).rows()}
        assert actual == FOUND


def test_naive_form_as_operators() -> None:
    """Counts from each end, the least of them, proposals, semijoins."""
    naive = NaiveJoin(TRIANGLES)
    assert naive.join({"g": [*EDGES.items()]}) == joined(TRIANGLES, {"g": EDGES})
    assert naive.join({"g": [((1, 4), -1)]}) == ZSetTrie({(1, 2, 4): -1, (1, 3, 4): -1})


def test_naive_form_keeps_more_than_the_relations() -> None:
    naive, rules = NaiveJoin(TRIANGLES), IncrementalGenericJoin(TRIANGLES)
    for join in (naive, rules):
        join.join({"g": [*EDGES.items()]})
    kept = sum(sum(1 for _ in arrangement.accumulated.rows()) for arrangement in rules.arrangements.values())
    assert kept == 2 * len(EDGES) < naive.kept


def test_each_of_the_three_rules_reacts_to_its_own_change_alone() -> None:
    """dtdxy, dtdxz and dtdyz: with a relation for each side, the change of a side runs the rule of that side."""
    query = atoms("xy(x,y) xz(x,z) yz(y,z)")
    for changed, edge in (("xy", (1, 2)), ("xz", (1, 3)), ("yz", (2, 3))):
        join = IncrementalGenericJoin(query)
        join.join({name: [(row, 1)] for name, row in (("xy", (1, 2)), ("xz", (1, 3)), ("yz", (2, 3))) if name != changed})
        for arrangement in join.arrangements.values():
            arrangement.receive_delta({changed: [(edge, 1)]})
        results = [generic_join(rule.levels(), JoinWork()) for rule in join.rules]
        assert [bool(len(one)) for one in results] == [atom.relation == changed for atom in query]


def test_rules_in_their_order_count_each_second_order_term_once() -> None:
    """dA ⋈ dB: counted with A new and B old, or A old and B new, but neither not at all nor twice."""
    for seed in range(10):
        rng = random.Random(seed)
        join, contents, content = IncrementalGenericJoin(TRIANGLES), nothing(TRIANGLES), ZSetTrie()
        for change in random_changes(rng, TRIANGLES, load=6, ticks=5):
            contents = added(contents, change)
            content = content.plus(join.join({"g": [*change.get("g", {}).items()]}))
            assert content == joined(TRIANGLES, contents)


def test_old_and_new_versions_are_those_at_t_false_and_t_true() -> None:
    """By the order of (T, bool), with all data at (t, true): (t, false) sees what was before t, (t, true) what is until t."""
    updates = {0: {(1, 2): 1}, 1: {(1, 3): 1, (1, 2): -1}, 2: {}, 3: {(1, 2): 2}}
    index = IncrementalIndex(TRIANGLES[0], (X, Y))

    def seen(bound: tuple[int, bool]) -> ZSetTrie:
        return ZSetTrie.of((y, weight) for time, edges in updates.items() for (_, y), weight in edges.items() if (time, True) <= bound)

    for now, edges in updates.items():
        index.receive_delta({"g": [*edges.items()]})
        assert index.accumulated.propose((1,)) == seen((now, False))
        assert index.updated.propose((1,)) == seen((now, True))
        index.commit()


def test_indices_are_shared_by_rules_and_occurrences() -> None:
    assert sorted(IncrementalGenericJoin(TRIANGLES).arrangements) == [("g", (0, 1)), ("g", (1, 0))]
