"""The incremental generic join is what trying every combination of rows is, on every shape and after every change."""

from __future__ import annotations

import random

import pytest

from deltic.errors import CircuitError, DataError, WeightOverflow
from deltic.wcoj.index import Atom, IncrementalIndex, Variable
from deltic.wcoj.join import IncrementalGenericJoin, JoinWork, generic_join, rule_order
from deltic.wcoj.trie import ZSetTrie
from join_shapes import SHAPES, SIZES, added, atoms, joined, nothing, random_changes, variables
from seeds import rotating

X, Y, Z = (Variable(name) for name in "xyz")
G = [Atom("g", (X, Y)), Atom("g", (X, Z)), Atom("g", (Y, Z))]


class PerLevelJoin:
    """The rule that takes the change of each level by itself, over the same interface: of each level the change of the intersection."""

    def __init__(self, query: list[Atom]) -> None:
        self.order = variables(query)
        self.indices = [IncrementalIndex(atom, self.order) for atom in query]

    def join(self, deltas: dict[str, list[tuple[tuple[object, ...], int]]]) -> ZSetTrie:
        for index in self.indices:
            index.receive_delta(deltas)
        result = self.level((), 1).extended(self.level, ()).extended(self.level, ())
        for index in self.indices:
            index.commit()
        return ZSetTrie.of(result.rows())

    def level(self, prefix: tuple[object, ...], weight: int) -> ZSetTrie:
        """Δ(A ∩ B) = ΔA ∩ ΔB + A ∩ ΔB + ΔA ∩ B."""
        one, other = (index for index in self.indices if index.participates_in_level(len(prefix)))
        change, changed = one.delta.propose(prefix), other.delta.propose(prefix)
        old_one, old_other = one.accumulated.intersect(prefix, changed), other.accumulated.intersect(prefix, change)
        return change.equi_join(changed).plus(old_one).plus(old_other).times(weight)


def check(shape: str, seeds: range, ticks: int) -> None:
    query, compared = atoms(SHAPES[shape]), 0
    for seed in seeds:
        rng = random.Random(seed)
        join, contents, content = IncrementalGenericJoin(query), nothing(query), ZSetTrie()
        for change in random_changes(rng, query, ticks=ticks, **SIZES.get(shape, {})):
            contents = added(contents, change)
            content = content.plus(join.join({name: [*rows.items()] for name, rows in change.items()}))
            assert content == joined(query, contents), (shape, seed, change)
            compared += len(content)
    assert compared > 20


@pytest.mark.parametrize("shape", SHAPES)
def test_join_is_brute_force_after_every_change(shape: str) -> None:
    check(shape, range(3), ticks=6)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_join_is_brute_force_after_every_change_of_many(shape: str) -> None:
    check(shape, rotating(37), ticks=20)


@pytest.mark.parametrize("shape", ["triangle", "triangle of one relation", "bow-tie", "Loomis–Whitney 4", "a variable twice in an atom"])
def test_join_is_the_same_in_any_order_of_variables(shape: str) -> None:
    query = atoms(SHAPES[shape])
    for seed in range(2):
        rng = random.Random(seed)
        mixed = rng.sample(variables(query), len(variables(query)))
        join, other = IncrementalGenericJoin(query), IncrementalGenericJoin(query, mixed)
        places = [mixed.index(variable) for variable in join.order]
        for change in random_changes(rng, query, ticks=4, **SIZES.get(shape, {})):
            deltas = {name: [*rows.items()] for name, rows in change.items()}
            turned = ((tuple(row[place] for place in places), weight) for row, weight in other.join(deltas).items())
            assert join.join(deltas) == ZSetTrie.of(turned)


def test_a_rule_for_each_level_is_right_at_the_load_and_wrong_afterwards() -> None:
    load = {"g": [((1, 2), 1), ((1, 3), 1), ((2, 3), 1), ((1, 4), 1)]}
    more = {"g": [((2, 4), 1)]}
    per_level, right = PerLevelJoin(G), IncrementalGenericJoin(G)
    assert per_level.join(load) == right.join(load) == ZSetTrie({(1, 2, 3): 1})
    assert right.join(more) == ZSetTrie({(1, 2, 4): 1})
    assert per_level.join(more) == ZSetTrie()


def test_a_rule_for_each_level_fails_on_most_single_changes() -> None:
    wrong = 0
    for seed in range(20):
        rng = random.Random(seed)
        per_level, contents, content = PerLevelJoin(G), nothing(G), ZSetTrie()
        for change in random_changes(rng, G, values=5, load=14, ticks=4):
            contents = added(contents, change)
            content = content.plus(per_level.join({name: [*rows.items()] for name, rows in change.items()}))
        wrong += content != joined(G, contents)
    assert wrong > 10


