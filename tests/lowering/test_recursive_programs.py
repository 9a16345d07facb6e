"""Datalog programs whose recursion is one kernel call: output and state equal those of the operators, to the row and the iteration."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from benchmarks import programs
from datalog_programs import changes, random_program
from deltic.circuit.operators.recursion import RecursiveScope
from deltic.errors import Divergence, WeightOverflow
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Plan, Recursion, Reference, Table
from deltic.plan.relation import Relation
from deltic.runtimes.embedded import Embedded
from deltic.schema import BIGINT, Field, Schema, TableSchema
from deltic.session import Datalog
from deltic.session.catalog import Catalog
from deltic.session.datalog import datalog_statements
from deltic.session.draft import Draft
from engines import Engine, Row
from parts import slow
from recursive_plans import EDGES, PAIR, TABLES, columns, path, union
from scope_kernels import kept, operator_by_operator, scopes
from seeds import rotating

PAIRS = "input relation E(a: s64, b: s64)\ninput relation F(a: s64, b: s64)\n"
PROGRAMS = {
    "points_to": programs.POINTS_TO.text(),
    "same_generation": programs.SAME_GENERATION.text(),
    "classes": programs.CLASSES.text(),
    "siblings": PAIRS + "output relation P(a: s64, b: s64)\nP(x, y) :- E(x, y).\nP(x, y) :- P(p, x), P(p, y).",
    "compared": PAIRS + "output relation P(a: s64, b: s64)\nP(x, y) :- E(x, y).\nP(x, z) :- P(x, y), P(y, z), x < z, z != 3.",
    "constants": PAIRS + "output relation P(a: s64, b: s64)\nP(x, y) :- E(x, y).\nP(x, 1) :- P(x, y), P(y, x).\nP(2, y) :- F(2, y).",
    "projected": PAIRS + "relation N(a: s64)\noutput relation P(a: s64, b: s64)\nP(x, y) :- E(x, y).\nN(x) :- P(x, _), F(x, _).\n"
    "P(x, y) :- N(x), N(y).\nP(y, x) :- P(x, y), N(y).",
    "chained": PAIRS + "output relation P(a: s64, b: s64)\nP(x, y) :- E(x, y).\nP(x, w) :- P(x, y), F(y, z), P(z, w).",
    "triangles": PAIRS + "output relation P(a: s64, b: s64)\nP(x, y) :- E(x, y).\nP(y, x) :- P(x, y), P(y, z), P(x, z).",
    "by_two_keys": PAIRS + "output relation P(a: s64, b: s64)\nrelation Q(a: s64, b: s64)\nP(x, y) :- E(x, y).\n"
    "Q(x, z) :- P(x, y), P(y, z).\nP(x, y) :- Q(x, y), P(x, y), F(x, _).\nP(x, z) :- Q(x, y), F(y, z).\n"
    "Q(y, x) :- P(x, y), Q(x, z), F(z, y).",
}


def compiled(text: str) -> tuple[dict[str, TableSchema], dict[str, Plan]]:
    draft = Draft(Catalog())
    for statement in datalog_statements(Datalog(text), draft, warn=False):
        draft.apply(statement)
    return {table.name: table for table in draft.catalog.tables.values()}, draft.catalog.plans()


def engines(text: str, count: int) -> list[Engine]:
    tables, plans = compiled(text)
    return [Engine(Embedded(), tables, plans) for _ in range(count)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_one_call(name: str) -> None:
    (engine,) = engines(PROGRAMS[name], 1)
    assert scopes(engine, RecursiveScope) == 1


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seeds", [range(2), *slow(rotating(40))], ids=len)
def test_a_kernel_keeps_the_state_of_the_operators(name: str, seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        values, rows, batch = rng.choice((3, 4, 6)), rng.choice((5, 10, 20)), rng.choice((1, 3, 8))
        both = engines(PROGRAMS[name], 2)
        content = {table: Relation() for table in both[0].tables}
        for tick in range(7):
            change: dict[str, list[tuple[Row, int]]] = {table: [] for table in content}
            for _ in range(rows if tick == 0 else batch):
                table = rng.choice(sorted(content))
                row = tuple(rng.randrange(values) for _ in both[0].tables[table].schema)
                present = content[table].get(row, 0)
                change[table].append((row, -1 if present else 1))
                content[table] = content[table] + Relation(change[table][-1:])
            run_both(both, change, monkeypatch)
            for view, plan in both[0].plans.items():
                assert both[0].view(view) == evaluate(plan, content), f"{name}, seed {seed}, tick {tick}"
            assert kept(both[0]) == kept(both[1]), f"{name}, seed {seed}, tick {tick}"


def run_both(both: list[Engine], change: dict[str, list[tuple[Row, int]]], monkeypatch: pytest.MonkeyPatch) -> None:
    both[0].tick(change)
    with operator_by_operator(monkeypatch):
        both[1].tick(change)


@pytest.mark.parametrize("seeds", [range(10), *slow(rotating(600))])
def test_random_programs_keep_the_state_of_the_operators(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    found = 0
    for seed in seeds:
        program = random_program(seed)
        both = engines(program.text, 2)
        found += scopes(both[0], RecursiveScope)
        if not scopes(both[0], RecursiveScope):
            continue
        for deleted, inserted in changes(program, 4):
            run_both(both, {t: [*((r, -1) for r in deleted[t]), *((r, 1) for r in inserted[t])] for t in program.inputs}, monkeypatch)
            assert kept(both[0]) == kept(both[1]), (seed, program.text)
    assert found


def test_a_weight_beyond_64_bits_is_an_error() -> None:
    """Three ways through rows of weight 2^62."""
    heavy = TableSchema("heavy", PAIR)
    x, edges = Reference("x", Schema(tuple(Field(f"c{i}", BIGINT, False) for i in range(2)))), columns(Table(EDGES), 0, 1)
    plan = Recursion((("x", union(edges, path(path(x, Table(heavy)), x))),), "x")
    engine = Engine(Embedded(), {**TABLES, "heavy": heavy}, {"v": plan})
    assert scopes(engine, RecursiveScope) == 1
    engine.tick({"edges": [((0, 1), 1), ((0, 2), 1), ((0, 3), 1), ((4, 9), 1)], "heavy": [((1, 4), 2**62)]})
    before = kept(engine)
    with pytest.raises(WeightOverflow):
        engine.tick({"heavy": [((2, 4), 2**62), ((3, 4), 2**62)]})
    assert kept(engine) == before


def test_the_relation_that_diverges_is_named_with_its_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kernel as by the operators, whichever of several relations it is."""
    tables, plans = compiled(PROGRAMS["by_two_keys"])
    recursions = {name: replace(plan, limit=2) for name, plan in plans.items() if isinstance(plan, Recursion)}
    assert recursions
    for name, plan in recursions.items():
        change: dict[str, list[tuple[Row, int]]] = {"E": [((i, i + 1), 1) for i in range(20)], "F": [((3, 4), 1), ((4, 3), 1)]}
        messages = []
        for _ in range(2):
            engine = Engine(Embedded(), tables, {name: plan})
            with pytest.raises(Divergence) as raised:
                engine.tick(change)
            messages.append(str(raised.value))
            with operator_by_operator(monkeypatch), pytest.raises(Divergence) as raised:
                engine.tick(change)
            messages.append(str(raised.value))
        assert len(set(messages)) == 1
