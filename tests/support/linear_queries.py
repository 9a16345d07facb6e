"""Queries with table functions over the tables of sql_data, which run on both Spark and Deltic."""

from __future__ import annotations

from typing import Final

ITEMS: Final = """
SELECT id, explode(array(k, id)) AS n FROM t WHERE k > 0
SELECT id, posexplode(array(k, 1, NULL)) FROM t
SELECT posexplode(array(s, v)) AS (p, w), t.k FROM t JOIN e ON t.k = e.k
SELECT explode_outer(sequence(1, k)) FROM t
SELECT DISTINCT explode(sequence(k, 1)) AS n FROM t ORDER BY n
SELECT explode(sequence(id, 20, 3)) AS n, s FROM t
SELECT explode(sequence(k, id)) AS n FROM u WHERE id > 0 AND id < 10
SELECT posexplode_outer(split(s, '%')) FROM t
SELECT explode(split(name, 'o', 1)) FROM u
SELECT explode(split(name, 'e', 2)) AS part FROM u ORDER BY part LIMIT 3
SELECT explode(split(concat(name, '.', name), '\\\\.')) AS part FROM u
SELECT explode(array(x, 1)) FROM t
SELECT explode(array(m, k, 2.5)) FROM t
SELECT explode(array(d, DATE '2020-01-01')) FROM t
SELECT explode(array(b, NULL, k = 1)), id FROM t
SELECT explode(array(ts)) FROM t
SELECT explode(sequence(DATE '2020-01-30', d)) AS day FROM t WHERE d BETWEEN '2020-01-01' AND '2020-03-01'
SELECT explode(sequence(d, DATE '2020-01-01', INTERVAL -10 DAYS)) AS day FROM t WHERE d BETWEEN '2020-01-01' AND '2020-03-01'
SELECT explode(array('a', 'b', 'a'))
SELECT explode(sequence(3, 1))
SELECT explode(sequence(1Y, 3S))
SELECT explode(sequence(9223372036854775800, 9223372036854775807, 3)) AS n
SELECT explode(sequence(2, 2, 0)) AS n
"""

LATERAL: Final = """
SELECT id, n FROM t LATERAL VIEW explode(array(k, id)) v AS n
SELECT t.id, v.* FROM t LATERAL VIEW posexplode(array(s, 'z')) v
SELECT * FROM w LATERAL VIEW explode(sequence(1, k)) v
SELECT id, n, p, part FROM t LATERAL VIEW OUTER explode(sequence(1, k)) AS n LATERAL VIEW OUTER posexplode(split(s, '%')) q AS p, part
SELECT n, count(*), sum(id) FROM t LATERAL VIEW explode(array(k, 1)) v AS n GROUP BY n
SELECT n FROM t LATERAL VIEW explode(array(k, 1)) v AS n WHERE n > 1 AND id > 2
SELECT t.id, n, y FROM t JOIN u ON t.k = u.k LATERAL VIEW explode(array(t.id, u.id)) v AS n WHERE n <> t.id
SELECT n, m FROM w LATERAL VIEW explode(sequence(1, k)) v AS n LATERAL VIEW explode(sequence(n, k)) v2 AS m
SELECT k FROM w WHERE k IN (SELECT n FROM t LATERAL VIEW explode(array(k, 5)) v AS n)
SELECT k FROM w WHERE EXISTS (SELECT 1 FROM t LATERAL VIEW explode(array(k, 5)) v AS n WHERE n = w.k)
SELECT n FROM (SELECT explode(array(k, z)) AS n FROM w) a UNION SELECT n FROM t LATERAL VIEW explode(array(id)) v AS n
SELECT a.n, b.n FROM (SELECT explode(array(k, z)) AS n FROM w) a JOIN (SELECT explode(array(k, 1)) AS n FROM u) b ON a.n = b.n
WITH parts AS (SELECT id, explode(split(s, 'b')) AS c FROM t) SELECT c, count(*) FROM parts GROUP BY c
SELECT k, n FROM w, LATERAL explode(array(k, 7)) AS v(n)
SELECT k, n FROM w CROSS JOIN LATERAL explode(sequence(1, k)) AS v(n) WHERE n < 3
SELECT w.k, n, p FROM w, LATERAL explode(array(k, 7)) AS v(n), LATERAL posexplode(array(n, k)) AS q(p, r)
SELECT n FROM explode(sequence(1, 5)) AS v(n) WHERE n % 2 = 1
SELECT id FROM range(4)
SELECT r.id, t.s FROM range(1, 4) AS r JOIN t ON r.id = t.id
SELECT n FROM range(10, 1, -4) AS r(n)
SELECT k FROM w WHERE k IN (SELECT id FROM range(2, 4))
"""


def linear_queries() -> tuple[str, ...]:
    """All queries."""
    return tuple(query for query in (ITEMS + LATERAL).strip().splitlines() if query)
