"""Test support: queries of grouping sets over the tables of sql_data, on which Deltic and Spark agree, and DuckDB but for empty tables."""

from __future__ import annotations

from collections.abc import Iterator


def grouping_queries() -> Iterator[str]:
    """All of them."""
    yield from GROUPED.strip().splitlines()


GROUPED = """
SELECT count(*), sum(k) FROM e GROUP BY GROUPING SETS (())
SELECT count(*) FROM e GROUP BY GROUPING SETS ((), ())
SELECT count(*) FROM e GROUP BY k GROUPING SETS (())
SELECT count(*) FROM e GROUP BY GROUPING SETS (()), GROUPING SETS (())
SELECT k, count(*) FROM e GROUP BY ROLLUP(k)
SELECT k, v, count(*), grouping_id() FROM e GROUP BY CUBE(k, v)
SELECT grouping_id(), count(*) FROM t GROUP BY GROUPING SETS (())
SELECT grouping_id(), count(*) FROM t GROUP BY GROUPING SETS ((), ())
SELECT k, b, count(*) FROM t GROUP BY GROUPING SETS ((k), (k), (b))
SELECT k, b, s, count(*) AS n, grouping_id() AS g, grouping(k) AS gk, grouping(s) AS gs FROM t GROUP BY k, ROLLUP(b, s)
SELECT k, b, grouping_id(k, b) AS g, typeof(grouping_id()), typeof(grouping(k)) FROM t GROUP BY k, b WITH ROLLUP
SELECT k, b, count(*) FROM t GROUP BY k, b WITH CUBE
SELECT k, b, Grouping__ID, count(*) FROM t GROUP BY k, b WITH ROLLUP HAVING grouping__id < 3
SELECT k, b, count(*) FROM t GROUP BY k, b GROUPING SETS ((k), (k, b))
SELECT k, b, s, count(*), grouping_id() FROM t GROUP BY s, k, b GROUPING SETS ((k), (k, b))
SELECT k, count(*) FROM t GROUP BY k GROUPING SETS ((k), (b))
SELECT k, b, s, count(*) FROM t GROUP BY ROLLUP((k, b), s)
SELECT k, b, s, count(*) FROM t GROUP BY GROUPING SETS (ROLLUP(k, b), (s), GROUPING SETS(b))
SELECT k, b, count(*), grouping_id() FROM t GROUP BY ROLLUP(k), CUBE(b)
SELECT k, b, count(*), grouping_id() FROM t GROUP BY ROLLUP(k), CUBE(k, b)
SELECT k, count(*) FROM t GROUP BY ROLLUP(k, k)
SELECT k, count(*) FROM t GROUP BY CUBE(k, k)
SELECT k, sum(k), count(k), k + 1, sum(k) + k FROM t GROUP BY ROLLUP(k)
SELECT k + 1, count(*), k + 1 + 1, grouping(k + 1) FROM t GROUP BY CUBE(k + 1)
SELECT k AS g, b, count(*) FROM t GROUP BY ROLLUP(1, 2)
SELECT k % 2 AS p, count(*) FROM t GROUP BY ROLLUP(p)
SELECT k, 1 AS one, 'c' AS c, count(*) FROM t GROUP BY ROLLUP(k, 'c')
SELECT x, count(*) FROM t GROUP BY ROLLUP(x)
SELECT k, b, count(DISTINCT s), count(DISTINCT id), min(x), sum(id) FILTER (WHERE b), median(id) FROM t GROUP BY CUBE(k, b)
SELECT k, count(DISTINCT k), max(grouping(k)), count(*) FILTER (WHERE grouping(k) = 0) FROM t GROUP BY ROLLUP(k)
SELECT k, count(*) FROM t GROUP BY ROLLUP(k) HAVING grouping(k) = 1 OR k > 1
SELECT k, count(*) AS n FROM t GROUP BY ROLLUP(k) HAVING n > 2 AND k IN (SELECT k FROM w)
SELECT k, count(*) FROM t GROUP BY CUBE(k) ORDER BY grouping_id() DESC, k LIMIT 2
SELECT t.k, u.k, count(*), sum(u.y) FROM t JOIN u ON t.k = u.k GROUP BY ROLLUP(t.k, u.k)
SELECT t.k, u.name, count(*), sum(t.m) FROM t LEFT JOIN u ON t.k = u.k GROUP BY CUBE(t.k, u.name)
SELECT DISTINCT k FROM t GROUP BY ROLLUP(k)
SELECT DISTINCT grouping(k) + grouping_id() * 2 AS g FROM t GROUP BY ROLLUP(k)
SELECT id FROM u WHERE k IN (SELECT k FROM t GROUP BY ROLLUP(k))
"""
