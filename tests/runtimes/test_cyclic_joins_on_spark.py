"""Random programs of cyclic joins on Spark, equal to the oracle after every tick, also from state with another number of shards."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from test_spark_differential import check

from cyclic_programs import consumed, cyclic, recursive
from seeds import rotating

pytestmark = pytest.mark.spark
FEW = 1
MANY = 60


@pytest.mark.parametrize("seed", range(101, 101 + FEW))
def test_cyclic_programs_on_spark(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, cyclic(seed))


@pytest.mark.slow
def test_many_cyclic_programs_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    for seed in rotating(MANY):
        check(spark, tmp_path, (recursive, cyclic, consumed)[seed % 3](seed))
