"""Every type as a column, key, group, extreme and order: on one shard and three, and after a restart, equal to the oracle."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.errors import CircuitError, ConstraintViolation, CorruptState
from deltic.expr.nodes import lookup_key
from deltic.frontends.python.schemas import schema_of
from deltic.intervals import FIRST
from deltic.plan.relation import normal
from deltic.schema import DATE, TIME, TIMESTAMP, TIMESTAMP_NTZ, Field, Type
from deltic.trace.encoding import decode
from deltic.trace.identity import Identity
from deltic.trace.strings import StringTable
from parts import slow
from tests.support.checked import Checked

LONG = b"\x00\xff" * 15
VALUES: dict[str, Sequence[Any]] = {
    "BINARY": (b"", b"\x00", b"\x00\x00", b"\xff\xfe", LONG, LONG + b"\x00", LONG + b"\x01", b"text"),
    "TIMESTAMP_NTZ": (
        datetime.datetime(1, 1, 1),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
        datetime.datetime(2024, 2, 29, 12, 30),
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    ),
    "TIME(6)": (
        datetime.time(),
        datetime.time(0, 0, 0, 1),
        datetime.time(12, 34, 56, 789_123),
        datetime.time(23, 59, 59, 999_999),
    ),
    "STRUCT<a: TIME(0), b: ARRAY<TIME(6)>>": (
        (datetime.time(), (datetime.time(1), None)),
        (datetime.time(12, 34), ()),
        (None, (datetime.time.max,)),
        (datetime.time.max, None),
    ),
    "INTERVAL DAY TO SECOND": tuple(datetime.timedelta(microseconds=n) for n in (0, 1, -1, 2**63 - 1, FIRST, 86_400_000_000)),
    "INTERVAL HOUR": tuple(datetime.timedelta(hours=n) for n in (0, 1, -1, 2_562_047_788)),
    "INTERVAL YEAR TO MONTH": (0, 1, -1, 2**31 - 1, -(2**31), 14),
    "ARRAY<INTERVAL DAY>": ((), (datetime.timedelta(days=1),), (datetime.timedelta(days=-1), None), (None,)),
    "ARRAY<INT>": ((), (1,), (1, None), (None,), (1, 2), (-1, 5), tuple(range(40)), (*range(40), 1)),
    "ARRAY<DOUBLE>": ((), (0.0,), (-0.0,), (0.0, 1.0), (-0.0, 0.5), (math.nan,), (math.inf, None), (-1.5,)),
    "STRUCT<a: STRING, b: ARRAY<STRUCT<c: DATE, d: BOOLEAN>>>": (
        ("x", ()),
        ("x\0", None),
        (None, ((datetime.date(2020, 1, 1), True),)),
        ("x", ((datetime.date(2020, 1, 1), None), None)),
        ("é" * 30, ((datetime.date(1, 1, 1), False),)),
    ),
}
SCRIPT = """
CREATE TABLE t (id BIGINT NOT NULL, k BIGINT NOT NULL, v {type}, w {type}, PRIMARY KEY (id));
CREATE TABLE u (v {type} NOT NULL, n BIGINT, PRIMARY KEY (v));
CREATE MATERIALIZED VIEW grouped AS SELECT v, count(*) AS n, count(DISTINCT w) AS d FROM t GROUP BY v;
CREATE MATERIALIZED VIEW extremes AS SELECT k, min(v) AS lo, max(v) AS hi FROM t GROUP BY k;
CREATE MATERIALIZED VIEW kept AS SELECT DISTINCT v, w FROM t;
CREATE MATERIALIZED VIEW joined AS SELECT t.id, u.n, t.v FROM t JOIN u ON t.v = u.v;
CREATE MATERIALIZED VIEW outer_joined AS SELECT t.id, u.v FROM t LEFT JOIN u ON t.w = u.v;
CREATE MATERIALIZED VIEW first_rows AS SELECT v, id FROM t ORDER BY v DESC, w, id LIMIT 4;
CREATE MATERIALIZED VIEW compared AS
    SELECT id, v < w AS a, v = w AS b, v <=> w AS c, coalesce(v, w) AS d, CASE WHEN k > 1 THEN v ELSE w END AS e, v IS NULL AS f,
           greatest(v, w) AS g, v IN (w, {literal}) AS h, v BETWEEN {literal} AND w AS i
    FROM t WHERE v <> {literal} OR v IS NULL;
