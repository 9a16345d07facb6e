"""Weights beyond 64 bits: errors name tables, views and recursive relations, and columns only if the user named them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import deltic
from deltic.errors import WeightOverflow

PRIVATE = re.compile(r"\boperator\b|join_trace|\b[kpg][0-9]\b|_trace")
SETUP = """
CREATE TABLE e (a BIGINT, s STRING);
CREATE TABLE f (b BIGINT NOT NULL, x BIGINT);
"""
VIEWS = {
    "join": "SELECT e.s, f.x FROM e JOIN f ON e.a = f.b",
    "product": "SELECT e.s FROM e CROSS JOIN f",
    "outer": "SELECT e.s, f.x FROM e LEFT JOIN f ON e.a = f.b",
    "groups": "SELECT e.a, sum(x) AS n, min(s) AS s FROM e JOIN f ON e.a = f.b GROUP BY e.a",
    "multiway": "SELECT count(*) AS n FROM e x, e y, e z WHERE x.a = y.a AND y.s = z.s AND z.a + 0 = x.a",
}


def overflow_of(build: Callable[[deltic.Session], None]) -> WeightOverflow:
    with deltic.Session() as session:
        session.sql(SETUP)
        build(session)
        with pytest.raises(WeightOverflow) as caught:
            session.apply({"e": [{"a": 1, "s": "it", "_weight": 2**40}], "f": [{"b": 1, "x": 7, "_weight": 2**40}]})
        assert session.view("v").rows() in ([], [{"n": 0}])
    assert not PRIVATE.search(str(caught.value)), str(caught.value)
    return caught.value


@pytest.mark.parametrize("name", VIEWS)
def test_an_overflow_names_the_view(name: str) -> None:
    error = overflow_of(lambda session: session.sql(f"CREATE MATERIALIZED VIEW v AS {VIEWS[name]}"))
    assert "weight overflow in view v, values (" in str(error)
    assert "SQL" not in str(error) and "UNION" not in str(error)


def test_an_overflow_of_shared_work_names_all_its_views() -> None:
    def build(session: deltic.Session) -> None:
        session.sql(f"CREATE MATERIALIZED VIEW v AS {VIEWS['join']}; CREATE MATERIALIZED VIEW w AS SELECT * FROM v")

    assert "weight overflow in the views v, w, values (" in str(overflow_of(build))


def test_an_overflow_in_a_circuit_names_its_output() -> None:
    def build(session: deltic.Session) -> None:
        circuit = deltic.Circuit(session)
        pairs = circuit.input("e").index_with("a").join(circuit.input("f").index_with("b"), lambda key, e, f: (e.s, f.x))
        circuit.output("v", pairs.index_with("s").count())
        session.install(circuit)

    assert "weight overflow in view v, values (" in str(overflow_of(build))


def test_an_overflow_in_a_table_names_table_and_columns() -> None:
    with deltic.Session() as session:
        session.sql(f"{SETUP} CREATE MATERIALIZED VIEW v AS SELECT a FROM e")
        session.apply({"e": [{"a": 1, "s": None, "_weight": 2**62}]})
        with pytest.raises(WeightOverflow, match=re.escape("weight overflow in table e, row (a=1, s=NULL)")):
            session.apply({"e": [{"a": 1, "s": None, "_weight": 2**62}]})


@pytest.mark.parametrize("types", ["BIGINT", "BIGINT NOT NULL"])  # iteration by iteration, and in one kernel
def test_an_overflow_in_a_recursion_names_the_relation_and_both_remedies(types: str) -> None:
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE g (a {types}, b {types})")
        session.sql("""
            CREATE MATERIALIZED VIEW v AS
                WITH RECURSIVE p AS (SELECT a, b FROM g UNION SELECT p.a, g.b FROM p JOIN g ON p.b = g.a) SELECT a, b FROM p
        """)
        session.apply({"g": [{"a": a, "b": a + 1, "_weight": 2**62} for a in (0, 1)]})
        with pytest.raises(WeightOverflow, match="weight overflow in the recursive relation p, whose rows multiply") as caught:
            session.apply({"g": [{"a": a, "b": b, "_weight": 2**62} for a, b in ((2, 3), (0, 2), (0, 3), (1, 3))]})
        assert "UNION instead of UNION ALL, or distinct() in a circuit" in str(caught.value)
        assert "<sql>:3:" in str(caught.value)
        assert not PRIVATE.search(str(caught.value))
