"""IDENTIFIER('…') is the name that it spells, wherever a name is."""

from __future__ import annotations

from typing import Any

import pytest

import deltic
from deltic.errors import UnknownName, Unsupported
from sql_data import bound


@pytest.mark.parametrize(
    ("spelled", "plain"),
    [
        ("SELECT IDENTIFIER('k') FROM t", "SELECT k FROM t"),
        ("SELECT IDENTIFIER('t.k') + 1 AS x FROM IDENTIFIER('t')", "SELECT t.k + 1 AS x FROM t"),
        ("SELECT IDENTIFIER('`k`') FROM t WHERE identifier('abs')(k) > 1", "SELECT k FROM t WHERE abs(k) > 1"),
        ("SELECT IDENTIFIER('co' || \"al\" || 'esce')(IDENTIFIER('t' || '.k'), 1) AS x FROM t", "SELECT coalesce(t.k, 1) AS x FROM t"),
        ("SELECT k AS identifier FROM t", "SELECT k AS `identifier` FROM t"),
    ],
)
def test_it_is_the_name(spelled: str, plain: str) -> None:
    assert bound(spelled) == bound(plain)


@pytest.mark.parametrize("argument", ["s", "'a b'", "'a.'", "''", "'a' || s", "'a' 'b'", "'a' ||", ""])
def test_it_takes_one_name(argument: str) -> None:
    with pytest.raises(Unsupported, match=r"IDENTIFIER\(\) requires a name"):
        bound(f"SELECT IDENTIFIER({argument}) FROM t")


def test_a_parameter_is_the_name_that_it_is_given() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id INT PRIMARY KEY, k INT); INSERT INTO t VALUES (1, 5)")
        query = "SELECT IDENTIFIER(:column) FROM IDENTIFIER('default.' || :table) AS t WHERE k = :k"
        assert session.query(query, args={"column": "t.id", "table": "t", "k": 5}).rows() == [{"id": 1}]
        assert session.query("SELECT :k AS k, IDENTIFIER('t.k') AS l FROM t", args={"k": "id"}).rows() == [{"k": "id", "l": 5}]
        with pytest.raises(UnknownName, match="there is no column 'id, k'"):
            session.query("SELECT IDENTIFIER(:column) FROM t", args={"column": "`id, k`"})


@pytest.mark.parametrize("args", [{"column": 5}, {"column": "id, k"}, {"column": "id) FROM t --"}, {}])
def test_a_parameter_is_one_name(args: dict[str, Any]) -> None:
    with deltic.Session() as session, pytest.raises(Unsupported, match=r"IDENTIFIER\(\) requires a name"):
        session.query("SELECT IDENTIFIER(:column)", args=args)
