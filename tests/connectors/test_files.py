"""Files as changes: the content of each format, numbered rows, reads that resume, files that change while they are read."""

from __future__ import annotations

import codecs
import datetime as dt
import gzip
import json
import lzma
import os
import re
import zlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltic.connectors.files.json
from deltic.connectors.files import Entry, FileReader
from deltic.connectors.frames import change_frame
from deltic.errors import ConstraintViolation, DelticError, FrameError, SourceError
from deltic.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Field, Op, Schema, TableSchema, Type, decimal
from file_data import letters, read, rows
from goldens import Goldens

ORDERS = TableSchema("orders", Schema((Field("id", BIGINT, False), Field("n", INT), Field("s", STRING, False))), (0,))
LOG = TableSchema("log", Schema((Field("line", STRING),)))
ONE, TWO = {"id": 1, "n": 10, "s": "a"}, {"id": 2, "n": None, "s": "b"}
MANY = 150_000


def write(folder: Path, content: bytes | str, name: str = "a") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_parquet(folder: Path, columns: Any, name: str = "a.parquet", **options: Any) -> Path:
    pq.write_table(pa.table(columns), folder / name, **options)
    return folder / name


def test_a_listing_is_sorted_by_name_and_skips_hidden_and_unfinished_files(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "B", ".hidden", "_SUCCESS", "c.tmp", "d.staged", "a b"):
        write(tmp_path, name, name)
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "link").symlink_to(tmp_path / "B")
    reader = FileReader(LOG, "csv", f"file://{tmp_path}")
    assert [entry.name for entry in reader.listing()] == ["B", "a b", "a.csv", "b.csv", "link"]
    state = os.stat(tmp_path / "a.csv")
    assert Entry("a.csv", 5, state.st_mtime_ns) in reader.listing()
    assert reader.checksum(reader.listing()[2]) == zlib.crc32(b"a.csv")


def test_an_empty_folder_has_no_files(tmp_path: Path) -> None:
    assert FileReader(LOG, "parquet", str(tmp_path)).listing() == []


# --- Parquet


def test_parquet_columns_come_by_name_in_any_order_and_case_and_fitting_types(tmp_path: Path) -> None:
    write_parquet(
        tmp_path,
        {"S": pa.array(["a", "b"]).dictionary_encode(), "ID": pa.array([1, 2], pa.int16()), "n": pa.array([10, None], pa.uint64())},
    )
    (portion,) = read(tmp_path, ORDERS, "parquet")
    assert portion.changes.to_pylist() == [ONE, TWO]
    assert portion.changes.schema.types == list(ORDERS.schema.arrow.types)
    assert (portion.first, portion.rows, portion.lines.tolist()) == (1, 2, [1, 2])


def test_parquet_from_any_row_on_without_decoding_the_row_groups_before(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"id": range(MANY), "n": [1] * MANY, "s": ["x"] * MANY}, row_group_size=40_000)
    for start in (0, 1, 39_999, 40_000, 100_001, MANY - 1, MANY, MANY + 5):
        portions = read(tmp_path, ORDERS, "parquet", start=start)
        check_portions(portions, start)
    with open(path, "r+b") as file:  # the first row group is broken
        file.write(b"\0" * 20_000)
    assert sum(portion.rows for portion in read(tmp_path, ORDERS, "parquet", start=40_000)) == MANY - 40_000


def check_portions(portions: list[Any], start: int) -> None:
    """They hold the rows from `start` on, whose ids are their numbers less one."""
    ids = np.concatenate([portion.changes.column("id").to_numpy() for portion in portions] or [np.empty(0)])
    assert np.array_equal(ids, np.arange(start, max(start, MANY)))
    for portion in portions:
        assert portion.rows <= 65_536
        assert portion.first == start + 1
        start += portion.rows
        assert np.array_equal(portion.lines, portion.changes.column("id").to_numpy() + 1)


