"""A cyclic join is one multiway join, with any filters between its relations, or a note says why not."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

import deltic
from deltic.errors import EvaluationError
from deltic.optimizer import optimize
from deltic.optimizer.form_multiway_joins import binary_cycles
from deltic.optimizer.hypergraph import cyclic_core
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import MultiwayJoin, Plan, TemporalFilter
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.plan.walk import nodes
from deltic.storage.program import CLOCK
from engines import embedded
from parts import slow
from random_joins import ALL, NOW, SEEN_THROUGH, TABLES, Wrapping, conditioned, permuted, random_atoms, random_join, random_tables, timed
from seeds import rotating

SEEDS = range(80)
TIMED = (22, 49)


def is_cyclic(atoms: list[str]) -> bool:
    return bool(cyclic_core([frozenset(map(ord, atom)) for atom in atoms]))


def of_seed(seed: int, wrappings: tuple[Wrapping, ...], *, loose: bool = False) -> tuple[list[str], Plan, Plan]:
    rng = random.Random(seed)
    atoms = random_atoms(rng)
    plan = random_join(rng, atoms, wrappings, loose=loose)
    return atoms, plan, optimize(plan)


def formed(plan: Plan) -> bool:
    return any(isinstance(node, MultiwayJoin) for node in nodes(plan))


def test_a_cycle_is_a_multiway_join_through_filters_of_all_kinds_and_beside_other_relations() -> None:
    cyclic = 0
    for seed in SEEDS:
        atoms, plan, after = of_seed(seed, SEEN_THROUGH)
        cyclic += is_cyclic(atoms)
        assert formed(after) is is_cyclic(atoms), f"seed {seed}, {atoms}\n{show(plan)}\n{show(after)}"
        assert not list(binary_cycles(after)), f"seed {seed}, {atoms}\n{show(plan)}\n{show(after)}"
    assert len(SEEDS) / 5 < cyclic < len(SEEDS) * 3 / 4


@pytest.mark.parametrize(("wrappings", "loose"), [(ALL, False), (ALL, True), ((), True)])
def test_a_cycle_is_a_multiway_join_or_there_is_a_note_why_not(wrappings: tuple[Wrapping, ...], loose: bool) -> None:
    noted = 0
    for seed in SEEDS:
        atoms, plan, after = of_seed(seed, wrappings, loose=loose)
        if is_cyclic(atoms):
            notes = list(binary_cycles(after))
            noted += bool(notes)
            assert formed(after) or notes, f"seed {seed}, {atoms}\n{show(plan)}\n{show(after)}"
    assert noted > 2


@pytest.mark.parametrize("first", [0, *slow(*rotating(350)[::50])])
def test_a_formed_join_means_the_same_and_fails_nowhere_else(first: int) -> None:
    meant = 0
    for seed in range(first, first + 50):
        _, plan, after = of_seed(seed, ALL, loose=seed % 2 == 1)
        tables = random_tables(random.Random(seed))
        try:
            before = evaluate(plan, tables, now=NOW)
        except EvaluationError:
            continue
        meant += bool(before)
        assert evaluate(after, tables, now=NOW) == before, f"seed {seed}\n{show(plan)}\n{show(after)}"
    assert meant > 5


@pytest.mark.parametrize(("seed", "shards"), [(seed, 1 + 2 * (seed % 2)) for seed in TIMED])
def test_engines_maintain_it(seed: int, shards: int) -> None:
    _, plan, after = of_seed(seed, (timed, conditioned, permuted))
    assert formed(after) and any(isinstance(node, TemporalFilter) for node in nodes(after))
    engine = embedded(TABLES, {"view": plan}, shards)
    content, sizes = {name: Relation() for name in TABLES}, []
    for tick in range(4):
        now = NOW + (tick - 1) * timedelta(hours=1)
        changes = {name: list(new.pairs()) for name, new in random_tables(random.Random(10 * seed + tick)).items()}
        if tick == 2:
            changes["g"] = [(row, -weight) for row, weight in content["g"].pairs()]
        content = {name: content[name] + Relation(changes[name]) for name in TABLES}
        engine.tick(changes, notes={CLOCK: int(now.timestamp() * 1_000_000)})
        view = engine.view("view")
        assert view == evaluate(plan, content, now=now), f"tick {tick}\n{show(plan)}"
        sizes.append(len(view))
    assert len(set(sizes)) > 2, sizes


TRIANGLE = """
CREATE TABLE e (s BIGINT, d BIGINT, at TIMESTAMP);
CREATE MATERIALIZED VIEW v AS SELECT x.s, y.s AS m, z.s AS t FROM e x, e y, e z
WHERE x.d = y.s AND y.d = z.s AND z.d = x.s AND greatest(x.at, y.at) <= now();
"""


def test_a_temporal_condition_over_two_sides_of_a_triangle_stores_no_paths() -> None:
    with deltic.Session() as session:
        session.advance_to(NOW)
        session.sql(TRIANGLE)
        session.apply({"e": [{"s": i, "d": 0, "at": NOW, "_op": "insert"} for i in range(1, 60)]})
        session.apply({"e": [{"s": 0, "d": i, "at": NOW, "_op": "insert"} for i in range(1, 60)]})
        text = str(session.explain())
        assert "multiway join" in text and "stay binary" not in text, text
        stored = sum(node.state_rows for node in session.explain().operators)
        assert 0 < stored < 1000, f"{stored} rows for 118 edges with 3,481 paths\n{text}"


def test_explain_says_why_a_cycle_stays_binary() -> None:
    with deltic.Session(clock="wall") as session:
        session.sql(TRIANGLE.replace("FROM e x, e y, e z", "FROM e x JOIN e y ON x.d = y.s LEFT JOIN e o ON o.s = x.s JOIN e z"))
        assert "joins that form a cycle stay binary: an outer join is one of them or between them" in str(session.explain())


EDGES = "CREATE TABLE e (a BIGINT NOT NULL, b BIGINT NOT NULL); CREATE TABLE n (a BIGINT, b BIGINT);"
CLOSED = {
    "null-safe": "e x JOIN e y ON x.b = y.a JOIN e z ON z.a = x.a AND z.b <=> y.b",
    "null-safe of two": "n x JOIN n y ON x.b = y.a JOIN n z ON z.a = x.a AND z.b <=> y.b",
    "null-safe of one side": "e x JOIN e y ON x.b = y.a JOIN n z ON z.a = x.a AND z.b <=> y.b",
    "left": "e x LEFT JOIN e y ON x.b = y.a JOIN e z ON z.a = x.a AND z.b = y.b",
    "right": "e y RIGHT JOIN e x ON x.b = y.a JOIN e z ON z.a = x.a AND z.b = y.b",
    "full": "e x FULL JOIN e y ON x.b = y.a JOIN e z ON z.a = x.a AND z.b = y.b",
    "where": "e x LEFT JOIN e y ON x.b = y.a LEFT JOIN e z ON z.a = x.a AND z.b = y.b WHERE z.b > 0",
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_cycle_through_an_equivalent_of_inner_equijoins_stores_no_paths(name: str) -> None:
    with deltic.Session() as session:
        session.sql(f"{EDGES} CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM {CLOSED[name]};")
        edges = [{"a": i, "b": 0} for i in range(1, 60)] + [{"a": 0, "b": i} for i in range(1, 60)] + [{"a": 1, "b": 2}]
        session.apply({t: [{**edge, "_op": "insert"} for edge in edges] for t in ("e", "n")})
        text = str(session.explain())
        assert "multiway join" in text and "stay binary" not in text, text
        stored = sum(node.state_rows for node in session.explain().operators)
        assert 0 < stored < 1000, f"{stored} rows for 119 edges with 3,481 paths\n{text}"


NOTED = {
    "e x JOIN e y ON x.b = y.a LEFT JOIN e z ON z.a = x.a AND z.b = y.b": "an outer join is one of them or between them",
    "e x JOIN e y ON x.b = y.a FULL JOIN e z ON z.a = x.a AND z.b = y.b": "an outer join is one of them or between them",
    "e x LEFT JOIN (e y JOIN e z ON y.b = z.b) ON x.a = z.a AND x.b = y.a": "an outer join is one of them or between them",
    "n x JOIN n y ON x.b = y.a JOIN n z ON z.a = x.a AND if(z.b > 0, array(z.b), NULL) <=> if(y.b > 0, array(y.b), NULL)": (
        "<=> compares nested values that can be NULL"
    ),
}


@pytest.mark.parametrize("joins", NOTED)
def test_explain_names_the_outer_join_or_the_null_safe_comparison_of_a_cycle(joins: str) -> None:
    with deltic.Session() as session:
        session.sql(f"{EDGES} CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM {joins};")
        assert f"joins that form a cycle stay binary: {NOTED[joins]}" in str(session.explain())
