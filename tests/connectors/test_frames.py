"""Frames in: every kind of frame gives the same table, and what does not fit is refused by row and column."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deltic
from calls import calls_of
from deltic.connectors.frames import change_frame, keys_or_rows, rows_frame
from deltic.connectors.list_views import without_list_views
from deltic.errors import ConstraintViolation, FrameError, UnknownName
from deltic.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VARIANT,
    YEAR_TO_MONTH,
    Field,
    Op,
    Schema,
    TableSchema,
    Type,
    decimal,
)
from deltic.types import array_type, map_type, struct

ORDERS = TableSchema("orders", Schema((Field("id", BIGINT, False), Field("name", STRING), Field("amount", DOUBLE))), (0,))
LINES = TableSchema("lines", Schema((Field("order", INT, False), Field("line", STRING, False), Field("n", INT, False))), (0, 1))
WEST = dt.timezone(dt.timedelta(hours=-5))
NANOSECOND = np.datetime64("2020-01-01T00:00:00.000000001")
BAG = TableSchema("bag", Schema((Field("x", BIGINT),)))

ROWS = [{"id": 1, "name": "a", "amount": 1.5}, {"id": 2, "name": None, "amount": -0.0}]


def one(type: Type, nullable: bool = True) -> TableSchema:
    return TableSchema("t", Schema((Field("x", type, nullable),)))


def column(frame: object, type: Type) -> list[object]:
    table = rows_frame(frame, one(type))
    assert table.schema.field("x").type == type.arrow
    return table.column("x").to_pylist()


def arrow(values: list[object], type: pa.DataType) -> pa.Table:
    return pa.table({"x": pa.array(values, type)})


@pytest.mark.parametrize(
    "frame",
    [
        ROWS,
        tuple(ROWS),
        [{"AMOUNT": r["amount"], "Id": r["id"], "name": r["name"]} for r in ROWS],
        pa.Table.from_pylist(ROWS),
        pa.Table.from_pylist(ROWS).select(["amount", "name", "id"]),
        pa.RecordBatch.from_pylist(ROWS),
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS, index=[7, 7]),
        pd.DataFrame(ROWS).astype({"name": "category"}),
        pl.DataFrame(ROWS),
        pl.DataFrame(ROWS).with_columns(pl.col("name").cast(pl.Categorical)),
        pa.Table.from_pylist(ROWS).set_column(1, "name", pa.array(["a", None]).dictionary_encode()),
    ],
    ids=lambda frame: type(frame).__module__,
)
def test_every_kind_of_frame_gives_the_same_table(frame: object) -> None:
    table = rows_frame(frame, ORDERS)
    assert table.schema.names == ["id", "name", "amount"]
    assert table.schema.types == [field.type.arrow for field in ORDERS.schema]
    assert table.to_pylist() == ROWS


def test_a_frame_that_fits_is_handed_on_uncopied() -> None:
    frame = pa.Table.from_pylist(ROWS)
    assert rows_frame(frame, ORDERS) is frame


def test_a_spark_frame_is_recognised_by_its_type_and_collected() -> None:
    parts = {
        "__module__": "pyspark.sql.classic.dataframe",
        "isStreaming": False,
        "dtypes": [],
        "toArrow": lambda self: pa.Table.from_pylist(ROWS),
    }
    kind = type("DataFrame", (), parts)
    assert rows_frame(kind(), ORDERS).to_pylist() == ROWS


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        ([{"id": 1, "name": "a"}], "table orders: the frame has no column amount"),
        ([ROWS[0], {"id": 2, "name": "b"}], "table orders, row 1: no column amount"),
        ([{**ROWS[0], "colour": 1}], "table orders: the frame has a column colour, which is not in the table"),
        ([{**ROWS[0], "ID": 1}], "table orders: the frame has the column ID twice (case does not count)"),
        ([{**ROWS[0], 3: 1}], "table orders: a row has the key 3"),
        ([1, 2], "table orders, row 0: found int"),
        (pd.DataFrame({1: [1]}), "table orders: the frame has a column called 1"),
        (ROWS[0], "table orders: found builtins.dict, which is not a frame"),
        (pl.LazyFrame(ROWS), "table orders: found polars.lazyframe.frame.LazyFrame, which is not a frame"),
        ("orders.csv", "table orders: found builtins.str, which is not a frame"),
    ],
)
def test_frames_of_a_wrong_shape_are_refused(frame: object, text: str) -> None:
    with pytest.raises(FrameError) as error:
        rows_frame(frame, ORDERS)
    assert error.value.message == text


@pytest.mark.parametrize(
    ("frame", "remedy"),
    [
        (pd.DataFrame(ROWS).set_index("id"), "frame.reset_index()"),
        (iter(ROWS), "list(…) of it; session.load takes iterators, and makes a tick of each chunk"),
        ("orders.csv", "session.load reads files"),
        ([{**ROWS[0], "name": float("nan")}], "None is NULL"),
        ([{**ROWS[0], "amount": "1.50"}], "float(text)"),
    ],
)
def test_an_error_says_what_makes_a_frame_of_it(frame: object, remedy: str) -> None:
    with pytest.raises(FrameError) as error:
        rows_frame(frame, ORDERS)
    assert error.value.remedy == remedy


def test_an_index_that_no_column_is_missing_for_is_ignored() -> None:
    frame = pd.DataFrame(ROWS)
    assert rows_frame(frame.set_index("id", drop=False).rename(columns={"id": "ID"}), ORDERS) == rows_frame(frame, ORDERS)
    kind, keys = keys_or_rows(frame.set_index("name")[["id"]], ORDERS)
    assert kind == "keys" and keys.column("id").to_pylist() == [row["id"] for row in ROWS]


def test_a_column_that_an_update_lacks_is_not_to_become_null() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id INT PRIMARY KEY, name STRING); CREATE MATERIALIZED VIEW v AS SELECT name FROM t")
        for change in (session.update, session.upsert):
            with pytest.raises(FrameError, match=r"give name, since rows are replaced whole; UPDATE … SET or MERGE"):
                change("t", [{"id": 1}])
        with pytest.raises(FrameError, match=r"pass a list of keys: \[1\]"):
            session.delete("t", 1)
        with pytest.raises(UnknownName, match="v is a view, not a table"):
            session.insert("v", [{"name": "a"}])


@pytest.mark.parametrize(
    ("frame", "type", "values"),
    [
        (arrow([1, None], pa.int32()), BIGINT, [1, None]),
        (arrow([1, 127], pa.uint64()), TINYINT, [1, 127]),
        (arrow([0.5, None], pa.float32()), DOUBLE, [0.5, None]),
        (arrow([3, None], pa.int64()), DOUBLE, [3.0, None]),
        (arrow([3, None], pa.int64()), FLOAT, [3.0, None]),
        (arrow([3], pa.int64()), decimal(10, 2), [Decimal("3.00")]),
        (arrow([Decimal("1.5")], pa.decimal128(20, 4)), decimal(3, 1), [Decimal("1.5")]),
        (arrow([2**64 - 1], pa.uint64()), decimal(38, 18), [Decimal(2**64 - 1)]),
        (arrow(["a", None], pa.large_string()), STRING, ["a", None]),
        (arrow(["a", None], pa.string_view()), STRING, ["a", None]),
        (arrow([86_400_000], pa.date64()), DATE, [dt.date(1970, 1, 2)]),
        (arrow([None, None], pa.null()), BOOLEAN, [None, None]),
        (arrow([3600], pa.timestamp("s")), TIMESTAMP, [dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC)]),
        (arrow([3_600_000], pa.timestamp("ms", "America/New_York")), TIMESTAMP, [dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC)]),
        (arrow([-1_000], pa.timestamp("ns")), TIMESTAMP, [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC)]),
        ([{"x": 5}, {"x": Decimal("0.25")}], decimal(4, 2), [Decimal("5.00"), Decimal("0.25")]),
        ([{"x": 2**100}], decimal(38, 0), [Decimal(2**100)]),
        ([{"x": 1}, {"x": 2.5}], DOUBLE, [1.0, 2.5]),
        ([{"x": 0.1}], FLOAT, [float(np.float32(0.1))]),
        ([{"x": np.int64(4)}, {"x": np.float64(0.5)}], DOUBLE, [4.0, 0.5]),
        ([{"x": dt.datetime(2020, 1, 1)}], TIMESTAMP, [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]),
        (
            [{"x": dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))}],
            TIMESTAMP,
            [dt.datetime(2019, 12, 31, 22, tzinfo=dt.UTC)],
        ),
        (pd.DataFrame({"x": [1, None]}), BIGINT, [1, None]),
        (pd.DataFrame({"x": [True, None]}), BOOLEAN, [True, None]),
        (pd.DataFrame({"x": [dt.date(2020, 1, 1), None]}), DATE, [dt.date(2020, 1, 1), None]),
        (pd.DataFrame({"x": pd.to_datetime(["2020-01-01", None])}), TIMESTAMP, [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None]),
        (pd.DataFrame({"x": [1, Decimal("2.5"), None]}), decimal(3, 1), [Decimal("1.0"), Decimal("2.5"), None]),
        (pd.DataFrame({"x": pd.array([1, None], "Int64")}), SMALLINT, [1, None]),
        ([{"x": 1}, {"x": pd.NA}], BIGINT, [1, None]),
        ([{"x": pd.NaT}, {"x": dt.datetime(2020, 1, 1)}], TIMESTAMP, [None, dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]),
        ([{"x": pd.NaT}], DATE, [None]),
        ([{"x": np.datetime64("2020-01-01", "ns")}], TIMESTAMP, [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]),
        ([{"x": np.datetime64("2020-01-01")}], DATE, [dt.date(2020, 1, 1)]),
        ([{"x": np.datetime64("NaT", "ns")}], TIMESTAMP, [None]),
        ([{"x": np.timedelta64(5_000, "ns")}], DAY_TO_SECOND, [dt.timedelta(microseconds=5)]),
        ([{"x": np.timedelta64(5, "M")}, {"x": np.timedelta64(-2, "Y")}], YEAR_TO_MONTH, [5, -24]),
        (
            [{"x": np.array(["2020-01-01", "NaT"], "datetime64[ns]")}],
            array_type(TIMESTAMP),
            [[dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None]],
        ),
        ([{"x": np.datetime64("9999-12-31T23:59:59.999999")}], TIMESTAMP, [dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)]),
        ([{"x": np.datetime64("0001")}, {"x": np.datetime64("9999-12")}], DATE, [dt.date(1, 1, 1), dt.date(9999, 12, 1)]),
        ([{"x": np.datetime64(-1, "2W")}, {"x": np.datetime64("NaT", "D")}], DATE, [dt.date(1969, 12, 18), None]),
        ([{"x": np.timedelta64(-3, "25s")}, {"x": np.timedelta64("NaT")}], DAY_TO_SECOND, [dt.timedelta(seconds=-75), None]),
        ([{"x": np.timedelta64(-(10**12), "as")}], DAY_TO_SECOND, [dt.timedelta(microseconds=-1)]),
        ([{"x": np.timedelta64(2**63 - 1, "us")}], DAY_TO_SECOND, [dt.timedelta(microseconds=2**63 - 1)]),
        ([{"x": np.timedelta64(2**31 - 1, "M")}], YEAR_TO_MONTH, [2**31 - 1]),
        ([{"x": np.str_("a\0")}, {"x": np.str_("")}], STRING, ["a\0", ""]),
        ([{"x": np.bytes_(b"a\0")}], BINARY, [b"a\0"]),
        ([{"x": [np.str_("a")]}, {"x": np.array(["b"])}], array_type(STRING), [["a"], ["b"]]),
        ([{"x": {np.str_("a"): np.bytes_(b"b")}}], map_type(STRING, BINARY), [[("a", b"b")]]),
        ([{"x": {"y": np.str_("a")}}], struct((Field("y", STRING),)), [{"y": "a"}]),
    ],
    ids=str,
)
def test_values_widen_without_loss(frame: object, type: Type, values: list[object]) -> None:
    assert column(frame, type) == values


@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize(
    ("given", "type", "value"),
    [
        ([1, pd.NA, None], array_type(BIGINT), [1, None, None]),
        ([pd.Timestamp("2020-01-01", tz="UTC"), pd.NaT], array_type(TIMESTAMP), [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None]),
        ([pd.NaT], array_type(DATE), [None]),
        ([[pd.NA], pd.NA], array_type(array_type(STRING)), [[None], None]),
        ([{"y": pd.NA}, {"y": float("inf")}], array_type(struct((Field("y", DOUBLE),))), [{"y": None}, {"y": float("inf")}]),
        ({"y": pd.NA, "z": pd.NaT}, struct((Field("y", BIGINT), Field("z", TIMESTAMP))), {"y": None, "z": None}),
        ({"a": pd.NA}, map_type(STRING, BIGINT), [("a", None)]),
        ([pd.NA], array_type(VARIANT), [None]),
    ],
    ids=str,
)
def test_pandas_nulls_in_nested_values_are_null(given: object, type: Type, value: object, as_frame: bool) -> None:
    rows: list[dict[str, object]] = [{"x": given}, {"x": None}, {"x": pd.NA}]
    assert column(pd.DataFrame(rows) if as_frame else rows, type) == [value, None, None]


@pytest.mark.parametrize("in_map", [False, True])
def test_nulls_in_nested_values_of_parts_that_are_not_null(in_map: bool) -> None:
    """As Spark's tasks send them: the part of a NULL is NULL although its field is declared NOT NULL."""
    row = pa.struct([pa.field("z", pa.string(), nullable=False)])
    rows = pa.StructArray.from_buffers(row, 2, [pa.py_buffer(b"\x01")], children=[pa.array(["q", None])])
    lists = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), rows, type=pa.list_(pa.field("element", row)))
    kind = array_type(struct((Field("z", STRING),)))
    if not in_map:
        assert column(pa.table([lists], names=["x"]), kind) == [[{"z": "q"}, None]]
        return
    maps = pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["k"]), lists)
    assert column(pa.table([maps], names=["x"]), map_type(STRING, kind)) == [[("k", [{"z": "q"}, None])]]


