"""Bad input: each gives one clear error, word for word as in bad_input.txt, and nothing is applied."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import polars
import pyarrow as pa
import pytest

import deltic
from deltic import errors
from goldens import Goldens

SCRIPT = """
CREATE TABLE orders (id INT, customer BIGINT, amount DOUBLE NOT NULL, note STRING, PRIMARY KEY (id));
CREATE TABLE people (id BIGINT, name STRING, PRIMARY KEY (id));
CREATE TABLE log (line STRING NOT NULL);
CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
CREATE MATERIALIZED VIEW big AS SELECT customer FROM totals WHERE total > 10;
"""
ORDER = {"id": 1, "customer": 7, "amount": 2.5, "note": "x"}


@pytest.fixture
def session() -> Any:
    with deltic.Session() as session:
        session.sql(SCRIPT)
        with session.transaction() as tx:
            tx.insert("orders", [ORDER])
            tx.insert("log", [{"line": "a"}])
        yield session


def content(session: deltic.Session) -> Any:
    return session.epoch, session.tables, session.views, [session.view(v).rows() for v in session.views]


STATEMENTS = {
    "syntax": ("SELEC 1", errors.SyntaxFailure),
    "syntax within": ("CREATE MATERIALIZED VIEW v AS\nSELECT customer, FROM orders WHERE", errors.SyntaxFailure),
    "unknown table": ("CREATE MATERIALIZED VIEW v AS SELECT * FROM oders", errors.UnknownName),
    "unknown column": ("CREATE MATERIALIZED VIEW v AS\n  SELECT amuont FROM orders", errors.UnknownName),
    "unknown table of a drop": ("DROP TABLE oders", errors.CatalogError),
    "unknown function": ("CREATE MATERIALIZED VIEW v AS SELECT uper(note) AS n FROM orders", errors.UnknownName),
    "type mismatch": ("CREATE MATERIALIZED VIEW v AS SELECT amount AND true AS n FROM orders", errors.TypeMismatch),
    "type mismatch of a comparison": (
        "CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE amount = DATE '2026-01-01'",
        errors.TypeMismatch,
    ),
    "type mismatch of a function": ("CREATE MATERIALIZED VIEW v AS SELECT sum(note > 'a') AS n FROM orders", errors.TypeMismatch),
    "ambiguous": ("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders o JOIN people p ON o.customer = p.id", errors.AmbiguousName),
    "table twice": ("CREATE TABLE orders (id INT)", errors.CatalogError),
    "view twice": ("CREATE MATERIALIZED VIEW totals AS SELECT 1 AS one", errors.CatalogError),
    "dropped while read": ("DROP VIEW totals", errors.CatalogError),
    "replaced while read": ("CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT customer FROM orders", errors.CatalogError),
    "table dropped while read": ("DROP TABLE orders", errors.CatalogError),
    "all or nothing": ("CREATE TABLE fine (a INT); CREATE MATERIALIZED VIEW v AS SELECT b FROM fine", errors.UnknownName),
    "reserved column": ("CREATE TABLE t (id INT, _weight BIGINT)", errors.CatalogError),
    "reserved column of a view": ("CREATE MATERIALIZED VIEW v AS SELECT id AS _op FROM orders", errors.CatalogError),
    "limit": ("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders LIMIT -3", errors.Unsupported),
    "division by zero while filled": ("CREATE MATERIALIZED VIEW v AS SELECT 1 / (id - 1) AS n FROM orders", errors.DivisionByZero),
    "cast while filled": ("CREATE MATERIALIZED VIEW v AS SELECT CAST(note AS INT) AS n FROM orders", errors.CastFailure),
    "text as a condition": ("CREATE MATERIALIZED VIEW v AS SELECT note AND true AS n FROM orders", errors.CastFailure),
}


def frame(**columns: Any) -> pa.Table:
    whole = {"id": pa.array([2], pa.int32()), "customer": pa.array([7]), "amount": pa.array([1.0]), "note": pa.array(["y"])}
    return pa.table({name: array for name, array in (whole | columns).items() if array is not None})


CHANGES = {
    "out of range": (lambda tx: tx.insert("orders", [{**ORDER, "id": 2**31}]), errors.ConstraintViolation),
    "null": (lambda tx: tx.insert("orders", [{**ORDER, "id": 2}, {**ORDER, "id": 3, "amount": None}]), errors.ConstraintViolation),
    "missing column": (lambda tx: tx.insert("orders", frame(note=None)), errors.FrameError),
    "extra column": (lambda tx: tx.insert("orders", frame(colour=pa.array(["red"]))), errors.FrameError),
    "wrong type": (lambda tx: tx.insert("orders", frame(amount=pa.array(["much"]))), errors.FrameError),
    "absent row": (lambda tx: tx.delete("orders", [5]), errors.AbsentRow),
    "absent whole row": (lambda tx: tx.delete("log", [{"line": "b"}]), errors.AbsentRow),
    "deleted twice": (lambda tx: (tx.delete("log", [{"line": "a"}]), tx.delete("log", [{"line": "a"}])), errors.AbsentRow),
    "not the same row": (lambda tx: tx.delete("orders", [{**ORDER, "amount": 3.5}]), errors.AbsentRow),
    "update of nothing": (lambda tx: tx.update("orders", [{**ORDER, "id": 9}]), errors.AbsentRow),
    "duplicate key": (lambda tx: tx.insert("orders", [{**ORDER, "amount": 9.0}]), errors.DuplicateKey),
    "duplicate key within": (lambda tx: tx.insert("orders", [{**ORDER, "id": 2}, {**ORDER, "id": 2}]), errors.DuplicateKey),
    "weights: duplicate": (lambda tx: tx.apply("orders", frame(_weight=pa.array([2]))), errors.DuplicateKey),
    "weights: absent": (lambda tx: tx.apply("orders", frame(_weight=pa.array([-1]))), errors.AbsentRow),
    "upsert without key": (lambda tx: tx.upsert("log", [{"line": "b"}]), errors.DataError),
    "unknown table": (lambda tx: tx.insert("oders", [ORDER]), errors.UnknownName),
    "unknown op": (lambda tx: tx.apply("orders", frame(_op=pa.array(["replace"]))), errors.FrameError),
    "neither op nor weight": (lambda tx: tx.apply("orders", frame()), errors.FrameError),
    "weight overflow": (lambda tx: [tx.apply("log", [{"line": "a", "_weight": 2**62}]) for _ in range(2)], errors.WeightOverflow),
}

NOTE_12A = [{**ORDER, "id": 2, "note": "12a"}]
NOTES = "SELECT note FROM orders WHERE note <> 'x'"
CAST_TO_ONE_TYPE = {
    "IN": f"SELECT id FROM people WHERE id IN ({NOTES})",
    "NOT IN": f"SELECT id FROM people WHERE id NOT IN ({NOTES})",
    "ANY": f"SELECT id FROM people WHERE id > ANY ({NOTES})",
    "UNION": f"SELECT id FROM people UNION {NOTES}",
    "UNION BY NAME": f"SELECT id AS note FROM people UNION ALL BY NAME {NOTES}",
    "EXCEPT ALL": f"{NOTES} EXCEPT ALL SELECT id FROM people",
    "USING": f"SELECT count(*) AS n FROM people AS p FULL JOIN ({NOTES}) AS o (id) USING (id)",
    "NATURAL JOIN": f"SELECT count(*) AS n FROM people AS p NATURAL JOIN ({NOTES}) AS o (id)",
}

BROKEN = {
    **{f"cast of {name}": (query, NOTE_12A, errors.CastFailure) for name, query in CAST_TO_ONE_TYPE.items()},
    "division by zero": ("SELECT 10 / (id - 2) AS n FROM orders", [{**ORDER, "id": 2}], errors.DivisionByZero),
    "remainder by zero": ("SELECT 10 % (id - 2) AS n FROM orders", [{**ORDER, "id": 2}], errors.DivisionByZero),
    "cast": ("SELECT CAST(note AS INT) AS n FROM orders WHERE note <> 'x'", [{**ORDER, "id": 2, "note": "12a"}], errors.CastFailure),
    "cast out of range": (
        "SELECT CAST(customer AS TINYINT) AS n FROM orders",
        [{**ORDER, "id": 2, "customer": 128}],
        errors.EvaluationError,
    ),
    "integer overflow": ("SELECT id + 2147483646 AS n FROM orders", [{**ORDER, "id": 2}], errors.ArithmeticOverflow),
    "sum overflow": ("SELECT sum(customer) AS n FROM orders", [{**ORDER, "id": 2, "customer": 2**63 - 1}], errors.ArithmeticOverflow),
    "decimal sum overflow": (
        "SELECT sum(CAST(1e37 AS DECIMAL(38, 0))) AS n FROM orders",
        [{**ORDER, "id": i} for i in range(2, 12)],
        errors.ArithmeticOverflow,
    ),
    "decimal average overflow": (
        "SELECT avg(CAST(9e33 AS DECIMAL(38, 0))) AS n FROM log",
        [{"line": "b", "_weight": 20_000}],
        errors.ArithmeticOverflow,
    ),
    "join weight overflow": (
        "SELECT a.line FROM log a JOIN log b ON a.line = b.line",
        [{"line": "b", "_weight": 2**40}],
        errors.WeightOverflow,
    ),
}


def without(module: str, read: Callable[[deltic.Session], object]) -> Callable[[deltic.Session], object]:
    """Reads while the module is not installed."""

    def reading(session: deltic.Session) -> object:
        with pytest.MonkeyPatch.context() as patched:
            patched.setitem(sys.modules, module, None)
            return read(session)

    return reading


READS = {
    "unknown view": (lambda session: session.view("total"), errors.UnknownName),
    "table as a view": (lambda session: session.view("orders"), errors.UnknownName),
    "view without content": (lambda session: session.view("plain"), errors.CatalogError),
    "explain unknown": (lambda session: session.explain("total"), errors.UnknownName),
    "lookup by too much": (lambda session: session.view("totals").lookup((7, 2.5, 1)), errors.DataError),
    "lookup by nothing": (lambda session: session.view("totals").lookup(()), errors.DataError),
    "lookup by no key": (lambda session: session.view("totals").lookup({"total": 2.5}), errors.DataError),
    "lookup by a wrong type": (lambda session: session.view("totals").lookup("seven"), errors.DataError),
    "lookup out of range": (lambda session: session.view("totals").lookup(2**64), errors.DataError),
    "no Spark": (lambda session: session.view("totals").to_spark(), errors.SetupError),
    "state nowhere": (lambda session: deltic.Session(state="ftp://host/folder"), errors.StateError),
    "no shards": (lambda session: deltic.Session(shards=0), errors.SetupError),
    "half a shard": (lambda session: deltic.Session(shards=1.5), errors.SetupError),
    "state by a number": (lambda session: deltic.Session(state=5), errors.SetupError),
    "state with a NUL": (lambda session: deltic.Session(state="a\0b"), errors.SetupError),
    "Spark by its name": (lambda session: deltic.Session(spark="x"), errors.SetupError),
    "retain less than none": (lambda session: deltic.Session(retain=-1), errors.SetupError),
    "iterations by text": (lambda session: deltic.Session(iteration_limit="9"), errors.SetupError),
    "rows per tick": (lambda session: deltic.Pipeline("", rows_per_tick=True), errors.SetupError),
    "no pandas": (without("pandas", lambda session: session.view("totals").to_pandas()), errors.SetupError),
    "no Polars": (without("polars", lambda session: session.view("totals").to_polars()), errors.SetupError),
}

NAMES = [
    f"{kind}: {name}"
    for kind, cases in (("statement", STATEMENTS), ("change", CHANGES), ("broken", BROKEN), ("read", READS))
    for name in cases
] + ["read: closed session"]


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement(session: deltic.Session, name: str, goldens: Goldens) -> None:
    text, kind = STATEMENTS[name]
    before = content(session)
    with pytest.raises(kind) as caught:
        session.sql(text)
    assert content(session) == before
    goldens.check(f"statement: {name}", str(caught.value))


@pytest.mark.parametrize("name", CHANGES)
def test_change(session: deltic.Session, name: str, goldens: Goldens) -> None:
    change, kind = CHANGES[name]
    before = content(session)
    with pytest.raises(kind) as caught, session.transaction() as tx:
        tx.insert("people", [{"id": 1, "name": "never"}])
        change(tx)
    assert content(session) == before
    goldens.check(f"change: {name}", str(caught.value))
    with session.transaction() as tx:
        tx.insert("people", [{"id": 1, "name": "later"}])


@pytest.mark.parametrize("name", BROKEN)
def test_change_that_breaks_a_view(session: deltic.Session, name: str, goldens: Goldens) -> None:
    query, rows, kind = BROKEN[name]
    session.sql(f"CREATE MATERIALIZED VIEW broken AS\n  {query}")
    before = content(session)
    with pytest.raises(kind) as caught, session.transaction() as tx:
        tx.insert("people", [{"id": 1, "name": "never"}])
        tx.apply("log", rows) if "_weight" in rows[0] else tx.insert("orders", rows)
    assert content(session) == before
    goldens.check(f"broken: {name}", str(caught.value))


@pytest.mark.parametrize("name", READS)
def test_read(session: deltic.Session, name: str, goldens: Goldens) -> None:
    read, kind = READS[name]
    session.sql("CREATE VIEW plain AS SELECT id FROM orders")
    with pytest.raises(kind) as caught:
        read(session)
    goldens.check(f"read: {name}", str(caught.value))


def test_closed_session(session: deltic.Session, goldens: Goldens) -> None:
    session.close()
    with pytest.raises(errors.DelticError) as caught:
        session.transaction()
    goldens.check("read: closed session", str(caught.value))


def test_the_texts_are_those_of_the_cases(goldens: Goldens) -> None:
    goldens.check_names(NAMES)


def test_times_of_frames_become_dates_as_the_error_says() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE days (day DATE)")
        times = pa.table({"day": pa.array([datetime(2024, 5, 1)])})
        frame, rows = times.to_pandas(), polars.DataFrame({"day": [datetime(2024, 5, 1)]})
        for one in (times, frame, rows):
            with pytest.raises(
                errors.FrameError, match=r"help: in pandas frame\['day'\]\.dt\.date, in Polars \.dt\.date\(\), in Arrow \.cast"
            ):
                session.insert("days", one)
        frame["day"] = frame["day"].dt.date
        for right in (frame, rows.with_columns(polars.col("day").dt.date()), pa.table({"day": times["day"].cast("date32")})):
            session.insert("days", right)
        assert session.query("SELECT DISTINCT day FROM days").rows() == [{"day": date(2024, 5, 1)}]
