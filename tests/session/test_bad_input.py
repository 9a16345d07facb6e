"""Bad input: each gives one clear error, word for word, and nothing is applied."""

from __future__ import annotations

import textwrap
from typing import Any

import pyarrow as pa
import pytest

import deltic
from deltic import errors

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
    "table": ("CREATE MATERIALIZED VIEW v AS SELECT * FROM order", errors.SyntaxFailure),
    "unknown table": ("CREATE MATERIALIZED VIEW v AS SELECT * FROM oders", errors.UnknownName),
    "unknown column": ("CREATE MATERIALIZED VIEW v AS\n  SELECT amuont FROM orders", errors.UnknownName),
    "unknown function": ("CREATE MATERIALIZED VIEW v AS SELECT uper(note) AS n FROM orders", errors.UnknownName),
    "type mismatch": ("CREATE MATERIALIZED VIEW v AS SELECT note AND true AS n FROM orders", errors.TypeMismatch),
    "ambiguous": ("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders o JOIN people p ON o.customer = p.id", errors.AmbiguousName),
    "view twice": ("CREATE MATERIALIZED VIEW totals AS SELECT 1 AS one", errors.CatalogError),
    "dropped while read": ("DROP VIEW totals", errors.CatalogError),
    "table dropped while read": ("DROP TABLE orders", errors.CatalogError),
    "all or nothing": ("CREATE TABLE fine (a INT); CREATE MATERIALIZED VIEW v AS SELECT b FROM fine", errors.UnknownName),
    "window": ("CREATE MATERIALIZED VIEW v AS SELECT row_number() OVER (ORDER BY id) AS n FROM orders", errors.Unsupported),
    "limit": ("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders LIMIT 3", errors.Unsupported),
    "fill fails": ("CREATE MATERIALIZED VIEW v AS SELECT 1 / (id - 1) AS n FROM orders", errors.DivisionByZero),
    "cast": ("CREATE MATERIALIZED VIEW v AS SELECT CAST(note AS INT) AS n FROM orders", errors.CastFailure),
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

MESSAGES: dict[str, str] = {}


def check(name: str, error: errors.DelticError) -> None:
    assert str(error) == textwrap.dedent(MESSAGES[name]).strip("\n")


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement(session: deltic.Session, name: str) -> None:
    text, kind = STATEMENTS[name]
    before = content(session)
    with pytest.raises(kind) as caught:
        session.sql(text)
    assert content(session) == before
    check(f"statement: {name}", caught.value)


@pytest.mark.parametrize("name", CHANGES)
def test_change(session: deltic.Session, name: str) -> None:
    change, kind = CHANGES[name]
    before = content(session)
    with pytest.raises(kind) as caught, session.transaction() as tx:
        tx.insert("people", [{"id": 1, "name": "never"}])
        change(tx)
    assert content(session) == before
    check(f"change: {name}", caught.value)
    with session.transaction() as tx:
        tx.insert("people", [{"id": 1, "name": "later"}])