def test_parquet_timestamps_of_any_unit_are_utc_and_lose_nothing(tmp_path: Path) -> None:
    moment = dt.datetime(2024, 2, 29, 1, 2, 3, 4)
    table = TableSchema("t", Schema(tuple(Field(name, TIMESTAMP) for name in "abc")))
    columns = {
        "a": pa.array([moment], pa.timestamp("us")),
        "b": pa.array([moment], pa.timestamp("us", "Europe/Berlin")),
        "c": pa.array([1], pa.timestamp("ns")),
    }
    write_parquet(tmp_path, columns)
    (letter,) = letters(read(tmp_path, table, "parquet", on_error="dead_letter"))
    assert letter.column == "c" and letter.reason.startswith("1970-01-01 00:00:00.000000001 does not fit")
    write_parquet(tmp_path, {**columns, "c": pa.array([1000], pa.timestamp("ns"))})
    assert rows(read(tmp_path, table, "parquet")) == [
        {
            "a": moment.replace(tzinfo=dt.UTC),
            "b": moment.replace(tzinfo=dt.UTC),
            "c": dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC),
        }
    ]


END = 253_402_300_800
"""The year 10000, in seconds since 1970."""
UNFIT = {
    "TIMESTAMP": (pa.timestamp("s"), [0, END], f"{END}000 does not fit: a TIMESTAMP outside the years 1 to 9999"),
    "TIMESTAMP_NTZ": (pa.timestamp("us"), [0, END * 10**6], f"{END}000000 does not fit: a TIMESTAMP_NTZ outside the years 1 to 9999"),
    "DATE": (pa.date32(), [0, 2_932_897], "2932897 does not fit: a DATE outside the years 1 to 9999"),
    "ARRAY<DATE>": (pa.list_(pa.date32()), [[], [2_932_897]], "[2932897] does not fit: a DATE outside the years 1 to 9999"),
    "MAP<STRING, INT>": (
        pa.map_(pa.string(), pa.int32()),
        [[("a", 1)], [("a", 1), ("a", 2)]],
        "[('a', 1), ('a', 2)] does not fit: a MAP with a key that is NULL, or there twice",
    ),
    "INTERVAL DAY": (pa.duration("us"), [0, 1], "0:00:00.000001 does not fit: an INTERVAL DAY with a part of a day"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_parquet_values_that_arrow_holds_and_the_type_does_not_are_refused_by_row(tmp_path: Path, name: str) -> None:
    table = TableSchema("t", Schema((Field("a", Type.parse(name)),)))
    stored, values, reason = UNFIT[name]
    write_parquet(tmp_path, {"a": pa.array(values, stored)})
    (letter,) = letters(read(tmp_path, table, "parquet", on_error="dead_letter"))
    assert (letter.row, letter.column) == (2, "a") and letter.reason.startswith(reason)
    with pytest.raises(ConstraintViolation) as error:
        read(tmp_path, table, "parquet")
    assert error.value.message.startswith(f"table t, file {tmp_path}/a.parquet, row 2, column a: {reason}")


def test_parquet_as_sparks_old_timestamps_beyond_nanoseconds(tmp_path: Path) -> None:
    table = TableSchema("t", Schema((Field("a", TIMESTAMP),)))
    far = dt.datetime(9999, 1, 1, tzinfo=dt.UTC)
    write_parquet(tmp_path, {"a": pa.array([far], pa.timestamp("us"))}, use_deprecated_int96_timestamps=True)
    assert rows(read(tmp_path, table, "parquet")) == [{"a": far}]


# --- CSV


def test_csv_fields_in_the_order_of_the_table_and_the_operation_last(tmp_path: Path) -> None:
    write(tmp_path, '1,10,a,insert\n\n2,,"b",U\r\n3,,,D\n')
    (portion,) = read(tmp_path, ORDERS, "csv", op_column="what")
    assert portion.changes.column_names == ["id", "n", "s", "_op"]
    assert portion.changes.to_pylist() == [{**ONE, "_op": "insert"}, {**TWO, "_op": "U"}, {"id": 3, "n": None, "s": None, "_op": "D"}]
    assert change_frame(portion.changes, ORDERS).ops.tolist() == [Op.INSERT, Op.UPDATE, Op.DELETE_KEY]


def test_csv_with_a_header_in_any_order_and_case(tmp_path: Path) -> None:
    write(tmp_path, b'\xef\xbb\xbf"S",ID,_Op,N\na,1,i,10\nb,2,i,\n')
    (portion,) = read(tmp_path, ORDERS, "csv", op_column="_op", header=True)
    assert portion.changes.drop_columns("_op").to_pylist() == [ONE, TWO]
    assert portion.lines.tolist() == [1, 2]


def test_csv_with_another_separator_and_null(tmp_path: Path) -> None:
    write(tmp_path, '1|\\N|a,b\n2|"\\N"|"\\N"\n3|4|\n')
    assert rows(read(tmp_path, ORDERS, "csv", sep="|", null_value="\\N")) == [
        {"id": 1, "n": None, "s": "a,b"},
        {"id": 2, "n": None, "s": "\\N"},
        {"id": 3, "n": 4, "s": ""},
    ]


def test_csv_quotes_hold_separators_ends_of_lines_and_quotes(tmp_path: Path) -> None:
    write(tmp_path, '1,"10","x,\n\r\n""y"""\n2,,""\n3,,5" tube\n')
    assert [row["s"] for row in rows(read(tmp_path, ORDERS, "csv"))] == ['x,\n\r\n"y"', "", '5" tube']


def test_csv_records_are_counted_with_the_torn_ones_and_without_empty_lines(tmp_path: Path) -> None:
    write(tmp_path, 'id,n,s\n1,1,"a\nb"\n\n2\n3,x,c\n4,4,d,e\n5,5,f\n6')
    (portion,) = read(tmp_path, ORDERS, "csv", header=True, on_error="dead_letter")
    assert portion.lines.tolist() == [1, 5]
    assert [(letter.row, letter.column, letter.text) for letter in portion.letters] == [
        (2, None, "2"),
        (3, "n", "3,x,c"),
        (4, None, "4,4,d,e"),
        (6, None, "6"),
    ]
    assert portion.rows == 6


@pytest.mark.parametrize("start", [0, 1, 65_536, 100_000, MANY - 1, MANY])
def test_csv_and_json_from_any_row_on(tmp_path: Path, start: int) -> None:
    write(tmp_path, "id,n,s\n" + "".join(f"{i},1,{'x' * (i % 100)}y\n" for i in range(MANY)))
    check_portions(read(tmp_path, ORDERS, "csv", start=start, header=True), start)
    write(tmp_path, "".join(f'{{"id":{i},"s":"{"x" * (i % 100)}"}}\n' for i in range(MANY)))
    check_portions(read(tmp_path, ORDERS, "json", start=start), start)


def test_csv_torn_records_far_apart_keep_their_numbers_however_it_is_started(tmp_path: Path) -> None:
    bad = {7, 70_000, 70_001, 149_999}
    write(tmp_path, "".join("torn\n" if i in bad else f"{i},1,{'x' * 200}\n" for i in range(MANY)))
    for start in (0, 7, 8, 70_001, 149_999):
        portions = read(tmp_path, ORDERS, "csv", start=start, on_error="dead_letter")
        assert {letter.row - 1 for letter in letters(portions)} == {i for i in bad if i >= start}
        assert sum(portion.rows for portion in portions) == MANY - start
        for portion in portions:
            assert np.array_equal(portion.lines, portion.changes.column("id").to_numpy() + 1)


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n\r\n"])
def test_an_empty_file_has_no_rows(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, content)
    assert rows(read(tmp_path, ORDERS, "csv")) == []
    assert rows(read(tmp_path, ORDERS, "csv", header=True)) == []
    assert rows(read(tmp_path, ORDERS, "json")) == []


# --- JSON


def test_json_fields_by_name_in_any_case_and_missing_ones_are_null(tmp_path: Path) -> None:
    write(tmp_path, '{"S":"a","ID":1,"n":10}\r\n\n  {"s": "b", "id": 2}  \n{"s":"c","Id":3}')
    portions = read(tmp_path, ORDERS, "json")
    assert rows(portions) == [ONE, TWO, {"id": 3, "n": None, "s": "c"}]
    assert [line for portion in portions for line in portion.lines] == [1, 3, 4]
    assert sum(portion.rows for portion in portions) == 4


def test_json_values_of_every_kind(tmp_path: Path) -> None:
    fields = (
        Field("b", BOOLEAN),
        Field("x", DOUBLE),
        Field("d", decimal(10, 2)),
        Field("s", STRING),
        Field("day", DATE),
        Field("at", TIMESTAMP),
    )
    table = TableSchema("t", Schema(fields))
    write(
        tmp_path,
        '{"b":true,"x":1,"d":1.50,"s":"\\u00e4\\ud83d\\ude00\\n","day":"2024-02-29","at":"2024-02-29T01:00+01:00"}\n'
        '{"b":false,"x":"-Infinity","d":"2e1","s":"","day":null,"at":null}\n'
        '{"x":NaN}\n{"x":-Infinity}\n',
    )
    first, second, third, fourth = rows(read(tmp_path, table, "json"))
    midnight = dt.datetime(2024, 2, 29, tzinfo=dt.UTC)
    assert first == {"b": True, "x": 1.0, "d": Decimal("1.50"), "s": "ä😀\n", "day": midnight.date(), "at": midnight}
    assert second == {"b": False, "x": -np.inf, "d": Decimal(20), "s": "", "day": None, "at": None}
    assert np.isnan(third["x"]) and fourth["x"] == -np.inf


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        ("[1]", None, "found an array"),
        ("1", None, "found the number 1"),
        ('{"id":1', None, "not JSON at character 8: Expecting ',' delimiter"),
        ('{"id":1,"s":"a"} {"id":2,"s":"b"}', None, "not JSON at character 18: Extra data"),
        ('{"id":1,"s":"a","z":0}', None, "the field 'z' is unknown"),
        ('{"id":1,"ID":1}', None, "the field 'ID' comes twice (case does not count)"),
        ("[" * 100_000, None, "JSON that is nested too deeply: more than 1000 levels"),
        ('{"id":' + "[" * 100_000, None, "JSON that is nested too deeply: more than 1000 levels"),
        ('{"id":"1","s":"a"}', "id", "found the string '1'"),
        ('{"id":1.0,"s":"a"}', "id", "'1.0' does not parse as BIGINT"),
        ('{"id":9223372036854775808,"s":"a"}', "id", "'9223372036854775808' does not fit BIGINT"),
        ('{"id":true,"s":"a"}', "id", "found true"),
        ('{"id":1,"s":2}', "s", "found the number 2"),
        ('{"id":1,"s":{"x":[1]}}', "s", "found an object"),
        ('{"id":1,"s":[]}', "s", "found an array"),
        ('{"id":1,"s":"\\ud800"}', "s", "half of a surrogate pair"),
        ('{"id":1,"s":null}', "s", "NULL in a NOT NULL column"),
        ('{"s":"a"}', "id", "NULL in a NOT NULL column"),
    ],
)
def test_invalid_json_lines(tmp_path: Path, line: str, column: str | None, reason: str) -> None:
    write(tmp_path, f'{{"id":1,"s":"a"}}\n{line}\n{{"id":3,"s":"c"}}\n')
    (portion,) = read(tmp_path, ORDERS, "json", on_error="dead_letter")
    (letter,) = portion.letters
    assert (letter.row, letter.column, letter.reason.split("; expected: ")[0]) == (2, column, reason)
    assert letter.text == line[:10_000]
    assert portion.lines.tolist() == [1, 3]
    with pytest.raises((FrameError, ConstraintViolation), match=r"row 2"):
        read(tmp_path, ORDERS, "json")


