"""Test support: queries with PIVOT and UNPIVOT over the tables of sql_data, on which Deltic and Spark agree."""

from __future__ import annotations

from collections.abc import Iterator


def pivot_queries() -> Iterator[str]:
    """All of them."""
    yield from (f"SELECT * FROM (SELECT k, b, id, s, d FROM t) PIVOT ({clause})" for clause in CLAUSES.strip().splitlines())
    yield from WHOLE.strip().splitlines()


CLAUSES = """
sum(id) FOR b IN (true, false)
sum(id) AS s FOR b IN (true, false)
sum(id) AS s, count(*) AS c FOR b IN (true AS yes, false no)
sum(id), count(*) FOR b IN (true, false)
sum(id) + 1, max(id) - min(id) AS d FOR k IN (1, 2 AS two, 7)
coalesce(sum(id), 0) FOR k IN (1, 9)
sum(id) FOR (k, b) IN ((1, true) AS a, (2, null), (3, false))
sum(id) FOR b IN (null, true)
count(DISTINCT id) FOR k IN (1L, 9S)
sum(id) FILTER (WHERE id > 2) FOR b IN (true, 2 > 3)
first(id) FOR s IN ('a', 'b', 'it''s x')
sum(id) FOR d IN (DATE '2020-01-31', '1970-01-01')
percentile(id, 0.5) FOR (b) IN (true, false)
count(*), max(s) FOR b IN (true, false)
count(id), max(d) FOR b IN (true, null)
count(DISTINCT id), max_by(s, id) FOR b IN (true, false)
coalesce(max(s), 'none') FOR b IN (true, false)
sum(id) FILTER (WHERE id > 2), max(s) FOR b IN (true, false)
max(k) FOR b IN (true)
"""

WHOLE = """
FROM t |> SELECT k, b, id |> PIVOT (sum(id) AS s, count(*) AS c FOR b IN (true AS yes, false no))
FROM t |> SELECT k, b, id |> WHERE id > 1 |> PIVOT (sum(id) FOR k IN (1, 2 AS two)) AS q |> WHERE q.b |> SELECT q.two, q.`1`
FROM t |> SELECT id, k, CAST(id AS INT) + 1 AS n |> UNPIVOT INCLUDE NULLS (v FOR name IN (k, n AS more)) |> WHERE id > 2
FROM t |> SELECT id, k |> UNPIVOT (v FOR name IN (id, k)) |> AGGREGATE sum(v) AS total, count(*) AS c GROUP BY name
SELECT * FROM t PIVOT (sum(id) FOR k IN (1, 2))
SELECT * FROM (SELECT k, id FROM t) PIVOT (sum(id) FOR k IN (1, 2))
SELECT * FROM (SELECT k, id FROM t WHERE false) PIVOT (sum(id) FOR k IN (1, 2))
SELECT * FROM (SELECT k, id, b FROM t WHERE false) PIVOT (sum(id) FOR k IN (1, 2))
SELECT * FROM (SELECT x, id FROM t) PIVOT (avg(id) FOR x IN (1.5, 0.0, -7.25D))
SELECT * FROM (SELECT m, id FROM t) PIVOT (avg(id) FOR m IN (1.10, 2.220, 0))
SELECT * FROM (SELECT k, ts, id FROM t) PIVOT (sum(id) FOR ts IN (TIMESTAMP '2020-01-31 10:00:00', '1970-01-01'))
SELECT p.k, p.true FROM (SELECT k, b, id FROM t) PIVOT (sum(id) FOR b IN (true)) p WHERE p.k > 0
SELECT q.k FROM (SELECT k, b, id FROM t) AS q PIVOT (sum(q.id) FOR b IN (true))
SELECT * FROM t JOIN (SELECT k AS kk, y FROM u) q ON t.k = q.kk PIVOT (sum(y) FOR kk IN (1, 2))
SELECT * FROM (SELECT id AS i FROM u), (SELECT k, id FROM u) PIVOT (sum(id) FOR k IN (1, 3))
SELECT * FROM (SELECT k, id FROM u) PIVOT (sum(id) FOR k IN (1)) p JOIN w ON p.`1` = w.k
SELECT * FROM (SELECT k, y FROM u) PIVOT (sum(y) FOR k IN (1, 3)) UNPIVOT (v FOR n IN (`1`, `3`))
SELECT k, `true` FROM (SELECT k, b, id FROM t) PIVOT (sum(id) FOR b IN (true, false)) ORDER BY 1 LIMIT 2
SELECT * FROM (SELECT id, k, y FROM u) UNPIVOT (v FOR n IN (k, y))
SELECT * FROM (SELECT id, k, y FROM u) UNPIVOT INCLUDE NULLS (v FOR n IN (k AS kk, y AS `why`))
SELECT * FROM (SELECT id, k, y FROM u) UNPIVOT EXCLUDE NULLS (v FOR n IN (k, y)) AS p
SELECT * FROM u UNPIVOT ((a, c) FOR n IN ((k, y) AS one, (y, k)))
SELECT * FROM u UNPIVOT INCLUDE NULLS ((a, c) FOR n IN ((k, y), (y, k)))
SELECT * FROM (SELECT id, k, x FROM t) UNPIVOT (v FOR n IN (id, k, x))
SELECT * FROM (SELECT k, m, x FROM t) UNPIVOT (v FOR n IN (k, m, x))
SELECT * FROM (SELECT d, ts, id FROM t) UNPIVOT (v FOR n IN (d, ts))
SELECT * FROM (SELECT id, k FROM t) UNPIVOT (v FOR n IN (k, k))
SELECT * FROM w UNPIVOT (v FOR n IN (k, z))
SELECT u.id FROM u UNPIVOT (v FOR n IN (k, y))
SELECT id, p.v FROM u UNPIVOT (v FOR n IN (k, y)) p WHERE v > 2 ORDER BY v LIMIT 3
SELECT * FROM t JOIN w ON t.k = w.k UNPIVOT (v FOR n IN (w.z, t.id))
SELECT n, sum(v), count(*) FROM (SELECT id, k, y FROM u) UNPIVOT (v FOR n IN (k, y)) GROUP BY n
"""
