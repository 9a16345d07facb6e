"""Plans are freed with the sessions that made them."""

from __future__ import annotations

import gc

import deltic
from deltic.plan.node import PlanNode


def alive() -> int:
    gc.collect()
    return sum(isinstance(thing, PlanNode) for thing in gc.get_objects())


def used(number: int) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a BIGINT, b BIGINT)")
        session.sql(
            f"CREATE MATERIALIZED VIEW v AS SELECT t.a, count(*) AS n FROM t JOIN t u ON t.b = u.a WHERE t.a > {number} GROUP BY t.a"
        )
        session.apply({"t": [{"a": 5, "b": 5, "_op": "insert"}]})
        for k in range(5):
            session.query(f"SELECT a + {number * 10 + k} FROM v")


def test_plans_of_closed_sessions_and_queries_are_freed() -> None:
    used(0)
    before = alive()
    for number in range(1, 4):
        used(number)
    assert alive() <= before