def test_json_bytes_that_are_not_utf8_are_a_rows_own(tmp_path: Path) -> None:
    write(tmp_path, b'{"id":1,"s":"\xff"}\n{"id":2,"s":"b"}\n')
    (portion,) = read(tmp_path, ORDERS, "json", on_error="dead_letter")
    assert portion.changes.column("id").to_pylist() == [2]
    assert portion.letters[0].reason.startswith("byte 0xff is not UTF-8") and portion.letters[0].text == '{"id":1,"s":"\\xff"}'


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize(
    ("content", "what"),
    [
        (gzip.compress(b'{"id":1}\n'), "is compressed with gzip"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "is compressed with zstd"),
        (lzma.compress(b"1,a,2024-01-01\n"), "is compressed with xz"),
        ('{"id":1}\n'.encode("utf-16"), "is in UTF-16"),
        (codecs.BOM_UTF16_BE + '{"id":1}\n'.encode("utf-16-be"), "is in UTF-16"),
    ],
)
def test_a_file_that_is_no_text_is_not_read_line_by_line(tmp_path: Path, format: str, content: bytes, what: str) -> None:
    """Each of its lines would be a dead letter."""
    write(tmp_path, content)
    with pytest.raises(SourceError, match=what):
        read(tmp_path, ORDERS, format, on_error="dead_letter")


