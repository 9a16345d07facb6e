"""Random Datalog programs under random changes: equal to the oracle on the same plans, and to clingo on the program itself.

Recursion, negation, aggregates and several heads; on one and several shards, over restarts, and on Spark.
"""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

import deltic
from datalog_programs import Content, RandomProgram, changes, model, random_program
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Plan
from deltic.plan.relation import Relation
from seeds import rotating

FAST = 6
SLOW = 5_000
"""Programs of a slow run, some 10 a second on one processor; two days have 10,000."""
SLICES = 40
ON_SPARK = 100
TICKS = 4


def check(seed: int, folder: Path | None = None, shards: int = 1, spark: Any = None) -> int:
    """Runs a program; folder: of a state, which is reopened after every second tick. Returns how many rows its relations had."""
    program = random_program(seed)
    content: Content = {name: set() for name in program.inputs}
    session, rows = opened(program, folder, shards, spark), 0
    plans = session._catalog.plans()
    try:
        for tick, (deleted, inserted) in enumerate(changes(program, TICKS)):
            if folder is not None and tick % 2:
                session.close()
                session = opened(program, folder, None, spark)
            with session.transaction() as tx:
                for name, width in program.inputs.items():
                    names = [f"c{i}" for i in range(width)]
                    if deleted[name]:
                        tx.delete(name, [dict(zip(names, row, strict=True)) for row in deleted[name]])
                    if inserted[name]:
                        tx.insert(name, [dict(zip(names, row, strict=True)) for row in inserted[name]])
                    content[name] = (content[name] - set(deleted[name])) | set(inserted[name])
            expected = model(program, content)
            tables = {name: dict.fromkeys(relation, 1) for name, relation in content.items()}
            views: dict[Plan, Relation] = {}
            for name, relation in expected.items():
                views[plans[name]] = evaluate(plans[name], tables, views=views)
                assert dict(views[plans[name]]) == dict.fromkeys(relation, 1), (seed, tick, name, program.text)
                found = [tuple(row.values()) for row in session.view(name).rows()]
                assert sorted(found) == sorted(relation), (seed, tick, name, program.text)
                rows += len(relation)
    finally:
        session.close()
    return rows


def opened(program: RandomProgram, folder: Path | None, shards: int | None, spark: Any) -> deltic.Session:
    session = deltic.Session(spark=spark, state=folder, shards=shards)
    session.datalog(program.text, warn=False, inspect=lambda line: None)
    return session


def test_programs_are_what_they_should_be() -> None:
    programs = [random_program(seed) for seed in range(200)]
    rules = [rule for program in programs for rule in program.rules]
    assert sum(rule.aggregate is not None for rule in rules) > 50
    assert sum(bool(rule.negated) for rule in rules) > 100
    assert sum(len(rule.heads) > 1 for rule in rules) > 20
    assert sum(any(head == atom.relation for head, _ in rule.heads for atom in rule.atoms) for rule in rules) > 50


def test_random_programs() -> None:
    assert sum(check(seed, shards=1 + 2 * (seed % 2)) for seed in range(FAST)) > 50


def test_random_programs_with_restarts(tmp_path: Path) -> None:
    for seed in range(100, 104):
        check(seed, tmp_path / f"state{seed}", 1 + seed % 3)


@pytest.mark.slow
@pytest.mark.parametrize("slice_", range(SLICES))
def test_many_random_programs(slice_: int, tmp_path: Path) -> None:
    for seed in rotating(SLOW)[slice_::SLICES]:
        folder = tmp_path / "state" if seed % 10 == 0 else None
        check(seed, folder, 1 + seed % 3)
        if folder is not None:
            rmtree(folder)


@pytest.mark.slow
@pytest.mark.spark
def test_many_random_programs_on_spark(spark: Any, tmp_path: Path) -> None:
    for seed in rotating(ON_SPARK):
        check(seed, tmp_path / f"state{seed}", 2, spark)
