"""Views read by `spark.read.format("deltic")`: values, columns, filters, epochs, and errors."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import deltic
from deltic.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

COLUMNS = """k BIGINT NOT NULL, b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f FLOAT, d DOUBLE, n DECIMAL(10,2),
    w DECIMAL(38,3), s STRING, t DATE, ts TIMESTAMP"""
WHEN = datetime(2013, 7, 4, 12, 30, 1, 500, tzinfo=UTC)
ROWS: list[dict[str, Any]] = [
    {"k": 1, "b": True, "i8": -128, "i16": 32767, "i32": -(2**31), "i64": 2**63 - 1, "f": 1.5, "d": -0.1, "n": Decimal("12345678.90"),
     "w": Decimal("12345678901234567890123456789012345.678"), "s": "Überlingen", "t": date(1969, 12, 31), "ts": WHEN},
    {"k": 2, "b": False, "i8": 0, "i16": 0, "i32": 0, "i64": 0, "f": float("inf"), "d": 0.0, "n": Decimal("-0.01"), "w": Decimal("-1.000"),
     "s": "", "t": date(2013, 1, 1), "ts": datetime(1969, 1, 1, tzinfo=UTC)},
    dict.fromkeys(["b", "i8", "i16", "i32", "i64", "f", "d", "n", "w", "s", "t", "ts"]) | {"k": 3},
]  # fmt: skip


@pytest.fixture(scope="module")
def registered(spark: SparkSession) -> Iterator[SparkSession]:
    from deltic.spark import register  # noqa: PLC0415  needs the extra

    register(spark)
    yield spark


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A state with a view of every type, one of 1,000 keys over two shards, and a view that changed in each of three epochs."""
    root = str(tmp_path_factory.mktemp("datasource") / "state")
    with deltic.Session(spark=spark, state=root, shards=2) as session:
        session.sql(f"""
            CREATE TABLE every ({COLUMNS}, PRIMARY KEY (k));
            CREATE TABLE flights (id BIGINT NOT NULL, carrier STRING NOT NULL, day INT NOT NULL, delay DOUBLE, PRIMARY KEY (id));
            CREATE MATERIALIZED VIEW all_types AS SELECT * FROM every;
            CREATE MATERIALIZED VIEW late AS SELECT carrier, day, id, delay FROM flights WHERE delay > 0;
            CREATE MATERIALIZED VIEW delays AS SELECT carrier, count(*) AS n FROM flights GROUP BY carrier;
        """)
        with session.transaction() as tx:
            tx.insert("every", ROWS)
            tx.insert("flights", flights(0, 1000))
        with session.transaction() as tx:
            tx.delete("flights", list(range(0, 1000, 20)))
        with session.transaction() as tx:
            tx.insert("flights", flights(2000, 2001))
    return root