def test_a_header_that_was_not_declared_is_met_with_what_to_do(tmp_path: Path) -> None:
    table = TableSchema("days", Schema((Field("name", STRING), Field("id", BIGINT, False))))
    write(tmp_path, "name,ID\nmon,1\n")
    with pytest.raises(FrameError, match=r"row 1, column id: 'ID' does not parse") as raised:
        read(tmp_path, table, "csv")
    assert raised.value.remedy == "set header true, if the first line has the names of the columns"
    write(tmp_path, "mon,1\nname,ID\n")
    with pytest.raises(FrameError, match=r"row 2, column id: 'ID' does not parse") as raised:
        read(tmp_path, table, "csv")
    assert raised.value.remedy != "set header true, if the first line has the names of the columns"


def test_a_pattern_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no folder") as raised:
        FileReader(ORDERS, "json", str(tmp_path / "*.json")).listing()
    assert raised.value.remedy == "name the folder: patterns are not read as such"


# --- rows


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_the_first_of_many_bad_rows_is_reported_and_all_are_dead_letters(tmp_path: Path, format: str) -> None:
    bad = [3, 4, 50_000, 99_998, 120_001]
    n = [2**40 if i in bad else i for i in range(MANY)]
    if format == "parquet":
        write_parquet(tmp_path, {"id": range(MANY), "n": n, "s": ["x"] * MANY})
    elif format == "csv":
        write(tmp_path, "".join(f"{i},{n[i]},x\n" for i in range(MANY)))
    else:
        write(tmp_path, "".join(f'{{"id":{i},"n":{n[i]},"s":"x"}}\n' for i in range(MANY)))
    with pytest.raises(ConstraintViolation, match=r"row 4, column n: '?1099511627776'? does not fit") as error:
        read(tmp_path, ORDERS, format)
    assert error.value.table == "orders"
    portions = read(tmp_path, ORDERS, format, on_error="dead_letter")
    assert [letter.row - 1 for letter in letters(portions)] == bad
    assert [row["id"] for row in rows(portions)] == [i for i in range(MANY) if i not in bad]


