"""Test support: queries over the tables of sql_data, on which the frontend and the oracle must agree with Spark."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from grouping_queries import grouping_queries
from linear_queries import linear_queries
from pivot_queries import pivot_queries
from subquery_queries import subquery_queries
from time_window_queries import time_window_queries
from window_queries import window_queries


def queries() -> list[str]:
    """All of them, each once."""
    plain = (*_lines(EXPRESSIONS, "SELECT id, {} AS r FROM t"), *_lines(PREDICATES, "SELECT id FROM t WHERE {}"), *_lines(QUERIES, "{}"))
    shaped = (*_joins(), *_set_operations(), *_subqueries(), *_aggregates(), *window_queries(), *time_window_queries())
    return list(dict.fromkeys((*plain, *shaped, *grouping_queries(), *pivot_queries(), *linear_queries(), *subquery_queries())))


def _lines(text: str, form: str) -> Iterator[str]:
    return (form.format(line) for line in text.strip().splitlines())


EXPRESSIONS = """
k + 1
k - id * 2
k / 2
id div 2
k % 2
-k
+k
- - k
~k
(k & 3) | (4 ^ 1)
k & 3 & 1
k | 4
s || '!' || s
1 || 2
m + 1
m * m
m / 3
m - k
m % 2
x + m
x * 2
1 + 2L
1.5 + k
2147483648
-2147483648
-9223372036854775808
9999999999999999999
1.5BD * 2
1e2
1.5F
2S + 1Y
0.05
1.0
.5
00012
'a' 'b'
'it''s'
"double quoted"
"a""b"
'a'   "b"
'a\\tb'
'\\%'
r'a\\tb'
k = 1
k <> 1
k != 1
k == 1
k <=> NULL
k IS NULL
k IS NOT NULL
b IS TRUE
b IS NOT TRUE
b IS FALSE
b IS NOT FALSE
k IS DISTINCT FROM 1
k IS NOT DISTINCT FROM NULL
k > 1 AND b
k > 1 OR b
NOT b
NOT k = 1
! b
NOT k > 1 AND b
k = 1 IS NULL
k BETWEEN 1 AND 2
k NOT BETWEEN 1 AND 2
k IN (1, 2)
k IN (1, NULL)
k NOT IN (1, NULL)
k IN (1.5, 2)
s IN ('a', 'b')
s LIKE 'a%'
s NOT LIKE 'a%'
s LIKE 'a\\\\%c'
s LIKE 'a!%c' ESCAPE '!'
CASE WHEN k = 1 THEN 'one' WHEN k = 2 THEN 'two' END
CASE k WHEN 1 THEN 1 WHEN 2 THEN 2.5 ELSE id END
CASE WHEN k > 0 THEN k ELSE x END
CASE k WHEN NULL THEN 1 ELSE 0 END
IF(k = 1, 'yes', 'no')
COALESCE(k, id)
COALESCE(k, x, 0)
NULLIF(k, 1)
NULLIF(k, id)
NVL(k, 0)
IFNULL(s, '?')
NVL2(k, 1, 2)
CAST(k AS STRING)
CAST(x AS STRING)
CAST(m AS DOUBLE)
CAST(m AS INT)
CAST(k AS BOOLEAN)
CAST(d AS TIMESTAMP)
CAST(ts AS DATE)
CAST(k AS DECIMAL(5, 2))
CAST('12' AS INT)
CAST(NULL AS INT)
k::STRING
k::BIGINT + 1
-k::BIGINT
TRY_CAST(s AS INT)
TRY_CAST(id AS TINYINT)
INT('5')
STRING(k)
DATE('2020-02-03')
DOUBLE(k)
UPPER(s)
lower(s)
LENGTH(s)
CONCAT(s, '-', k)
SUBSTRING(s, 1, 1)
SUBSTRING(s FROM 2)
SUBSTRING(s FROM 1 FOR 1)
SUBSTR(s, -1)
TRIM(s)
TRIM('  a ')
LEFT(s, 1)
RIGHT(s, 1)
REPLACE(s, 'a', 'z')
POSITION('b' IN s)
POSITION('b', s)
ABS(k)
ROUND(m, 1)
ROUND(x)
FLOOR(m)
CEIL(m)
CEILING(2.5)
GREATEST(k, 2)
LEAST(k, id)
MOD(k, 2)
POWER(k, 2)
SQRT(k)
YEAR(d)
EXTRACT(YEAR FROM d)
EXTRACT(MONTH FROM ts)
EXTRACT(DOW FROM d)
EXTRACT(HOUR FROM ts)
EXTRACT(SECOND FROM ts)
DAY(d)
DATE_ADD(DATE '2020-01-01', k)
DATEDIFF(d, DATE '2020-01-01')
ADD_MONTHS(DATE '2020-01-31', k)
DATE '2020-02-29'
TIMESTAMP '2020-02-29 12:34:56.789'
TIMESTAMP '2020-02-29'
d > '2000-01-01'
DATE '2020-01-31' + 1
DATE '2020-01-31' - k
DATE '2020-01-31' + INTERVAL 1 MONTH
DATE '2020-01-31' - INTERVAL 1 YEAR
DATE '2020-01-31' + INTERVAL 3 DAYS
DATE '2020-01-31' + INTERVAL 1 WEEK
DATE '2020-01-31' + INTERVAL 5 HOURS
DATE '2020-01-31' + INTERVAL 1 DAY 2 HOURS
DATE '2020-01-31' + INTERVAL 24 HOURS
DATE '2020-01-31' + (INTERVAL 1 DAY + INTERVAL 2 HOURS)
DATE '2020-01-31' - INTERVAL 1 YEAR 2 MONTHS
INTERVAL 1 DAY 2 HOURS + ts
INTERVAL 1 DAY + DATE '2020-01-31'
ts + INTERVAL 1 DAY
ts - INTERVAL '90' MINUTE
ts + INTERVAL 1 MONTH
ts + INTERVAL '1.5' SECOND
ts + INTERVAL -1 DAY
ts - INTERVAL 2 WEEKS
ts > DATE '2000-01-01'
TRUE
false
k > 1 = b
1 + 2 * 3 - 4
(1 + 2) * 3
2 * 3 % 4
7 div 2 * 2
k < 2 AND k > 0 OR b AND NOT b
1 = 1 = true
"""

PREDICATES = """
k = 1
k > 1 OR b
b
NOT b
k IS NULL AND s IS NULL
x = 0
x = x
x > 1
x <> x
s = ''
s < 'b'
m = 1.1
m > k
d = '2020-01-31'
d < ts
ts >= '2020-01-01'
CAST(NULL AS BOOLEAN)
k IN (SELECT k FROM u)
k NOT IN (SELECT k FROM u)
k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)
k NOT IN (SELECT k FROM e)
k IN (SELECT k FROM e)
NOT (k IN (SELECT k FROM u))
NOT NOT k IN (SELECT k FROM u)
id IN (SELECT k FROM u)
id NOT IN (SELECT z FROM w WHERE z IS NOT NULL)
(id, k) IN (SELECT id, k FROM u)
id IN (SELECT id FROM u WHERE u.k = t.k)
id IN (SELECT u.id FROM u WHERE u.k = t.k AND u.y > t.id)
k NOT IN (SELECT u.k FROM u WHERE u.id = t.id)
x NOT IN (SELECT u.y FROM u WHERE u.k = t.k)
EXISTS (SELECT 1 FROM u WHERE u.k = t.k)
EXISTS (SELECT * FROM u WHERE u.k = t.k AND u.y > 10)
NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)
NOT EXISTS (SELECT 1 FROM e)
EXISTS (SELECT 1 FROM e)
EXISTS (SELECT 1 FROM u)
EXISTS (SELECT 1 FROM u WHERE u.id > t.id)
NOT EXISTS (SELECT 1 FROM u WHERE u.id > t.id AND u.k = t.k)
EXISTS (SELECT 1 FROM u WHERE u.k <=> t.k)
EXISTS (SELECT u.k FROM u WHERE u.k = t.k GROUP BY u.k HAVING COUNT(*) > 1)
k IN (SELECT MAX(k) FROM u)
k IN (SELECT k FROM u GROUP BY k HAVING COUNT(*) > 1)
k IN (SELECT DISTINCT k FROM w)
k IN (SELECT k FROM u UNION SELECT k FROM w)
k IN (SELECT k FROM u WHERE EXISTS (SELECT 1 FROM w WHERE w.k = u.k))
k IN (SELECT k FROM u WHERE u.id NOT IN (SELECT z FROM w WHERE w.k = u.k))
k IN (SELECT u.k FROM u JOIN w ON u.k = w.k WHERE w.z = t.id)
k IN (1, 2) AND id IN (SELECT id FROM u) AND s LIKE 'a%'
k IN (SELECT k FROM u ORDER BY y DESC LIMIT 2)
k IN (SELECT k + 1 FROM u)
((SELECT max(k) FROM u), id) IN (SELECT k, id FROM u)
k + 1 IN (SELECT k FROM u)
k IN (WITH q AS (SELECT k FROM u) SELECT k FROM q)
"""

QUERIES = """
SELECT 1
SELECT 1 AS a, 'x' b, NULL + 1 AS c
SELECT * FROM t
SELECT t.* FROM t
SELECT * EXCEPT (ts, m) FROM t
SELECT t.* EXCEPT (t.k, x), u.y FROM t JOIN u ON t.id = u.id
SELECT * EXCEPT (t.k, u.id) FROM t JOIN u ON t.id = u.id
SELECT q.* EXCEPT (q.r.k, s), r.* EXCEPT (id) FROM (SELECT IF(b, struct(id, k), NULL) AS r, s, d FROM t) AS q
SELECT * EXCEPT (q.r.k) FROM (SELECT struct(IF(b, struct(id, k), NULL) AS r, s) AS q FROM t)
SELECT to_json(struct(* EXCEPT (r.k, s))) FROM (SELECT struct(id, k) AS r, s, d FROM t)
SELECT T.ID, `t`.`k` FROM T
SELECT id AS a, a + 1 AS n, n * 2 AS c FROM t
SELECT k AS id, id FROM t
SELECT id + 1 AS id, id AS j FROM t
SELECT a.id FROM t a
SELECT p, q FROM u AS x(p, q, r, z)
SELECT * FROM (SELECT k, id FROM t WHERE k > 1) q
SELECT q.k FROM (SELECT k FROM t) AS q WHERE q.k = 1
SELECT a FROM (SELECT k FROM t) q(a)
SELECT * FROM (t JOIN u ON t.id = u.id)
SELECT t.id, u.y FROM (t JOIN u ON t.id = u.id) JOIN w ON w.k = t.k
SELECT * FROM VALUES (1, 'a'), (2, NULL) AS v(n, c)
SELECT * FROM VALUES (1), (2.5)
SELECT col1 + 1 FROM VALUES (1), (2)
VALUES (1, 2), (3, NULL)
SELECT * FROM VALUES (1), (CAST(1 AS FLOAT)), (16777217)
SELECT * FROM VALUES (struct(1, 'a')), (2, 'b') AS v(n, c)
SELECT to_json(struct(u.*)), concat_ws('-', *) FROM u
SELECT array(k, *) FROM w
SELECT max(struct(u.* EXCEPT (id))).name FROM u
SELECT hash(*), id FROM t JOIN u USING (id)
SELECT id + 1 AS k, to_json(struct(*, 1 AS one)) FROM (SELECT id, k FROM t)
SELECT DISTINCT k FROM t
SELECT DISTINCT x FROM t WHERE x = 0
SELECT DISTINCT k, s FROM t ORDER BY k
SELECT ALL k FROM t
SELECT k FROM t ORDER BY id LIMIT 3
SELECT k, id FROM t ORDER BY k, id LIMIT 3
SELECT k, id FROM t ORDER BY k DESC, id LIMIT 3
SELECT k, id FROM t ORDER BY k ASC NULLS LAST, id LIMIT 3
SELECT k, id FROM t ORDER BY k DESC NULLS FIRST, id DESC LIMIT 3
SELECT s FROM t ORDER BY s, id LIMIT 5
SELECT x, id FROM t ORDER BY x DESC, id LIMIT 4
SELECT id AS k, k AS id FROM t ORDER BY id, k LIMIT 4
SELECT id FROM t ORDER BY 1 DESC LIMIT 2
SELECT id, k + 1 AS n FROM t ORDER BY n + id, id LIMIT 3
SELECT id FROM t ORDER BY t.x, t.id LIMIT 3
SELECT DISTINCT k FROM t ORDER BY k LIMIT 2
SELECT DISTINCT k + 1 AS n FROM t ORDER BY n DESC LIMIT 2
SELECT k, s, id FROM t ORDER BY ALL LIMIT 3
SELECT DISTINCT k FROM t ORDER BY ALL DESC LIMIT 2
SELECT id FROM t ORDER BY id LIMIT 0
SELECT id FROM t ORDER BY id LIMIT 3 OFFSET 2
SELECT id FROM t ORDER BY id DESC OFFSET 5
SELECT k, id FROM t ORDER BY k, id LIMIT ALL OFFSET 100
SELECT k FROM t ORDER BY id LIMIT 1 + 1 OFFSET 2 - 1
SELECT DISTINCT k FROM t ORDER BY k LIMIT 2 OFFSET 1
SELECT k, SUM(id) AS n FROM t GROUP BY k ORDER BY k LIMIT 2 OFFSET 1
SELECT id FROM t UNION ALL SELECT id FROM u ORDER BY id LIMIT 4 OFFSET 2
SELECT array(struct(id, k)) AS a FROM t UNION SELECT array(struct(id, y)) FROM u
SELECT count(*) FROM (SELECT id FROM t LIMIT 3)
SELECT count(*) FROM (SELECT id FROM t OFFSET 3)
SELECT k FROM (SELECT k FROM t WHERE k = 1 LIMIT 1)
SELECT q.* FROM (SELECT named_struct('a', id, 'b', k) AS q FROM t)
SELECT r.q.* FROM (SELECT struct(id, k) AS q FROM t) AS r
SELECT q.* EXCEPT (id) FROM (SELECT struct(id, k) AS q, s FROM t)
SELECT to_json(struct(q.*)) FROM (SELECT struct(id, k) AS q FROM t)
SELECT k, SUM(id) AS n FROM t GROUP BY k ORDER BY n DESC LIMIT 2
SELECT k FROM t GROUP BY k ORDER BY SUM(id) LIMIT 2
SELECT k, COUNT(*) FROM t GROUP BY k ORDER BY COUNT(*) DESC, k LIMIT 2
SELECT * FROM (SELECT id FROM t ORDER BY id DESC LIMIT 3) ORDER BY id LIMIT 1
(SELECT id FROM t ORDER BY id LIMIT 2) UNION ALL (SELECT id FROM u ORDER BY id LIMIT 1)
SELECT id FROM t UNION ALL SELECT id FROM u ORDER BY id LIMIT 4
SELECT k, id FROM t UNION SELECT k, z FROM w ORDER BY 2 DESC, 1 LIMIT 3
FROM t
TABLE w
FROM t SELECT id, k WHERE k > 1
FROM t |> WHERE k > 1 |> SELECT t.id, k |> WHERE t.id < 8
FROM t |> EXTEND k + 1 AS n, n * 2 AS twice |> WHERE t.k = 1 |> DROP x, t.ts, m
FROM w |> SET z = k + 1, z = z + k |> SELECT z, w.k
FROM w |> SET k = 0 |> SELECT k
FROM t |> AS q |> JOIN u AS r ON q.id = r.id |> SELECT q.id, r.y AS v
FROM t |> LEFT JOIN u USING (id, k) |> SELECT id, name, u.id |> WHERE u.id IS NULL
FROM t |> LEFT SEMI JOIN u USING (k) |> SELECT id
FROM t, w |> WHERE t.k = w.k |> SELECT t.id, w.z
FROM t |> AGGREGATE sum(id) AS n, count(*) GROUP BY k |> WHERE n > 3 |> SELECT t.k, n
FROM t |> AGGREGATE max(x) + 1 AS top
FROM t |> AGGREGATE count(DISTINCT s) AS n GROUP BY k + 1 AS next, b |> ORDER BY next, b |> LIMIT 2
FROM w |> AGGREGATE count(*) AS n GROUP BY 1
FROM t |> AGGREGATE GROUP BY k
FROM t |> SELECT k, sum(id) AS n GROUP BY k |> SELECT n
FROM t |> SELECT DISTINCT k |> UNION ALL (SELECT k FROM u) |> EXCEPT SELECT k FROM e |> SELECT k
FROM w |> INTERSECT ALL TABLE w |> EXCEPT ALL SELECT k, z FROM w WHERE z > 2
FROM t |> ORDER BY id DESC |> WHERE k IS NOT NULL |> SELECT s AS id, k |> LIMIT 2 OFFSET 1
FROM t |> ORDER BY id |> SELECT id |> OFFSET 6
FROM t |> SELECT id ORDER BY id DESC LIMIT 3
FROM t |> WHERE k IN (FROM u |> SELECT k) |> SELECT id
FROM t |> EXTEND explode(array(1, k)) AS e |> SELECT id, e
SELECT id, k FROM t UNION ALL SELECT id, k FROM u |> AGGREGATE sum(k) AS n
VALUES (1, 2), (3, NULL) |> WHERE col2 IS NULL
WITH q AS (FROM t |> WHERE k > 1) FROM q |> SELECT q.id |> WHERE id > 3
SELECT q.id FROM (FROM t |> WHERE k = 1) AS q
WITH q AS (SELECT k FROM t) SELECT * FROM q
WITH q(a, b) AS (SELECT k, id FROM t) SELECT b FROM q WHERE a = 1
WITH q AS (SELECT k FROM t), r AS (SELECT k FROM q WHERE k > 1) SELECT * FROM r JOIN q USING (k)
WITH t AS (SELECT 7 AS id) SELECT id FROM t
WITH q AS (WITH q AS (SELECT 1 AS a) SELECT a + 1 AS a FROM q) SELECT * FROM q
WITH q AS (SELECT 1 AS a) SELECT * FROM (WITH q AS (SELECT 2 AS a) SELECT * FROM q) CROSS JOIN q AS p
SELECT /*+ BROADCAST(u) */ t.id FROM t JOIN u ON t.id = u.id
SELECT t.id, u.id FROM t, u WHERE t.k = u.k
SELECT t.id, w.z FROM t, u, w WHERE t.id = u.id AND u.k = w.k AND t.x > 0
SELECT t.id FROM t, u WHERE t.k = u.k AND t.id < u.y OR t.id = 8
SELECT t.id, u.id, w.z FROM t, u JOIN w ON w.k = t.k WHERE u.id = t.id
SELECT a.id, b.id FROM t a JOIN t b ON a.k = b.k AND a.id < b.id
SELECT t.k, u.k, k FROM t JOIN u USING (k)
SELECT t.k, u.k, k FROM t LEFT JOIN u USING (k)
SELECT t.k, u.k, k FROM t RIGHT JOIN u USING (k)
SELECT t.k, u.k, k FROM t FULL JOIN u USING (k)
SELECT * FROM u FULL JOIN w USING (k) FULL JOIN e USING (k)
SELECT u.*, w.* FROM u JOIN w USING (k)
SELECT u.*, w.* FROM u FULL JOIN w USING (k)
SELECT * FROM u LEFT JOIN t USING (id, k)
SELECT * FROM u NATURAL JOIN w
SELECT * FROM u NATURAL LEFT JOIN w
SELECT * FROM u NATURAL RIGHT JOIN w
SELECT * FROM u NATURAL FULL JOIN w
SELECT * FROM w NATURAL JOIN e
SELECT * FROM w NATURAL JOIN (SELECT 1 AS other)
SELECT * FROM u LEFT SEMI JOIN w USING (k)
SELECT * FROM u LEFT ANTI JOIN w USING (k)
SELECT * FROM w JOIN (SELECT id AS k FROM u) q USING (k)
SELECT * FROM w FULL JOIN (SELECT id AS k FROM u) q USING (k)
SELECT * FROM u JOIN w
SELECT * FROM u LEFT JOIN w
SELECT COUNT(*) FROM t CROSS JOIN u
SELECT b, COUNT(*) FROM t WHERE k IS NOT NULL GROUP BY b HAVING b IS NOT NULL
"""


def _joins() -> Iterator[str]:
    kinds = ("INNER", "LEFT", "RIGHT OUTER", "FULL", "LEFT SEMI", "LEFT ANTI", "CROSS")
    conditions = (
        "t.k = u.k",
        "t.id = u.id AND t.k = u.k",
        "t.k = u.k AND t.id < u.y",
        "t.id < u.id",
        "t.k = u.k AND u.y > 10",
        "t.k = u.k AND t.b",
        "t.k <=> u.k",
        "t.x = u.y / 20 + 1",
        "t.k + 1 = u.k OR t.id = u.id",
        "FALSE",
        "CAST(NULL AS BOOLEAN)",
    )
    for kind, condition in product(kinds, conditions):
        columns = "t.id" if kind in ("LEFT SEMI", "LEFT ANTI") else "t.id, u.id AS v, u.y"
        yield f"SELECT {columns} FROM t {kind} JOIN u ON {condition}"


def _set_operations() -> Iterator[str]:
    operations = ("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL", "MINUS")
    pairs = (
        ("SELECT k FROM t", "SELECT k FROM w"),
        ("SELECT k FROM w", "SELECT z FROM w"),
        ("SELECT k, z FROM w", "SELECT k, k FROM u"),
        ("SELECT x FROM t", "SELECT y / 20.0 FROM u"),
        ("SELECT m FROM t", "SELECT k FROM t"),
        ("SELECT d FROM t", "SELECT ts FROM t"),
        ("SELECT NULL", "SELECT 1"),
        ("SELECT x FROM t WHERE id = 2", "SELECT x FROM t WHERE id = 3"),
    )
    for operation, (left, right) in product(operations, pairs):
        yield f"{left} {operation} {right}"
    yield "SELECT k FROM t UNION SELECT k FROM u INTERSECT SELECT k FROM w"
    yield "SELECT k FROM t EXCEPT SELECT k FROM u UNION ALL SELECT k FROM w"
    yield "SELECT k FROM t EXCEPT (SELECT k FROM u UNION ALL SELECT k FROM w)"
    yield "SELECT k FROM w UNION ALL VALUES (7)"


def _subqueries() -> Iterator[str]:
    conditions = (
        "t.k IN (SELECT k FROM w)",
        "NOT t.k IN (SELECT k FROM w WHERE z < 3)",
        "EXISTS (SELECT 1 FROM w WHERE w.k = t.k AND w.z = u.id)",
        "NOT EXISTS (SELECT 1 FROM w WHERE w.k = u.k)",
    )
    for first, second in product(conditions, conditions):
        if first != second:
            yield f"SELECT t.id, u.id AS v FROM t JOIN u ON t.k = u.k WHERE {first} AND {second}"


def _aggregates() -> Iterator[str]:
    calls = (
        "COUNT(*)", "COUNT(k)", "COUNT(1)", "COUNT(DISTINCT k)", "COUNT(DISTINCT k, s)", "COUNT(DISTINCT *)", "COUNT(k, s)",
        "SUM(k)", "SUM(id)", "SUM(m)", "SUM(DISTINCT k)", "AVG(k)", "AVG(m)", "AVG(DISTINCT m)", "MIN(x)", "MAX(x)", "MIN(s)", "MAX(s)",
        "MIN(d)", "MAX(ts)", "MAX(b)", "MIN(DISTINCT k)", "MEAN(k)", "SUM(k) FILTER (WHERE b)", "COUNT(*) FILTER (WHERE k > 1)",
        "COUNT(DISTINCT k) FILTER (WHERE b)", "SUM(k + 1) * 2 + COUNT(*)", "MAX(k) - MIN(k)", "COALESCE(SUM(k), 0)",
        "BOOL_AND(b)", "EVERY(k > 0)", "BOOL_OR(b)", "ANY(DISTINCT b)", "SOME(k > 2) FILTER (WHERE b)", "COUNT_IF(b)",
        "COUNT_IF(DISTINCT k > 1)",
        "BIT_AND(k)", "BIT_OR(id)", "BIT_XOR(k)", "BIT_XOR(DISTINCT k) FILTER (WHERE id > 2)", "MIN_BY(s, id)", "MAX_BY(k, id)",
        "MAX_BY(x, s) FILTER (WHERE id > 6)", "MIN_BY(id, -id)", "BIT_XOR(NULL)", "COUNT_IF(NULL)", "BOOL_OR('true')",
        "COUNT_IF(id > 2) * 2 + 1",
        "CASE WHEN COUNT(*) > 2 THEN 'many' ELSE 'few' END", "SUM('1')", "AVG(DISTINCT k)", "SUM(CASE WHEN b THEN 1 ELSE 0 END)",
    )  # fmt: skip
    for call in calls:
        yield f"SELECT {call} AS r FROM t"
        yield f"SELECT k, {call} AS r FROM t GROUP BY k"
        yield f"SELECT {call} AS r FROM t WHERE id < 0"
    yield from GROUPED.strip().splitlines()


GROUPED = """
SELECT k FROM t GROUP BY k
SELECT k AS g, COUNT(*) FROM t GROUP BY g
SELECT k, COUNT(*) FROM t GROUP BY 1
SELECT COUNT(*), k FROM t GROUP BY 2
SELECT k + 1 AS n, COUNT(*) FROM t GROUP BY k + 1
SELECT k + 1 + 1, COUNT(*) FROM t GROUP BY k + 1
SELECT k + 1 + k + 1, COUNT(*) FROM t GROUP BY k + 1, k
SELECT k + 1 + 1 + 2, k + 1 + 1, COUNT(*) FROM t GROUP BY k + 1, k + 1 + 1
SELECT s || '-' || '+', COUNT(*) FROM t GROUP BY s || '-'
SELECT 'x' || (s || '-'), COUNT(*) FROM t GROUP BY s || '-'
SELECT concat_ws('-', s, 'x'), concat_ws('-', s), COUNT(*) FROM t GROUP BY concat_ws('-', s), s
SELECT k > 1 AND k > 0 AND COUNT(*) > 1 FROM t GROUP BY k > 1 AND k > 0
SELECT (k + 1) * 2, COUNT(*) FROM t GROUP BY k + 1
SELECT k, b, COUNT(*) FROM t GROUP BY k, b
SELECT k, b, COUNT(*) FROM t GROUP BY ALL
SELECT k % 2 AS k, COUNT(*) FROM t GROUP BY k
SELECT k % 2 AS p, COUNT(*) FROM t GROUP BY p
SELECT COUNT(*) FROM t GROUP BY k
SELECT x, COUNT(*) FROM t GROUP BY x
SELECT k, SUM(id) AS n FROM t GROUP BY k HAVING n > 5
SELECT k, SUM(id) AS n FROM t GROUP BY k HAVING SUM(id) > 5 AND k IS NOT NULL
SELECT k, SUM(id) AS id FROM t GROUP BY k HAVING id > 5
SELECT k AS j FROM t GROUP BY k HAVING k > 1
SELECT k AS j FROM t GROUP BY k HAVING j > 1
SELECT k FROM t GROUP BY k HAVING COUNT(*) = 2
SELECT k FROM t GROUP BY k HAVING COUNT(*) - 1
SELECT k FROM t GROUP BY k HAVING NULL
SELECT id FROM t WHERE k = 1 AND NULL
SELECT id FROM t WHERE 'true' AND b
SELECT COUNT(*) FROM t HAVING COUNT(*) > 100
SELECT 1 FROM t HAVING COUNT(*) > 1
SELECT 1 FROM t HAVING TRUE
SELECT SUM(id) AS n, n + 1 AS q, COUNT(*) * q AS p FROM t
SELECT k, COUNT(*) FROM t GROUP BY k HAVING k IN (SELECT k FROM w)
SELECT k, COUNT(*) FROM t GROUP BY k HAVING COUNT(*) IN (SELECT z FROM w)
SELECT k, COUNT(*) FROM t GROUP BY k HAVING EXISTS (SELECT 1 FROM w WHERE w.k = t.k)
SELECT k, COUNT(*) FROM t GROUP BY k HAVING k NOT IN (SELECT k FROM w WHERE k IS NOT NULL)
SELECT t.k, COUNT(*), SUM(u.y) FROM t JOIN u ON t.k = u.k GROUP BY t.k
SELECT t.k, u.k, COUNT(*) FROM t FULL JOIN u ON t.k = u.k GROUP BY t.k, u.k
SELECT k, COUNT(*) FROM t FULL JOIN u USING (k) GROUP BY k
SELECT DISTINCT COUNT(*) FROM t GROUP BY k
SELECT MAX(n) FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k)
SELECT 'c' AS c, COUNT(*) FROM t GROUP BY 'c'
SELECT CASE WHEN k = 1 THEN 'one' ELSE 'other' END AS c, COUNT(*) FROM t GROUP BY CASE WHEN k = 1 THEN 'one' ELSE 'other' END
SELECT CASE WHEN k = 1 THEN 'one' ELSE 'other' END AS c, COUNT(*) FROM t GROUP BY c
SELECT YEAR(d), COUNT(*) FROM t GROUP BY YEAR(d)
SELECT d + INTERVAL 1 MONTH AS n, COUNT(*) FROM t WHERE d < '2100-01-01' GROUP BY d + INTERVAL 1 MONTH
"""
