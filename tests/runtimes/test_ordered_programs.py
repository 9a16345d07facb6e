"""Random windows and joins on inequalities, ASOF joins among them: equal to the oracle after every tick, embedded and on Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltic.plan.relation import Relation
from deltic.runtimes import Runtime
from deltic.runtimes.embedded import DurableEmbedded
from deltic.runtimes.spark import SparkRuntime
from engines import Engine, checked_durable, embedded, run
from ordered_programs import drawn, range_case, window_case
from program_windows import LISTS
from programs import Case, expected
from seeds import rotating
from shrink import shrinking

Draw = Callable[[int], Case]
JOINS = {f"{kind} {keys}" for kind in ("inner", "left", "right", "full", "semi", "anti") for keys in ("keyed", "keyless")}
CALLS = {"session_start", *(f"{f} ignore nulls" for f in ("first_value", "last_value", "nth_value", "lag", "lead"))}
EDGES = [(a, b) for edges in (("unbounded", "rows"), ("unbounded", "peers", "range")) for a in edges for b in edges]
FRAMES = {f"{taken} {a} to {b}" for taken in ("pick", "list") for a, b in EDGES}


def check_embedded(program: Case) -> None:
    """Whole on one and on three shards, and row by row."""

    def checked(program: Case) -> None:
        outcomes = expected(program)
        for shards in (1, 3):
            run(embedded(program.tables, program.views, shards), program, outcomes)
        run(embedded(program.tables, program.views, 1 + 2 * (program.seed % 2)), program, outcomes, row_by_row=True)

    shrinking(checked, program)


def check_on_spark(spark: SparkSession, folder: Path, program: Case) -> None:
    """On three shards, with a restart in the middle: on Spark, or every third time embedded with another number of shards."""
    state = str(folder / f"{program.views['view0'].__class__.__name__}{program.seed}")

    def reopened() -> Runtime:
        return DurableEmbedded(state, 2) if program.seed % 3 == 2 else SparkRuntime(spark, state, None)

    engine = Engine(SparkRuntime(spark, state, 3), program.tables, program.views)
    try:
        run(engine, program, expected(program), restarts={(len(program.ticks) + 1) // 2: reopened})
    finally:
        engine.runtime.close()


def shown(programs: Iterable[Case]) -> Counter[str]:
    """How many of the views that ever have rows have each kind of join and window."""
    found = Counter[str]()
    for program in programs:
        outcomes = expected(program)
        for name, plan in program.views.items():
            if any(isinstance(outcome, dict) and outcome[name] != Relation() for outcome in outcomes):
                found.update(drawn(plan))
    return found


@pytest.mark.parametrize("draw", [range_case, window_case])
def test_drawn_programs(draw: Draw) -> None:
    for seed in range(10_000, 10_006):
        check_embedded(draw(seed))


@pytest.mark.parametrize("draw", [range_case, window_case])
def test_drawn_programs_with_restarts_from_state(draw: Draw, tmp_path: Path) -> None:
    for seed in range(11_000, 11_003):
        shrinking(lambda program: checked_durable(program, tmp_path), draw(seed))


@pytest.mark.slow
@pytest.mark.parametrize("draw", [range_case, window_case])
def test_many_drawn_programs(draw: Draw, tmp_path: Path) -> None:
    for seed in rotating(120):
        check_embedded(draw(seed))
        if seed % 4 == 0:
            shrinking(lambda program: checked_durable(program, tmp_path), draw(seed))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("draw", [range_case, window_case])
def test_drawn_programs_on_spark(spark: SparkSession, tmp_path: Path, draw: Draw) -> None:
    for seed in rotating(12):
        check_on_spark(spark, tmp_path, draw(seed))


@pytest.mark.slow
def test_every_kind_of_join_and_window_is_drawn() -> None:
    joins, windows = shown(map(range_case, range(150))), shown(map(window_case, range(300)))
    assert not JOINS - joins.keys() and not (CALLS | FRAMES | {*LISTS}) - windows.keys(), (joins, windows)