def test_operations_are_judged_by_row(tmp_path: Path) -> None:
    write(tmp_path, "1,1,a,i\n2,2,b,zap\n3,3,c,\n4,,,d\n5,5,,d\n,,,d\n7,,,i\n8,x,,d\n")
    (portion,) = read(tmp_path, ORDERS, "csv", op_column="_op", on_error="dead_letter")
    assert portion.lines.tolist() == [1, 4]
    assert [(letter.row, letter.column) for letter in portion.letters] == [(2, "_op"), (3, "_op"), (5, "s"), (6, "id"), (7, "s"), (8, "n")]


def test_without_a_key_rows_are_only_inserted_and_deleted(tmp_path: Path) -> None:
    write(tmp_path, "a,i\nb,upsert\nc,d\n")
    (portion,) = read(tmp_path, LOG, "csv", op_column="_op", on_error="dead_letter")
    (letter,) = portion.letters
    assert (letter.row, letter.reason) == (2, "upsert, but the table has no PRIMARY KEY; expected: insert or delete")
    assert portion.lines.tolist() == [1, 3]


# --- messages, word for word

COLUMNS = {"id": [1], "n": [1], "s": ["a"]}


def truncated(folder: Path) -> None:
    path = write_parquet(folder, COLUMNS)
    path.write_bytes(path.read_bytes()[:-20])


