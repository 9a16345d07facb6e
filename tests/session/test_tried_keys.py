"""Keys that can fail of EXISTS, IN and their negations: they fail on pairs of rows alone, as dependent joins say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

import deltic
from correlated_queries import Catalog
from deltic.errors import EvaluationError
from deltic.frontends.sql import bind_query
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Join
from deltic.plan.tried_keys import by_tried_keys, tried_keys
from deltic.plan.walk import nodes
from seeds import rotating
from sessions_of_queries import DEFINITIONS, MOST, check, check_isolated, check_looked_up, drawn, fails_or_rows, nested
from tests.support.parts import slow

TESTS = {
    "exists": "SELECT a, b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a + 1)",
    "not exists": "SELECT a, b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a + 1)",
    "other side": "SELECT a, b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a + 1 = t.a)",
    "other side not": "SELECT a, b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a + 1 = t.a)",
    "both sides": "SELECT a, b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a + 1 = t.a + 2)",
    "in": "SELECT a, b FROM t WHERE a + 1 IN (SELECT a FROM u)",
    "any": "SELECT a, b FROM t WHERE a + 1 = ANY (SELECT a + 1 FROM u)",
    "not in": "SELECT a, b FROM t WHERE a + 1 NOT IN (SELECT a FROM u)",
    "not in, other side": "SELECT a, b FROM t WHERE a NOT IN (SELECT a + 1 FROM u)",
    "all": "SELECT a, b FROM t WHERE a + 1 <> ALL (SELECT a + 2 FROM u)",
    "correlated": "SELECT a, b FROM t WHERE a + 1 IN (SELECT a FROM u WHERE u.b = t.b)",
    "correlated not in": "SELECT a, b FROM t WHERE a + 1 NOT IN (SELECT a FROM u WHERE u.b = t.b)",
    "correlated not in, other side": "SELECT a, b FROM t WHERE a NOT IN (SELECT a + 1 FROM u WHERE u.b <> t.b)",
    "after a key": "SELECT a, b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.b = t.b AND u.a = t.a + 1)",
    "after a key, not": "SELECT a, b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.b = t.b AND u.a + 1 = t.a)",
    "mark after a key": "SELECT a, EXISTS (SELECT 1 FROM u WHERE u.b = t.b AND u.a + 1 = t.a + 2) AS m FROM t",
    "mark": "SELECT a, EXISTS (SELECT 1 FROM u WHERE u.a = t.a + 1) AS m FROM t",
    "mark, other side": "SELECT a, b = 1 OR EXISTS (SELECT 1 FROM u WHERE u.a + 1 = t.a AND u.b = t.b) AS m FROM t",
    "mark of in": "SELECT a, a IN (SELECT a + 1 FROM u) AS m FROM t",
}
JOINS = {
    "semi": "SELECT a, b FROM t LEFT SEMI JOIN u ON t.a + 1 = u.a AND t.b < u.b",
    "anti": "SELECT a, b FROM t LEFT ANTI JOIN u ON t.a + 1 = u.a + 1",
    "mark of a value": "SELECT a, a + 1 IN (SELECT a FROM u) AS m, a + 1 NOT IN (SELECT a + 1 FROM u WHERE u.b = t.b) AS n FROM t",
    "grouped": "SELECT a FROM (SELECT a, count(*) AS n FROM t GROUP BY a) AS q WHERE n > 1 AND a IN (SELECT a + 1 FROM u WHERE u.b = 1)",
    "recursive": """WITH RECURSIVE r AS (SELECT a AS n FROM t UNION SELECT v.b FROM r, v WHERE r.n = v.a AND EXISTS (
        SELECT 1 FROM u WHERE u.a = r.n + 1)) SELECT n FROM r""",
    "recursive not": """WITH RECURSIVE r AS (SELECT a AS n FROM t UNION SELECT v.b FROM r, v WHERE r.n = v.a AND NOT EXISTS (
        SELECT 1 FROM u WHERE u.a + 1 = r.n + 1)) SELECT n FROM r""",
    "recursive pairs": """WITH RECURSIVE r (x, y) AS (SELECT a, b FROM t UNION SELECT r.x, v.b FROM r JOIN v ON r.y = v.a
        WHERE r.y IN (SELECT u.a + 1 FROM u)) SELECT x, y FROM r""",
}
SEEDS = [(1, 1), (2, 3), *slow(*((seed, shards) for seed in rotating(12) for shards in (1, 3)))]


def _both(failed: set[bool], seed: int) -> bool:
    """Whether some ticks failed, which not all rare seeds have, and others did not."""
    return False in failed and (True in failed or seed > 2)


@pytest.mark.parametrize(("seed", "shards"), SEEDS)
def test_views_have_the_rows_and_errors_of_the_oracle(seed: int, shards: int) -> None:
    queries = TESTS | JOINS
    assert _both(check(queries, {name: bind_query(query, "test", Catalog()) for name, query in queries.items()}, seed, shards, 8), seed)


@pytest.mark.parametrize("query", TESTS.values(), ids=TESTS)
def test_they_have_the_rows_of_dependent_joins_and_no_other_errors(query: str) -> None:
    """There `NULL AND e`, and `e = NULL`, are errors where e is; here a pair that cannot be equal is none."""
    plan, as_written = bind_query(query, "test", Catalog()), nested(query)
    rng, outcomes = Random(0), Counter[tuple[bool, bool]]()
    for _ in range(400):
        tables = drawn(rng)
        rows, expected = fails_or_rows(plan, tables), fails_or_rows(as_written, tables)
        assert expected is None or rows == expected, tables
        outcomes[rows is None, expected is None] += 1
    assert outcomes[True, True] and outcomes[False, False]


@pytest.mark.parametrize(("seed", "shards"), [(1, 1), *slow(*((seed, 2 + seed % 2) for seed in rotating(4)))])
def test_they_resume_after_a_restart_with_another_number_of_shards(seed: int, shards: int, tmp_path: Path) -> None:
    queries = {name: TESTS[name] for name in ("both sides", "not in", "correlated not in, other side", "mark")}
    check(queries, {name: bind_query(query, "test", Catalog()) for name, query in queries.items()}, seed, shards, 6, tmp_path)


@pytest.mark.parametrize("query", [query for name, query in TESTS.items() if "mark" not in name])
def test_the_join_by_tried_keys_denotes_the_written_one(query: str) -> None:
    """In the oracle, too, and the rows that fail are those without which it does not."""
    joins = [node for node in nodes(bind_query(query, "test", Catalog())) if isinstance(node, Join) and node.evaluates_pairs]
    (join,) = joins
    rng, outcomes = Random(0), set()
    for _ in range(200):
        tables = drawn(rng)
        expected = fails_or_rows(join, tables)
        outcomes.add(expected is None)
        assert fails_or_rows(by_tried_keys(join), tables) == expected, tables
        failing = tried_keys(join).failing
        assert any(evaluate(one.rows, tables) for one in failing) == (expected is None), tables
    assert outcomes == {True, False}


def test_a_row_that_fails_alone_does_not_stop_a_load() -> None:
    """The first row of the other table does, and names the written expression."""
    with deltic.Session() as session:
        session.sql(f"{DEFINITIONS} CREATE MATERIALIZED VIEW answer AS {TESTS['not in']}")
        session.sql(f"INSERT INTO t VALUES ({MOST}, 1), (1, 1)")
        assert len(session.view("answer").rows()) == 2
        with pytest.raises(EvaluationError, match=r"INT addition(.|\n)*a \+ 1"):
            session.sql("INSERT INTO u VALUES (7, 7)")
        assert len(session.view("answer").rows()) == 2


@pytest.mark.parametrize("n", [1_000, *slow(100_000)])
def test_a_changed_row_is_looked_up(n: int) -> None:
    for query in (*TESTS.values(), *JOINS.values()):
        with deltic.Session() as session:
            check_looked_up(session, query, n, 200)


@pytest.mark.parametrize(("seed", "shards"), [(1, 1), *slow(*((seed, shards) for seed in rotating(10) for shards in (1, 3)))])
def test_where_errors_are_isolated_a_view_fails_where_the_oracle_does(seed: int, shards: int) -> None:
    """It has its rows again after every tick without an error."""
    outcomes = set[bool]()
    for name in ("exists", "not in", "correlated not in, other side", "mark"):
        plan = bind_query(TESTS[name], "test", Catalog())
        outcomes |= check_isolated(TESTS[name], plan, seed, shards)
    assert _both(outcomes, seed)


def test_functions_of_users_are_called_once_for_each_row() -> None:
    """So they are evaluated on every row, also where there is none to compare with."""
    with deltic.Session() as session:
        session.sql(DEFINITIONS)
        calls: list[int | None] = []

        def successor(n: int | None) -> int | None:
            calls.append(n)
            return None if n is None else n + 1

        session.register("successor", successor, "INT")
        session.sql("CREATE MATERIALIZED VIEW answer AS SELECT t.a FROM t WHERE successor(t.a) IN (SELECT a FROM u)")
        session.sql("INSERT INTO t VALUES (1, 1)")
        assert calls == [1]
        session.sql("INSERT INTO u VALUES (2, 2)")
        assert session.view("answer").rows() == [{"a": 1}] and calls == [1]


@pytest.mark.parametrize("shards", [1, 3])
def test_rows_of_a_stream_fail_in_their_tick(shards: int) -> None:
    with deltic.Session(shards=shards) as session:
        session.sql("""
            CREATE STREAM e (x INT); CREATE TABLE t (a INT);
            CREATE MATERIALIZED VIEW found AS SELECT x FROM e WHERE x + 1 IN (SELECT a FROM t);
            CREATE MATERIALIZED VIEW others AS SELECT x FROM e WHERE x NOT IN (SELECT a + 1 FROM t);
        """)
        session.insert("e", [{"x": MOST}])
        assert (session.view("found").rows(), session.view("others").rows()) == ([], [{"x": MOST}])
        with session.transaction() as tx:
            tx.insert("t", [{"a": 2}, {"a": 5}])
            tx.insert("e", [{"x": 1}, {"x": 6}])
        assert (session.view("found").rows(), session.view("others").rows()) == ([{"x": 1}], [{"x": 1}])
        with pytest.raises(EvaluationError, match="INT addition"):
            session.insert("e", [{"x": MOST}])
        session.insert("t", [{"a": MOST}])  # no row of the stream is there to be compared
        with pytest.raises(EvaluationError, match="INT addition"):
            session.insert("e", [{"x": 1}])