@pytest.mark.parametrize("given", [{pd.NA: 1}, {"a": float("nan")}])
def test_a_null_key_of_a_map_and_nan_for_a_whole_number_are_refused(given: object) -> None:
    with pytest.raises(ConstraintViolation, match=r"row 0, column x: .* does not fit"):
        column([{"x": given}], map_type(STRING, BIGINT))


@pytest.mark.parametrize(
    ("frame", "type", "text"),
    [
        (arrow([1.0], pa.float64()), BIGINT, "table t, column x: found Arrow double"),
        (arrow([1.0], pa.float64()), FLOAT, "table t, column x: found Arrow double"),
        (arrow([1.0], pa.float64()), decimal(3, 1), "table t, column x: found Arrow double"),
        (arrow([1], pa.int64()), STRING, "table t, column x: found Arrow int64"),
        (arrow([1], pa.int64()), BOOLEAN, "table t, column x: found Arrow int64"),
        (arrow([True], pa.bool_()), BIGINT, "table t, column x: found Arrow bool"),
        (arrow([b"a"], pa.binary()), STRING, "table t, column x: found Arrow binary"),
        (arrow([0], pa.timestamp("us")), DATE, "table t, column x: found Arrow timestamp[us]"),
        (arrow([0], pa.date32()), TIMESTAMP, "table t, column x: found Arrow date32[day]"),
        ([{"x": 1}, {"x": "2"}], BIGINT, "table t, row 1, column x: found str '2'"),
        ([{"x": 1}, {"x": 2.0}], BIGINT, "table t, row 1, column x: found float 2.0"),
        ([{"x": True}], BIGINT, "table t, row 0, column x: found bool True"),
        (
            [{"x": None}, {"x": dt.datetime(2020, 1, 1, 5)}],
            DATE,
            "table t, row 1, column x: found datetime datetime.datetime(2020, 1, 1, 5, 0)",
        ),
        ([{"x": dt.date(2020, 1, 1)}], TIMESTAMP, "table t, row 0, column x: found date datetime.date(2020, 1, 1)"),
        (pd.DataFrame({"x": [1.5, None]}), BIGINT, "table t, column x: found Arrow double"),
        (pd.DataFrame({"x": ["a", 1]}), STRING, "table t, row 1, column x: found int 1"),
        (pl.DataFrame({"x": ["a"]}), INT, "table t, column x: found Arrow string_view"),
        (
            [{"x": np.datetime64("2020-01-01", "ns")}],
            BIGINT,
            "table t, row 0, column x: found datetime datetime.datetime(2020, 1, 1, 0, 0)",
        ),
        ([{"x": NANOSECOND}], BIGINT, f"table t, row 0, column x: found datetime64 {NANOSECOND!r}"),
        ([{"x": NANOSECOND}], decimal(38, 0), f"table t, row 0, column x: found datetime64 {NANOSECOND!r}"),
        ([{"x": NANOSECOND}], TIMESTAMP, f"table t, row 0, column x: found datetime64 {NANOSECOND!r}"),
        ([{"x": np.timedelta64(5, "ns")}], INT, f"table t, row 0, column x: found timedelta64 {np.timedelta64(5, 'ns')!r}"),
        ([{"x": np.timedelta64(5, "M")}], INT, f"table t, row 0, column x: found timedelta64 {np.timedelta64(5, 'M')!r}"),
        ([{"x": np.timedelta64(5)}], DAY_TO_SECOND, f"table t, row 0, column x: found timedelta64 {np.timedelta64(5)!r}"),
        ([{"x": np.str_("a")}], VARIANT, "table t, row 0, column x: found str 'a'"),
        ([{"x": [pd.NA]}], VARIANT, "table t, row 0, column x: found list [<NA>]"),
        *(
            ([{"x": value}], type, f"table t, row 0, column x: found {value.__class__.__name__} {value!r}")
            for value, type in (
                # that NumPy's conversions make 0 of, or a small number
                *(
                    (np.timedelta64(count, unit), DAY_TO_SECOND)
                    for count, unit in ((2**61, "s"), (2**60, "h"), (2**62, "m"), (2**61, "8us"))
                ),
                *((np.datetime64(count, unit), TIMESTAMP) for count, unit in ((2**61, "s"), (2**60, "h"), (2**58, "m"), (2**58, "ms"))),
                *((np.datetime64(count, unit), DATE) for count, unit in ((2**60, "D"), (pow(7, -1, 2**64), "W"), (2**62, "4Y"))),
                (np.datetime64("10000"), DATE),
                *((np.timedelta64(count, unit), YEAR_TO_MONTH) for count, unit in ((2**62, "Y"), (2**31, "M"), (-(2**28), "Y"))),
            )
        ),
    ],
    ids=str,
)
def test_a_wrong_type_is_refused_with_the_actual_type(frame: object, type: Type, text: str) -> None:
    with pytest.raises(FrameError) as error:
        rows_frame(frame, one(type))
    first, expected, *_ = str(error.value).split("\n")
    assert first == f"[DELTIC-2001] {text}"
    assert expected.startswith(f"expected: {type.sql}, ")


