"""Plans as text: a plan is a DAG, so a node that is read several times is shown once and referred to by its label."""

from __future__ import annotations

import deltic
from deltic.expr.nodes import Column
from deltic.plan.nodes import Distinct, Filter, Join, Plan, Recursion, Reference, Table, Union, Values
from deltic.plan.show import show
from deltic.schema import BIGINT, BOOLEAN, Field, Schema, TableSchema

ROWS = Schema((Field("n", BIGINT, False), Field("ok", BOOLEAN, False)))
T = Table(TableSchema("t", ROWS))
OK = Column(1, BOOLEAN, False, "ok")


def test_equal_nodes_are_shown_once() -> None:
    """Also if they are different objects, and with different names of columns in their expressions."""
    one, other = Filter(T, OK), Filter(Table(TableSchema("t", ROWS)), Column(1, BOOLEAN, False, "renamed"))
    assert one is not other
    assert show(Union((one, other, T))).splitlines() == [
        "Union",
        "  [1] Filter ok#1",
        "    Table t (n, ok)",
        "  Reused [1]",
        "  Table t (n, ok)",
    ]


def test_labels_are_numbered_in_the_order_of_the_lines() -> None:
    inner = Filter(T, OK)
    outer = Distinct(inner)
    assert show(Union((outer, inner, outer))).splitlines() == [
        "Union",
        "  [1] Distinct",
        "    [2] Filter ok#1",
        "      Table t (n, ok)",
        "  Reused [2]",
        "  Reused [1]",
    ]


def test_the_text_is_linear_in_the_nodes() -> None:
    """The tree of this plan has 2^60 leaves."""
    plan: Plan = T
    for _ in range(60):
        plan = Distinct(Union((plan, plan)))
    assert len(show(plan).splitlines()) == 60 * 3 + 1


def test_relations_of_different_recursions_are_not_confused() -> None:
    """Both bodies read an equal plan over a relation of the same name, but of another recursion."""
    x = Reference("x", ROWS)

    def recursion(start: Plan) -> Recursion:
        return Recursion((("x", Distinct(Union((start, Filter(x, OK))))),), "x")

    text = show(Join(recursion(T), recursion(Values(((1, True),), ROWS)), "inner"))
    assert text.count("Filter ok#1") == 2 and "Reused" not in text
    assert show(Join(recursion(T), recursion(T), "inner")).splitlines()[-1] == "  Reused [1]"


def test_explain_shows_a_view_that_is_read_twice_once() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE e (a BIGINT NOT NULL, b BIGINT NOT NULL)")
        session.sql("CREATE VIEW sums AS SELECT a, sum(b) AS s FROM e GROUP BY a")
        session.sql("CREATE MATERIALIZED VIEW pairs AS SELECT x.a AS one, y.a AS other FROM sums x JOIN sums y ON x.s = y.s")
        plan = session.explain("pairs").plans["pairs"]
    assert plan.count("Aggregate") == 1 and plan.count("Reused [1]") == 1, plan