def torn_page(folder: Path) -> None:
    path = write_parquet(folder, COLUMNS)
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)


BAD_FILES: dict[str, tuple[Callable[[Path], object], str, dict[str, Any]]] = {
    "parquet truncated": (truncated, "parquet", {}),
    "parquet with a torn page": (torn_page, "parquet", {}),
    "parquet of no bytes": (lambda folder: write(folder, b""), "parquet", {}),
    "parquet that is csv": (lambda folder: write(folder, "1,1,a\n"), "parquet", {}),
    "parquet without a column": (lambda folder: write_parquet(folder, {"id": [1], "s": ["a"]}), "parquet", {}),
    "parquet with one column more": (lambda folder: write_parquet(folder, {**COLUMNS, "_op": ["i"]}), "parquet", {}),
    "parquet with a column twice": (lambda folder: write_parquet(folder, {**COLUMNS, "ID": [1]}), "parquet", {}),
    "parquet of a wrong type": (lambda folder: write_parquet(folder, {**COLUMNS, "n": ["1"]}), "parquet", {}),
    "parquet with a value out of range": (lambda folder: write_parquet(folder, {**COLUMNS, "n": [2**31]}), "parquet", {}),
    "parquet with a null": (lambda folder: write_parquet(folder, {**COLUMNS, "s": pa.array([None], pa.string())}), "parquet", {}),
    "csv that does not parse": (lambda folder: write(folder, "1,1,a\n2,two,b\n"), "csv", {}),
    "csv with a value out of range": (lambda folder: write(folder, "1,2147483648,a\n"), "csv", {}),
    "csv with too few fields": (lambda folder: write(folder, "1,1,a\n2\n"), "csv", {}),
    "csv with an unknown operation": (lambda folder: write(folder, "1,1,a,zap\n"), "csv", {"op_column": "_op"}),
    "csv in latin-1": (lambda folder: write(folder, "1,1,a\n2,2,ä\n".encode("latin-1")), "csv", {}),
    "csv with a quote left open": (lambda folder: write(folder, '1,1,a\n2,2,"b\n3,3,c\n'), "csv", {}),
    "csv with a quote left open in a torn record": (lambda folder: write(folder, '1,1,a\n2,"b\n3,3,c\n'), "csv", {}),
    "csv with a huge record": (lambda folder: write(folder, '1,1,a\n2,2,"' + "b\n" * (10 << 20)), "csv", {}),
    "csv without a column in its header": (lambda folder: write(folder, "id,s\n1,a\n"), "csv", {"header": True}),
    "csv with one column more in its header": (lambda folder: write(folder, "id,n,s,t\n1,1,a,b\n"), "csv", {"header": True}),
    "csv with a column twice in its header": (lambda folder: write(folder, "id,n,s,S\n1,1,a,b\n"), "csv", {"header": True}),
    "json with an unknown field": (lambda folder: write(folder, '{"id":1,"s":"a","z":1}\n'), "json", {}),
    "json of a wrong type": (lambda folder: write(folder, '{"id":1,"s":"a"}\n{"id":"2","s":"a"}\n'), "json", {}),
    "json that is none": (lambda folder: write(folder, "[\n{}\n]\n"), "json", {}),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_word_for_word(tmp_path: Path, goldens: Goldens, name: str) -> None:
    make, format, options = BAD_FILES[name]
    make(tmp_path)
    check_message(goldens, name, tmp_path, lambda: read(tmp_path, ORDERS, format, **options))


def check_message(goldens: Goldens, name: str, folder: Path, act: Callable[[], object]) -> None:
    with pytest.raises(DelticError) as error:
        act()
    text = re.sub("is damaged: .*", "is damaged: …", str(error.value).replace(str(folder), "FOLDER"))  # Arrow's words are Arrow's
    goldens.check(name, f"{type(error.value).__name__}: {text}")


def test_faults_of_a_whole_file_are_not_dead_letters(tmp_path: Path) -> None:
    for name, (make, format, options) in BAD_FILES.items():
        if "parquet" in name and "value" not in name and "null" not in name:
            for path in tmp_path.iterdir():
                path.unlink()
            make(tmp_path)
            with pytest.raises(SourceError):
                read(tmp_path, ORDERS, format, on_error="dead_letter", **options)


def no_folder(folder: Path) -> object:
    return FileReader(ORDERS, "csv", str(folder / "nothing")).listing()


def a_file_for_a_folder(folder: Path) -> object:
    return FileReader(ORDERS, "csv", str(write(folder, "1,1,a\n"))).listing()


def another_scheme(folder: Path) -> object:
    return FileReader(ORDERS, "csv", "s3://bucket/folder")


def vanished(folder: Path) -> object:
    reader = FileReader(ORDERS, "csv", str(folder))
    path = write(folder, "1,1,a\n")
    (entry,) = reader.listing()
    path.unlink()
    return list(reader.read(entry))


def vanished_before_its_checksum(folder: Path) -> object:
    reader = FileReader(ORDERS, "csv", str(folder))
    path = write(folder, "1,1,a\n")
    (entry,) = reader.listing()
    path.unlink()
    return reader.checksum(entry)


def changed_since_the_listing(folder: Path) -> object:
    reader = FileReader(ORDERS, "csv", str(folder))
    write(folder, "1,1,a\n")
    (entry,) = reader.listing()
    write(folder, "1,1,a\n2,2,b\n")
    return list(reader.read(entry))


def touched_since_the_listing(folder: Path) -> object:
    reader = FileReader(ORDERS, "csv", str(folder))
    path = write(folder, "1,1,a\n")
    (entry,) = reader.listing()
    os.utime(path, ns=(0, 0))
    return list(reader.read(entry))


def changed_while_it_is_read(folder: Path) -> object:
    reader = FileReader(ORDERS, "csv", str(folder))
    path = write(folder, "1,1,a\n" * MANY)
    portions = reader.read(reader.listing()[0])
    assert next(portions).rows == 65_536
    with open(path, "a") as file:
        file.write("2,2,b\n")
    return list(portions)


def vanished_while_it_is_read(folder: Path) -> object:
    reader = FileReader(ORDERS, "csv", str(folder))
    path = write(folder, "1,1,a\n" * MANY)
    portions = reader.read(reader.listing()[0])
    next(portions)
    path.unlink()
    return list(portions)


def a_name_that_leads_out(folder: Path) -> object:
    return list(FileReader(ORDERS, "csv", str(folder)).read(Entry("../a", 0, 0)))


ELSEWHERE = [
    no_folder,
    a_file_for_a_folder,
    another_scheme,
    vanished,
    vanished_before_its_checksum,
    changed_since_the_listing,
    touched_since_the_listing,
    changed_while_it_is_read,
    vanished_while_it_is_read,
    a_name_that_leads_out,
]


@pytest.mark.parametrize("act", ELSEWHERE, ids=lambda act: act.__name__)
def test_a_file_that_does_not_hold_still_is_refused_word_for_word(tmp_path: Path, goldens: Goldens, act: Callable[[Path], object]) -> None:
    check_message(goldens, act.__name__.replace("_", " "), tmp_path, lambda: act(tmp_path))


def test_the_messages_are_these(goldens: Goldens) -> None:
    goldens.check_names([*BAD_FILES, *(act.__name__.replace("_", " ") for act in ELSEWHERE)])


def test_json_lines_over_the_borders_of_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "".join(f'{{"id":{i},"s":"{"é" * (i % 9)}"}}\n' + "\n" * (i % 3 == 0) for i in range(200)))
    whole = read(tmp_path, ORDERS, "json")
    for size in (1, 7, 30, 1000):
        monkeypatch.setattr(deltic.connectors.files.json, "_BYTES", size)
        portions = read(tmp_path, ORDERS, "json", start=11)
        assert rows(portions) == rows(whole)[8:]
        assert np.array_equal(np.concatenate([portion.lines for portion in portions]), whole[0].lines[8:])
        assert sum(portion.rows for portion in portions) == whole[0].rows - 11


