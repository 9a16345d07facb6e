"""IDENTIFIER('…') is the name that it spells, wherever a name is."""

from __future__ import annotations

import pytest

from deltic.errors import Unsupported
from deltic.frontends.sql import bind_query
from sql_data import TestCatalog


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
    assert bind_query(spelled, "test", TestCatalog()) == bind_query(plain, "test", TestCatalog())


@pytest.mark.parametrize("argument", ["s", "'a b'", "'a.'", "''", "'a' || s", "'a' 'b'", "'a' ||", ""])
def test_it_takes_one_name(argument: str) -> None:
    with pytest.raises(Unsupported, match=r"IDENTIFIER\(\) requires a name"):
        bind_query(f"SELECT IDENTIFIER({argument}) FROM t", "test", TestCatalog())
