"""Comparisons with a single row that can fail look rows up, and fail where the oracle says."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltic
from deltic.errors import EvaluationError
from seeds import rotating
from session_rows import touched_rows
from sessions_of_queries import DEFINITIONS, MOST, check, nested
from tests.support.parts import slow

QUERIES = {
    "point": "SELECT a, b FROM t WHERE a + 1 > (SELECT max(a) FROM u)",
    "bound": "SELECT a, b FROM t WHERE a >= (SELECT max(a) FROM u) + 1",
    "both sides": "SELECT a FROM t WHERE b >= 0 AND a - 1 + 2 < (SELECT min(a) FROM u) + 1",
    "two bounds": "SELECT a FROM t WHERE a BETWEEN (SELECT max(a) FROM u) - 1 AND (SELECT max(a) FROM u) + 1",
    "with the value": "SELECT a, m FROM t, (SELECT max(a) AS m FROM u) AS q WHERE a + 1 > m",
    "counted": "SELECT b, count(*) AS n, sum(a) AS s FROM t WHERE a + 1 <= (SELECT max(a) FROM u) GROUP BY b",
    "left": "SELECT a, m FROM t LEFT JOIN (SELECT max(a) AS m FROM u) AS q ON t.a + 1 > q.m",
    "not exists": "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM (SELECT max(a) AS m FROM u) AS q WHERE q.m > t.a + 1)",
    "or no value": "SELECT a, m FROM t, (SELECT max(a) AS m FROM u) AS q WHERE m IS NULL OR coalesce(a, 0) + 1 > m",
    "no value too": "SELECT a FROM t, (SELECT max(a) m, min(b) n FROM u) q WHERE (m IS NULL OR coalesce(a, 0) + 1 > m) AND a > n + 1",
    "no bound": "SELECT a FROM t, (SELECT max(a) AS m FROM u) AS q WHERE m + 1 IS NULL OR coalesce(a, 0) > m + 1",
    "under or": "SELECT a FROM t WHERE b = 1 OR a + 1 > (SELECT max(a) FROM u)",
}
QUANTIFIED = {
    "all": "SELECT a FROM t WHERE a + 1 >= ALL (SELECT a FROM u)",
    "any": "SELECT a FROM t WHERE NOT a + 1 < ANY (SELECT a FROM u)",
}
SEEDS = [(1, 1), (2, 3), *slow(*((seed, shards) for seed in rotating(12) for shards in (1, 3)))]


@pytest.mark.parametrize(("seed", "shards"), SEEDS)
def test_queries_have_the_rows_and_errors_of_the_oracle(seed: int, shards: int, tmp_path: Path) -> None:
    plans = {name: nested(query) for name, query in QUERIES.items()}
    assert False in (outcomes := check(QUERIES, plans, seed, shards, 8, tmp_path)) and (True in outcomes or seed > 2)


@pytest.mark.parametrize(("seed", "shards"), SEEDS)
def test_quantified_comparisons_have_the_rows_of_the_oracle_and_no_other_errors(seed: int, shards: int) -> None:
    """A NULL in the query decides before any row is compared."""
    check(QUANTIFIED, {name: nested(query) for name, query in QUANTIFIED.items()}, seed, shards, 8, exact=False)


def test_a_comparison_after_or_fails_only_where_the_conditions_before_it_are_not_true() -> None:
    with deltic.Session() as session:
        session.sql(f"{DEFINITIONS} CREATE MATERIALIZED VIEW answer AS {QUERIES['or no value']}")
        session.sql(f"INSERT INTO t VALUES ({MOST}, 1), (2, 1)")
        rows = [{"a": 2, "m": None}, {"a": MOST, "m": None}]
        assert session.view("answer").rows() == rows
        with pytest.raises(EvaluationError, match=r"coalesce\(a, 0\) \+ 1"):
            session.sql("INSERT INTO u VALUES (1, 1)")
        assert session.view("answer").rows() == rows
        session.sql(f"DELETE FROM t WHERE a = {MOST}")
        session.sql("INSERT INTO u VALUES (1, 1)")
        assert session.view("answer").rows() == [{"a": 2, "m": 1}]


@pytest.mark.parametrize("name", ["point", "bound", "both sides", "counted", "not exists"])
def test_a_change_of_the_value_touches_the_rows_that_it_passes(name: str) -> None:
    with deltic.Session() as session:
        session.sql(f"{DEFINITIONS} CREATE MATERIALIZED VIEW answer AS {QUERIES[name]}")
        session.apply({table: [{"a": i, "b": i % 5, "_weight": 1} for i in range(1_000)] for table in "tu"})
        session.apply({"u": [{"a": 1_001 if name != "both sides" else -2, "b": 0, "_weight": 1}]})
        assert touched_rows(session) < 200