def test_changes_that_meet_are_counted_once_only_with_old_and_new_versions() -> None:
    """All three sides in one tick: with old versions alone the triangle is missing, with new ones alone it is counted three times."""
    change = {"g": [((1, 2), 1), ((1, 3), 1), ((2, 3), 1)]}
    join = IncrementalGenericJoin(G)
    for arrangement in join.arrangements.values():
        arrangement.receive_delta(change)
    times = {"accumulated": 0, "updated": 0}
    for version in times:
        for rule in join.rules:
            everyone = [index.delta if at == rule.occurrence else getattr(index, version) for at, index in enumerate(rule.indices)]
            levels = [
                [extender for extender, index in zip(everyone, rule.indices, strict=True) if index.participates_in_level(level)]
                for level in range(3)
            ]
            times[version] += sum(weight for _, weight in generic_join(levels, JoinWork()).rows())
    assert times == {"accumulated": 0, "updated": 3}
    assert join.join(change) == ZSetTrie({(1, 2, 3): 1})


def test_only_rules_of_what_changes_cost_anything() -> None:
    join = IncrementalGenericJoin(atoms("r(x,y) s(y,z) t(x,z)"))
    grid = [((i, j), 1) for i in range(20) for j in range(20)]
    join.join({"r": grid, "s": grid})
    assert join.join({"t": [((3, 4), 2)]}) == ZSetTrie({(3, y, 4): 2 for y in range(20)})
    assert join.work == JoinWork(proposed=1 + 1 + 20, looked_up=1 + 1 + 20)
    assert join.join({}) == ZSetTrie() and join.work == JoinWork()


def hub(degree: int) -> list[tuple[tuple[int, int], int]]:
    """A hub 0 with an edge to each of 1 … degree, and one between 1 and 2."""
    return [((0, spoke), 1) for spoke in range(1, degree + 1)] + [((1, 2), 1)]


def test_work_of_a_change_does_not_grow_with_the_hub() -> None:
    work = []
    for degree in (10, 100, 1_000):
        join = IncrementalGenericJoin(G)
        join.join({"g": hub(degree)})
        assert join.join({"g": [((0, 2), -1)]}) == ZSetTrie({(0, 1, 2): -1})
        work.append((join.work.proposed, join.work.looked_up))
    assert work[0] == work[1] == work[2] and sum(work[0]) < 20


def test_load_of_a_hub_costs_linear_work_and_no_square() -> None:
    """Half of the edges into the hub, half out of it: n² / 4 paths of two edges, of which none closes."""
    n = 400
    join = IncrementalGenericJoin(atoms("g(x,y) g(y,z) g(x,z)"))
    join.join({"g": [((leaf, 0), 1) for leaf in range(1, n // 2)] + [((0, leaf), 1) for leaf in range(n, n + n // 2)]})
    assert join.work.proposed + join.work.looked_up < 20 * n


def test_equal_orders_of_columns_are_kept_once() -> None:
    join = IncrementalGenericJoin(G)
    assert sorted(join.arrangements) == [("g", (0, 1)), ("g", (1, 0))]
    clique = IncrementalGenericJoin(atoms(SHAPES["4-clique"]))
    assert sorted(clique.arrangements) == [("g", (0, 1)), ("g", (1, 0))]
    for _ in range(3):
        clique.join({"g": [((1, 2), 1)]})
    assert [list(kept.accumulated.rows()) for _, kept in sorted(clique.arrangements.items())] == [[((1, 2), 3)], [((2, 1), 3)]]


def test_each_rule_begins_with_the_variables_of_its_own_occurrence() -> None:
    query = atoms(SHAPES["bow-tie"])
    for occurrence, atom in enumerate(query):
        order = rule_order(query, occurrence, variables(query))
        assert set(order[:2]) == set(atom.variables) and sorted(v.name for v in order) == list("abcde")


def test_a_tick_that_fails_has_not_happened() -> None:
    join = IncrementalGenericJoin(G)
    join.join({"g": [((1, 2), 2**40), ((1, 3), 2**40)]})
    with pytest.raises(WeightOverflow, match="equi_join"):
        join.join({"g": [((2, 3), 2**40)]})
    assert join.join({"g": [((2, 3), 1), ((1, 3), 1 - 2**40)]}) == ZSetTrie({(1, 2, 3): 2**40})
    with pytest.raises(WeightOverflow, match="g: the weight"):
        join.join({"g": [((2, 3), 2**63 - 1)]})
    assert join.join({"g": [((2, 3), -1)]}) == ZSetTrie({(1, 2, 3): -(2**40)})


def test_what_does_not_fit_is_refused() -> None:
    join = IncrementalGenericJoin(G)
    with pytest.raises(DataError, match="no relation h"):
        join.join({"h": []})
    with pytest.raises(DataError, match="has 3 columns"):
        join.join({"g": [((1, 2, 3), 1)]})
    with pytest.raises(CircuitError, match="the order"):
        IncrementalGenericJoin(G, [X, Y])
    with pytest.raises(CircuitError, match="at least one atom"):
        IncrementalGenericJoin([])
    with pytest.raises(CircuitError, match="no variable"):
        Atom("g", (1, 2))