def flights(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    carriers = pa.array(["AA", "B6", "UA", "Ünited"] * (len(ids) // 4 + 1))[: len(ids)]
    return pa.table(
        {"id": list(ids), "carrier": carriers, "day": pa.array([i % 31 for i in ids], pa.int32()), "delay": [i - 100.5 for i in ids]}
    )


def load(spark: SparkSession, root: str, view: str, **options: Any) -> DataFrame:
    return spark.read.format("deltic").option("view", view).options(**options).load(root)


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def counts(spark: SparkSession, root: str, **options: Any) -> dict[str, int]:
    return {row.carrier: row.n for row in load(spark, root, "delays", **options).collect()}


def test_values_of_all_types_and_nulls_are_unchanged(registered: SparkSession, folder: str) -> None:
    frame = load(registered, folder, "all_types")
    assert [f"{f.name} {f.dataType.simpleString()}" for f in frame.schema] == [
        "k bigint", "b boolean", "i8 tinyint", "i16 smallint", "i32 int", "i64 bigint", "f float", "d double", "n decimal(10,2)",
        "w decimal(38,3)", "s string", "t date", "ts timestamp",
    ]  # fmt: skip
    assert [f.nullable for f in frame.schema][:2] == [False, True]
    assert sorted(frame.toArrow().to_pylist(), key=lambda row: row["k"]) == ROWS


def test_a_view_is_read_shard_by_shard(registered: SparkSession, folder: str) -> None:
    frame = load(registered, folder, "late")
    assert frame.rdd.getNumPartitions() == 2
    assert frame.columns == ["carrier", "day", "id", "delay"]
    assert rows(frame.select("id")) == [(i,) for i in [*(i for i in range(101, 1000) if i % 20), 2000]]


def test_an_epoch_stays_readable_and_a_frame_stays_at_its_own(registered: SparkSession, folder: str) -> None:
    assert counts(registered, folder) == {"AA": 201, "B6": 250, "UA": 250, "Ünited": 250}
    latest = load(registered, folder, "delays", changes=True).selectExpr("max(_epoch)").first()[0]
    assert counts(registered, folder, epoch=latest - 2) == dict.fromkeys(["AA", "B6", "UA", "Ünited"], 250)
    assert counts(registered, folder, epoch=latest - 1)["AA"] == 200
    assert counts(registered, folder, epoch=latest - 3) == {}


@pytest.mark.slow
def test_columns_are_decoded_only_if_they_are_named(registered: SparkSession, folder: str) -> None:
    frame = load(registered, folder, "late", columns="id, carrier")
    assert frame.columns == ["id", "carrier"]
    assert frame.where("id = 2000").collect()[0].carrier == "AA"
    typed = registered.read.format("deltic").schema("delay DOUBLE").option("view", "late").load(folder)
    assert typed.selectExpr("max(delay)").first()[0] == 1899.5


LATE = [
    "carrier = 'Ünited'", "carrier = 'AA' and day = 3", "carrier in ('AA', 'UA') and day < 5", "carrier = 'nobody'", "day >= 30",
    "delay > 890", "delay = 1.5 or id = 7", "not (carrier = 'AA')", "carrier like 'Ü%'", "carrier like '%A'", "carrier <=> 'B6'",
    "carrier is null", "id in (1, 101, 102)", "carrier > 'B' and carrier <= 'UA'", "carrier not in ('AA', 'B6')",
]  # fmt: skip
EVERY = [
    "b", "not b", "i8 = -128", "i64 > 5", "n = -0.01", "n < 0", "w > 0", "s = ''", "s like 'Ü%'", "t < '1970-01-01'", "t = '2013-01-01'",
    "ts = timestamp'2013-07-04 12:30:01.0005'", "d = 0.0", "d = -0.0", "f = 'Infinity'", "i32 is null", "s is not null", "i16 <=> null",
    "not (i32 <=> 0)", "i32 not in (0, 1)", "d > -1",
]  # fmt: skip


@pytest.mark.parametrize("condition", [LATE[1], *(pytest.param(c, marks=pytest.mark.slow) for c in LATE if c != LATE[1])])
def test_filters_equal_those_of_spark(registered: SparkSession, folder: str, condition: str) -> None:
    whole = registered.createDataFrame(load(registered, folder, "late").toArrow())
    assert rows(load(registered, folder, "late", pushdown=True).where(condition)) == rows(whole.where(condition))


@pytest.mark.slow
@pytest.mark.parametrize("condition", EVERY)
def test_filters_on_every_type_equal_those_of_spark(registered: SparkSession, folder: str, condition: str) -> None:
    whole = registered.createDataFrame(load(registered, folder, "all_types").toArrow())
    expected = rows(whole.where(condition).select("k"))
    assert rows(load(registered, folder, "all_types", pushdown=True).where(condition).select("k")) == expected


def test_a_query_on_a_frame_does_not_affect_the_next(registered: SparkSession, folder: str) -> None:
    frame = load(registered, folder, "delays")
    few = frame.where("carrier = 'AA'")
    assert (rows(few), frame.count()) == ([("AA", 201)], 4)
    assert rows(few.unionAll(frame.where("carrier = 'UA'"))) == [("AA", 201), ("UA", 250)]
    assert (rows(frame.where("carrier = 'UA' or n = 201").select("n")), frame.count()) == ([(201,), (250,)], 4)


def test_a_key_is_looked_up_on_its_shard_alone(registered: SparkSession, folder: str) -> None:
    by_key = load(registered, folder, "delays", pushdown=True).where("carrier = 'AA'")
    assert by_key.rdd.getNumPartitions() == 1
    assert rows(by_key) == [("AA", 201)]
    assert rows(load(registered, folder, "delays", pushdown=True).where("carrier in ('AA', 'UA', 'XX')")) == [("AA", 201), ("UA", 250)]


def test_changes_of_some_epochs_are_read_with_their_weights(registered: SparkSession, folder: str) -> None:
    frame = load(registered, folder, "delays", startingEpoch="earliest")
    assert frame.columns == ["carrier", "n", "_weight", "_epoch"]
    last = frame.selectExpr("max(_epoch)").first()[0]
    assert rows(load(registered, folder, "delays", startingEpoch=last)) == [("AA", 200, -1, last), ("AA", 201, 1, last)]
    one = load(registered, folder, "delays", startingEpoch=last - 1, endingEpoch=last - 1)
    assert rows(one) == [("AA", 200, 1, last - 1), ("AA", 250, -1, last - 1)]
    total = frame.groupBy("carrier", "n").sum("_weight").where("sum(_weight) <> 0").select("carrier", "n")
    assert rows(total) == rows(load(registered, folder, "delays"))


@pytest.mark.parametrize(
    ("view", "options", "message"),
    [
        ("delay", {}, "the state has no view delay"),
        pytest.param("delays", {"epoch": "900"}, "epoch 900 of the state folder", marks=pytest.mark.slow),
        pytest.param("delays", {"columns": "carrier,hour"}, "view delays has no column hour", marks=pytest.mark.slow),
    ],
)
def test_missing_views_and_columns_are_rejected_at_load(
    registered: SparkSession, folder: str, view: str, options: dict[str, str], message: str
) -> None:
    from pyspark.errors import PySparkException  # noqa: PLC0415  needs the extra

    with pytest.raises(PySparkException, match=message):
        load(registered, folder, view, **options)


@pytest.mark.slow
def test_a_folder_without_a_state_is_rejected(registered: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException  # noqa: PLC0415  needs the extra

    with pytest.raises(PySparkException, match="is not a state folder"):
        load(registered, str(tmp_path), "v")


@pytest.mark.slow
def test_columns_of_other_types_are_rejected(registered: SparkSession, folder: str) -> None:
    from pyspark.errors import PySparkException  # noqa: PLC0415  needs the extra

    frame = registered.read.format("deltic").schema("n STRING").option("view", "delays").load(folder)
    with pytest.raises(PySparkException, match="column n of view delays is read as STRING"):
        frame.collect()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"view": "v"}, "the format deltic requires the option path"),
        ({"path": "s"}, "the format deltic requires the option view"),
        ({"path": "s", "view": "v", "epoch": "last"}, "invalid value 'last' of the option epoch"),
        ({"path": "s", "view": "v", "epohc": "1"}, "the format deltic has no option epohc"),
        ({"path": "s", "view": "v", "changes": "yes"}, "invalid value 'yes' of the option changes"),
        ({"path": "s", "view": "v", "changes": "true", "epoch": "1"}, "the option epoch applies to a view's content"),
        ({"path": "s", "view": "v", "changes": "false", "startingEpoch": "1"}, "startingEpoch and endingEpoch require changes"),
        ({"path": "s", "view": "v", "startingEpoch": "first"}, "invalid value 'first' of the option startingEpoch"),
        ({"path": "s", "view": "v", "endingEpoch": "latest"}, "invalid value 'latest' of the option endingEpoch"),
    ],
)
def test_contradictory_options_are_rejected(options: dict[str, str], message: str) -> None:
    pytest.importorskip("pyspark")
    from deltic.runtimes.spark.read_options import ReadOptions  # noqa: PLC0415  needs the extra

    with pytest.raises(SetupError, match=message):
        ReadOptions.of(options)


def test_filters_drop_rows_before_spark_sees_them(registered: SparkSession, folder: str) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThan  # noqa: PLC0415  needs the extra

    from deltic.runtimes.spark.datasource import DelticSource  # noqa: PLC0415

    def given(*filters: Any) -> list[int]:
        source = DelticSource({"path": folder, "view": "late", "columns": "id", "pushdown": "true"})
        reader: Any = source.reader(source.schema())
        assert list(reader.pushFilters([*filters])) == [*filters], "Spark evaluates all of them again"
        return sorted(i for part in reader.partitions() for batch in reader.read(part) for i in batch.column(0).to_pylist())

    assert given(EqualTo(("carrier",), "AA"), GreaterThan(("day",), 29)) == [
        i for i in range(101, 1000) if not i % 4 and i % 20 and i % 31 == 30
    ]
    assert given(EqualTo(("carrier",), "nobody")) == []
