"""VARIANT on Spark: DataFrames that are collected, and ones that stay there; the engine; the data source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic import Variant

SCRIPT = """
    CREATE TABLE t (id INT PRIMARY KEY, v VARIANT, a ARRAY<VARIANT>);
    CREATE MATERIALIZED VIEW w AS SELECT id, v, a, v:k::STRING AS k, parse_json(CAST(id AS STRING)) AS i FROM t;
    CREATE MATERIALIZED VIEW parts AS SELECT id, key, value FROM t, LATERAL variant_explode(v);
"""
QUERY = """
    SELECT 1 AS id, parse_json('{"k":"x","b":[1,2.50]}') AS v, array(parse_json('1'), parse_json('"y"')) AS a, 'insert' AS _op
    UNION ALL SELECT 2, CAST(NULL AS VARIANT), NULL, 'insert' UNION ALL SELECT 3, parse_json('null'), array(), 'insert'
"""


def content(session: deltic.Session) -> list[Any]:
    return [sorted(map(repr, session.view(name).rows())) for name in ("w", "parts")]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_variants_come_from_spark_and_go_back(spark: Any, tmp_path: Path) -> None:
    from deltic.spark import register  # noqa: PLC0415  needs the extra

    frame = spark.sql(QUERY)
    embedded = deltic.Session()
    embedded.sql(SCRIPT)
    embedded.apply({"t": frame})
    assert embedded.view("w").lookup(1)[0]["v"] == Variant.parse_json('{"k":"x","b":[1,2.50]}')
    on_spark = deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2)
    on_spark.sql(SCRIPT)
    on_spark.apply({"t": frame})
    assert content(on_spark) == content(embedded)
    with on_spark.transaction() as tx:
        tx.upsert("t", [{"id": 2, "v": Variant.of({"k": [1]}), "a": None}])
    on_spark.close()
    register(spark)
    read = spark.read.format("deltic").option("path", str(tmp_path / "state")).option("view", "w").load()
    rows = {
        row["id"]: row
        for row in read.selectExpr("id", "to_json(v) AS v", "v:b[1]::DOUBLE AS b", "to_json(a) AS a", "k", "i::INT AS i").collect()
    }
    assert rows[1].asDict() == {"id": 1, "v": '{"b":[1,2.5],"k":"x"}', "b": 2.5, "a": '[1,"y"]', "k": "x", "i": 1}
    assert rows[2].asDict() == {"id": 2, "v": '{"k":[1]}', "b": None, "a": None, "k": "[1]", "i": 2}
    assert rows[3].asDict() == {"id": 3, "v": "null", "b": None, "a": "[]", "k": None, "i": 3}
    (value,) = read.where("id = 1").select("v").collect()[0]
    assert value.toPython() == Variant(bytes(value.value), bytes(value.metadata)).to_python()
    embedded.close()
