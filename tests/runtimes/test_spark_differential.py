"""Random programs on Spark: the same stage function, equal to the oracle after every tick."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines import Engine, run
from programs import Mix, case, expected
from pyspark.sql import SparkSession

from deltic.runtimes.spark import SparkRuntime

pytestmark = pytest.mark.spark
FEW = 3
MANY = 100


def check(spark: SparkSession, folder: Path, seed: int, mix: Mix | None = None) -> None:
    program = case(seed)
    outcomes = expected(program)
    runtime = SparkRuntime(spark, str(folder / f"state{seed}"), 2 + seed % 2)
    try:
        run(Engine(runtime, program.tables, program.views), program, outcomes)
    finally:
        runtime.close()
    if mix is not None:
        mix.record(program, outcomes)


@pytest.mark.parametrize("seed", range(20_000, 20_000 + FEW))
def test_random_programs_on_spark(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, seed)


@pytest.mark.slow
def test_many_random_programs_on_spark(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mix = Mix()
    for seed in range(MANY):
        check(spark, tmp_path, seed, mix)
    with capsys.disabled():
        print(f"\non Spark: {mix}")
    mix.assert_fair()
