"""Operators over ticks and functions of groups on Spark, on state written by another engine, and back."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deltic
import python_ticks
from python_ticks import Build, Ticking, random_stream
from seeds import rotating

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", autouse=True)
def functions_on_workers(spark: SparkSession) -> None:
    """Circuits call functions of python_ticks, a module that the workers do not have."""
    spark.sparkContext.addPyFile(python_ticks.__file__)


BUILDS: dict[str, Build] = {
    "delayed": lambda e, m: e.delay().plus(m),
    "summed": lambda e, m: e.differentiate().integrate().delay(),
    "new": lambda e, m: e.differentiate().inspect(lambda change: None).distinct_trace(e.differentiate().trace_append()).weighted(),
    "met": lambda e, m: (
        e.differentiate().index_with("dst").join_trace(m.index_with("src").differentiate().trace_append().delay_trace()).weighted()
    ),
    "sizes": lambda e, m: e.index_with("src").aggregate(lambda g: (len(g), sum(n for _, n in g)), schema={"rows": int, "copies": int}),
    "top": lambda e, m: e.plus(m).index_with("dst").top_k(1, "src DESC"),
}


def test_operators_over_ticks_run_alike_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(1)
    with deltic.Session(state=str(tmp_path), shards=2) as session:
        ticking = Ticking(BUILDS, session)
        ticking.random_tick(rng)
    with deltic.Session(spark=spark, state=str(tmp_path)) as session:
        ticking.open(session)
        for _ in range(2):
            ticking.random_tick(rng)
    with deltic.Session(state=str(tmp_path)) as session:
        ticking.open(session)
        ticking.random_tick(rng)
    assert ticking.seen > 30 and ticking.retracted > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", rotating(20))
def test_random_circuits_over_ticks_on_spark(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    number = rng.random()
    builds: dict[str, Build] = {
        f"v{i}": lambda e, m, i=i: random_stream(random.Random(number + i), e, m).weighted("w")  # type: ignore[misc]
        for i in range(3)
    }
    with deltic.Session(spark=spark, state=str(tmp_path), shards=2) as session:
        ticking = Ticking(builds, session)
        for _ in range(2):
            ticking.random_tick(rng)
    with deltic.Session(spark=spark, state=str(tmp_path), shards=3) as session:
        ticking.open(session)
        ticking.random_tick(rng)
