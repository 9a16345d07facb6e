"""Random programs on Spark: the same stage function, equal to the oracle after every tick."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from engines import Engine, run
from programs import Case, Mix, case, expected, mixed
from pyspark.sql import SparkSession

from deltic.runtimes.spark import SparkRuntime

pytestmark = pytest.mark.spark
FEW = 3
MANY = 100
RECURSIVE = 200


def check(spark: SparkSession, folder: Path, program: Case, *, restarts: bool = False, mix: Mix | None = None) -> None:
    """The case from its first tick to its last, with a restart from its state in the middle if asked."""
    outcomes = expected(program)
    middle = len(outcomes) // 2 if restarts else 0
    for part in (slice(0, middle), slice(middle, None)):
        if outcomes[part]:
            runtime = SparkRuntime(spark, str(folder / f"state{program.seed}"), 2 + program.seed % 2)
            try:
                run(Engine(runtime, program.tables, program.views), replace(program, ticks=program.ticks[part]), outcomes[part])
            finally:
                runtime.close()
    if mix is not None:
        mix.record(program, outcomes)


@pytest.mark.parametrize("seed", range(20_000, 20_000 + FEW))
def test_random_programs_on_spark(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, case(seed))


@pytest.mark.parametrize("seed", [30_005, 30_009])
def test_random_recursive_programs_on_spark(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, mixed(seed), restarts=True)


@pytest.mark.slow
def test_many_random_recursive_programs_on_spark(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mix = Mix()
    for seed in range(RECURSIVE):
        check(spark, tmp_path, mixed(seed), restarts=seed % 3 == 0, mix=mix)
    with capsys.disabled():
        print(f"\non Spark: {mix}")
    mix.assert_recursive()


@pytest.mark.slow
def test_many_random_programs_on_spark(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mix = Mix()
    for seed in range(MANY):
        check(spark, tmp_path, case(seed), mix=mix)
    with capsys.disabled():
        print(f"\non Spark: {mix}")
    mix.assert_fair()
