"""What is read as a pandas DataFrame has the values that were written, and can be inserted again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import deltic

GREATEST = {"TINYINT": 2**7 - 1, "SMALLINT": 2**15 - 1, "INT": 2**31 - 1, "BIGINT": 2**63 - 1}


@pytest.mark.parametrize("type", GREATEST)
@pytest.mark.parametrize("missing", [False, True])
def test_no_integer_is_rounded(type: str, missing: bool) -> None:
    values = [GREATEST[type], -GREATEST[type] - 1, *([None] if missing else [])]
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE t (id INT PRIMARY KEY, x {type})")
        session.insert("t", [{"id": i, "x": x} for i, x in enumerate(values)])
        frame = session.query("SELECT x, id FROM t ORDER BY id").to_pandas()
        assert [None if x is pd.NA else int(x) for x in frame["x"]] == values
        assert (frame["x"].dtype.name, frame["id"].dtype.name) == (f"{'Int' if missing else 'int'}{8 * frame['x'].dtype.itemsize}", "int32")
        session.sql("TRUNCATE TABLE t")
        session.insert("t", frame)
        assert [row["x"] for row in session.query("SELECT x FROM t ORDER BY id").rows()] == values


def test_columns_of_one_name_keep_their_places() -> None:
    with deltic.Session() as session:
        frame = session.query("SELECT CAST(NULL AS BIGINT) AS a, 2 AS a, CAST(NULL AS TINYINT) AS b").to_pandas()
        assert [dtype.name for dtype in frame.dtypes] == ["Int64", "int32", "Int8"]
        assert frame.iloc[0, 1] == 2


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("ARRAY<BIGINT>", [2**63 - 1, None, -1]),
        ("ARRAY<INT>", [1, 2]),
        ("ARRAY<STRING>", ["a", None]),
        ("ARRAY<ARRAY<BIGINT>>", [[2**53 + 1, None], None, []]),
        ("ARRAY<STRUCT<n: BIGINT>>", [{"n": None}, {"n": 2**53 + 1}, None]),
        ("MAP<STRING, BIGINT>", [("a", 2**53 + 1), ("b", None)]),
        ("MAP<STRING, ARRAY<BIGINT>>", [("a", [None, 2**53 + 1]), ("b", None)]),
        ("STRUCT<n: BIGINT, v: ARRAY<INT>>", {"n": None, "v": [1, None]}),
    ],
)
def test_nested_values_are_read_and_inserted_again(type: str, value: Any) -> None:
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE t (id INT PRIMARY KEY, x {type})")
        session.insert("t", [{"id": 1, "x": value}, {"id": 2, "x": None}])
        frame = session.query("SELECT * FROM t ORDER BY id").to_pandas()
        session.sql("TRUNCATE TABLE t")
        session.insert("t", frame)
        assert [row["x"] for row in session.query("SELECT x FROM t ORDER BY id").rows()] == [value, None]


def test_arrays_of_numpy_are_arrays() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (x ARRAY<DOUBLE>)")
        session.insert("t", [{"x": np.array([1.5, -0.0])}, {"x": np.array([], "float32")}])
        assert sorted(row["x"] for row in session.query("SELECT x FROM t").rows()) == [[], [1.5, -0.0]]
        for wrong in (np.array(5.0), np.array([[1.0]]), np.array(["a"])):
            with pytest.raises(deltic.errors.DataError, match="row 0, column x"):
                session.insert("t", [{"x": wrong}])