@pytest.mark.parametrize(
    ("frame", "type", "text"),
    [
        (arrow([1, None, 2**31], pa.int64()), INT, "row 2, column x: 2147483648 does not fit"),
        (arrow([0, -1], pa.int8()), TINYINT, None),
        (arrow([2**63], pa.uint64()), BIGINT, "row 0, column x: 9223372036854775808 does not fit"),
        (arrow([0, 2**53 + 1], pa.int64()), DOUBLE, "row 1, column x: 9007199254740993 does not fit"),
        (arrow([0, 2**24 + 1], pa.int64()), FLOAT, "row 1, column x: 16777217 does not fit"),
        (arrow([9, 10], pa.int64()), decimal(3, 2), "row 1, column x: 10 does not fit"),
        (arrow([Decimal("1.50"), Decimal("1.25")], pa.decimal128(5, 2)), decimal(3, 1), "row 1, column x: 1.25 does not fit"),
        (arrow([1000, 1], pa.timestamp("ns")), TIMESTAMP, "row 1, column x: 1970-01-01 00:00:00.000000001 does not fit"),
        (arrow([2**60], pa.timestamp("s")), TIMESTAMP, "row 0, column x: 1152921504606846976 does not fit"),
        ([{"x": 127}, {"x": 128}], TINYINT, "row 1, column x: 128 does not fit"),
        ([{"x": 2**70}], BIGINT, "row 0, column x: 1180591620717411303424 does not fit"),
        ([{"x": 1e300}], FLOAT, "row 0, column x: 1e+300 does not fit"),
        ([{"x": 1.5}, {"x": 2**60 + 1}], DOUBLE, "row 1, column x: 1152921504606846977 does not fit"),
        ([{"x": Decimal("1.234")}], decimal(10, 2), "row 0, column x: 1.234 does not fit"),
        ([{"x": Decimal("NaN")}], decimal(10, 2), "row 0, column x: NaN does not fit"),
        ([{"x": "half \ud800"}], STRING, "row 0, column x: half \\ud800 does not fit"),
        (pd.DataFrame({"x": pd.Series([1, Decimal("Infinity")], dtype=object)}), decimal(8, 2), "row 1, column x: Infinity does not fit"),
        (pd.DataFrame({"x": pd.Series(["a", "\ud800"], dtype=object)}), STRING, "row 1, column x: \\ud800 does not fit"),
        (arrow([0, 2**62], pa.timestamp("us", "UTC")), TIMESTAMP, "row 1, column x: a TIMESTAMP outside the years 1 to 9999"),
        (arrow([None, -(2**30)], pa.date32()), DATE, "row 1, column x: a DATE outside the years 1 to 9999"),
        ([{"x": dt.datetime.max.replace(tzinfo=WEST)}], TIMESTAMP, "row 0, column x: a TIMESTAMP outside the years 1 to 9999"),
    ],
    ids=str,
)
def test_a_value_out_of_range_is_named_by_row_and_column(frame: object, type: Type, text: str | None) -> None:
    if text is None:
        assert column(frame, type) == [0, -1]
        return
    with pytest.raises(ConstraintViolation) as error:
        rows_frame(frame, one(type))
    assert error.value.message == f"table t, {text}"


