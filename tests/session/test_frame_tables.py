"""session.table_from: tables with the columns and rows of frames."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow as pa
import pytest

import deltic
from deltic.errors import CatalogError, ConstraintViolation, DelticError, FrameError, QueryError, StateError

ROWS = [{"id": 1, "name": "ann", "at": datetime(2024, 1, 1), "x": 0.5}, {"id": 2, "name": None, "at": None, "x": None}]


def arrow() -> pa.Table:
    return pa.Table.from_pylist(
        ROWS, schema=pa.schema([("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us")), ("x", pa.float64())])
    )


def from_duckdb() -> Any:
    table = arrow()
    return duckdb.connect().from_arrow(table)


FRAMES = {
    "arrow": arrow,
    "batch": lambda: arrow().to_batches()[0],
    "pandas": lambda: pandas.DataFrame(ROWS),
    "polars": lambda: polars.from_arrow(arrow()),
    "duckdb": from_duckdb,
    "rows": lambda: ROWS,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_is_a_table(kind: str) -> None:
    with deltic.Session() as session:
        session.table_from("people", FRAMES[kind](), key=["id"])
        assert [(field.name, field.type.sql, field.nullable) for field in session.table("people").schema] == [
            ("id", "BIGINT", False),
            ("name", "STRING", True),
            ("at", "TIMESTAMP_NTZ", True),
            ("x", "DOUBLE", True),
        ]
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM people")
        assert sorted(session.view("v").rows(), key=lambda row: row["id"]) == ROWS
        session.sql("DELETE FROM people WHERE id = 1")
        assert len(session.view("v").rows()) == 1


def test_types_of_arrow_that_are_not_those_of_tables() -> None:
    columns = {
        "u8": pa.array([255], pa.uint8()),
        "u32": pa.array([2**32 - 1], pa.uint32()),
        "u64": pa.array([2**64 - 1], pa.uint64()),
        "f16": pa.array([0.5], pa.float16()),
        "kind": pa.array(["a"]).dictionary_encode(),
        "s": pa.array(["a"], pa.string_view()),
        "b": pa.array([b"ab"], pa.binary(2)),
        "d": pa.array([date(2024, 1, 2)], pa.date64()),
        "at": pa.array([datetime(2024, 1, 1, 12, tzinfo=UTC)], pa.timestamp("ms", "Europe/Paris")),
        "took": pa.array([timedelta(seconds=1)], pa.duration("ms")),
        "n": pa.array([Decimal("1.50")], pa.decimal128(5, 2)),
        "l": pa.array([[{"q": 1}]], pa.large_list(pa.struct([("q", pa.uint16())]))),
        "m": pa.array([[("k", 1)]], pa.map_(pa.large_string(), pa.int8())),
    }
    with deltic.Session() as session:
        session.table_from("t", pa.table(columns))
        assert [field.type.sql for field in session.table("t").schema] == [
            "SMALLINT", "BIGINT", "DECIMAL(20,0)", "FLOAT", "STRING", "STRING", "BINARY", "DATE", "TIMESTAMP", "INTERVAL DAY TO SECOND",
            "DECIMAL(5,2)", "ARRAY<STRUCT<q: INT>>", "MAP<STRING, TINYINT>",
        ]  # fmt: skip
        (row,) = session.query("SELECT * FROM t").rows()
        assert (row["u64"], row["d"], row["took"], row["l"]) == (2**64 - 1, date(2024, 1, 2), timedelta(seconds=1), [{"q": 1}])


@pytest.mark.parametrize(
    ("frame", "key", "error", "message"),
    [
        (pa.table({"a": [None]}), [], FrameError, "all values are NULL"),
        (pa.table({"a": pa.array([1], pa.int64()).cast(pa.decimal256(60, 0))}), [], FrameError, "no type has the values"),
        ([{"a": 1}, {"a": "x"}], [], FrameError, "column a"),
        (pa.table({"a": [1]}), ["b"], CatalogError, "the frame has no column b"),
        (pa.table({"a": [1]}), ["a", "A"], CatalogError, "twice"),
        (pa.table({"a": [1, 1]}), ["a"], DelticError, "a"),
        (pa.table({"a": [1, None]}), ["a"], ConstraintViolation, "NULL"),
        (pa.table({"_weight": [1]}), [], CatalogError, "_weight"),
        (1, [], FrameError, "not a frame"),
        (pa.table([[1], [2]], ["a", "A"]), [], FrameError, "two columns of the frame are called A"),
        (pa.table([[1], [2]], ["a", "a"]), [], FrameError, "two columns of the frame are called a"),
        (pa.table([[1], [2]], ["a", ""]), [], FrameError, "column 2 of the frame has no name"),
        ([{"a": []}], [], FrameError, "column a: a part of ARRAY<VOID> has only NULLs, or no values"),
        ([{"a": {"x": None}}], [], FrameError, "column a: a part of STRUCT<x: VOID> has only NULLs"),
        (pa.table({"a": [1]}), None, CatalogError, "table t: invalid key None\nexpected: the names of columns"),
        (pa.table({"a": [1]}), [0], CatalogError, r"table t: invalid key \[0\]"),
    ],
)
def test_a_frame_that_is_refused_leaves_no_table(frame: Any, key: list[str], error: type[Exception], message: str) -> None:
    with deltic.Session() as session:
        with pytest.raises(error, match=message):
            session.table_from("t", frame, key=key)
        assert "t" not in session.tables
        session.table_from("t", pa.table({"a": [1]}))


def test_a_table_of_the_state_gets_the_rows_of_the_frame(tmp_path: Path) -> None:
    view = "CREATE MATERIALIZED VIEW v AS SELECT a, b FROM t"
    with deltic.Session(state=tmp_path / "state") as session:
        session.table_from("t", pa.table({"a": [1, 2], "b": ["x", "y"]}), key="a")
        session.sql(view)
    with deltic.Session(state=tmp_path / "state") as session:
        with pytest.raises((StateError, DelticError)):
            session.table_from("t", pa.table({"a": [1]}), key="a")
        session.table_from("t", pa.table({"a": [2, 3], "b": ["z", "y"]}), key="a")
        session.sql(view)
        assert sorted(row["a"] for row in session.view("v").rows()) == [2, 3]
        with pytest.raises(CatalogError, match="table t"):
            session.table_from("t", pa.table({"a": [1], "b": ["x"]}), key="a")


@pytest.mark.spark
def test_frames_of_spark_that_are_refused(spark: Any) -> None:
    frame = spark.createDataFrame([(1,)], "id INT")
    with deltic.Session() as session:
        with pytest.raises(FrameError, match="table t, column nothing: all values are NULL, so it has no type"):
            session.table_from("t", frame.selectExpr("id", "NULL AS nothing"))
        assert "t" not in session.tables
        with pytest.raises(QueryError, match="returned a DataFrame of a running Spark"):
            session.view_of("v", lambda: frame)
