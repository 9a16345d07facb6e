"""The queries of TPC-H, TPC-DS and Nexmark on Spark: DuckDB's answers after a load and after five refreshes, a tenth of them each day."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltic
from benchmarks.queries import SUITES, texts
from nexmark_answers import compared
from parts import slow
from seeds import ROTATION
from tpc_answers import answered
from tpc_shapes import shape_of

QUERIES = [(suite, name) for suite in SUITES for name in texts(suite)]
TENTH = QUERIES[ROTATION % 10 :: 10]

pytestmark = pytest.mark.spark


@pytest.mark.filterwarnings("ignore:.*no equality joins")
@pytest.mark.parametrize(("suite", "name"), slow(*TENTH))
def test_on_spark_as_duckdb(suite: str, name: str, spark: SparkSession, tmp_path: Path) -> None:
    def opened(attempt: int) -> deltic.Session:
        return deltic.Session(spark=spark, state=tmp_path / f"state{attempt}", shards=3)

    if suite == "nexmark":
        assert compared(name, session=opened(0))[-1]
    else:
        assert answered(suite, name, shape_of(suite, name), opened)