def test_infinities_fit_a_float() -> None:
    assert column([{"x": float("inf")}], FLOAT) == [float("inf")]


@pytest.mark.parametrize(
    "frame", [[{"x": 1}, {"x": None}], pa.table({"x": [1, None]}), pd.DataFrame({"x": [1, None]})], ids=["dicts", "arrow", "pandas"]
)
def test_null_in_a_not_null_column_is_refused(frame: object) -> None:
    with pytest.raises(ConstraintViolation, match=r"^\[DELTIC-2002\] table t, row 1, column x: NULL in a NOT NULL column\n"):
        rows_frame(frame, one(BIGINT, nullable=False))


@given(st.lists(st.integers(-(2**70), 2**70), max_size=30), st.sampled_from([TINYINT, SMALLINT, INT, BIGINT]))
def test_the_first_integer_out_of_range_is_located(values: list[int], type: Type) -> None:
    bound = 2 ** (type.arrow.bit_width - 1)
    bad = next((i for i, value in enumerate(values) if not -bound <= value < bound), None)
    frame = [{"x": value} for value in values]
    if bad is None:
        assert column(frame, type) == values
    else:
        with pytest.raises(ConstraintViolation, match=rf"^\[DELTIC-2002\] table t, row {bad}, column x: {values[bad]} does not fit"):
            rows_frame(frame, one(type))


