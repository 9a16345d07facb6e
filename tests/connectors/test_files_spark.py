"""Spark reads the same files with the same schema: the same rows are taken, and say the same; files_spark.txt has where not.

Spark says which rows it does not take by `columnNameOfCorruptRecord`; in the mode FAILFAST it stops at these.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltic.connectors.files.writing import encoded
from deltic.schema import BOOLEAN, DATE, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, TINYINT, Field, Schema, TableSchema, Type, decimal
from file_data import EVERY, letters, random_rows, read, rows, same
from goldens import Goldens

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

CSV: dict[Type, list[str]] = {
    BOOLEAN: ["true", "TRUE", "False", "1", "t", "yes", " true", ""],
    INT: ["1", "+1", "-1", "007", " 1", "1 ", "1.0", "1e2", "0x1F", "2147483648", "-2147483648", "--1", "٣", "nan", '""', '"7"', "1,2"],
    TINYINT: ["127", "128", "-128", "-129"],
    DOUBLE: [
        "1", "1.5", "1e3", ".5", "5.", "+1", "1e999", "1e-999", "nan",
        "NaN", "Inf", "-Inf", "inf", "Infinity", "-Infinity", " 1", "1f", "0x1p3", "1_0",
    ],
    FLOAT: ["0.1", "1.0000000596046448", "3.5e38"],
    decimal(5, 2): [
        "1.5", "1.50", "1.555", "1.500", "999.99", "1000", "1e2", "1E+2",
        "1e-3", "+1", "-0", ".5", "5.", "nan", " 1", "999.996",
    ],
    DATE: [
        "2024-02-29", "2023-02-29", "2024-1-1", "2024", "20240101",
        "2024-01-01T00:00", "2024-01-01 x", " 2024-01-01", "0001-01-01", "10000-01-01",
    ],
    TIMESTAMP: [
        "2024-02-29", "2024-02-29 00", "2024-02-29T01:02", "2024-02-29 01:02:03", "2024-02-29T01:02:03.5", "2024-02-29T01:02:03.123456",
        "2024-02-29T01:02:03.1234567", "2024-02-29T01:02:03.123456000Z", "2024-02-29 05:30:00+05:30", "2024-02-28 16:00:00-0800",
        "2024-02-29T02:00+02", "2024-02-29T02:00:00+02", "2024-02-29T2:0:0", "2024-01-01T24:00", "2024-01-01T10:00:60",
        "2024-01-01 10:00:00 UTC", "2024-01-01 10:00:00 +02:00", "2024-01-01 10:00:00 Europe/Berlin", "2024-1-1 1:2:3", "1704067200",
        "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2024-01-01T10:00:00+19:00", "2024-01-01T10:00:00+25:00",
    ],
    STRING: ["a", '""', '"a"', '"a""b"', '5" tube', " a ", '"a,b"', "a\\b", '"a\\\\b"', "null", "NULL"],
}  # fmt: skip
JSON: dict[Type, list[str]] = {
    BOOLEAN: ["true", "false", "1", '"true"', "null"],
    INT: ["1", "-0", "1.0", "1e2", "2147483648", '"1"', "true", "NaN", '""'],
    DOUBLE: ["1", "1.5", "1e999", "NaN", "Infinity", "-Infinity", '"NaN"', '"Infinity"', '"-Infinity"', '"nan"', '"1.5"', "true"],
    FLOAT: ["0.1", "1.0000000596046448", "3.5e38"],
    decimal(5, 2): ["1.5", "1.555", "999.99", "1000", "1e2", '"1.5"', '"x"', "true"],
    STRING: ['"a"', "1", "true", "null", '{"x":1}', "[1]", '"\\u00e4"', '"\\ud800"', '""'],
    DATE: ['"2024-02-29"', '"2024-1-1"', '"2023-02-29"', '"2024"', "19000"],
    TIMESTAMP: ['"2024-02-29"', '"2024-02-29T01:02:03.1234567Z"', '"2024-02-29 05:30:00+05:30"', "1704067200", '"2024"'],
}


@pytest.mark.parametrize(("format", "cases"), [("csv", CSV), ("json", JSON)], ids=["csv", "json"])
def test_spark_takes_the_same_texts_but_for_these(
    spark: Any, tmp_path: Path, goldens: Goldens, format: str, cases: dict[Type, list[str]]
) -> None:
    differ = []
    for number, (type_, texts) in enumerate(cases.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        line = "{},{}\n" if format == "csv" else '{{"i":{},"v":{}}}\n'
        (folder / "a").write_text("".join(line.format(i, text) for i, text in enumerate(texts)))
        ours, sparks = by_deltic(folder, format, type_), by_spark(spark, folder, format, type_)
        assert ours.keys() == sparks.keys() == set(range(len(texts)))
        differ += [f"{type_} {text}: {ours[i]}; Spark {sparks[i]}" for i, text in enumerate(texts) if ours[i] != sparks[i]]
    goldens.check(format, "\n".join(differ))


def by_deltic(folder: Path, format: str, type_: Type) -> dict[int, str]:
    portions = read(folder, TableSchema("t", Schema((Field("i", INT), Field("v", type_)))), format, on_error="dead_letter")
    actual = {letter.row - 1: "refused" for letter in letters(portions)}
    for portion in portions:
        actual |= {row["i"]: repr(row["v"]) for row in with_numbers(portion.changes, type_)}
    return actual


def with_numbers(table: pa.Table, type_: Type) -> list[dict[str, Any]]:
    """Dates as days and timestamps as microseconds: Spark has some that Python has not."""
    plain = {DATE: pa.int32(), TIMESTAMP: pa.int64()}.get(type_, type_.arrow)
    return table.set_column(1, "v", table.column("v").cast(plain)).to_pylist()


def by_spark(spark: Any, folder: Path, format: str, type_: Type) -> dict[int, str]:
    reader = spark.read.schema(f"i INT, v {type_.sql}, bad STRING").option("columnNameOfCorruptRecord", "bad")
    actual = reader.format(format).load(str(folder)).select("i", "v", "bad").toArrow()
    return {row["i"]: "refused" if row["bad"] is not None else repr(row["v"]) for row in with_numbers(actual, type_)}


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_files_written_by_spark_are_read_exactly(spark: Any, tmp_path: Path, format: str) -> None:
    table = random_rows(random.Random(3), EVERY, 400, plain=True)
    options = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "header": "true"} if format != "parquet" else {}
    spark.createDataFrame(table).coalesce(1).write.format(format).options(**options).mode("overwrite").save(str(tmp_path))
    assert same(rows(read(tmp_path, EVERY, format, header=True)), table.to_pylist())


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_spark_reads_what_deltic_writes(spark: Any, tmp_path: Path, format: str) -> None:
    table = random_rows(random.Random(4), EVERY, 400, plain=True)
    (tmp_path / "a").write_bytes(b"".join(encoded(table, format)))
    schema = ", ".join(f"{field.name} {field.type.sql}" for field in EVERY.schema)
    actual = spark.read.schema(schema).option("mode", "FAILFAST").format(format).load(str(tmp_path)).toArrow()
    assert same(actual.cast(table.schema).to_pylist(), table.to_pylist())
