"""Tables of Delta without Spark: the same changes as Spark's feed, and Spark reads what is written, values at their limits included."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from math import nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.connect import DELTA, connect_server
from deltic.connectors.frames import WEIGHT
from deltic.frontends.sql.parse_statement import parse_columns
from deltic.frontends.sql.sql_types import sql_type
from deltic.schema import Field, Schema

pytest.importorskip("pyspark.sql.connect.proto")
deltalake = pytest.importorskip("deltalake")

from deltic.projects.direct import FEED, DirectTable, Replacement  # noqa: E402  needs the extra

COLUMNS = (
    "k BIGINT, b BOOLEAN, i INT, t TINYINT, f FLOAT, d DOUBLE, n DECIMAL(38,4), m DECIMAL(9,2), s STRING, x BINARY, day DATE, at TIMESTAMP"
)
CHOICES: dict[str, list[Any]] = {
    "b": [None, True, False],
    "i": [None, 0, -(2**31), 2**31 - 1],
    "t": [None, -128, 127],
    "f": [None, 0.0, -0.0, 1.5, float("nan"), float("inf")],
    "d": [None, 0.0, -0.0, 0.1, float("nan"), float("-inf"), 5e-324],
    "n": [None, Decimal("0.0000"), Decimal("9" * 34 + ".9999"), Decimal("-" + "9" * 34 + ".9999")],
    "m": [None, Decimal("-9999999.99"), Decimal("0.01")],
    "s": [None, "", "é", "a" * 100, "\U0001f600\n'\"\\"],
    "x": [None, b"", b"\x00\xff"],
    "day": [None, date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(9999, 12, 31)],
    "at": [
        None,
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1582, 10, 4, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ],
}


def schema_of(text: str) -> Schema:
    return Schema(tuple(Field(one.name.text, sql_type(one.type)) for one in parse_columns(text, "t") if one.name is not None))


def drawn(draw: random.Random, keys: range) -> pa.Table:
    rows = [{"k": k, **{name: draw.choice(values) for name, values in CHOICES.items()}} for k in keys]
    return pa.Table.from_pylist(rows, schema=schema_of(COLUMNS).arrow)


def counted(table: pa.Table) -> Counter[str]:
    """Rows with the sums of their weights."""
    names = [one for one in table.column_names if one != WEIGHT]
    counts: Counter[str] = Counter()
    for row in table.to_pylist():
        counts[repr([row[name] for name in names])] += row.get(WEIGHT, 1)
    return Counter({row: count for row, count in counts.items() if count})


def made(folder: Path, text: str = COLUMNS, **properties: str) -> DirectTable:
    deltalake.DeltaTable.create(str(folder), deltalake.Schema.from_arrow(schema_of(text).arrow), configuration=properties or None)
    table = DirectTable.at(str(folder))
    assert table is not None
    return table


def test_rows_are_replaced_in_one_commit(tmp_path: Path) -> None:
    table, draw = made(tmp_path / "t"), random.Random(1)
    for number, count in enumerate((50, 0, 7)):
        rows = drawn(draw, range(count))
        assert table.replace(schema_of(COLUMNS), rows, ("deltic-a", number)) is Replacement.WRITTEN
        again = DirectTable.at(f"file://{tmp_path}/t")
        assert again is not None and (again.version, again.identity) == (number + 1, table.identity)
        assert again.table.transaction_version("deltic-a") == number
        assert counted(again.table.to_pyarrow_table()) == counted(rows)


def test_files_have_no_statistics_that_would_mislead(tmp_path: Path) -> None:
    columns = "k BIGINT, s STRING, f FLOAT, d DOUBLE, n DECIMAL(38,2), x BINARY, `a.b` DECIMAL(38,2)"
    schema, place = schema_of(columns), str(tmp_path / "t")
    deltalake.DeltaTable.create(place, deltalake.Schema.from_arrow(schema.arrow))
    number = Decimal("12345678901234568.90")  # as a DOUBLE it is less
    rows = pa.table({"k": [1], "s": ["\u00e9" * 100], "f": [nan], "d": [nan], "n": [number], "x": [b"\xff"], "a.b": [number]}, schema.arrow)
    table = DirectTable.at(place)
    assert table is not None and table.replace(schema, rows, ("a", 1)) is Replacement.WRITTEN
    (added,) = [one["add"] for one in table._actions(1) if "add" in one]
    said = json.loads(added["stats"])
    assert said.pop("numRecords") == 1 and {*said["minValues"], *said["maxValues"], *said["nullCount"]} == {"k", "s"}, said
    assert len(said["maxValues"]["s"]) < 40 and said["minValues"]["s"] <= "\u00e9" * 100 <= said["maxValues"]["s"]
    of_file = pq.read_metadata(tmp_path / "t" / added["path"]).row_group(0)
    assert [of_file.column(i).is_stats_set for i in range(len(schema))] == [True, True, False, False, False, False, False]


def test_columns_keep_their_comments_and_conditions(tmp_path: Path) -> None:
    long = deltalake.schema.PrimitiveType("long")
    columns = [deltalake.Field("k", long, nullable=False, metadata={"comment": "a key"}), deltalake.Field("n", long)]
    deltalake.DeltaTable.create(str(tmp_path / "t"), deltalake.Schema(columns), description="numbers")
    schema = schema_of("k BIGINT, n BIGINT")
    for number in (1, 2):
        table = DirectTable.at(str(tmp_path / "t"))
        rows = pa.table({"k": [number], "n": [None]}, schema=schema.arrow)
        assert table is not None and table.replace(schema, rows, ("a", number)) is Replacement.WRITTEN
    table = DirectTable.at(str(tmp_path / "t"))
    assert table is not None
    own = table.table
    assert own.schema() == deltalake.Schema(columns) and own.metadata().description == "numbers" and own.version() == 2
    assert own.to_pyarrow_table().to_pylist() == [{"k": 2, "n": None}]
    parted = deltalake.DeltaTable.create(str(tmp_path / "p"), deltalake.Schema(columns), partition_by=["n"])
    partitioned = DirectTable.at(str(tmp_path / "p"))
    rows = pa.table({"k": [1], "n": [2]}, schema=schema.arrow)
    assert partitioned is not None and partitioned.replace(schema, rows, ("a", 1)) is Replacement.REFUSED
    assert parted.version() == 0
    rows = pa.table({"k": [None], "n": [None]}, schema=schema.arrow)
    assert table.replace(schema, rows, ("a", 3)) is not Replacement.WRITTEN, "a NULL"
    constrained = made(tmp_path / "c", "k BIGINT")
    constrained.table.alter.add_constraint({"positive": "k > 0"})
    assert DirectTable.at(str(tmp_path / "c")) is None


def test_tables_that_only_spark_can_work_with(tmp_path: Path) -> None:
    assert all(DirectTable.at(place) is None for place in (str(tmp_path), "s3://bucket/t", str(tmp_path / "no")))
    later = made(tmp_path / "ntz", "k BIGINT")
    assert later.changes(0, schema_of("k BIGINT")) is None, "it has no feed"
    assert later.replace(schema_of("other BIGINT"), pa.table({"other": [1]}), ("a", 1)) is Replacement.REFUSED
    assert later.replace(schema_of("k ARRAY<INT>"), pa.table({"k": [[1]]}), ("a", 1)) is Replacement.REFUSED
    later.table.alter.add_feature(deltalake.TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    assert DirectTable.at(str(tmp_path / "ntz")) is None


def test_a_feed_after_a_change_of_properties_is_left_to_spark(tmp_path: Path) -> None:
    table, schema = made(tmp_path / "t", "k BIGINT", **{FEED: "true"}), schema_of("k BIGINT")
    deltalake.write_deltalake(table.table, pa.table({"k": [1, 1, 2]}), mode="append")
    table.table.delete("k = 2")
    now = DirectTable.at(str(tmp_path / "t"))
    assert now is not None and now.version == 2
    changes = now.changes(0, schema)
    assert changes is not None and counted(changes) == Counter({"[1]": 2})
    empty = now.changes(2, schema)
    assert empty is not None and not empty.num_rows and empty.schema == changes.schema
    assert now.changes(3, schema) is None and now.changes(0, schema_of("other BIGINT")) is None
    table.table.alter.set_table_properties({"delta.logRetentionDuration": "interval 1 days"})
    now = DirectTable.at(str(tmp_path / "t"))
    assert now is not None and now.changes(0, schema) is None
    deltalake.write_deltalake(now.table, pa.table({"k": [5]}), mode="append")
    now = DirectTable.at(str(tmp_path / "t"))
    changes = None if now is None else now.changes(3, schema)
    assert now is not None and changes is not None and counted(changes) == Counter({"[5]": 1})
    (tmp_path / "t" / "_delta_log" / f"{4:020}.json").unlink()
    assert now.changes(3, schema) is None


def test_all_rows_of_a_version(tmp_path: Path) -> None:
    draw, schema = random.Random(4), schema_of(COLUMNS)
    table = made(tmp_path / "t")
    empty = table.content(schema)
    assert empty is not None and not empty.num_rows and empty.schema.names == list(schema.names)
    first, second = drawn(draw, range(30)), drawn(draw, range(30, 40))
    for rows in (first, second):
        deltalake.write_deltalake(table.table, rows, mode="append")
    table.table.delete("k < 12")
    now = DirectTable.at(str(tmp_path / "t"))
    rows = None if now is None else now.content(schema)
    assert now is not None and rows is not None and counted(rows) == counted(pa.concat_tables([first.slice(12), second]))
    assert now.content(schema_of("k BIGINT, other BIGINT")) is None and now.content(schema_of("k ARRAY<INT>")) is None
    for file in (tmp_path / "t").glob("*.parquet"):
        file.unlink()
    assert now.content(schema) is None, "a file is gone"
    deltalake.write_deltalake(str(tmp_path / "p"), pa.table({"k": [1], "n": [2]}), partition_by=["n"])
    partitioned = DirectTable.at(str(tmp_path / "p"))
    assert partitioned is not None and partitioned.content(schema_of("k BIGINT, n BIGINT")) is None


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415  needs the extra

    with connect_server(tmp_path_factory.mktemp("server"), DELTA) as url:
        session = SparkSession.builder.remote(url).create()
        yield session
        session.stop()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2))
def test_changes_and_rows_are_those_of_spark(spark: Any, tmp_path: Path, seed: int) -> None:
    draw, schema, place = random.Random(seed), schema_of(COLUMNS), tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{place}` ({COLUMNS}) USING delta TBLPROPERTIES ({FEED} = true)")
    columns = [field.name for field in schema]
    before = 0
    for step in range(8):
        rows = spark.createDataFrame(drawn(draw, range(step * 5, step * 5 + 10)), schema=COLUMNS)
        match step % 4:
            case 0 | 1:
                rows.write.format("delta").mode("append").save(str(place))
            case 2:
                spark.sql(f"DELETE FROM delta.`{place}` WHERE k % 3 = {draw.randrange(3)}")
            case _:
                clauses = "WHEN MATCHED AND t.i > 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
                distinct = {"s": rows.dropDuplicates(["k"])}
                spark.sql(f"MERGE INTO delta.`{place}` t USING {{s}} s ON t.k = s.k {clauses}", **distinct)
        table = DirectTable.at(str(place))
        assert table is not None
        own = table.changes(before, schema)
        weight = f"CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1L ELSE -1L END AS {WEIGHT}"
        feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", before + 1).load(str(place))
        assert own is not None and counted(own) == counted(feed.selectExpr(*columns, weight).toArrow()), step
        content = table.content(schema)
        assert content is not None and counted(content) == counted(spark.read.format("delta").load(str(place)).toArrow()), step
        before = table.version if step % 2 else before  # of one commit, and of several
    written = drawn(draw, range(100))
    assert table.replace(schema, written, ("deltic", 1)) is Replacement.WRITTEN
    assert counted(spark.read.format("delta").load(str(place)).toArrow()) == counted(written)
    spark.sql(f"INSERT INTO delta.`{place}` SELECT * FROM delta.`{place}` WHERE k < 5")
    assert spark.read.format("delta").load(str(place)).count() == 105


@pytest.mark.slow
@pytest.mark.spark
def test_spark_skips_no_file_that_has_the_row(spark: Any, tmp_path: Path) -> None:
    import pyspark.sql.connect.functions as F  # noqa: PLC0415  needs the extra

    more = {**CHOICES, "n": [*CHOICES["n"], Decimal("12345678901234568.9000"), Decimal("-12345678901234568.9000")]}
    more["s"] = [*CHOICES["s"], "\U0010ffff" * 40, "é" * 40]
    schema, place = schema_of(COLUMNS), tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{place}` ({COLUMNS}) USING delta")
    for number in range(max(map(len, more.values()))):
        row = {"k": number, **{name: values[number % len(values)] for name, values in more.items()}}
        table = DirectTable.at(str(place))
        assert table is not None
        assert table.replace(schema, pa.Table.from_pylist([row], schema=schema.arrow), ("deltic", number)) is Replacement.WRITTEN
        frame = spark.read.format("delta").load(str(place))
        for field in schema:
            column, value = F.col(field.name), row[field.name]
            if value is None:
                continue
            literal = F.lit(value).cast(field.type.sql)
            for condition in (column.eqNullSafe(literal), column >= literal, column <= literal, column.isin(literal)):
                frame = frame.where(condition)
        assert frame.count() == 1, row
        (extremes,) = spark.sql(f"SELECT count(*), min(d), max(d), min(n), max(n), max(at), min(day) FROM delta.`{place}`").collect()
        names = ("d", "d", "n", "n", "at", "day")
        assert repr([extremes[0], *extremes[1:5], extremes[6]]) == repr([1, *(row[name] for name in names if name != "at")]), row