def test_deletes_by_keys_or_by_rows() -> None:
    for keys in (
        [3, 4],
        (3, 4),
        np.array([3, 4]),
        pa.array([3, 4]),
        [{"ID": 3}, {"ID": 4}],
        pa.table({"id": [3, 4]}),
        pd.DataFrame({"id": [3, 4]}),
    ):
        kind, table = keys_or_rows(keys, ORDERS)
        assert (kind, table.to_pylist()) == ("keys", [{"id": 3}, {"id": 4}])
    assert keys_or_rows(ROWS, ORDERS) == ("rows", rows_frame(ROWS, ORDERS))
    kind, table = keys_or_rows([(1, "a"), (2, "b")], LINES)
    assert (kind, table.to_pylist()) == ("keys", [{"order": 1, "line": "a"}, {"order": 2, "line": "b"}])
    assert table.schema.types == [pa.int32(), pa.string()]
    assert keys_or_rows([{"x": 1}], BAG)[0] == "rows"
    assert keys_or_rows([], ORDERS)[1].num_rows == 0


@pytest.mark.parametrize(
    ("keys", "table", "text"),
    [
        ([1], BAG, "table bag: a key to delete, but the table has no PRIMARY KEY"),
        ([(1, 2, 3)], LINES, "table lines, row 0: found (1, 2, 3)"),
        ([(1, "a"), 2], LINES, "table lines, row 1: found 2"),
        (["a"], ORDERS, "table orders, row 0, column id: found str 'a'"),
        ([{"name": "a"}], ORDERS, "table orders: the frame has no column id"),
        (5, ORDERS, "table orders: found builtins.int, which is not a frame"),
    ],
)
def test_keys_that_do_not_fit_are_refused(keys: object, table: TableSchema, text: str) -> None:
    with pytest.raises(FrameError) as error:
        keys_or_rows(keys, table)
    assert error.value.message == text


