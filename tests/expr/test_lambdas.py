"""Lambdas: their parameters hide columns and do not depend on their names, wherever a rule or a function in SQL moves an expression."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from deltic import Session
from deltic.errors import EvaluationError
from deltic.expr.nodes import Column, Lambda, LambdaVariable, columns_of, free_variables, is_fixed
from deltic.frontends.sql import bind_query
from deltic.optimizer import optimize
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Plan, Project
from deltic.plan.show import show_expr
from deltic.schema import BIGINT, INT, Field, Schema, TableSchema
from deltic.types import array_type

TABLE = TableSchema("t", Schema((Field("a", BIGINT), Field("v", array_type(INT)))))


class Catalog:
    """The table t (a BIGINT, v ARRAY<INT>)."""

    def relation(self, name: str) -> TableSchema | Plan | None:
        return TABLE if name == "t" else None

    def names(self) -> Sequence[str]:
        return ("t",)

    def functions(self) -> dict[str, Any]:
        return {}


def plan(select: str) -> Plan:
    return bind_query(f"SELECT {select} AS c FROM t", "test", Catalog())


def test_the_names_of_parameters_have_no_meaning() -> None:
    one, other = plan("transform(v, x -> x + a)"), plan("transform(v, element -> element + a)")
    assert one == other and fingerprint(one) == fingerprint(other)
    assert fingerprint(one) != fingerprint(plan("transform(v, (x, y) -> x + y)"))
    assert fingerprint(plan("transform(v, (x, y) -> x)")) != fingerprint(plan("transform(v, (x, y) -> y)"))


def test_a_parameter_is_no_column_and_no_constant() -> None:
    outer = plan("transform(v, x -> exists(v, y -> y > x + a))")
    assert isinstance(outer, Project)
    call = outer.columns[0][1]
    function = call.arguments[1]  # type: ignore[union-attr]
    assert isinstance(function, Lambda)
    assert columns_of(call) == {0, 1} and not free_variables(call)
    assert free_variables(function.body) == {(0, 0)} and not is_fixed(function.body)
    assert show_expr(call) == "transform(v#1, (x@0) -> exists(v#1, (y@1) -> (cast(y@1 as BIGINT) > (cast(x@0 as BIGINT) + a#0))))"


def test_a_call_over_constants_is_folded() -> None:
    (_, folded), *_ = optimize(
        plan("array_append(transform(array(1, 2), x -> filter(array(1, 2, 3), y -> y > x)), array(size(v)))")
    ).columns  # type: ignore[attr-defined]
    assert show_expr(folded).startswith("array_append(ARRAY<ARRAY<INT>> '((2, 3), (3,))'")


def test_parameters_hide_columns_and_each_other() -> None:
    (_, hidden), *_ = plan("transform(v, a -> transform(v, a -> a))").columns  # type: ignore[attr-defined]
    inner = hidden.arguments[1].body.arguments[1]
    assert inner.body == LambdaVariable(1, 0, INT, True) and columns_of(hidden) == {1}
    (_, shown), *_ = plan("transform(v, x -> t.a)").columns  # type: ignore[attr-defined]
    assert isinstance(shown.arguments[1].body, Column)


@pytest.fixture
def session() -> Session:
    session = Session()
    session.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v ARRAY<INT>, n INT)")
    return session


def put(session: Session, rows: list[dict[str, Any]]) -> None:
    with session.transaction() as tx:
        tx.upsert("t", rows)


def test_a_function_in_sql_keeps_the_parameters_of_its_callers_apart(session: Session) -> None:
    session.sql("""
        CREATE FUNCTION shifted(a ARRAY<INT>, by INT) RETURN transform(a, x -> x + by);
        CREATE MATERIALIZED VIEW s AS SELECT id, transform(v, x -> shifted(v, x)) AS c FROM t;
    """)
    put(session, [{"id": 1, "v": [1, 10], "n": 0}])
    assert session.view("s").rows() == [{"id": 1, "c": [[2, 11], [11, 20]]}]


def test_views_over_views_with_lambdas_are_merged(session: Session) -> None:
    session.sql("""
        CREATE VIEW inner_view AS SELECT id, n, transform(v, x -> x * n) AS w FROM t;
        CREATE MATERIALIZED VIEW s AS SELECT id, transform(w, x -> aggregate(w, x, (a, y) -> a + y + n)) AS c FROM inner_view
            WHERE exists(w, x -> x > n);
    """)
    put(session, [{"id": 1, "v": [1, 2], "n": 3}, {"id": 2, "v": [0], "n": 5}, {"id": 3, "v": None, "n": 1}])
    assert session.view("s").rows() == [{"id": 1, "c": [3 + 9 + 6, 6 + 9 + 6]}]


def test_a_view_follows_its_table(session: Session) -> None:
    """Upserts and deletions: the view is what Python computes from the rows that are left."""
    session.sql("""
        CREATE MATERIALIZED VIEW s AS
            SELECT n, sum(aggregate(filter(v, x -> x > n), 0L, (a, x) -> a + x)) AS total, count(*) AS rows
            FROM t GROUP BY n
    """)
    draw, kept = random.Random(7), dict[int, tuple[list[int | None], int]]()
    for _ in range(12):
        rows = [
            {"id": draw.randrange(30), "v": draw.choices([None, *range(9)], k=draw.randrange(5)), "n": draw.randrange(4)} for _ in range(8)
        ]
        rows = list({row["id"]: row for row in rows}.values())
        put(session, rows)
        kept |= {row["id"]: (row["v"], row["n"]) for row in rows}  # type: ignore[misc]
        gone = draw.choice(sorted(kept))
        with session.transaction() as tx:
            tx.delete("t", [{"id": gone}])
        del kept[gone]
        totals = dict[int, tuple[int, int]]()
        for values, n in kept.values():
            total, count = totals.get(n, (0, 0))
            totals[n] = total + sum(x for x in values if x is not None and x > n), count + 1
        assert {row["n"]: (row["total"], row["rows"]) for row in session.view("s").rows()} == totals


def test_a_failure_names_the_place_in_the_lambda(session: Session) -> None:
    session.sql("CREATE MATERIALIZED VIEW s AS SELECT transform(v, x -> 10 / (x - n)) AS c FROM t")
    with pytest.raises(EvaluationError) as caught:
        put(session, [{"id": 1, "v": [1, 2, 3], "n": 2}])
    assert "10 / (x - n)" in str(caught.value) and "division by zero" in str(caught.value)
    assert session.view("s").rows() == []
