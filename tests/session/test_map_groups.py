"""MAPs as keys of GROUP BY: the same entries are one group in any order, as in Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import QueryError

ROWS = [
    {"id": 1, "m": [(3, 4.0), (1, -0.0)]},
    {"id": 2, "m": [(1, 0.0), (3, 4.0)]},
    {"id": 3, "m": [(1, None)]},
    {"id": 4, "m": []},
    {"id": 5, "m": None},
    {"id": 6, "m": [(3, 4.0), (1, 0.0)]},
]
QUERIES = (
    "SELECT m, count(*) AS n, sum(id) AS ids, m[1] AS one FROM t GROUP BY m HAVING count(*) > 0",
    "SELECT named_struct('m', m, 'ms', array(m)) AS s, count(*) AS n, map_keys(m) AS k FROM t GROUP BY ALL",
    "SELECT map(0, m) AS mm, count(*) AS n FROM t GROUP BY 1",
)


def opened(state: Path | None = None) -> deltic.Session:
    session = deltic.Session(state=state)
    session.sql("CREATE TABLE t (id INT PRIMARY KEY, m MAP<INT, DOUBLE>)")
    for i, query in enumerate(QUERIES):
        session.sql(f"CREATE MATERIALIZED VIEW v{i} AS {query}")
    return session


def contents(session: deltic.Session) -> list[list[str]]:
    return [sorted(map(repr, session.view(f"v{i}").rows())) for i in range(len(QUERIES))]


def test_maps_with_the_same_entries_are_one_group(tmp_path: Path) -> None:
    session = opened(tmp_path)
    with session.transaction() as tx:
        tx.insert("t", ROWS)
    groups = sorted((row["n"], row["ids"], row["m"]) for row in session.view("v0").rows() if row["m"])
    assert groups == [(1, 3, [(1, None)]), (3, 9, [(1, 0.0), (3, 4.0)])]
    session.close()
    session = opened(tmp_path)
    with session.transaction() as tx:
        tx.delete("t", [1, 4])
    kept = opened()
    with kept.transaction() as tx:
        tx.insert("t", [row for row in ROWS if row["id"] not in (1, 4)])
    assert contents(session) == contents(kept)
    session.close()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT m FROM t",
        "SELECT m FROM t UNION SELECT m FROM t",
        "SELECT id FROM t ORDER BY m LIMIT 1",
        "SELECT max(m) AS m FROM t",
        "SELECT id FROM t WHERE m = m",
        "SELECT parse_json('1') AS v, 1 AS n FROM t GROUP BY 1",
    ],
)
def test_other_comparisons_of_maps_are_refused_as_in_spark(query: str) -> None:
    with opened() as session, pytest.raises(QueryError, match=r"cannot be compared|does not accept MAP"):
        session.sql(f"CREATE MATERIALIZED VIEW v AS {query}")


@pytest.mark.slow
@pytest.mark.spark
def test_groups_equal_those_of_spark(spark: Any) -> None:
    entries = (
        "(1, map(3, 4D, 1, -0D)), (2, map(1, 0D, 3, 4D)), (3, map(1, CAST(NULL AS DOUBLE))), (4, map()), (5, NULL), (6, map(3, 4D, 1, 0D))"
    )
    spark.sql(f"SELECT id, CAST(m AS MAP<INT, DOUBLE>) AS m FROM VALUES {entries} AS v(id, m)").createOrReplaceTempView("t")
    with opened() as session:
        with session.transaction() as tx:
            tx.insert("t", ROWS)
        for i, query in enumerate(QUERIES):
            ours = sorted(map(repr, session.view(f"v{i}").to_arrow().to_pylist()))
            assert ours == sorted(map(repr, spark.sql(query).toArrow().to_pylist()))
