"""Plans are freed with the sessions that made them."""

from __future__ import annotations

import gc

import deltic
from deltic.plan.node import PlanNode, _compared, _nodes_in
from deltic.plan.nodes import inputs
from deltic.plan.walk import nodes
from programs import case


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


def test_the_fields_that_have_nodes_are_known() -> None:
    """Of the others a node's key has the values as they are: it would keep the nodes in them."""
    seen = set[type]()
    for seed in range(30):
        for view in case(seed).views.values():
            for plan in nodes(view):
                seen.add(type(plan))
                for name, has_nodes in _compared(type(plan)):
                    assert has_nodes or not list(_nodes_in([getattr(plan, name)])), (plan, name)
                assert {name for name, has_nodes in _compared(type(plan)) if has_nodes} or not inputs(plan)
    assert len(seen) > 10
