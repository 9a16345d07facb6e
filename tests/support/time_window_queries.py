"""Test support: queries with windows of event time over the tables of sql_data."""

# ruff: noqa: E501  queries

from __future__ import annotations

from collections.abc import Iterator


def time_window_queries() -> Iterator[str]:
    """window, window_time and session_window as Spark users write them."""
    yield from QUERIES.strip().splitlines()


QUERIES = """
SELECT window(ts, '1 day').start, count(*) FROM t GROUP BY window(ts, '1 day')
SELECT window, count(*) FROM t GROUP BY window(ts, '1 day')
SELECT window.start, window.end, count(*) FROM t GROUP BY window(ts, '1 day')
SELECT window.start AS s, window.end AS e, sum(id) AS n FROM t GROUP BY window(ts, '1 day', '12 hours')
SELECT window(ts, '1 day', '12 hours', '3 hours') AS w, sum(id) AS n FROM t GROUP BY window(ts, '1 day', '12 hours', '3 hours')
SELECT k, window.start, count(*) FROM t GROUP BY k, window(ts, '10 minutes', '5 minutes') HAVING count(*) > 0 ORDER BY window.start
SELECT window(ts, '1 day') AS w, id FROM t
SELECT id, window(ts, '2 hours', '1 hour').start FROM t
SELECT window(window_time(window), '2 days') AS w2, sum(n) FROM (SELECT window, count(*) AS n FROM t GROUP BY window(ts, '1 day')) GROUP BY 1
SELECT window(window, '2 days') AS w2, sum(n) FROM (SELECT window, count(*) AS n FROM t GROUP BY window(ts, '1 day')) GROUP BY w2
SELECT window(d, '1 day') AS w, count(*) FROM t WHERE d < '9000-01-01' GROUP BY window(d, '1 day')
SELECT window(s, '1 day') AS w, count(*) FROM t WHERE s LIKE '20%' GROUP BY window(s, '1 day')
SELECT window(ts, '1 day', '1 day', '-3 hours') AS w, count(*) FROM t GROUP BY window(ts, '1 day', '1 day', '-3 hours')
SELECT window(ts, 3600000000, 1800000000L, -5) AS w, count(*) FROM t GROUP BY ALL
SELECT window.start FROM t GROUP BY window(ts, 'interval 1 hour 30 minutes'), window.end
SELECT window(ts, '5 minutes', '2 minutes').end, id FROM t
SELECT count(*) FROM t GROUP BY window(ts, ' 1 WEEK ')
SELECT window.start, count(DISTINCT k) FROM t GROUP BY window(ts, '36500 days', '3650 days') HAVING window.start < TIMESTAMP '1970-01-01'
SELECT DISTINCT window(ts, '1 day').end FROM t
SELECT window_time(w) FROM (SELECT window(ts, '1 day') AS w FROM t)
SELECT k, grouping_id(), window.start, count(*) FROM t GROUP BY ROLLUP(k, window(ts, '365 days'))
SELECT count(*), grouping(window) FROM t GROUP BY GROUPING SETS ((window(ts, '1 day')), ())
SELECT *, window(ts, '1 day') FROM t WHERE id = 1
SELECT id, row_number() OVER (PARTITION BY window(ts, '10 minutes') ORDER BY id) AS r FROM t
SELECT window.start, rank() OVER (ORDER BY window.start) AS r, count(*) FROM t GROUP BY window(ts, '10 minutes')
SELECT id FROM t ORDER BY window(ts, '2 days', '1 day'), id
SELECT window, count(*) FROM (SELECT id AS window, ts FROM t) GROUP BY window(ts, '1 day'), window
SELECT window.start, count(*) FROM t WHERE id > (SELECT min(id) FROM t) GROUP BY window(ts, '10 minutes')
SELECT t.id, window.start FROM t JOIN u ON t.id = u.id GROUP BY t.id, window(t.ts, '10 minutes')
SELECT max(window.start), min(window(ts, '1 hour').end) FROM t
SELECT id, (SELECT count(*) FROM t AS v GROUP BY window(v.ts, '1000 days') ORDER BY 1 DESC LIMIT 1) AS c FROM t
SELECT session_window, count(*) FROM t GROUP BY session_window(ts, '5 minutes')
SELECT session_window.start, session_window.end, k, count(*) FROM t GROUP BY session_window(ts, '5 minutes'), k
SELECT session_window(ts, '1 day') AS w, sum(id) AS n FROM t GROUP BY session_window(ts, '1 day')
SELECT session_window(ts, '14 hours') AS w, sum(id) AS n FROM t GROUP BY w
SELECT session_window(ts, '1 month') AS w, count(*) FROM t GROUP BY ALL
SELECT session_window(ts, CASE WHEN k = 1 THEN '5 minutes' ELSE '2 days' END) AS w, count(*) FROM t GROUP BY w
SELECT session_window.end AS e, count(*) FROM t GROUP BY session_window(ts, CASE WHEN k = 1 THEN NULL WHEN k = 2 THEN s ELSE '3 days' END)
SELECT session_window(ts, '5 minutes') AS w, id FROM t
SELECT id, sum(id) OVER (PARTITION BY session_window(ts, '10 hours')) AS n FROM t
SELECT session_window, count(DISTINCT k), max(s) FILTER (WHERE b) FROM t GROUP BY session_window(ts, '2 days') HAVING count(*) > 1
SELECT session_window(session_window, '1 day') AS w, sum(n) FROM (SELECT session_window, k, count(*) AS n FROM t GROUP BY session_window(ts, '5 minutes'), k) GROUP BY w
SELECT w.start, count(*) FROM (SELECT session_window(ts, '10 hours') AS w FROM t) GROUP BY w.start
SELECT explode(array(1, 2)) AS e, id FROM t WHERE id > (SELECT min(id) FROM t)
"""