def test_a_null_key_is_refused() -> None:
    with pytest.raises(ConstraintViolation, match="row 1, column id: NULL in a NOT NULL column"):
        keys_or_rows([1, None], ORDERS)


def change(op: object, id: object, name: object = None, amount: object = None) -> dict[str, object]:
    return {"_op": op, "id": id, "name": name, "amount": amount}


@given(
    st.lists(st.sampled_from(["insert", "update", "upsert", "delete", "Insert", "i", "delets", "", "insertdelete"]), max_size=6), st.data()
)
def test_names_of_operations_in_slices_of_an_array(names: list[str], data: st.DataObject) -> None:
    """Usual ones are read from the bytes."""
    known = {"insert": Op.INSERT, "i": Op.INSERT, "update": Op.UPDATE, "upsert": Op.UPSERT, "delete": Op.DELETE_ROW}
    begin = data.draw(st.integers(0, len(names)))
    rows = pa.table(
        {"id": range(len(names)), "name": ["a"] * len(names), "amount": [1.0] * len(names), "_op": pa.array(names, pa.string())}
    )
    codes = [known.get(name.lower()) for name in names[begin:]]
    if None in codes:
        with pytest.raises(FrameError, match=f"row {codes.index(None)}: _op is {names[begin:][codes.index(None)]!r}"):
            change_frame(rows.slice(begin), ORDERS)
    else:
        assert change_frame(rows.slice(begin), ORDERS).ops.tolist() == codes


@pytest.mark.parametrize("offsets", [[0, 6, 12], [0, 13, 12], [0, -6, 12]])
def test_names_of_operations_in_damaged_arrays(offsets: list[int]) -> None:
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(b"insertdelete")]
    rows = pa.table({"id": [1, 2], "name": ["a", "b"], "amount": [1.0, 2.0], "_op": pa.Array.from_buffers(pa.string(), 2, buffers)})
    if offsets == [0, 6, 12]:
        assert change_frame(rows, ORDERS).ops.tolist() == [Op.INSERT, Op.DELETE_ROW]
    else:
        with pytest.raises(FrameError, match="table orders, column _op: the column is damaged"):
            change_frame(rows, ORDERS)


def test_operations_by_name_in_any_case() -> None:
    names = ["insert", "I", "c", "Create", "UPDATE", "u", "upsert", "delete", "d"]
    for frame in (
        [change(name, i, "a") for i, name in enumerate(names)],
        pa.Table.from_pylist([change(name, i, "a", 1.0) for i, name in enumerate(names)]),
        pl.DataFrame([change(name, i, "a", 1.0) for i, name in enumerate(names)]).with_columns(pl.col("_op").cast(pl.Categorical)),
    ):
        changes = change_frame(frame, ORDERS)
        assert changes.ops.tolist() == [Op.INSERT] * 4 + [Op.UPDATE] * 2 + [Op.UPSERT] + [Op.DELETE_ROW] * 2
        assert changes.ordinals.tolist() == list(range(9)) and changes.weights.tolist() == [1] * 9
        assert changes.rows.schema.names == ["id", "name", "amount"]


def test_a_delete_of_nothing_but_the_key_is_by_key() -> None:
    frame = [change("d", 1), change("d", 2, "b"), {"_op": "d", "id": 3}, {"id": 4, "_op": "Delete"}, change("i", 5)]
    changes = change_frame(frame, ORDERS)
    assert changes.ops.tolist() == [Op.DELETE_KEY, Op.DELETE_ROW, Op.DELETE_KEY, Op.DELETE_KEY, Op.INSERT]
    assert changes.rows.column("id").to_pylist() == [1, 2, 3, 4, 5]
    only_keys = change_frame(pa.table({"id": [1, 2], "_op": ["d", "d"]}), ORDERS)
    assert only_keys.ops.tolist() == [Op.DELETE_KEY] * 2 and only_keys.rows.column_names == ["id", "name", "amount"]


def test_a_delete_by_key_leaves_no_null_in_a_not_null_column() -> None:
    schema = Schema(
        (Field("k", INT, False), *(Field(t.sql, t, False) for t in (BOOLEAN, FLOAT, decimal(38, 2), STRING, DATE, TIMESTAMP, SMALLINT)))
    )
    table = TableSchema("t", schema, (0,))
    changes = change_frame([{"_op": "d", "k": 7}], table)
    assert changes.ops.tolist() == [Op.DELETE_KEY]
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert list(changes.rows.to_pylist()[0].values()) == [7, False, 0.0, Decimal("0.00"), "", epoch.date(), epoch, 0]
    with pytest.raises(ConstraintViolation, match="row 0, column n: NULL in a NOT NULL column"):
        change_frame([{"_op": "i", "order": 1, "line": "a", "n": None}], LINES)


