"""Test support: queries with window functions over the tables of sql_data. Where ties would decide a value, the order has none."""

from __future__ import annotations

from collections.abc import Iterator

RANKS = ("rank()", "dense_rank()", "percent_rank()", "cume_dist()")
BY_ROWS = (
    "row_number()",
    "ntile(3)",
    "lag(k)",
    "lead(s, 2, 'none')",
    "lag(k, -1)",
    "lag(d, 0)",
    "lag(k) IGNORE NULLS",
    "lead(x, 2) IGNORE NULLS",
)
OVER_FRAMES = (
    "sum(k)", "count(*)", "count(s)", "avg(m)", "min(x)", "max(s)", "bool_and(b)", "count(*) FILTER (WHERE b)", "max_by(s, id)",
    "first_value(k)", "last_value(s)", "nth_value(k, 2)", "first_value(k) IGNORE NULLS", "last_value(s) IGNORE NULLS",
    "nth_value(s, 2) IGNORE NULLS", "first(k, true)", "collect_list(s)", "listagg(s, '-')", "array_agg(k) FILTER (WHERE b)",
    "string_agg(s)", "percentile(k, 0.25)",
)  # fmt: skip
ORDERS = ("ORDER BY k", "PARTITION BY k ORDER BY d DESC", "PARTITION BY b ORDER BY s NULLS LAST, d", "ORDER BY ts DESC NULLS FIRST, m")
UNIQUE = ("ORDER BY id", "PARTITION BY k ORDER BY id DESC", "PARTITION BY b, s ORDER BY m, id", "PARTITION BY d ORDER BY k DESC, id")
FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "ROWS 2 PRECEDING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)  # fmt: skip


def window_queries() -> Iterator[str]:
    """Every function over some windows, and the clauses around them."""
    for i, call in enumerate(RANKS):
        for order in (*ORDERS, UNIQUE[i]):
            yield f"SELECT id, {call} OVER ({order}) FROM t"
    for i, call in enumerate(BY_ROWS):
        yield f"SELECT id, {call} OVER ({UNIQUE[i % 4]}) FROM t"
        yield f"SELECT id, {call} OVER ({UNIQUE[(i + 1) % 4]}) AS r FROM t"
    for i, call in enumerate(OVER_FRAMES):
        yield f"SELECT id, {call} OVER ({UNIQUE[i % 4]}) FROM t"
        for j in (i, i + 3, i + 5):
            yield f"SELECT id, {call} OVER ({UNIQUE[j % 4]} {FRAMES[j % 8]}) FROM t"
    for i, call in enumerate(OVER_FRAMES[:9]):
        yield f"SELECT id, {call} OVER (PARTITION BY {('k', 'x', 's', 'b, k')[i % 4]}) FROM t"
        yield f"SELECT id, {call} OVER () AS r FROM t"
        yield f"SELECT id, {call} OVER ({ORDERS[i % 4]}) AS r FROM t"
    yield from QUERIES.strip().splitlines()


