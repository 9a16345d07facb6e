"""The generator of random programs: the same from the same seed, valid, and fair."""

from __future__ import annotations

import pytest

from deltic.plan.columns import agrees
from deltic.plan.monotone import check_monotone
from deltic.plan.nodes import Recursion, references
from deltic.plan.recursion import has_base
from deltic.plan.relation import Relation
from deltic.plan.walk import nodes
from programs import KINDS, Mix, applied, case, empty, expected, mixed


def test_a_seed_gives_the_same_case() -> None:
    assert case(3).views == case(3).views
    assert repr(case(3).ticks) == repr(case(3).ticks)
    assert case(3).views != case(4).views


def test_the_mix_is_fair_and_only_failing_cases_fail() -> None:
    mix = Mix()
    for seed in range(150):
        program = case(seed)
        outcomes = expected(program)
        assert program.fails or all(isinstance(outcome, dict) for outcome in outcomes), str(program)
        mix.record(program, outcomes)
    mix.assert_fair()
    assert mix.failing > 5, str(mix)


def test_an_unfair_mix_is_found() -> None:
    mix = Mix(cases=10, ticks=10, retracting=3)
    mix.shown.update(dict.fromkeys(KINDS, 1))
    mix.assert_fair()
    mix.shown["Join not_in"] = 0
    with pytest.raises(AssertionError, match="not_in"):
        mix.assert_fair()
    mix.shown["Join not_in"], mix.retracting = 1, 2
    with pytest.raises(AssertionError):
        mix.assert_fair()


def test_plans_agree_with_their_inputs_and_changes_with_their_tables() -> None:
    """Every delete has a row to delete, keys stay unique, NOT NULL holds; in failing cases a tick that fails changes nothing."""
    for seed in range(50):
        program = case(seed)
        assert all(agrees(plan) for plan in program.views.values()), str(program)
        tables = empty(program.tables)
        for tick, outcome in zip(program.ticks, expected(program), strict=True):
            after = applied(tables, tick)
            for name, content in after.items():
                check_content(program.tables[name].key, content)
            tables = after if isinstance(outcome, dict) else tables


def check_content(key: tuple[int, ...], content: Relation) -> None:
    assert all(weight > 0 for _, weight in content.pairs())
    if key:
        keys = [tuple(row[i] for i in key) for row in content]
        assert len(set(keys)) == len(keys) == sum(weight for _, weight in content.pairs())
        assert all(None not in actual for actual in keys)


@pytest.mark.slow
def test_half_of_the_mixed_cases_are_recursive_and_all_terminate() -> None:
    mix = Mix()
    for seed in range(60):
        program = mixed(seed)
        outcomes = expected(program)
        assert program.fails or all(isinstance(outcome, dict) for outcome in outcomes), str(program)
        mix.record(program, outcomes)
    mix.assert_recursive(restarted=0)


def test_random_recursions_agree_and_are_accepted() -> None:
    """The generator's recursions are monotone, so they must be accepted."""
    for seed in range(5, 100):
        for plan in mixed(seed).views.values():
            assert agrees(plan), f"mixed({seed})"
            for node in nodes(plan):
                if isinstance(node, Recursion):
                    check_monotone(dict(node.relations))
                    assert has_base(dict(node.relations), node.result) or references(node)
