"""Rows compared with several values: the rows of the oracle, and what a change of one of the values costs."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltic
from correlated_queries import Catalog
from deltic.frontends.sql import bind_query
from deltic.optimizer import optimize
from deltic.optimizer.drop_limits import has_one_row
from deltic.plan.nodes import Join
from deltic.plan.ranges import range_of
from deltic.plan.walk import nodes
from seeds import rotating
from session_rows import touched_rows
from sessions_of_queries import check
from tests.support.parts import slow

LEAST, GREATEST, MEAN = "(SELECT min(b) AS lo FROM u) AS p", "(SELECT max(a) AS hi FROM u) AS q", "(SELECT avg(a) AS m FROM t) AS r"
QUERIES = {
    "two columns": "SELECT a, b FROM t WHERE a > (SELECT avg(a) FROM t) AND b < (SELECT max(a) FROM u)",
    "a value is selected": f"SELECT t.a, q.hi FROM t, {LEAST}, {GREATEST} WHERE t.a > p.lo AND t.b < q.hi",
    "values first": f"SELECT t.a, t.b FROM {LEAST}, {GREATEST}, t WHERE t.a >= p.lo AND t.b <= q.hi",
    "one direction": f"SELECT t.a, t.b FROM t, {LEAST}, {MEAN} WHERE t.a >= p.lo AND t.a >= r.m",
    "an interval, and another": f"SELECT t.a, t.b FROM t, {LEAST}, {GREATEST}, {MEAN} WHERE t.a >= p.lo AND t.a <= q.hi AND t.b > r.m",
    "values beside each other": f"SELECT t.a, t.b FROM t, {LEAST}, {GREATEST} WHERE t.a > p.lo AND t.b < q.hi AND p.lo < q.hi",
    "a value without a comparison": f"SELECT t.a, p.lo FROM t, {LEAST}, {GREATEST}, {MEAN} WHERE t.a <= q.hi AND t.b >= r.m",
    "counted": f"SELECT t.b, count(*) AS n FROM t, {LEAST}, {MEAN} WHERE t.a >= p.lo AND t.b >= r.m GROUP BY t.b",
    "with a join": f"SELECT t.a, u.b FROM t JOIN u ON t.a = u.a, {LEAST}, {MEAN} WHERE t.b >= p.lo AND u.b >= r.m",
    "of pairs": f"SELECT t.a, u.b FROM t JOIN u ON t.a = u.a, {LEAST}, {MEAN} WHERE t.b >= p.lo AND t.b + 0D - u.b < r.m",
    "the second value first": f"SELECT t.a FROM t, {LEAST}, {GREATEST} WHERE t.b < q.hi AND t.a > p.lo",
    "an end that may be missing": f"SELECT t.a FROM t, {LEAST}, {GREATEST} WHERE t.a >= p.lo AND (q.hi IS NULL OR t.a < q.hi)",
    "not after": f"SELECT t.a FROM t, {LEAST}, {GREATEST} WHERE t.a >= p.lo AND (t.a >= q.hi) IS NOT TRUE",
    "an end in coalesce": "SELECT a FROM t WHERE a >= (SELECT min(b) FROM u) AND coalesce(a < (SELECT max(a) FROM u), TRUE)",
    "an OR": f"SELECT t.a FROM t, {LEAST}, {GREATEST} WHERE (t.a >= p.lo OR t.b = 5) AND t.a < q.hi",
    "two columns with one value": f"SELECT t.a FROM t, {LEAST}, {GREATEST} WHERE t.a > p.lo AND t.b > q.hi AND t.a < q.hi",
    "an OR of one value": f"SELECT t.a FROM {LEAST}, {GREATEST}, {MEAN}, t WHERE t.a > p.lo AND (t.b < q.hi OR t.a >= q.hi) AND t.b <= r.m",
    "a sum": f"SELECT t.a FROM {LEAST}, {MEAN}, t WHERE t.a <= p.lo AND t.b + t.a > r.m AND t.b <= r.m",
}
FAILING = {"an error": f"SELECT t.a, t.b FROM t, {GREATEST}, {MEAN} WHERE t.b <= q.hi AND t.a + 9223372036854775806 > q.hi AND t.a > r.m"}
SEEDS = [(1, 1), (2, 3), *slow(*((seed, shards) for seed in rotating(12) for shards in (1, 3)))]


@pytest.mark.filterwarnings("ignore:.*equality")
@pytest.mark.parametrize(("seed", "shards"), SEEDS)
def test_queries_have_the_rows_of_the_oracle(seed: int, shards: int, tmp_path: Path) -> None:
    plans = {name: bind_query(query, "test", Catalog()) for name, query in QUERIES.items()}
    check(QUERIES, plans, seed, shards, 8, tmp_path)


@pytest.mark.parametrize("seed", [1, 2, *slow(*rotating(12))])
def test_no_query_fails_where_the_oracle_does_not(seed: int) -> None:
    """A value that is NULL drops rows before a condition that fails on them."""
    assert True in check(FAILING, {name: bind_query(query, "test", Catalog()) for name, query in FAILING.items()}, seed, 1, 8, exact=False)


def _products(name: str) -> int:
    """The joins of values with one another."""
    joins = [node for node in nodes(optimize(bind_query(QUERIES[name], "test", Catalog()))) if isinstance(node, Join)]
    return sum(has_one_row(join.left) and has_one_row(join.right) for join in joins)


TOGETHER = {
    "one direction": 1,
    "an interval, and another": 2,
    "values beside each other": 1,
    "a value without a comparison": 1,
    "an end that may be missing": 1,
    "not after": 1,
    "an end in coalesce": 1,
    "an OR": 1,
    "two columns with one value": 1,
    "an OR of one value": 2,
    "a sum": 1,
}


def test_only_values_that_are_each_compared_by_themselves_are_joined_with_rows_in_turn() -> None:
    assert {name: _products(name) for name in QUERIES} == {name: TOGETHER.get(name, 0) for name in QUERIES}
    interval = optimize(bind_query(QUERIES["an interval, and another"], "test", Catalog()))
    ranges = [range_of(node) for node in nodes(interval) if isinstance(node, Join)]
    assert [by.is_interval for by in ranges if by is not None] == [True]


def test_values_are_joined_in_the_order_of_their_comparisons() -> None:
    """The first comparison looks rows up, as it does where the values are one row."""
    query = QUERIES["the second value first"]
    joins = [node for node in nodes(optimize(bind_query(query, "test", Catalog()))) if isinstance(node, Join)]
    assert [[field.name for field in join.right.schema] for join in joins] == [["min1"], ["max1"]]


WORK = {
    "two columns": "SELECT id FROM t WHERE x > (SELECT avg(x) FROM t) AND y > (SELECT avg(y) FROM t)",
    "three": "SELECT id FROM t WHERE x > (SELECT avg(x) FROM t) AND y > (SELECT avg(y) FROM t) AND id < (SELECT avg(id) FROM t)",
    "counted": "SELECT count(*) AS n, sum(x) AS s FROM t WHERE x > (SELECT avg(x) FROM t) AND y < (SELECT avg(y) FROM t)",
}


@pytest.mark.parametrize("name", WORK)
def test_a_change_of_a_value_touches_the_rows_between_the_old_and_the_new_one(name: str) -> None:
    rows = 5_000
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE t (id BIGINT PRIMARY KEY, x BIGINT, y BIGINT); CREATE MATERIALIZED VIEW v AS {WORK[name]}")
        session.insert("t", [{"id": i, "x": i * 7919 % rows * 10, "y": i * 104729 % rows * 10} for i in range(rows)])
        for statement in (
            f"INSERT INTO t VALUES (-1, {rows * 5 + 1}, {rows * 5 + 1})",
            "UPDATE t SET x = x + 1, y = y - 1 WHERE id = -1",
            "DELETE FROM t WHERE id = 7",
            "DELETE FROM t WHERE id = -1",
        ):
            session.sql(statement)
            assert 0 < touched_rows(session, "v") < 500


START, END, ALL = (
    "(SELECT min(x) AS m FROM o WHERE k = 1) AS p",
    "(SELECT max(x) AS m FROM o WHERE k = 2) AS q",
    "(SELECT avg(x) AS m FROM t) AS r",
)
INTERVALS = {
    "an interval": f"SELECT t.id FROM t, {START}, {END} WHERE t.x >= p.m AND t.x < q.m",
    "an end that may be missing": f"SELECT t.id FROM t, {START}, {END} WHERE t.x >= p.m AND (q.m IS NULL OR t.x < q.m)",
    "not after": f"SELECT t.id FROM {START}, {END}, t WHERE t.x >= p.m AND (t.x >= q.m) IS NOT TRUE",
    "in coalesce": f"SELECT t.id FROM t, {START}, {END} WHERE t.x >= p.m AND coalesce(t.x < q.m, TRUE)",
    "scalar": "SELECT id FROM t WHERE x >= (SELECT min(x) FROM o WHERE k = 1) AND coalesce(x < (SELECT max(x) FROM o WHERE k = 2), TRUE)",
    "one of two": f"SELECT t.id FROM t, {START}, {END} WHERE (t.x >= p.m OR t.y = 5) AND t.x < q.m",
    "two columns": f"SELECT t.id FROM {START}, {END}, {ALL}, t WHERE t.x > p.m AND (t.y < q.m AND t.x >= q.m) IS NOT TRUE AND t.x <= q.m",
}


@pytest.mark.parametrize("name", INTERVALS)
def test_an_interval_whose_ends_move_far_touches_the_rows_in_it(name: str) -> None:
    """All rows are between the old and the new ends, each of which alone would pass them."""
    rows = 5_000
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, x BIGINT, y BIGINT); CREATE TABLE o (k INT, x BIGINT)")
        session.insert("t", [{"id": i, "x": i * 7919 % rows * 10, "y": i * 104729 % rows * 10} for i in range(rows)])
        session.sql(f"INSERT INTO o VALUES (1, {rows * 2}), (2, {rows * 2 + 100})")
        session.sql(f"CREATE MATERIALIZED VIEW v AS {INTERVALS[name]}")
        for change in (f"x + {rows * 4}", f"x - {rows * 2}"):
            session.sql(f"UPDATE o SET x = {change}")
            assert 0 < touched_rows(session, "v") < 500
