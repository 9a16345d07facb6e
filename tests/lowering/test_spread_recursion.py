"""Recursions that pass columns on unchanged run on every shard, each for its values; all others on the home shard."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from test_recursion import Edge, random_ticks

import deltic
from deltic.circuit.operators.child import Child
from deltic.explain import explain
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Plan
from deltic.plan.relation import Relation
from deltic.runtimes.embedded import DurableEmbedded
from deltic.trace.counters import Counters
from engines import Engine, durable, embedded
from recursive_plans import NODES, TABLES, plans

PLANS = plans()
EDGES = "CREATE TABLE edges (src BIGINT, dst BIGINT, kind STRING NOT NULL, length DOUBLE NOT NULL);"
STEP = "FROM p JOIN edges e ON p.dst = e.src"


def columns(query: str) -> list[str]:
    """The names of the columns that the one recursion of the view passes on."""
    session = deltic.Session()
    session.sql(f"{EDGES} CREATE MATERIALIZED VIEW v AS WITH RECURSIVE p AS ({query}) SELECT * FROM p")
    (child,) = (node for node in session._definitions.circuit.nodes if isinstance(node.operator, Child))
    names = [field.name for field, at in zip(child.shape.schema, child.shape.layout.slices, strict=True) if at.stop - 1 in child.partition]
    session.close()
    return names


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        (f"SELECT src, dst FROM edges UNION SELECT p.src, e.dst {STEP}", ["src"]),
        ("SELECT src, dst FROM edges UNION SELECT e.src, p.dst FROM edges e JOIN p ON e.dst = p.src", ["dst"]),
        (f"SELECT src, dst, kind FROM edges UNION SELECT p.src, e.dst, p.kind {STEP} AND p.kind = e.kind", ["src", "kind"]),
        (f"SELECT src, dst, kind FROM edges UNION SELECT p.src, e.dst, e.kind {STEP} AND p.kind = e.kind", ["src"]),
        (f"SELECT src, dst, 0L AS steps FROM edges UNION ALL SELECT p.src, e.dst, p.steps + 1 {STEP} WHERE p.steps < 3", ["src"]),
        ("SELECT src, dst FROM edges UNION SELECT p.src, e.dst FROM p JOIN edges e ON p.src = e.src", ["src"]),
        (f"SELECT src, dst FROM edges UNION SELECT p.src, e.dst {STEP} WHERE p.src IN (SELECT dst FROM edges WHERE kind = 'a')", ["src"]),
        (f"SELECT src, dst FROM edges UNION SELECT p.src, e.dst {STEP} WHERE EXISTS (SELECT 1 FROM edges f WHERE f.src > p.dst)", ["src"]),
        (f"SELECT src, dst FROM edges UNION SELECT p.src, e.dst {STEP} WHERE p.dst + 1 IN (SELECT src FROM edges)", ["src"]),
        (f"SELECT src, dst FROM edges UNION SELECT p.src, e.dst {STEP} WHERE p.dst IN (SELECT src + 1 FROM edges)", []),
        (f"SELECT src, dst FROM edges UNION SELECT p.src, e.dst {STEP} UNION SELECT p.dst, e.src {STEP}", []),
        ("SELECT src, dst FROM edges UNION SELECT a.src, b.dst FROM p a JOIN p b ON a.dst = b.src", []),
        (f"SELECT length, dst FROM edges UNION SELECT p.length, e.dst {STEP}", []),
        (f"SELECT dst FROM edges UNION SELECT e.dst {STEP}", []),
        (f"SELECT src, dst FROM edges UNION SELECT p.src + 0, e.dst {STEP}", []),
    ],
)
def test_the_columns_that_are_passed_on(query: str, kept: list[str]) -> None:
    assert columns(query) == kept


@pytest.mark.parametrize("name", ["nested_closure", "even_and_odd", "shortest", "thrice", "non_linear_closure", "count_inside"])
def test_other_recursions_stay_together(name: str) -> None:
    assert spread(embedded(TABLES, {"v": PLANS[name]})) == [False]


def spread(engine: Engine) -> list[bool]:
    return [node.operator.spread for node in engine.circuit.nodes if isinstance(node.operator, Child)]


def test_the_work_and_the_state_are_spread() -> None:
    engine = embedded(TABLES, {"v": PLANS["closure"]}, 3)
    assert spread(engine) == [True]
    edges = [((a, b), 1) for a in range(40) for b in (a + 1,)]
    engine.tick({"edges": edges})
    (child,) = (node for node in engine.circuit.nodes if isinstance(node.operator, Child))
    sizes = {name: [len(spine.scan(Counters())) for spine in engine.runtime.snapshot(name)] for name in child.inner}
    assert all(sum(per_shard) == 40 * 41 // 2 and min(per_shard) > 100 for per_shard in sizes.values()), sizes
    (joined,) = (name for name in child.reads)
    assert [len(spine.scan(Counters())) for spine in engine.runtime.snapshot(joined)] == [40] * 3
    result = engine.tick({"edges": [((39, 40), -1)]})
    assert len(engine.change("v", result)) == 40
    assert sum(counters.rows_out for name, counters in result.counters.items() if name == child.name) == 40


def test_explain_shows_relations_on_every_shard() -> None:
    engine = embedded(TABLES, {"v": PLANS["closure"]}, 2)
    result = engine.tick({"edges": [((0, 1), 1)]})
    explanation = explain({"v": PLANS["closure"]}, engine.circuit, engine.runtime.statistics(), result, 2, sources={}, sinks={})
    where = {operator.operator: operator.partition for operator in explanation.operators}
    assert where["child"] == where["feedback"] == "by hash (src)"
    assert "every shard" in {operator.partition for operator in explanation.operators if operator.operator == "exchange"}


def resharded(plan: Plan, folder: Path, ticks: Sequence[dict[Edge, int]], shards: Sequence[int]) -> None:
    """The ticks, each after the first with another number of shards; the view must equal the oracle's after each."""
    engine = durable(TABLES, {"v": plan}, folder / "state", shards[0])
    assert spread(engine) == [True]
    table = Relation()
    for number, (tick, count) in enumerate(zip(ticks, shards, strict=True)):
        if number:
            engine.restart(lambda count=count: DurableEmbedded(str(folder / "state"), count))
        result = engine.tick({"edges": tick.items()})
        before, table = table, table + Relation(tick.items())
        now = evaluate(plan, {"edges": table})
        assert engine.view("v") == now, f"tick {number}"
        assert engine.change("v", result) == now - evaluate(plan, {"edges": before}), f"tick {number}"
    engine.runtime.close()


PATH = {(a, a + 1): 1 for a in range(NODES - 1)}


@pytest.mark.parametrize("name", ["closure", "left_closure", "derivations", "semi_by_condition"])
def test_a_state_resumes_with_any_number_of_shards(name: str, tmp_path: Path) -> None:
    """Rows of other shards in a shard's files are not joined."""
    cut, restored = {(2, 3): -1}, {(2, 3): 1}
    resharded(PLANS[name], tmp_path, [PATH, cut, restored, {(1, 2): -1, (0, 3): 1}, restored], [2, 3, 4, 1, 5])


@pytest.mark.parametrize("name", ["closure", "semi_by_condition"])
def test_random_changes_with_any_number_of_shards(name: str, tmp_path: Path) -> None:
    for seed in range(4):
        rng = random.Random(seed)
        resharded(PLANS[name], tmp_path / str(seed), random_ticks(rng, 7), [rng.randint(1, 5) for _ in range(7)])
