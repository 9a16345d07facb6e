"""Counted work of every shape of query: one changed row touches about log n rows, and what its answer changes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import deltic
from session_rows import touched_rows
from tests.support.parts import slow

TABLES = """
CREATE TABLE a (id BIGINT, g BIGINT NOT NULL, k BIGINT, x BIGINT, t TIMESTAMP, PRIMARY KEY (id));
CREATE TABLE b (id BIGINT, k BIGINT, y BIGINT, z BIGINT, PRIMARY KEY (id));
CREATE FUNCTION most(wanted BIGINT) RETURN SELECT max(y) FROM b WHERE b.k = wanted;
CREATE FUNCTION rows_of(wanted BIGINT) RETURNS TABLE RETURN SELECT y FROM b WHERE b.k = wanted;
"""
GROUPING = {
    "rollup": "SELECT g, k, sum(x) AS s, count(*) AS n FROM a GROUP BY ROLLUP (g, k)",
    "cube": "SELECT g, k, max(x) AS s FROM a GROUP BY CUBE (g, k)",
    "sets": "SELECT g, k, avg(x) AS s, grouping_id() AS i FROM a GROUP BY GROUPING SETS ((g), (k), ())",
    "distincts": "SELECT g, count(DISTINCT k) AS n, count(DISTINCT x) AS m, sum(DISTINCT x % 7) AS s FROM a GROUP BY g",
    "pivot": "SELECT * FROM (SELECT g, x % 3 AS c, x FROM a) PIVOT (sum(x) FOR c IN (0, 1, 2))",
    "unpivot": "SELECT * FROM (SELECT id, k, x FROM a) UNPIVOT (v FOR name IN (k, x))",
    "sessions": "SELECT session_window.start AS f, g, count(*) AS n FROM a GROUP BY session_window(t, '5 seconds'), g",
    "hopping": "SELECT window.start AS f, g, count(*) AS n FROM a GROUP BY window(t, '10 seconds', '5 seconds'), g",
    "except": "SELECT k, x FROM a EXCEPT SELECT k, y FROM b",
    "intersect all": "SELECT k, x FROM a INTERSECT ALL SELECT k, y FROM b",
}
SUBQUERIES = {
    "scalar": "SELECT id, (SELECT sum(b.y) FROM b WHERE b.k = a.k) AS s FROM a",
    "count": "SELECT id, (SELECT count(*) FROM b WHERE b.k = a.k) AS n FROM a WHERE x > 3",
    "exists": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.y > 5)",
    "not exists": "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "in": "SELECT id FROM a WHERE k IN (SELECT k FROM b WHERE y < 100)",
    "not in": "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE y < 100 AND k IS NOT NULL)",
    "not in of keys": "SELECT id FROM a WHERE x NOT IN (SELECT y FROM b WHERE b.k = a.k)",
    "or": "SELECT id FROM a WHERE x < 10 OR EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "value": "SELECT id, k IN (SELECT k FROM b) AS i FROM a",
    "case": """SELECT id, CASE WHEN EXISTS (SELECT 1 FROM b WHERE b.k = a.k)
               THEN (SELECT max(y) FROM b WHERE b.k = a.k) ELSE x END AS c FROM a""",
    "having": "SELECT k, count(*) AS n FROM a GROUP BY k HAVING count(*) > (SELECT count(*) FROM b WHERE b.k = a.k)",
    "aggregate of groups": "SELECT k, (SELECT max(y) FROM b WHERE b.k = max(a.k)) AS m FROM a GROUP BY k",
    "having exists": "SELECT k FROM a GROUP BY k HAVING EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.y > max(a.x))",
    "function": "SELECT id, most(k) AS m FROM a",
    "left lateral function": "SELECT a.id, r.y FROM a LEFT JOIN LATERAL rows_of(a.k) AS r",
    "all": "SELECT id FROM a WHERE x > ALL (SELECT y FROM b WHERE b.k = a.k)",
    "any": "SELECT id FROM a WHERE x > ANY (SELECT y FROM b WHERE b.k = a.k)",
    "limit": "SELECT id, (SELECT y FROM b WHERE b.k = a.k ORDER BY y DESC, id LIMIT 1) AS y FROM a",
    "lateral": "SELECT a.id, t.y FROM a, LATERAL (SELECT y FROM b WHERE b.k = a.k ORDER BY y, id LIMIT 2) t",
    "inequality": "SELECT id, (SELECT count(*) FROM b WHERE b.k = a.k AND b.y < a.x) AS n FROM a",
    "windowed": "SELECT id, (SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY y) AS r FROM b WHERE b.k = a.k)) AS n FROM a",
    "union": "SELECT id, (SELECT sum(v) FROM (SELECT y AS v FROM b WHERE b.k = a.k UNION ALL SELECT z FROM b WHERE b.k = a.k)) AS n FROM a",
    "deep": """SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k
               AND EXISTS (SELECT 1 FROM b AS c WHERE c.k = b.k AND c.z > a.x))""",
    "deep equality": """SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k
               AND NOT EXISTS (SELECT 1 FROM b AS c WHERE c.k = b.k AND c.z = a.x))""",
    "depth three": """SELECT id, (SELECT max(y) FROM b WHERE b.k = a.k AND b.z > (SELECT min(c.x) FROM a AS c WHERE c.k = b.k
                      AND c.x < (SELECT max(d.z) FROM b AS d WHERE d.k = c.k))) AS m FROM a""",
    "not in under or": "SELECT id FROM a WHERE x < 10 OR k NOT IN (SELECT k FROM b WHERE b.id = a.id)",
    "not in or exists": "SELECT id FROM a WHERE x NOT IN (SELECT y FROM b WHERE b.k = a.k) OR EXISTS (SELECT 1 FROM b WHERE b.z = a.x)",
    "intersect": """SELECT id, (SELECT count(*) FROM (SELECT y FROM b WHERE b.k = a.k INTERSECT SELECT z FROM b WHERE b.k = a.k)) AS n
                    FROM a""",
    "laterals": """SELECT a.id, u.n FROM a, LATERAL (SELECT y, k FROM b WHERE b.k = a.k ORDER BY y LIMIT 2) t,
                   LATERAL (SELECT count(*) AS n FROM b AS c WHERE c.k = t.k AND c.y > t.y) u""",
    "rows of keys": "SELECT id FROM a WHERE (k, x) IN (SELECT k, y + 6 FROM b)",
}
RANGES = {
    "semi less": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.y > a.x)",
    "anti less": "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.y > a.x)",
    "left join less without a match": "SELECT a.id FROM a LEFT JOIN b ON b.y > a.x WHERE b.id IS NULL",
    "semi greater of keys": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k % 2 = a.g AND b.y < a.x)",
    "anti less of keys": "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k % 2 = a.g AND b.y >= a.x)",
    "semi between": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.x BETWEEN b.y AND b.z)",
    "anti between": "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.x BETWEEN b.y AND b.z)",
    "left band": "SELECT a.id, b.id AS j FROM a LEFT JOIN b ON b.y BETWEEN a.x - 1 AND a.x + 1",
    "full band": "SELECT a.id, b.id AS j FROM a FULL JOIN b ON a.k = b.k AND a.x BETWEEN b.y AND b.z",
    "asof": "SELECT a.id, b.y FROM a ASOF JOIN b MATCH_CONDITION (a.x >= b.y) ON a.k = b.k",
    "asof without keys": "SELECT a.id, b.y FROM a ASOF JOIN b MATCH_CONDITION (a.x >= b.y)",
    "left asof": "SELECT a.id, b.y FROM a LEFT ASOF JOIN b MATCH_CONDITION (a.x < b.y)",
    "above average": "SELECT id FROM a WHERE x > (SELECT avg(y) FROM b)",
    "above greatest of keys": "SELECT id FROM a WHERE x > (SELECT max(y) - 5 FROM b WHERE b.k % 2 = a.g)",
    "counted above": "SELECT count(*) AS n, sum(x) AS s FROM a WHERE x > (SELECT avg(y) FROM b)",
    "at greatest": "SELECT id FROM a WHERE x = (SELECT max(x) FROM a)",
    "at all": "SELECT id FROM a WHERE x >= ALL (SELECT x FROM a)",
    "at all of the group": "SELECT id FROM a WHERE x >= ALL (SELECT c.x FROM a AS c WHERE c.g = a.g AND c.k IS NOT NULL)",
    "above any of the group": "SELECT id, x > ANY (SELECT c.x FROM a AS c WHERE c.g = a.g AND c.k < 9) AS i FROM a WHERE x < 9",
    "not above any": "SELECT id FROM a WHERE NOT x > ANY (SELECT x FROM a)",
    "not another than any": "SELECT id FROM a WHERE NOT x <> ANY (SELECT y FROM b)",
    "above the average of the partition": "SELECT id FROM a QUALIFY x > avg(x) OVER (PARTITION BY g)",
    "at the greatest of the partition": "SELECT k, id FROM (SELECT k, id FROM a QUALIFY x = max(x) OVER (PARTITION BY g)) WHERE k > 2",
    "above own average": "SELECT id FROM a WHERE x > (SELECT avg(x) FROM a)",
}
FIRST_ROWS = {
    "top": "SELECT id, x FROM a ORDER BY x DESC, id LIMIT 10",
    "page": "SELECT id, x FROM a ORDER BY x DESC, id LIMIT 10 OFFSET 10",
    "any rows": "SELECT id, x FROM a LIMIT 10",
    "of groups": "SELECT id FROM a QUALIFY row_number() OVER (PARTITION BY g ORDER BY x DESC, id) <= 3",
    "ranks": "SELECT id FROM a QUALIFY rank() OVER (PARTITION BY g ORDER BY x DESC) <= 3",
    "dense ranks": "SELECT id FROM a QUALIFY dense_rank() OVER (ORDER BY x DESC) <= 3",
    "ranked below": "SELECT * FROM (SELECT id, g, rank() OVER (PARTITION BY g ORDER BY x) AS r FROM a) WHERE r < 4",
    "of sums": "SELECT k, sum(x) AS s, rank() OVER (ORDER BY sum(x) DESC) AS r FROM a GROUP BY k QUALIFY r <= 3",
    "totals": "SELECT id, sum(x) OVER (PARTITION BY k) AS s, count(*) OVER (PARTITION BY k) AS n FROM a",
}
SHAPES = {"grouping": GROUPING, "subqueries": SUBQUERIES, "ranges": RANGES, "first rows": FIRST_ROWS}
FACTORS = {"cube": 80, "semi between": 160, "anti between": 160, "left band": 240, "full band": 100, "asof": 120, "laterals": 56}
BY_INTERVALS = {"asof without keys": 450, "left asof": 650}


def bound(name: str, rows: int) -> float:
    """Rows and index entries: a few probes each of some operators over a few batches, of intervals in each of 64 cells."""
    return FACTORS.get(name, BY_INTERVALS.get(name, 36)) * math.log2(rows)


def changes(n: int) -> Iterator[str]:
    """Rows amid the others, of no key, and beyond all others, which come, move and go."""
    half = n // 2
    yield f"INSERT INTO a VALUES (-1, 1, {half // 4}, {10 * half + 3}, timestamp_micros({time(half) + 7_000_000}))"
    yield "UPDATE a SET x = x + 1 WHERE id = -1"
    yield "DELETE FROM a WHERE id = -1"
    yield f"DELETE FROM a WHERE id = {n // 3}"
    yield f"INSERT INTO b VALUES (-1, {half // 4}, {10 * half + 1}, {10 * half + 11})"
    yield "UPDATE b SET y = y + 1 WHERE id = -1"
    yield f"DELETE FROM b WHERE id = {n // 3}"
    yield f"INSERT INTO b VALUES (-2, NULL, {10 * n}, {10 * n + 1})"
    yield "DELETE FROM b WHERE id = -2"
    yield f"INSERT INTO a VALUES (-3, 1, NULL, {10 * n + 20}, NULL)"
    yield "DELETE FROM a WHERE id = -3"


def time(row: int) -> int:
    return 1_700_000_000_000_000 + row * 20_000_000


@pytest.mark.parametrize("rows", [10_000, *slow(1_000_000)])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_changed_row_touches_about_log_n_rows(shape: str, rows: int) -> None:
    with deltic.Session() as session:
        session.sql(TABLES)
        for name, query in SHAPES[shape].items():
            session.sql(f"CREATE MATERIALIZED VIEW `{name}` AS {query}")
        ids = np.arange(rows)
        with session.transaction() as tx:
            times = pa.array(1_700_000_000_000_000 + ids * 20_000_000).cast(pa.timestamp("us"))
            tx.insert("a", pa.table({"id": ids, "g": ids % 2, "k": ids // 4, "x": 10 * ids, "t": times}))
            tx.insert("b", pa.table({"id": ids, "k": ids // 4, "y": 10 * ids - 6, "z": 10 * ids + 6}))
        worked: dict[str, int] = {}
        for statement in changes(rows):
            session.sql(statement)
            for name in SHAPES[shape]:
                worked[name] = max(worked.get(name, 0), touched_rows(session, name))
        assert all(worked.values())
        assert {name: work for name, work in worked.items() if work > bound(name, rows)} == {}