def test_without_a_key_a_delete_is_by_row() -> None:
    assert change_frame([{"_op": "d", "x": None}], BAG).ops.tolist() == [Op.DELETE_ROW]


def test_weights_are_kept_and_zeros_left_out() -> None:
    frame = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"], "amount": [1.0, 2.0, 3.0], "_weight": [2, 0, -1]})
    for given_frame in (frame, frame.to_pylist(), frame.set_column(3, "_weight", pa.array([2, 0, -1], pa.int8()))):
        changes = change_frame(given_frame, ORDERS)
        assert changes.rows.column("id").to_pylist() == [1, 3]
        assert (changes.weights.tolist(), changes.ordinals.tolist()) == ([2, -1], [0, 2])
        assert changes.ops.tolist() == [Op.WEIGHT] * 2


def test_a_sequence_orders_the_changes() -> None:
    frame = pa.table({"id": [1, 1, 2], "name": ["b", "a", "c"], "amount": [1.0] * 3, "_op": ["u", "i", "i"], "at": [9, 3, 3]})
    changes = change_frame(frame, ORDERS, "AT")
    assert changes.ordinals.tolist() == [2, 0, 1]
    assert changes.rows.column_names == ["id", "name", "amount"]
    by_column = change_frame(
        [change("i", 1, amount=2.0), change("u", 1, amount=1.0), {"_op": "d", "id": 1, "amount": 3.0}], ORDERS, "amount"
    )
    assert by_column.ordinals.tolist() == [1, 0, 2]
    assert by_column.ops.tolist() == [Op.INSERT, Op.UPDATE, Op.DELETE_KEY]


