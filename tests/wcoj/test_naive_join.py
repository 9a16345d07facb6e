"""Counting, proposing and validating gives what delta rules give, and keeps more."""

from __future__ import annotations

import random

import pytest

from deltic.wcoj.join import IncrementalGenericJoin
from deltic.wcoj.naive import NaiveJoin
from deltic.wcoj.trie import ZSetTrie
from join_shapes import SHAPES, SIZES, atoms, random_changes
from seeds import rotating

FEW = ["triangle", "triangle of one relation", "4-cycle of one relation", "Loomis–Whitney 4", "star", "constants"]


def check(shape: str, seeds: range, ticks: int) -> None:
    query = atoms(SHAPES[shape])
    for seed in seeds:
        rng = random.Random(seed)
        naive, rules = NaiveJoin(query), IncrementalGenericJoin(query)
        for change in random_changes(rng, query, ticks=ticks, **SIZES.get(shape, {})):
            deltas = {name: [*rows.items()] for name, rows in change.items()}
            assert naive.join(deltas) == rules.join(deltas), (shape, seed, change)


@pytest.mark.parametrize("shape", FEW)
def test_naive_form_gives_the_same(shape: str) -> None:
    check(shape, range(2), ticks=4)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_naive_form_gives_the_same_on_every_shape(shape: str) -> None:
    check(shape, rotating(10), ticks=10)


def test_naive_form_keeps_the_work_and_delta_rules_the_relations() -> None:
    """k spokes of a hub, all joined to one another: k² / 2 triangles, and prefixes besides."""
    kept, rows = [], []
    for k in (6, 12):
        edges = [((a, b), 1) for a in range(k) for b in range(a + 1, k)]
        naive, rules = NaiveJoin(atoms("g(x,y) g(x,z) g(y,z)")), IncrementalGenericJoin(atoms("g(x,y) g(x,z) g(y,z)"))
        assert naive.join({"g": edges}) == rules.join({"g": edges})
        kept.append(naive.kept / len(edges))
        rows.append(sum(sum(1 for _ in one.accumulated.rows()) for one in rules.arrangements.values()) / len(edges))
    assert rows == [2, 2]
    assert kept[1] > kept[0] + 4


def test_a_relation_without_extensions_ends_a_prefix() -> None:
    naive = NaiveJoin(atoms("r(x,y) s(x,z) t(y,z)"))
    assert naive.join({"r": [((1, 2), 1)], "t": [((2, 3), 1)]}) == ZSetTrie()
    assert naive.join({"s": [((1, 3), -2)]}) == ZSetTrie({(1, 2, 3): -2})
