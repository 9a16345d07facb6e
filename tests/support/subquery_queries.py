"""Test support: queries with subqueries in all places, over the tables of sql_data, on which the oracle agrees with Spark."""

from __future__ import annotations

from collections.abc import Iterator


def subquery_queries() -> Iterator[str]:
    """All of them."""
    yield from (f"SELECT id, {line} AS r FROM t" for line in VALUES.strip().splitlines())
    yield from (f"SELECT id FROM t WHERE {line}" for line in CONDITIONS.strip().splitlines())
    yield from QUERIES.strip().splitlines()


VALUES = """
(SELECT MAX(k) FROM u)
(SELECT k FROM e)
(SELECT COUNT(*) FROM e)
(SELECT 7)
k + (SELECT COUNT(*) FROM u)
(SELECT MAX(y) FROM u WHERE u.k = t.k)
(SELECT COUNT(*) FROM u WHERE u.k = t.k)
(SELECT COUNT(*) + 1 FROM u WHERE u.k = t.k)
(SELECT COUNT(u.name) FROM u WHERE u.k = t.k AND u.y > 5)
(SELECT SUM(u.id) FROM u WHERE u.k = t.k AND u.id <> -9223372036854775808)
COALESCE((SELECT AVG(w.z) FROM w WHERE w.k = t.k AND w.z < 100), -1)
CASE WHEN (SELECT COUNT(*) FROM w WHERE w.k = t.k) > 1 THEN 'many' ELSE 'few' END
CASE WHEN EXISTS (SELECT 1 FROM u) THEN 1 END
k IN (SELECT k FROM u)
k NOT IN (SELECT k FROM u)
k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)
k NOT IN (SELECT k FROM e)
k IN (SELECT k FROM e)
NOT (k IN (SELECT k FROM u) AND id > 2)
NOT (k IN (SELECT k FROM u WHERE u.id = t.id) OR NOT id IN (SELECT z FROM w))
EXISTS (SELECT 1 FROM u WHERE u.k = t.k)
NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.y > t.id)
(k, id) IN (SELECT k, id FROM u)
(k, id) NOT IN (SELECT k, id FROM u)
IF(k IN (SELECT k FROM w), (SELECT MIN(z) FROM w), id)
(SELECT MAX(z) FROM w WHERE w.k = t.k AND EXISTS (SELECT 1 FROM u WHERE u.k = w.k))
(SELECT MAX(q.n) FROM (SELECT k, COUNT(*) AS n FROM w GROUP BY k) q WHERE q.k = t.k)
"""

CONDITIONS = """
k > (SELECT MIN(k) FROM u)
k = 1 OR k IN (SELECT k FROM u)
k = 2 OR k NOT IN (SELECT k FROM u)
k = 2 OR NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)
EXISTS (SELECT 1 FROM w WHERE w.k = t.k) OR EXISTS (SELECT 1 FROM u WHERE u.id = t.id)
(EXISTS (SELECT 1 FROM w WHERE w.k = t.k)) <> (EXISTS (SELECT 1 FROM u WHERE u.id = t.id))
id > (SELECT COUNT(*) FROM w WHERE w.k = t.k)
id <= (SELECT MAX(w.z) FROM w WHERE w.k = t.k AND w.z IS NOT NULL)
id BETWEEN (SELECT MIN(z) FROM w) AND (SELECT COUNT(*) FROM u)
(SELECT COUNT(*) FROM u WHERE u.k = t.k) = (SELECT COUNT(*) FROM w WHERE w.k = t.k)
(k, id) NOT IN (SELECT k, id FROM u)
k NOT IN (SELECT k FROM u WHERE u.id < t.id)
k IN (SELECT MAX(u.k) FROM u WHERE u.id = t.id)
EXISTS (SELECT u.k FROM u WHERE u.id < t.id GROUP BY u.k)
EXISTS (SELECT 1 FROM u WHERE u.id = t.id ORDER BY u.y LIMIT 1)
EXISTS (SELECT t.k FROM u)
k IN (SELECT u.k FROM u JOIN w ON u.k = w.k AND w.z = t.id)
x = (SELECT MIN(x) FROM t)
s > (SELECT MIN(name) FROM u WHERE u.k = t.k)
d = (SELECT MAX(d) FROM t AS other WHERE other.k = t.k)
k IN (SELECT k FROM u WHERE u.y > (SELECT AVG(y) FROM u WHERE y < 100))
"""

