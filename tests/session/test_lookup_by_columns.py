"""`lookup(key, by=[…])`: rows of a view by any of its columns, through an index in memory that follows the view."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import DataError
from deltic.runtimes.readable_view import ReadableView
from deltic.runtimes.sought import sought_by_columns
from deltic.trace.counters import Counters
from deltic.trace.strings import SoughtStrings

SCRIPT = """
    CREATE TABLE t (id BIGINT PRIMARY KEY, name STRING, size DOUBLE, price DECIMAL(30, 2), day DATE);
    CREATE STREAM s (a BIGINT, b STRING);
    CREATE MATERIALIZED VIEW v AS SELECT * FROM t;
    CREATE MATERIALIZED VIEW bag AS SELECT name, size FROM t;
    CREATE MATERIALIZED VIEW last AS SELECT * FROM s;
"""


def rows_of(start: int, n: int) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "name": None if i % 7 == 0 else f"n{i % 5}",
            "size": (-0.0 if i % 2 else 0.0) if i % 3 == 0 else i % 4 / 2,
            "price": None if i % 4 == 0 else Decimal(f"{i % 3}00000000000000000000.25"),
            "day": date(2026, 1, 1 + i % 3),
        }
        for i in range(start, start + n)
    ]


def change(session: deltic.Session, start: int) -> None:
    with session.transaction() as tx:
        if start:
            tx.delete("t", list(range(start - 20, start, 3)))
        tx.insert("t", rows_of(start, 20))
        tx.insert("s", [{"a": start + i % 3, "b": f"x{i % 2}"} for i in range(4)])


def check(view: ReadableView) -> None:
    """Every set of columns, with values of rows and with values that no row has."""
    rows, names = view.rows(), view.schema.names
    for count in (1, 2, len(names)):
        for by in combinations(reversed(names), count):
            for key in {tuple(row[name] for name in by) for row in rows[:3]}:
                matches = [row for row in rows if all(row[name] == value for name, value in zip(by, key, strict=True))]
                found = view.lookup(dict(zip(by, key, strict=True)), by=by)
                assert sorted(found, key=repr) == sorted(matches, key=repr) != []
                assert len(view.lookup(key if count > 1 else key[0], by=[name.upper() for name in by])) == len(matches)
    assert view.lookup("nobody", by="name" if "name" in names else "b") == []


@pytest.mark.parametrize("shards", [1, 3])
def test_rows_are_found_by_any_columns(tmp_path: Path, shards: int) -> None:
    for start in (0, 40):
        with deltic.Session(state=tmp_path, shards=shards if start else 2) as session:
            session.sql(SCRIPT)
            for tick in (start, start + 20):
                change(session, tick)
                for name in ("v", "bag", "last"):
                    check(session.view(name))
                with deltic.open(tmp_path) as handle:
                    for name in ("v", "bag", "last"):
                        check(handle.view(name))


def test_zeros_are_sought_with_both_signs(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path, shards=2) as session:
        session.sql("CREATE TABLE t (id BIGINT, a ARRAY<DOUBLE>, p STRUCT<x: FLOAT, m: MAP<STRING, DOUBLE>>, x DOUBLE)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT a, p, x, id FROM t")
        session.sql("CREATE MATERIALIZED VIEW grouped AS SELECT a, count(*) AS n FROM t GROUP BY a")
        pairs = [(0.0, 0.0), (-0.0, 0.0), (0.0, -0.0), (1.0, 0.0)]
        with session.transaction() as tx:
            tx.insert("t", [{"id": i, "a": [a, b], "p": {"x": a, "m": {"k": b}}, "x": a} for i, (a, b) in enumerate(pairs)])
        with deltic.open(tmp_path) as handle:
            for view in (session.view("v"), handle.view("v")):
                for key in ({"a": [0.0, -0.0]}, {"p": {"x": -0.0, "m": {"k": 0.0}}}, {"x": 0}, {"x": -0.0, "a": (0, 0)}):
                    assert sorted(row["id"] for row in view.lookup(key, by=list(key))) == [0, 1, 2]
            for grouped in (session.view("grouped"), handle.view("grouped")):
                assert grouped.lookup(([-0.0, 0.0],)) == [{"a": [0.0, 0.0], "n": 3}]
        with pytest.raises(DataError, match=r"a key of view v has 11 zeros, .*\nexpected: at most 10 zeros"):
            session.view("v").lookup(([0.0] * 11,), by=["a"])


def test_a_lookup_costs_the_logarithm_of_the_view_and_the_rows_that_are_new() -> None:
    n = 20_000
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, name STRING); CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
        with session.transaction() as tx:
            tx.insert("t", [{"id": i, "name": f"n{i}"} for i in range(n)])
        touched = []
        for tick in range(20):
            touched.append(touched_by(session, "n1234"))
            with session.transaction() as tx:
                tx.upsert("t", [{"id": tick, "name": f"m{tick}"}])
        assert n <= touched[0] < n + 40 * math.log2(n)
        assert max(touched[1:]) < 40 * math.log2(n)
        assert session.view("v").lookup("m1", by=["name"]) == [{"id": 1, "name": "m1"}]
        assert session.view("v").lookup("n1", by=["name"]) == []


def touched_by(session: deltic.Session, name: str) -> int:
    """The rows that a look-up by name touches."""
    contents, counters = session._contents, Counters()
    stored, strings = contents.stored("v").spec.shape.schema, SoughtStrings(contents.strings)
    sought = sought_by_columns("v", stored, stored.names, name, ["name"])
    contents.read("v", lambda _, spines: sought.rows(spines, strings, counters))
    return counters.touched


@pytest.mark.parametrize(
    ("key", "by", "message"),
    [
        (1, ["colour"], r"view v has no column colour\nexpected: columns of id, name, size, price, day"),
        (1, ["nam"], r"view v has no column nam\n.*\nhelp: did you mean 'name'\?"),
        (1, ["name", "NAME"], "column name occurs twice"),
        (1, ["name", "size"], "the key has 1 values to look up rows of view v by 2 columns\nexpected: one for each of name, size"),
        ({"name": 1, "id": 2}, ["name"], "the key has values of name, id to look up rows of view v\nexpected: one for each of name"),
        (1, [], r"invalid columns \[\] to look up rows of view v by\nexpected: a list of id"),
        (1, 5, "invalid columns 5 to look up"),
        (1, [5], r"invalid columns \[5\] to look up"),
        ("x", ["size"], "a key of view v, row 0, column size"),
    ],
)
def test_errors(tmp_path: Path, key: Any, by: Any, message: str) -> None:
    with deltic.Session(state=tmp_path) as session:
        session.sql(SCRIPT)
        with deltic.open(tmp_path) as handle:
            for view in (session.view("v"), handle.view("v")):
                with pytest.raises(deltic.errors.DelticError, match=message):
                    view.lookup(key, by=by)


def test_the_error_of_other_columns_than_the_key_names_by() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (b BIGINT); CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
        expected = r"view v cannot be looked up by n\nexpected: b\nhelp: by=\['n'\] looks rows up by any columns"
        with pytest.raises(DataError, match=expected):
            session.view("v").lookup({"n": 1})


@pytest.mark.parametrize("shards", [1, 3])
def test_texts_with_a_collation_are_found_in_any_form(tmp_path: Path, shards: int) -> None:
    with deltic.Session(state=tmp_path, shards=shards) as session:
        session.sql("""
            CREATE TABLE t (c STRING COLLATE UTF8_LCASE, d STRING, a ARRAY<STRING COLLATE UTF8_BINARY_RTRIM>,
                p STRUCT<x: DOUBLE, c: STRING COLLATE UTF8_LCASE>);
            CREATE MATERIALIZED VIEW grouped AS SELECT c, d, count(*) AS n FROM t GROUP BY c, d;
            CREATE MATERIALIZED VIEW same AS SELECT * FROM t;
            INSERT INTO t VALUES ('Abc', 'x', array('p', 'q '), NULL), ('aBC', 'x', array('p'), named_struct('x', DOUBLE('NaN'), 'c', 'q')),
                ('b', 'y', NULL, named_struct('x', -0.0D, 'c', 'q')), (NULL, 'x', array(), NULL)
        """)
        abc, absent = {"c": "aBC", "d": "x", "n": 2}, {"c": None, "d": "x", "n": 1}
        with deltic.open(tmp_path) as handle:
            for read in (session.view, handle.view):
                for form in ("ABC", "Abc", "aBC"):
                    assert read("grouped").lookup(form) == read("grouped").lookup((form, "x")) == [abc]
                    assert read("grouped").lookup(form, by=["c"]) == read("grouped").lookup((2, form), by=["n", "c"]) == [abc]
                    assert len(read("same").lookup(form, by=["c"])) == 2
                assert read("grouped").lookup(("abc", "X")) == read("grouped").lookup("ab") == []
                assert read("grouped").lookup(None) == [absent]
                assert read("grouped").lookup("x", by=["d"]) == [absent, abc]
                assert [row["c"] for row in read("same").lookup((["p ", "q"],), by=["a"])] == ["Abc"]
                assert [row["c"] for row in read("same").lookup({"p": {"x": math.nan, "c": "Q"}}, by=["p"])] == ["aBC"]
                assert [row["c"] for row in read("same").lookup({"p": {"x": 0.0, "c": "Q"}}, by=["p"])] == ["b"]
        assert session.query("SELECT n FROM grouped WHERE c = 'ABC' AND d = 'x'").rows() == [{"n": 2}]
