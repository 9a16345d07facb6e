"""Columns that are one of two values by how a row compares with an aggregate: the rows of the oracle, and what a change costs."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltic
from correlated_queries import Catalog
from deltic.frontends.sql import bind_query
from deltic.optimizer import optimize
from deltic.plan.nodes import Union
from deltic.plan.walk import nodes
from seeds import rotating
from session_rows import touched_rows
from sessions_of_queries import check, nested
from tests.support.parts import slow

MEAN, OF_GROUP = "(SELECT avg(a) FROM u)", "(SELECT max(a) FROM u WHERE u.b = t.b)"
SPLIT = {
    "label": f"SELECT a, b, CASE WHEN a > {MEAN} THEN 'above' ELSE 'below' END AS c FROM t",
    "without else": f"SELECT a, CASE WHEN a >= {MEAN} THEN b END AS c, a AS d FROM t",
    "two columns": """SELECT CASE WHEN a < m THEN a ELSE b END AS c, b + if(a < m, 1, 0) AS d FROM t, (SELECT avg(a) AS m FROM u)""",
    "with errors": f"SELECT CASE WHEN a > {MEAN} THEN a + 1 ELSE b END AS c FROM t",
    "errors of others": f"SELECT CASE WHEN a > {MEAN} THEN b ELSE a + 1 END AS c FROM t",
    "with an alternative": f"SELECT a, CASE WHEN a > {MEAN} OR b = 1 THEN 1 ELSE 0 END AS c FROM t",
    "of a group": f"SELECT a, b, CASE WHEN a > {OF_GROUP} THEN 'above' ELSE 'below' END AS c FROM t",
    "of a group with a default": f"SELECT a, b, CASE WHEN a > coalesce({OF_GROUP}, 1) THEN b ELSE -1 END AS c FROM t",
    "joined": "SELECT t.a, CASE WHEN t.a <= q.m THEN t.b END AS c FROM (SELECT b, avg(a) AS m FROM u GROUP BY b) AS q JOIN t ON t.b = q.b",
    "left joined": """SELECT t.a, CASE WHEN t.a <= q.m THEN 1 ELSE 0 END AS c
        FROM t LEFT JOIN (SELECT b, min(a) AS m FROM u GROUP BY b) AS q ON t.b = q.b""",
    "grouped": f"SELECT CASE WHEN a > {MEAN} THEN 'above' ELSE 'below' END AS c, count(*) AS n, sum(b) AS s FROM t GROUP BY 1",
    "grouped with another": f"SELECT b, if(a > {MEAN}, 1, NULL) AS c, max(a) AS n FROM t GROUP BY 1, 2",
}
WHOLE = {
    "with more": f"SELECT a, CASE WHEN a > {MEAN} AND b = 1 THEN 1 ELSE 0 END AS c FROM t",
    "both": f"SELECT a, CASE WHEN a > {MEAN} THEN 'above' ELSE 'below' END AS c, {MEAN} AS m FROM t",
    "three labels": f"SELECT a, CASE WHEN a > {MEAN} + 1 THEN 'above' WHEN a < {MEAN} THEN 'below' ELSE 'near' END AS c FROM t",
    "can fail": "SELECT a, CASE WHEN b = 0 THEN 0 WHEN a + 1 > (SELECT max(a) FROM u) THEN 1 ELSE 2 END AS c FROM t",
    "equal": "SELECT a, CASE WHEN a = (SELECT max(a) FROM u) THEN 1 ELSE 2 END AS c FROM t",
    "summed": f"SELECT if(a > {MEAN}, 1, 0) AS c, sum((SELECT max(b) FROM u)) AS s FROM t GROUP BY 1",
}
QUERIES = {**SPLIT, **WHOLE}
SEEDS = [(1, 1, 3), (4, 3, 3), *slow(*((seed, shards, 8) for seed in rotating(12) for shards in (1, 3)))]


@pytest.mark.parametrize(("seed", "shards", "ticks"), SEEDS)
def test_queries_have_the_rows_of_the_oracle(seed: int, shards: int, ticks: int, tmp_path: Path) -> None:
    assert False in check(QUERIES, {name: nested(query) for name, query in QUERIES.items()}, seed, shards, ticks, tmp_path)


@pytest.mark.parametrize("name", QUERIES)
def test_the_rows_are_a_union_where_one_condition_alone_reads_the_value(name: str) -> None:
    plan = optimize(bind_query(QUERIES[name], "test", Catalog()))
    assert any(isinstance(node, Union) for node in nodes(plan)) == (name in SPLIT)


WORK = {
    "label": "SELECT id, CASE WHEN x > (SELECT avg(x) FROM t) THEN 'above' ELSE 'below' END AS c FROM t",
    "of a group": "SELECT id, if(x > (SELECT avg(x) FROM t AS o WHERE o.g = t.g), id, -id) AS c FROM t",
    "grouped": "SELECT g, if(x > (SELECT avg(x) FROM t), 1, 0) AS c, count(*) AS n FROM t GROUP BY 1, 2",
}


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("n", [5_000, *slow(1_000_000)])
def test_a_change_of_the_value_touches_the_rows_that_it_passes(name: str, n: int) -> None:
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE t (id INT NOT NULL, g INT, x BIGINT); CREATE MATERIALIZED VIEW v AS {WORK[name]}")
        session.apply({"t": [{"id": i, "g": i % 4, "x": None if i < 3 else i * n, "_weight": 1} for i in range(n)]})
        for step in range(3):
            session.apply({"t": [{"id": n + step, "g": 1, "x": n * n // 3 + step, "_weight": 1}]})
            assert touched_rows(session) < 300
