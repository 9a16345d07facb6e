"""Rows in parentheses as values: a STRUCT, compared by the places of its fields, as in Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import deltic
from deltic.errors import TypeMismatch

MATCHES = {
    "(s, id) = (3, 1)": [1],
    "(s, id) <=> (3, 1)": [1],
    "(s, id) <> (3, 1)": [2, 3],
    "(s, id) < (5, 1)": [1, 3],
    "(s, id) BETWEEN (1, 1) AND (4, 4)": [1],
    "(s, id) IN ((3, 1), (5, 2), (7, 7))": [1, 2],
    "(s, id) NOT IN ((3, 1), (5, 2))": [3],
    "(s, id) IN ((3L, 1), (id + 3, 2))": [1, 2],
    "(s, id) = (SELECT struct(5, 2))": [2],
    "struct(s, id) IN (SELECT struct(3, 1))": [1],
    "struct(struct(s) AS a) = struct(struct(3) AS b)": [1],
    "array((s, id)) = array((3, 1))": [1],
    "((s, id), n) = ((5, 2), 'b')": [2],
    "(s, id).s = 5": [2],
}


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id INT, s INT, n STRING); CREATE TABLE u (a INT, b BIGINT)")
        yield session


@pytest.mark.parametrize("condition", MATCHES)
def test_comparisons(session: deltic.Session, condition: str) -> None:
    session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE {condition}")
    session.sql("INSERT INTO t VALUES (1, 3, 'a'), (2, 5, 'b'), (3, NULL, NULL), (4, 7, 'd'); DELETE FROM t WHERE id = 4")
    assert sorted(row["id"] for row in session.view("v").rows()) == MATCHES[condition]
    assert sorted(row["id"] for row in session.query(f"SELECT id FROM t WHERE {condition}").rows()) == MATCHES[condition]


@pytest.mark.filterwarnings("error")
def test_joins_by_rows_have_a_key(session: deltic.Session) -> None:
    session.sql("CREATE MATERIALIZED VIEW v AS SELECT id, a FROM t JOIN u ON (t.s, t.id) = (u.a, u.b)")
    session.sql("INSERT INTO t VALUES (1, 3, 'a'), (2, 5, 'b'); INSERT INTO u VALUES (3, 1), (5, 1)")
    assert session.view("v").rows() == [{"id": 1, "a": 3}]


def test_values_of_columns(session: deltic.Session) -> None:
    session.sql("CREATE MATERIALIZED VIEW v AS SELECT (s, 3, n) AS z FROM t")
    session.sql("CREATE MATERIALIZED VIEW m AS SELECT max((s, id)) AS z FROM t")
    session.sql("INSERT INTO t VALUES (1, 3, 'a'), (2, 3, 'b')")
    assert sorted(row["z"]["n"] for row in session.view("v").rows()) == ["a", "b"]
    assert session.view("v").rows()[0]["z"].keys() == {"s", "col2", "n"}
    assert session.view("m").rows() == [{"z": {"s": 3, "id": 2}}]


def test_values_of_other_types_are_not_compared(session: deltic.Session) -> None:
    with pytest.raises(TypeMismatch, match=r"= cannot compare STRUCT<s: INT, id: INT> and STRUCT<col1: INT, col2: INT, col3: INT>"):
        session.query("SELECT id FROM t WHERE (s, id) = (1, 2, 3)")
    with pytest.raises(TypeMismatch, match="have no common type"):
        session.query("SELECT coalesce((s, id), (1, 2)) FROM t")
