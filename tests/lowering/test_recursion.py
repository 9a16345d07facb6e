"""Recursive plans on the embedded runtime: every view and its change equal the oracle's, under insertions and deletions."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from deltic.errors import Divergence
from deltic.explain import explain
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Plan
from deltic.plan.relation import Relation
from engines import embedded
from recursive_plans import NODES, TABLES, plans
from seeds import rotating

PLANS = plans()
Edge = tuple[int, int]


def check(plan: Plan, ticks: list[dict[Edge, int]], loaded: int = 0) -> None:
    """Ticks of weighted edges; the view is installed after `loaded` of them."""
    table = Relation()
    engine = embedded(TABLES, {"edges_too": PLANS["reachable"]} if loaded else {"v": plan})
    for number, expected in enumerate(ticks):
        tick = {edge: w for edge, w in expected.items() if table.get(edge, 0) + w >= 0}  # what a failed tick did not insert cannot go
        if loaded and number == loaded:
            fresh = type(engine)(engine.runtime, TABLES, {"v": plan})
            engine = fresh
        before = _content(plan, table)
        after = table + Relation(tick.items())
        content = _content(plan, after)
        if content is None:
            with pytest.raises(Divergence):
                engine.tick({"edges": tick.items()})
            continue
        result = engine.tick({"edges": tick.items()})
        table = after
        if "v" in engine.circuit.views:
            assert engine.view("v") == content, f"tick {number}"
            assert before is None or number == loaded or engine.change("v", result) == content - before, f"tick {number}"


def _content(plan: Plan, table: Relation) -> Relation | None:
    try:
        return evaluate(plan, {"edges": table})
    except Divergence:
        return None


def random_ticks(rng: random.Random, count: int, nodes: int = NODES) -> list[dict[Edge, int]]:
    """Changes of a multiset of edges, with about as many deletions as insertions."""
    table: dict[Edge, int] = {}
    ticks = []
    for number in range(count):
        tick: dict[Edge, int] = {}
        for _ in range(rng.choice((6, 9)) if number == 0 else rng.choice((1, 1, 2, 3))):
            edge = rng.choice(sorted(table)) if table and rng.random() < 0.55 else (rng.randrange(nodes), rng.randrange(nodes))
            change = -1 if table.get(edge, 0) and rng.random() < 0.8 else 1
            table[edge] = table.get(edge, 0) + change
            tick[edge] = tick.get(edge, 0) + change
            if not table[edge]:
                del table[edge]
        ticks.append({edge: w for edge, w in tick.items() if w})
    return ticks


@pytest.mark.parametrize("name", PLANS)
def test_recursive_views_equal_evaluation_from_scratch(name: str) -> None:
    for seed in range(4):
        check(PLANS[name], random_ticks(random.Random(seed), 6))


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_recursive_views_equal_evaluation_from_scratch_at_length(name: str) -> None:
    for seed in rotating(40):
        check(PLANS[name], random_ticks(random.Random(seed), 12))


@pytest.mark.parametrize("name", ["closure", "shortest", "count_inside", "nested_closure", "semi_and_anti"])
def test_a_new_recursive_view_is_filled_from_old_tables(name: str) -> None:
    check(PLANS[name], random_ticks(random.Random(7), 8), loaded=3)


@pytest.mark.parametrize("name", ["closure", "left_closure", "non_linear_closure"])
def test_rows_that_only_a_deleted_edge_supported_are_removed(name: str) -> None:
    check(PLANS[name], [{(0, 2): 1, (2, 0): 1, (2, 1): 1}, {(2, 1): -1}, {(2, 0): -1}, {(0, 2): -1}])


def test_a_cycle_that_loses_its_only_support_is_removed() -> None:
    cycle: Mapping[Edge, int] = {(0, 1): 1, (1, 2): 1, (2, 3): 1, (3, 1): 1}
    check(PLANS["reachable"], [dict(cycle), {(0, 1): -1}, {(0, 3): 1}, {(0, 3): -1, (0, 2): 1}])


def test_a_cycle_of_derivations_diverges_and_the_tick_has_no_effect() -> None:
    check(plans()["derivations"], [{(1, 2): 1}, {(2, 1): 1}, {(2, 3): 1, (2, 1): -1}])


def test_explain_shows_scopes_and_the_work_of_their_operators() -> None:
    engine = embedded(TABLES, {"v": PLANS["nested_closure"]})
    result = engine.tick({"edges": [((0, 1), 1), ((1, 2), 1)]})
    explanation = explain({"v": PLANS["nested_closure"]}, engine.circuit, engine.runtime.statistics(), result, 1, sources={}, sinks={})
    operators = {o.id: o for o in explanation.operators}
    child = next(o for o in explanation.operators if o.operator == "child" and "." not in o.id)
    inner = next(o for o in explanation.operators if o.operator == "child" and o.id.startswith(f"{child.id}."))
    feedback = next(o for o in explanation.operators if o.operator == "feedback" and o.id.startswith(f"{inner.id}."))
    join = next(o for o in explanation.operators if o.operator == "join_trace" and o.id.startswith(f"{inner.id}."))
    assert all(name in operators for o in explanation.operators for name in o.inputs)
    assert feedback.inputs[0].rpartition(".")[0] == inner.id
    assert join.rows_touched > 0 and join.rows_out > 0 and join.key
    assert all(o.state_rows > 0 for o in explanation.operators if o.state)
    assert f"    {inner.id} child" in str(explanation)