"""
LITERALS = {
    "ARRAY<INT>": "array(1, 2)",
    "ARRAY<DOUBLE>": "array(0D)",
    "STRUCT<a: STRING, b: ARRAY<STRUCT<c: DATE, d: BOOLEAN>>>": (
        "named_struct('a', 'x', 'b', array(named_struct('c', DATE '2020-01-01', 'd', TRUE)))"
    ),
    "TIME(6)": "TIME '12:34:56.789123'",
    "STRUCT<a: TIME(0), b: ARRAY<TIME(6)>>": "named_struct('a', CAST('12:34' AS TIME(0)), 'b', array(TIME '1:02:03.5'))",
    "INTERVAL DAY TO SECOND": "INTERVAL '1' DAY",
    "INTERVAL HOUR": "INTERVAL 1 HOUR",
    "INTERVAL YEAR TO MONTH": "INTERVAL '1-2' YEAR TO MONTH",
    "ARRAY<INTERVAL DAY>": "array(INTERVAL 1 DAY)",
    "BINARY": "X'FFFE'",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ '2024-02-29 12:30:00'",
}


@pytest.mark.parametrize(("type_", "shards"), [*zip(VALUES, cycle((1, 3)), strict=False), *slow(*zip(VALUES, cycle((3, 1)), strict=False))])
def test_values_are_keys_groups_extremes_and_orders(type_: str, shards: int, tmp_path: Path) -> None:
    script = SCRIPT.format(type=type_, literal=LITERALS[type_])
    rng, values = Random(7), VALUES[type_]
    different = {lookup_key(value): normal(value) for value in values}.values()  # -0.0 and 0.0 are one key, kept as 0.0
    checked = Checked(script, session=deltic.Session(shards=shards, state=tmp_path / "state"))
    rows: dict[int, tuple[Any, ...]] = {}
    for tick in range(6):
        changes: dict[tuple[Any, ...], int] = {}
        for id_ in rng.sample(range(12), 6):
            old = rows.pop(id_, None)
            if old is not None:
                changes[old] = changes.get(old, 0) - 1
            if old is None or rng.random() < 0.6:
                row = (id_, rng.randrange(3), rng.choice([None, *values]), rng.choice([None, *values]))
                rows[id_] = row
                changes[row] = changes.get(row, 0) + 1
        keys = {(value, n): 1 for n, value in enumerate(different)} if tick == 0 else {}
        checked.tick({"t": {row: n for row, n in changes.items() if n}, "u": keys})
        if tick == 2:
            checked.session.close()
            checked.open(deltic.Session(shards=shards, state=tmp_path / "state"))
    checked.session.close()


def test_a_string_of_a_state_that_is_not_utf_8_is_refused_where_it_is_read() -> None:
    strings = StringTable(Identity.drawn())
    ids = strings.intern(pa.array([b"plain", b"\xff"], pa.binary()))
    assert strings.bytes_of(ids).to_pylist() == [b"plain", b"\xff"]
    assert strings.decode(ids[:1]).to_pylist() == ["plain"]
    with pytest.raises(CorruptState, match="a string of the state is not UTF-8"):
        strings.decode(ids)


@pytest.mark.parametrize("type_", [DATE, TIMESTAMP, TIMESTAMP_NTZ], ids=lambda type_: type_.name)
def test_a_year_of_a_state_that_is_not_from_1_to_9999_is_refused_where_it_is_read(type_: Type) -> None:
    field, strings = Field("day", type_), StringTable(Identity.drawn())
    words = np.array([0, np.iinfo(np.int64).min, -(2**31) if type_ == DATE else 2**62])
    assert decode([words[:2]], field, strings).null_count == 1
    with pytest.raises(CorruptState, match=f"a {type_.name} outside the years 1 to 9999 in column day"):
        decode([words], field, strings)


def test_a_time_of_a_state_that_is_outside_the_day_is_refused_where_it_is_read() -> None:
    field, strings = Field("at", TIME), StringTable(Identity.drawn())
    words = np.array([0, np.iinfo(np.int64).min, 86_400_000_000])
    assert decode([words[:2]], field, strings).null_count == 1
    with pytest.raises(CorruptState, match=r"a TIME\(6\) outside a day in column at"):
        decode([words], field, strings)


def test_char_and_varchar_keep_their_lengths_as_spark_does(tmp_path: Path) -> None:
    """VARCHAR(n) refuses more than n characters, blanks at the end aside; CHAR(n) is filled with blanks, as what it is compared with."""
    script = """
        CREATE TABLE t (k CHAR(3), v VARCHAR(3), w CHAR(5), PRIMARY KEY (k));
        CREATE MATERIALIZED VIEW c AS
            SELECT k, v, k = 'a' AS same, k = w AS wide, k IN ('a', 'b') AS among, length(k) AS n, k LIKE 'a' AS alike, v || '!' AS said,
                   k = 'a       ' AND k >= 'a     ' AND k > 'a  \t' AND k IN ('b', 'a         ') AS longer
            FROM t;
    """
    session = deltic.Session(state=tmp_path / "state")
    session.sql(script)
    with session.transaction() as tx:
        tx.insert("t", [{"k": "a", "v": "xy  ", "w": "a"}, {"k": "éé", "v": "xyz", "w": None}])
    expected = [
        {"k": "a  ", "v": "xy ", "same": True, "wide": True, "among": True, "n": 3, "alike": False, "said": "xy !", "longer": True},
        {"k": "éé ", "v": "xyz", "same": False, "wide": None, "among": False, "n": 3, "alike": False, "said": "xyz!", "longer": False},
    ]
    assert sorted(session.view("c").rows(), key=lambda row: row["k"]) == expected
    with pytest.raises(ConstraintViolation, match=r"row 1, column v: 4 characters do not fit VARCHAR\(3\)"), session.transaction() as tx:
        tx.insert("t", pa.table({"k": ["b", "c"], "v": ["x", "wxyz"], "w": pa.nulls(2, pa.string())}))
    session.close()
    session = deltic.Session(state=tmp_path / "state")
    session.sql(script)
    with session.transaction() as tx:
        tx.delete("t", ["a"])
    assert session.view("c").rows() == expected[1:]
    session.close()


def test_files_are_held_to_the_lengths_of_their_columns(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("ab,x\ntoolong,y\n")
    script = """
        CREATE TABLE t (c CHAR(3), v VARCHAR(3)) USING csv OPTIONS (path 'in', on_error 'dead_letter', dead_letter_path 'letters');
        CREATE MATERIALIZED VIEW o AS SELECT * FROM t;
    """
    with deltic.Pipeline(script, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        pipeline.run_once()
        assert pipeline.session.view("o").rows() == [{"c": "ab ", "v": "x"}]
    assert "7 characters do not fit" in next((tmp_path / "letters").iterdir()).read_text()


@pytest.mark.parametrize(
    ("notation", "type_"),
    [
        ("DECIMAL(10, 2)", "DECIMAL(10,2)"),
        ("decimal(10,2)", "DECIMAL(10,2)"),
        ("binary", "BINARY"),
        ("time", "TIME(6)"),
        ("MAP<time (3) without time zone, TIME WITHOUT TIME ZONE>", "MAP<TIME(3), TIME(6)>"),
        (
            "ARRAY<STRUCT<camelCase: INT, `a b`: MAP<STRING, DECIMAL(5, 1)>>>",
            "ARRAY<STRUCT<camelCase: INT, `a b`: MAP<STRING, DECIMAL(5,1)>>>",
        ),
    ],
)
def test_a_schema_in_python_names_every_type(notation: str, type_: str) -> None:
    assert schema_of({"x": notation})[0].type.sql == type_


@pytest.mark.parametrize(
    "notation",
    [
        "VARCHAR(3)",
        "ARRAY<INT",
        "MAP<INT>",
        "STRUCT<a>",
        "",
        "ARRAY<>",
        "VOID",
        "TIME(7)",
        "TIME(x)",
        "DECIMAL(39,1)",
        "STRUCT<a: INT, A: INT>",
    ],
)
def test_what_is_no_type_of_a_stream_is_refused(notation: str) -> None:
    with pytest.raises(CircuitError, match="column x"):
        schema_of({"x": notation})
