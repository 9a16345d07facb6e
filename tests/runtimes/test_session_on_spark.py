"""The library on Spark, as a user has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deltic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_transactions_of_every_operation(spark: SparkSession, tmp_path: Path) -> None:
    with deltic.Session(spark=spark, state=str(tmp_path / "state")) as session:
        session.sql("""
            CREATE TABLE t (a INT, b STRING, c STRING NOT NULL, PRIMARY KEY (a, b));
            CREATE MATERIALIZED VIEW v AS SELECT c, count(*) AS n FROM t GROUP BY c;
        """)
        with session.transaction() as tx:
            tx.insert("t", [{"a": 1, "b": "x", "c": "p"}, {"a": 2, "b": "y", "c": "p"}, {"a": 3, "b": "z", "c": "q"}])
            tx.upsert("t", spark.createDataFrame([(1, "x", "r")], "a int, b string, c string"))
            tx.delete("t", [(2, "y")])
        assert sorted(row["c"] for row in session.view("v").to_spark().collect()) == ["q", "r"]
        with session.transaction() as tx:
            tx.delete("t", [(1, "x")])
            tx.delete("t", [{"a": 3, "b": "z", "c": "q"}])
        assert session.view("v").rows() == []
        assert sorted(session.view("v").changes()["_weight"].to_pylist()) == [-1, -1]