def test_json_without_an_end_of_line_is_refused_before_it_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deltic.connectors.files.json, "_BYTES", 1 << 10)
    monkeypatch.setattr(deltic.connectors.files.json, "_LONGEST", 1 << 20)
    write(tmp_path, '{"id":1,"s":"a"}\n' + "[" * (2 << 20))
    with pytest.raises(SourceError, match=r"has a line of more than 1 MiB after line 1"):
        read(tmp_path, ORDERS, "json")


@pytest.mark.parametrize("format", ["csv", "json"])
def test_numbers_of_more_digits_than_arrow_holds_are_exact_or_refused(tmp_path: Path, format: str) -> None:
    table = TableSchema("t", Schema((Field("d", decimal(5, 2)),)))
    numbers = ["1" + "0" * 200 + "e-200", "0." + "0" * 60 + "1", "9" * 40, "0e-99999999", "1e-99999999", "1.50"]
    write(tmp_path, "".join(f"{n}\n" if format == "csv" else f'{{"d":{n}}}\n' for n in numbers))
    portions = read(tmp_path, table, format, on_error="dead_letter")
    assert [row["d"] for row in rows(portions)] == [Decimal(1), Decimal(0), Decimal("1.50")]
    assert [letter.text.strip('{"d:}') for letter in letters(portions)] == [numbers[1], numbers[2], numbers[4]]


