"""Random Datalog programs with streams, delays, feedback and accumulators: equal to the oracle, on shards, over restarts and on Spark."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from datalog_stream_programs import INPUTS, SIZE, STREAMS, stream_program
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.nodes import Plan
from deltic.plan.relation import Relation
from seeds import rotating

SLOW = 1_000
SLICES = 20
TICKS = 5
Row = tuple[int, ...]


def check(seed: int, options: dict[str, Any]) -> int:
    """Returns how many rows its relations and streams had. To open a state commits notes alone: the next tick has its epoch."""
    program, random = stream_program(seed), Random(seed)
    kept: dict[str, set[Row]] = {name: set() for name in INPUTS}
    moments, total = [Moment({name: Relation() for name in (*INPUTS, *STREAMS)})], 0  # the definition is a tick, too
    session = deltic.Session(**options)
    session.datalog(program.text, warn=False)
    plans, last = session._catalog.plans(), session.epoch
    try:
        for tick in range(TICKS):
            if "state" in options and tick % 2:
                session.close()
                session = deltic.Session(**options | {"shards": random.choice((1, 2, 3))})
                before = session.epoch
                session.datalog(program.text, warn=False)
                last = last if session.epoch == before else session.epoch
            rows = {name: [_row(random, width) for _ in range(random.randrange(1, 6))] for name, width in (INPUTS | STREAMS).items()}
            tables: dict[str, Relation] = {name: Relation((row, 1) for row in rows[name]) for name in STREAMS}
            changes = {name: [_change(row, 1) for row in rows[name]] for name in STREAMS}
            for name, content in kept.items():
                changed = set(rows[name])  # rows that it has are deleted
                changes[name] = [_change(row, -1 if row in content else 1) for row in sorted(changed)]
                content ^= changed
                tables[name] = Relation((row, 1) for row in content)
            session.apply(changes)
            views: dict[Plan, Relation] = {}
            for name in program.outputs:
                contents = Relation((tuple(row.values()), 1) for row in session.view(name).rows())
                views[plans[name]] = evaluate(plans[name], tables, epoch=session.epoch, past=moments, views=views, since=last + 1)
                assert contents == views[plans[name]], (seed, tick, name, program.text)
                total += len(contents)
            moments.append(Moment(tables, epoch=session.epoch, views=views, since=last + 1))
            last = session.epoch
    finally:
        session.close()
    return total


def _row(random: Random, width: int) -> Row:
    return tuple(random.randrange(SIZE) for _ in range(width))


def _change(row: Row, weight: int) -> dict[str, int]:
    return {**{f"c{i}": value for i, value in enumerate(row)}, "_weight": weight}


def test_programs_are_what_they_should_be() -> None:
    text = "\n".join(stream_program(seed).text for seed in range(100))
    for part in ("output stream", "-1(", "-2(", "'(", "-1'(", "not ", "group_by", "stream_aggregate", "None", ", 3)"):
        assert text.count(part) > 10, part


def test_random_programs(tmp_path: Path) -> None:
    assert sum(check(seed, [{}, {"shards": 3}, {"state": tmp_path / f"s{seed}"}][seed % 3]) for seed in range(4)) > 20


def test_a_stream_that_is_always_empty_is_one() -> None:
    with deltic.Session() as session:
        session.datalog(
            """
            input stream S(x: s64)
            relation None_(x: s64)
            None_(x) :- None_-1(x).
            output stream D(x: s64)
            D(x) :- None_(x), S(x).
            output stream E(x: s64)
            E(x) :- D(x).
            E(x) :- S(x).
            output relation F(x: s64)
            F(x) :- D'(x).
        """,
            warn=False,
        )
        session.apply({"S": [{"x": 1, "_weight": 1}]})
        assert [session.view(name).rows() for name in "DEF"] == [[], [{"x": 1}], []]


@pytest.mark.slow
@pytest.mark.parametrize("slice_", range(SLICES))
def test_many_random_programs(slice_: int, tmp_path: Path) -> None:
    for seed in rotating(SLOW)[slice_::SLICES]:
        check(seed, [{}, {"shards": 3}, {"state": tmp_path / f"s{seed}"}][seed % 3])


@pytest.mark.slow
@pytest.mark.spark
def test_random_programs_on_spark(spark: Any, tmp_path: Path) -> None:
    for seed in rotating(20):
        check(seed, {"spark": spark, "state": tmp_path / f"s{seed}"})