@pytest.mark.parametrize("form", [pa.string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_a_sequence_of_strings_in_any_form(form: pa.DataType) -> None:
    at = pa.array(["c", "b", "b"]).cast(form) if pa.types.is_string_view(form) else pa.array(["c", "b", "b"], form)
    frame = pa.table({"id": [1, 1, 2], "name": ["b", "a", "c"], "amount": [1.0] * 3, "_op": ["u", "i", "i"], "at": at})
    assert change_frame(frame, ORDERS, "at").ordinals.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("frame", "table", "sequence", "text"),
    [
        (ROWS, ORDERS, None, "table orders: a change frame with neither _op nor _weight"),
        ([{**change("i", 1), "_weight": 1}], ORDERS, None, "table orders: a change frame with both _op and _weight"),
        ([change("i", 1), change("remove", 1)], ORDERS, None, "table orders, row 1: _op is 'remove'"),
        ([change(None, 1)], ORDERS, None, "table orders, row 0: _op is NULL"),
        ([change("i", 1), ROWS[0]], ORDERS, None, "table orders, row 1: no _op"),
        ([change(1, 1)], ORDERS, None, "table orders, row 0, column _op: found int 1"),
        ([{"x": 1, "_weight": None}], BAG, None, "table bag, row 0: _weight is NULL"),
        (pa.table({"x": [1], "_weight": pa.array([None], pa.int64())}), BAG, None, "table bag, row 0: _weight is NULL"),
        ([{"x": 1, "_weight": 1.5}], BAG, None, "table bag, row 0, column _weight: found float 1.5"),
        ([{"x": 1, "_op": "i"}, {"x": 1, "_op": "upsert"}], BAG, None, "table bag, row 1: upsert, but the table has no PRIMARY KEY"),
        ([{"x": 1, "_op": "u"}], BAG, None, "table bag, row 0: update, but the table has no PRIMARY KEY"),
        (pa.table({"id": [1], "_op": ["i"]}), ORDERS, None, "table orders: the frame has no column name"),
        ([{"_op": "i", "id": 1}, {"_op": "d", "id": 1}], ORDERS, None, "table orders, row 0: no column name"),
        ([{**change("i", 1), "x": 1}], ORDERS, None, "table orders: the frame has a column x, which is not in the table"),
        ([change("i", 1)], ORDERS, "at", "table orders: the frame has no column at, named as its sequence"),
        ([{**change("i", 1), "at": None}], ORDERS, "at", "table orders, row 0: the sequence at is NULL"),
        (
            [{**change("i", i), "at": at} for i, at in enumerate([1, "a"])],
            ORDERS,
            "at",
            "table orders: the sequence at has values of different kinds",
        ),
        ([{**change("i", 1), "at": {"n": 1}}], ORDERS, "at", "table orders: the sequence at is of type struct<n: int64>"),
        (
            pa.table({"id": [1], "name": ["b"], "amount": [1.0], "_op": ["u"], "at": [[3]]}),
            ORDERS,
            "at",
            "table orders: the sequence at is of type list<item: int64>",
        ),
    ],
)
def test_change_frames_that_do_not_fit_are_refused(frame: object, table: TableSchema, sequence: str | None, text: str) -> None:
    with pytest.raises(FrameError) as error:
        change_frame(frame, table, sequence)
    assert error.value.message == text


def test_no_changes_at_all() -> None:
    changes = change_frame([], ORDERS)
    assert changes.rows.num_rows == len(changes.ops) == len(changes.ordinals) == len(changes.weights) == 0
    assert changes.rows.schema.types == [field.type.arrow for field in ORDERS.schema]


@pytest.mark.slow
def test_a_frame_of_other_types_or_several_chunks_means_the_same() -> None:
    table = TableSchema("t", Schema((Field("k", BIGINT, False), Field("d", DATE), Field("s", STRING))), (0,))
    plain = pa.table({"k": [1, 2], "d": pa.array([dt.date(2000, 1, 1), None], pa.date32()), "s": ["a", None], "_weight": [1, -1]})
    narrow = plain.set_column(0, "k", pa.array([1, 2], pa.int32()))
    cut = pa.concat_tables([narrow.slice(0, 1), narrow.slice(1)])
    expected = change_frame(plain, table)
    for frame in (narrow, cut, pa.concat_tables([plain.slice(0, 1), plain.slice(1)])):
        changes = change_frame(frame, table)
        assert changes.rows.select(["k", "d", "s"]).to_pylist() == plain.drop(["_weight"]).to_pylist()
        assert changes.weights.tolist() == expected.weights.tolist()
        assert changes.ordinals.tolist() == expected.ordinals.tolist()
        rows = frame.drop(["_weight"])
        assert keys_or_rows(rows, table) == ("rows", rows_frame(rows, table))
        assert rows_frame(rows, table).schema.types == [pa.int64(), pa.date32(), pa.string()]
    late = narrow.set_column(1, "d", pa.array([None, 10_000_000], pa.int32()).cast(pa.date32()))
    with pytest.raises(ConstraintViolation, match="row 1, column d"):
        change_frame(late, table)
    with pytest.raises(FrameError, match="column s: found Arrow int64"):
        change_frame(narrow.set_column(2, "s", pa.array([1, 2])), table)


def test_a_frame_that_fits_costs_few_calls() -> None:
    """Microseconds, that is: 80 calls or so, whatever the number of rows."""
    table = TableSchema("orders", Schema(tuple(Field(name, BIGINT, False) for name in ("id", "customer", "amount"))), (0,))
    small, large = (pa.table({name: np.arange(1, n) for name in ("id", "customer", "amount", "_weight")}) for n in (2, 100_000))
    change_frame(small, table)
    assert 0 < _calls(lambda: change_frame(large, table)) <= _calls(lambda: change_frame(small, table)) + 10 < 130


def _calls(work: Callable[[], object]) -> int:
    return calls_of(work, ("call", "c_call"))


@pytest.mark.parametrize("value", ["1e-99999999", "0e-99999999", "1e-39"])
def test_a_decimal_of_more_places_than_arrow_supports_is_refused(value: str) -> None:
    with pytest.raises(ConstraintViolation, match=r"row 0, column x: .* does not fit"):
        rows_frame([{"x": Decimal(value)}], one(decimal(38, 38)))


_VIEWS: Final = pa.list_view(pa.int32())


@pytest.mark.parametrize(
    "views",
    [
        pa.array([[1, 2], None, [], [3]], _VIEWS),
        pa.array([[1], None], pa.large_list_view(pa.int8())),
        pa.array([[[1], None], None, []], pa.list_view(_VIEWS)),
        pa.array([[[1], [2]], [[3], None]], pa.list_(_VIEWS, 2)),
        pa.array([{"a": [1], "b": 2}, None], pa.struct([("a", _VIEWS), ("b", pa.int8())])),
        pa.array([[("k", [1])], None, []], pa.map_(pa.string(), _VIEWS)),
        pa.ListViewArray.from_arrays(pa.array([2, 0, 1], pa.int32()), pa.array([1, 2, 0], pa.int32()), pa.array([7, 8, 9], pa.int32())),
    ],
    ids=lambda views: str(views.type),
)
def test_list_views_become_lists(views: Any) -> None:
    for part in (views, views[1:], views[:1], views[:0]):
        lists = without_list_views(pa.chunked_array([part]))
        lists.validate(full=True)
        assert lists.to_pylist() == part.to_pylist() and "view" not in str(lists.type)
    assert without_list_views(pa.chunked_array([], views.type)).type == lists.type


def test_columns_of_list_views_and_of_halves_are_taken() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id INT PRIMARY KEY, v ARRAY<INT>)")
        with session.transaction() as tx:
            tx.insert("t", pa.table({"id": [1, 2], "v": pa.array([[1, None], None], _VIEWS)}))
            tx.upsert("t", pd.DataFrame({"id": np.array([3.0], np.float16), "v": [[4]]}))
        assert session.query("SELECT * FROM t ORDER BY id").rows() == [{"id": 1, "v": [1, None]}, {"id": 2, "v": None}, {"id": 3, "v": [4]}]