@pytest.mark.parametrize("name", ["D", 'd"', "d\\", "dé", "x e"])
def test_json_exponents_of_decimals_are_kept_from_arrow_which_crashes_on_some(tmp_path: Path, name: str) -> None:
    table = TableSchema("t", Schema((Field("id", STRING), Field(name, decimal(5, 2)))))
    escaped = f'"\\u{ord(name[0]):04x}{json.dumps(name[1:])[1:]}'
    for spelled in (json.dumps(name), json.dumps(name, ensure_ascii=False), json.dumps(name.lower()), escaped):
        for number in ("1e-99999999", ' "1E-99999999"', '"1.e-99999999"', r'"\u0031e-99999999"', r'"1\u0065-99999999"'):
            write(tmp_path, '{"id":"7e10"}\n' * 100 + f'{{"id":"4e55",{spelled} :{number}}}\n')
            portions = read(tmp_path, table, "json", on_error="dead_letter")
            assert len(rows(portions)) == 100
            (letter,) = letters(portions)
            assert (letter.row, letter.column) == (101, name)


ENDINGS = ["", "\n", "\r\n"]


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("value", ["", "a", '"', "\n", '"\n', ",", ',"', 'x",', "\r\n"])
def test_an_unterminated_quote_is_detected_exactly(tmp_path: Path, width: int, value: str) -> None:
    table = TableSchema("t", Schema(tuple(Field(name, STRING) for name in "ab"[:width])))
    before, doubled = "a," * (width - 1), value.replace('"', '""')
    for above in ("", f"{before}a\n"):
        for ending in ENDINGS:
            write(tmp_path, f'{above}{before}"{doubled}"{ending}')
            actual = rows(read(tmp_path, table, "csv"))[-1]
            assert actual["ab"[width - 1]] == value
        write(tmp_path, f'{above}{before}"{doubled}')
        with pytest.raises(SourceError, match="ends within a quoted field"):
            read(tmp_path, table, "csv")
