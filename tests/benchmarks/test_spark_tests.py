"""The trial of Spark's own SQL tests: what is recorded, and how an answer here is judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

from benchmarks.spark_tests import Event, Trial, record, statements

RESULTS = """-- Automatically generated
-- !query
CREATE TEMPORARY VIEW data AS SELECT * FROM VALUES (1, 'a'), (2, NULL) AS data(k, s)
-- !query schema
struct<>
-- !query output



-- !query
SELECT k, s FROM data -- all
-- !query schema
struct<k:int,s:string>
-- !query output
1	a
2	NULL


-- !query
SELECT nothing FROM data
-- !query schema
struct<>
-- !query output
org.apache.spark.sql.AnalysisException
"""
INTEGERS = (("n", "int", False),)


def outcomes(folder: Path, *events: Event) -> list[tuple[str, str]]:
    (folder / "events.json").write_text(json.dumps([{name: getattr(event, name) for name in Event.__slots__} for event in events]))
    return [(outcome.kind, outcome.why) for outcome in Trial(folder, "file").outcomes()]


def saved(folder: Path, name: str, *values: int) -> str:
    table = pa.table({"n": pa.array(values, pa.int32())})
    with pa.ipc.new_file(str(folder / name), table.schema) as writer:
        writer.write_table(table)
    return name


def test_statements_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.sql.out"
    path.write_text(RESULTS)
    assert [text.split()[0] for text in statements(path)] == ["CREATE", "SELECT", "SELECT"]


def test_answers_are_judged_by_those_of_spark(tmp_path: Path) -> None:
    one, two = saved(tmp_path, "one", 1), saved(tmp_path, "two", 2, 2)
    table = Event("table", "Numbers", INTEGERS, two)
    assert outcomes(
        tmp_path,
        table,
        Event("query", "SELECT n FROM numbers", INTEGERS, two),
        Event("query", "SELECT DISTINCT n FROM numbers", INTEGERS, two),
        Event("query", "SELECT CAST(n AS BIGINT) FROM numbers", INTEGERS, two),
        Event("query", "SELECT n FROM absent", INTEGERS, one),
        Event("query", "SELECT n FROM absent", refusal="TABLE_OR_VIEW_NOT_FOUND"),
        Event("query", "SELECT n FROM numbers", refusal="SOME_CONDITION"),
        Event("query", "SELECT n FROM numbers", INTEGERS, two, settings=("spark.sql.ansi.enabled=false",)),
        Event("table", "numbers", INTEGERS, one),
        Event("query", "SELECT n FROM numbers", INTEGERS, one),
    ) == [
        ("same", ""),
        ("differs", "only here [], only in Spark ['(2,)']"),
        ("differs", "type int64, in Spark int32"),
        ("refused", "[DELTIC-1002] <sql>:1:52: there is no table or view 'absent'"),
        ("same", "refused by both"),
        ("accepted", "SOME_CONDITION"),
        ("same", ""),
    ]


@pytest.mark.slow
@pytest.mark.spark
def test_results_of_spark_are_recorded(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.sql.out").write_text(RESULTS)
    record(spark, tmp_path / "results", tmp_path / "recording", [])
    events = json.loads((tmp_path / "recording" / "a" / "events.json").read_text())
    assert [(event["kind"], event["refusal"]) for event in events] == [
        ("table", ""),
        ("query", ""),
        ("query", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ]
    assert [outcome.why for outcome in Trial(tmp_path / "recording" / "a", "a").outcomes()] == ["", "refused by both"]