QUERIES = """
SELECT t.id, u.id AS v FROM t JOIN u ON t.k = u.k AND t.id IN (SELECT z FROM w)
SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING COUNT(*) > (SELECT MIN(z) FROM w)
SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING COUNT(*) >= (SELECT COUNT(*) FROM w WHERE w.k = t.k) OR k IS NULL
SELECT k, SUM(id) + (SELECT COUNT(*) FROM w) AS n FROM t GROUP BY k
SELECT COUNT(*) FILTER (WHERE id > 2) AS n, (SELECT COUNT(*) FROM u) AS c FROM t
SELECT k, (SELECT MAX(y) FROM u WHERE u.k = t.k) AS m, COUNT(*) AS n FROM t GROUP BY ALL
SELECT k, COUNT(*) AS n FROM t GROUP BY k, EXISTS (SELECT 1 FROM u WHERE u.id = t.id)
SELECT id IN (SELECT z FROM w) AS m, SUM(k) AS n FROM t GROUP BY id IN (SELECT z FROM w)
SELECT k + (SELECT COUNT(*) FROM u) + 1 AS m, MAX(id) AS n FROM t GROUP BY ROLLUP (k + (SELECT COUNT(*) FROM u))
SELECT k + id AS m, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((k + id), (id + k), (k))
SELECT k FROM t GROUP BY k HAVING EXISTS (SELECT 1 FROM u WHERE u.y > MAX(t.id))
SELECT k FROM t GROUP BY k HAVING NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.id = SUM(t.id) + 1)
SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING MIN(t.id) NOT IN (SELECT z FROM w WHERE w.z <= MAX(t.id))
SELECT (SELECT COUNT(*) FROM u) AS n
SELECT id FROM t ORDER BY (SELECT MAX(k) FROM u) - id, id LIMIT 3
SELECT t.id, q.y FROM t, LATERAL (SELECT y FROM u WHERE u.k = t.k) q
SELECT t.id, q.y FROM t LEFT JOIN LATERAL (SELECT y FROM u WHERE u.k = t.k) q ON q.y > 10
SELECT t.id, q.n FROM t, LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.k = t.k) q
SELECT t.id, q.j, p.m FROM t, LATERAL (SELECT t.k + 1 AS j) q, LATERAL (SELECT MAX(y) AS m FROM u WHERE u.k = q.j) p
SELECT t.id, q.* FROM t JOIN LATERAL (SELECT y, name FROM u WHERE u.k = t.k ORDER BY y, name LIMIT 1) q
SELECT t.id, q.k FROM t, LATERAL (SELECT k FROM u WHERE u.id = t.id UNION ALL SELECT k FROM w WHERE w.z = t.id) q
SELECT id FROM t, LATERAL (SELECT 1)
SELECT t.id, q.* FROM t, LATERAL (SELECT t.*) q
SELECT t.id, q.z FROM t, LATERAL (SELECT t.*, w.* FROM w WHERE w.k = t.k) q
SELECT id, (SELECT q.*) AS r FROM t, LATERAL (SELECT k) q
SELECT a.k AS x, a.a.k AS y FROM (SELECT k, STRUCT(k) AS a FROM t) a JOIN (SELECT k, STRUCT(k) AS a FROM u) b ON a.k < b.k
WITH q AS (SELECT k, COUNT(*) AS n FROM t GROUP BY k) SELECT k FROM q WHERE n = (SELECT MAX(n) FROM q)
"""
