"""An unknown function is met with the one most like it: a function, an aggregate, a window function, a table function, or a user's."""

from __future__ import annotations

import pytest

import deltic
from deltic.errors import QueryError


@pytest.mark.parametrize(
    ("call", "like"),
    [
        ("uper(s)", "upper"),
        ("cuont(*)", "count"),
        ("medan(a)", "median"),
        ("string_ag(s, ',')", "string_agg"),
        ("max_byy(a, s)", "max_by"),
        ("expolde(array(a))", "explode"),
        ("row_nmber()", "row_number"),
        ("row_nmber() OVER (ORDER BY a)", "row_number"),
        ("dense_rnk() OVER (ORDER BY a)", "dense_rank"),
        ("summ(a) OVER (ORDER BY a)", "sum"),
        ("counted(a)", "counter"),
        ("avgg(DISTINCT a)", "avg"),
        ("summ(a) FILTER (WHERE a > 0)", "sum"),
    ],
)
def test_the_most_similar_name_is_shown(call: str, like: str) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT, s STRING); CREATE FUNCTION counter(x INT) RETURNS INT RETURN x + 1")
        with pytest.raises(QueryError, match=f"did you mean '{like}'"):
            session.query(f"SELECT {call} FROM t")


@pytest.mark.parametrize(
    ("relation", "like"),
    [
        ("rnage(3)", "range"),
        ("t, LATERAL exploed(array(a))", "explode"),
        ("t LATERAL VIEW posexplod(array(a)) x AS i, b", "posexplode"),
        ("spraed(3)", "spread"),
    ],
)
def test_the_most_similar_table_function_is_shown(relation: str, like: str) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT); CREATE FUNCTION spread(x INT) RETURNS TABLE (y INT) RETURN SELECT x")
        with pytest.raises(QueryError, match=f"did you mean '{like}'"):
            session.query(f"SELECT * FROM {relation}")


@pytest.mark.parametrize("call", ["abs(DISTINCT a)", "abs(a) FILTER (WHERE a > 0)", "zzqx(DISTINCT a)"])
def test_what_is_like_no_aggregate_has_no_suggestion(call: str) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT)")
        with pytest.raises(QueryError, match="belongs to COUNT") as caught:
            session.query(f"SELECT {call} FROM t")
        assert "did you mean" not in str(caught.value)


def test_a_function_that_is_no_window_function_is_none() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT)")
        with pytest.raises(QueryError, match="abs is not a window function") as caught:
            session.query("SELECT abs(a) OVER (ORDER BY a) FROM t")
        assert "did you mean" not in str(caught.value)
