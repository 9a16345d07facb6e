"""Random programs on Spark: the same stage function, equal to the oracle after every tick, also from state written by another engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltic.runtimes import Runtime
from deltic.runtimes.embedded import DurableEmbedded
from deltic.runtimes.spark import SparkRuntime
from engines import Engine, restarts, run
from programs import Case, Mix, case, expected, mixed
from seeds import rotating
from stream_programs import compare, stream_case

pytestmark = pytest.mark.spark
FEW = (20_001, 20_002)
FEW_RECURSIVE = (30_005,)
MANY = 100
RECURSIVE = 200


def check(spark: SparkSession, folder: Path, program: Case, mix: Mix | None = None) -> None:
    """Half of the cases resume from state at random ticks, on Spark or embedded, with the same or another number of shards."""
    seed = program.seed
    outcomes = expected(program)
    state = str(folder / f"state{seed}")

    def on_spark(shards: int | None) -> Runtime:
        return SparkRuntime(spark, state, shards)

    def embedded(shards: int | None) -> Runtime:
        return DurableEmbedded(state, shards)

    engine = Engine(on_spark(2 + seed % 2), program.tables, program.views)
    try:
        reopened = restarts(seed, len(program.ticks), on_spark, embedded) if seed % 2 else {}
        run(engine, program, outcomes, restarts=reopened)
    finally:
        engine.runtime.close()
    if mix is not None:
        mix.record(program, outcomes, restarted=any(number > 0 for number in reopened))


@pytest.mark.parametrize("seed", FEW)
def test_random_programs_on_spark(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, case(seed))


@pytest.mark.parametrize("seed", FEW_RECURSIVE)
def test_random_recursive_programs_on_spark(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, mixed(seed))


@pytest.mark.slow
def test_many_random_recursive_programs_on_spark(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mix = Mix()
    for seed in rotating(RECURSIVE):
        check(spark, tmp_path, mixed(seed), mix)
    with capsys.disabled():
        print(f"\non Spark: {mix}")
    mix.assert_recursive(restarted=0.4)


@pytest.mark.slow
def test_many_random_programs_on_spark(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mix = Mix()
    for seed in rotating(MANY):
        check(spark, tmp_path, case(seed), mix)
    with capsys.disabled():
        print(f"\non Spark: {mix}")
    mix.assert_fair()


@pytest.mark.slow
def test_many_programs_over_streams_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    programs = [program for seed in rotating(30) if (program := stream_case(seed)) is not None]
    assert len(programs) > 20
    for program in programs:
        state = str(tmp_path / f"stream{program.seed}")
        engine = Engine(SparkRuntime(spark, state, 2), program.tables, program.views)
        try:
            compare(program, engine, lambda state=state: DurableEmbedded(state, None))
        finally:
            engine.runtime.close()
