"""Nested values, BINARY and TIMESTAMP_NTZ on Spark: the same views from its engine, and through its data source."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.types import frozen

SCRIPT = """
CREATE TABLE t (
    id BIGINT NOT NULL, s STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, DOUBLE>, b BINARY, n TIMESTAMP_NTZ, PRIMARY KEY (id)
);
CREATE MATERIALIZED VIEW v AS SELECT id, s, m, b, n, s.a AS a, element_at(s.b, 1) AS first FROM t;
CREATE MATERIALIZED VIEW words AS SELECT w, count(*) AS n, max(s) AS top FROM t LATERAL VIEW explode(s.b) AS w GROUP BY w;
"""
FIRST = [
    {"id": 1, "s": {"a": 1, "b": ["x", "y"]}, "m": [("k", 1.5)], "b": b"\x00\xff", "n": datetime.datetime(2024, 1, 1)},
    {"id": 2, "s": {"a": None, "b": ["x"]}, "m": [], "b": None, "n": None},
]
SECOND = [{"id": 2, "s": {"a": 5, "b": ["y", "y" * 40]}, "m": None, "b": b"", "n": None}]


def content(rows: list[dict[str, Any]]) -> set[Any]:
    return {frozen(row) for row in rows}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_the_spark_engine_and_its_data_source_give_what_the_embedded_engine_gives(spark: Any, tmp_path: Path) -> None:
    from deltic.spark import register  # noqa: PLC0415  needs the extra

    embedded, on_spark = deltic.Session(), deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2)
    for session in (embedded, on_spark):
        session.sql(SCRIPT)
        with session.transaction() as tx:
            tx.insert("t", FIRST)
        with session.transaction() as tx:
            tx.upsert("t", SECOND)
    for view in ("v", "words"):
        assert content(on_spark.view(view).rows()) == content(embedded.view(view).rows())
    on_spark.close()
    register(spark)
    frame = spark.read.format("deltic").option("path", str(tmp_path / "state")).option("view", "v").load()
    read = {row["id"]: row for row in frame.collect()}
    assert read[1]["s"].asDict() == {"a": 1, "b": ["x", "y"]}
    assert read[1]["m"] == {"k": 1.5}
    assert (bytes(read[1]["b"]), read[1]["n"]) == (b"\x00\xff", datetime.datetime(2024, 1, 1))
    assert read[2]["s"]["b"] == ["y", "y" * 40]
    assert frame.selectExpr("explode(s.b) AS w").count() == 4
    embedded.close()