QUERIES = """
SELECT id, sum(k) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS r FROM t
SELECT id, count(*) OVER (ORDER BY k DESC RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS r FROM t
SELECT id, count(*) OVER (ORDER BY m RANGE BETWEEN 1.5 PRECEDING AND 2 FOLLOWING) AS r FROM t
SELECT id, count(*) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) AS r FROM t
SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN 100 PRECEDING AND 30 FOLLOWING) AS r FROM t WHERE d < DATE '9000-01-01'
SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN INTERVAL 2 MONTHS PRECEDING AND CURRENT ROW) AS r FROM t
SELECT id, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 2 DAYS FOLLOWING) AS r FROM t
SELECT id, count(*) OVER (ORDER BY make_dt_interval(k) RANGE BETWEEN INTERVAL 36 HOURS PRECEDING AND INTERVAL 1 DAY FOLLOWING) AS r FROM t
SELECT id, sum(id) OVER (ORDER BY make_ym_interval(0, k) DESC RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) AS r FROM t
SELECT id, sum(k) OVER w AS a, count(*) OVER (w) AS b, rank() OVER v FROM t WINDOW w AS (PARTITION BY b ORDER BY id), v AS w
SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM t QUALIFY n = 1
SELECT k, sum(id) AS n, rank() OVER (ORDER BY sum(id) DESC, k) AS r FROM t GROUP BY k QUALIFY r <= 2
SELECT s, b, max(k) AS n FROM t GROUP BY s, b QUALIFY count(*) OVER (PARTITION BY b) > 1 AND s > (SELECT min(s) FROM t AS o WHERE o.b = t.b)
SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY b ORDER BY id DESC) <= 2
SELECT id, row_number() OVER (ORDER BY id) AS n FROM t QUALIFY n - 1
SELECT id, row_number() OVER (ORDER BY id) AS n FROM t QUALIFY NULL
SELECT id, k FROM t QUALIFY k = max(k) OVER (PARTITION BY b)
SELECT id, k + 1 AS k FROM t QUALIFY k = 1 AND row_number() OVER (ORDER BY id) < 80
SELECT id, k + 1 AS k, row_number() OVER (ORDER BY id) AS n FROM t QUALIFY k = 2 AND n < 80
SELECT id, rank() OVER (ORDER BY x) AS k FROM t QUALIFY k <= 2
SELECT -k AS k, b, count(*) OVER () AS n FROM t QUALIFY sum(k) OVER (PARTITION BY b) < 0
SELECT k, sum(id) AS x, rank() OVER (ORDER BY k) AS r FROM t GROUP BY k QUALIFY x > 3
SELECT id, rank() OVER (ORDER BY k, id) AS k FROM t QUALIFY sum(k) OVER (PARTITION BY k % 3) > 9
SELECT id, lag(k, 1, 1.5) OVER (ORDER BY id) AS a, lead(m, 1, k) OVER (ORDER BY id) AS c, lag(s, 1, ts) OVER (ORDER BY id) AS e FROM t
SELECT id, lag(k, 1, '7') OVER w AS a, lag(d, 1, ts) OVER w AS c, lag(ts, 1, '2020-01-01') OVER w AS e FROM t WINDOW w AS (ORDER BY id)
SELECT id, lag(array(k), 1, array()) OVER (ORDER BY id) AS a, lag(struct(k, s), 1, struct(m, k)) OVER (ORDER BY id) AS c FROM t
SELECT k, sum(id), rank() OVER (ORDER BY sum(id) DESC) FROM t GROUP BY k
SELECT k, sum(sum(id)) OVER () AS total, sum(id) / sum(sum(id)) OVER () AS share FROM t GROUP BY k
SELECT k, b, count(*) AS n, sum(count(*)) OVER (PARTITION BY k) AS m FROM t GROUP BY k, b HAVING count(*) > 0 ORDER BY k, b
SELECT id, rank() OVER (ORDER BY k) + dense_rank() OVER (ORDER BY k) AS r, r * 2 AS q FROM t
SELECT DISTINCT rank() OVER (ORDER BY k) AS r FROM t
SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM t) WHERE n <= 3 AND id > 1
SELECT t.id, count(*) OVER (PARTITION BY u.k) AS n FROM t JOIN u ON t.k = u.k
SELECT id, max(x) OVER (PARTITION BY k) - x AS gap FROM t ORDER BY gap LIMIT 3
SELECT k, z, rank() OVER (ORDER BY k, z), count(*) OVER (PARTITION BY k) FROM w
SELECT k, v, rank() OVER (ORDER BY k), sum(k) OVER () FROM e
SELECT id, (SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY u.k) AS n FROM u WHERE u.k = t.k)) AS m FROM t
SELECT id, rank() OVER (ORDER BY k) AS r, (SELECT count(*) FROM u WHERE u.k = t.k) AS n FROM t
SELECT id, dense_rank() OVER (PARTITION BY k % 2 ORDER BY length(s)) AS r FROM t
SELECT id, sort_array(collect_set(k) OVER (PARTITION BY b ORDER BY id ROWS 2 PRECEDING)) AS r FROM t
SELECT id, mode(k) OVER (PARTITION BY k, b ORDER BY id) AS r, median(k) OVER (PARTITION BY b) AS m FROM t
SELECT id, collect_list(s) OVER (ORDER BY x, id) AS l FROM (SELECT id, s, IF(k = 1, -0.0D, 0.0D) AS x FROM t)
SELECT id, collect_list(id) OVER (ORDER BY k, id RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS l FROM t
SELECT id, collect_list(id) OVER (PARTITION BY b ORDER BY d, id DESC) AS l, lag(id) OVER (PARTITION BY b ORDER BY d, id DESC) AS n FROM t
SELECT id, explode(array(k, id)) AS e, sum(id) OVER (PARTITION BY k) AS n FROM t
SELECT id, posexplode(array(k, id)), count(*) OVER (ORDER BY k) AS n FROM t QUALIFY rank() OVER (ORDER BY k) < 5
SELECT k, explode(array(min(id), max(id))) AS e, sum(sum(id)) OVER () AS n FROM t GROUP BY k
"""
