"""Test support: recursive queries. LINEAR are those that Spark has too, over the tables of sql_data; GRAPH those of DuckDB, over edges."""

from __future__ import annotations


def _queries(text: str) -> tuple[str, ...]:
    """Those that end with a semicolon, each in one line."""
    return tuple(" ".join(query.split()) for query in text.split(";") if query.strip())


LINEAR: tuple[str, ...] = _queries("""
WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT n FROM c;
WITH RECURSIVE c AS (SELECT 1 AS n, 'a' AS s UNION ALL SELECT n + 1, concat(s, 'b') FROM c WHERE n < 4) SELECT * FROM c;
WITH RECURSIVE c (n) AS (VALUES (1), (3) UNION ALL SELECT n + 2 FROM c WHERE n < 6) SELECT n, count(*) AS times FROM c GROUP BY n;
WITH RECURSIVE c (n) AS (SELECT 1L UNION ALL SELECT CAST(n + 1 AS INT) FROM c WHERE n < 5) SELECT n FROM c;
WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT 2L UNION ALL SELECT n + 5 FROM c WHERE n < 5) SELECT n FROM c;
WITH RECURSIVE c (n) AS ((SELECT 1 UNION ALL SELECT 2) UNION ALL (SELECT n + 3 AS n FROM c WHERE n < 3)) SELECT n FROM c;
WITH RECURSIVE c (n) AS (SELECT CAST(1 AS DECIMAL(5, 2)) UNION ALL SELECT CAST(n + 1 AS DECIMAL(5, 2)) FROM c WHERE n < 4) SELECT n FROM
    c;
WITH RECURSIVE c (n, m) AS (SELECT id, k FROM t UNION ALL SELECT n + 10, NULL FROM c WHERE n < 20) SELECT n, m FROM c;
WITH RECURSIVE p AS (SELECT id, k FROM u UNION ALL SELECT p.id, t.k FROM p JOIN t ON p.k = t.id AND t.k > p.k) SELECT id, k FROM p;
WITH RECURSIVE p AS (SELECT id, k FROM u UNION ALL SELECT p.id + 100, t.k FROM p LEFT JOIN t ON p.k = t.id WHERE p.id BETWEEN 0 AND 300)
    SELECT * FROM p;
WITH RECURSIVE p AS (SELECT id, k FROM u UNION ALL SELECT t.id, t.k FROM t RIGHT JOIN p ON p.k = t.id AND t.k > p.k WHERE t.id > 0)
    SELECT * FROM p;
WITH RECURSIVE p AS (SELECT id, k FROM u UNION ALL SELECT p.id, p.k + 1 FROM p LEFT SEMI JOIN t ON p.k = t.k) SELECT * FROM p;
WITH RECURSIVE p AS (SELECT id, k FROM u UNION ALL SELECT p.id, p.k + 1 FROM p WHERE p.k IN (SELECT k FROM t)) SELECT * FROM p;
WITH RECURSIVE p AS (SELECT id, k FROM u UNION ALL SELECT p.id, p.k + 1 FROM p WHERE NOT EXISTS (SELECT 1 FROM w WHERE w.k = p.k) AND k
    < 4) SELECT * FROM p;
WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT m + 1 FROM (SELECT n AS m FROM c WHERE n < 5) q) SELECT n FROM c;
WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL (WITH q AS (SELECT n FROM c) SELECT n + 1 FROM q WHERE n < 3)) SELECT n FROM c;
WITH RECURSIVE a (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 3), b (n) AS (SELECT n FROM a UNION ALL SELECT b.n + 10 FROM b
    JOIN a ON a.n = b.n) SELECT n FROM b;
WITH RECURSIVE first AS (SELECT id FROM t WHERE id < 3), c (n) AS (SELECT id FROM first UNION ALL SELECT n + 2 FROM c WHERE n < 6)
    SELECT n FROM c;
WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT * FROM (WITH RECURSIVE s (m) AS (SELECT n FROM c UNION ALL SELECT m + 1 FROM s WHERE
    m < 3) SELECT m + 10 FROM s WHERE m < 4)) SELECT n FROM c;
SELECT q.n, u.id FROM (WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT n FROM c) q JOIN u ON u.id =
    q.n;
SELECT id FROM t WHERE id IN (WITH RECURSIVE c (n) AS (SELECT 1L UNION ALL SELECT n + 2 FROM c WHERE n < 5) SELECT n FROM c);
WITH RECURSIVE C (N) AS (SELECT 1 UNION ALL SELECT x.n + 1 FROM c AS x WHERE X.N < 5) SELECT n FROM c;
WITH RECURSIVE c (n) MAX RECURSION LEVEL 5 AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT n FROM c;
WITH RECURSIVE c (n) MAX RECURSION LEVEL 0 AS (SELECT 1) SELECT n FROM c;
""")

GRAPH: tuple[str, ...] = _queries("""
WITH RECURSIVE p AS (SELECT src, dst FROM edges UNION SELECT p.src, e.dst FROM p JOIN edges e ON p.dst = e.src) SELECT src, dst FROM p;
WITH RECURSIVE p AS (SELECT src, dst FROM edges UNION SELECT e.src, p.dst FROM p JOIN edges e ON p.src = e.dst) SELECT src, count(*) AS
    n FROM p GROUP BY src;
WITH RECURSIVE r (n) AS (SELECT CAST(0 AS BIGINT) UNION SELECT dst FROM r JOIN edges ON src = n) SELECT n FROM r;
WITH RECURSIVE r (n) AS (SELECT min(src) FROM edges UNION SELECT dst FROM edges, r WHERE src = n AND dst IS NOT NULL) SELECT n FROM r;
WITH RECURSIVE r (n, d) AS (SELECT CAST(0 AS BIGINT), 0 UNION SELECT dst, d + 1 FROM r JOIN edges ON src = n WHERE d < 6) SELECT n,
    min(d) AS d FROM r GROUP BY n;
WITH RECURSIVE g (a, b) AS (SELECT x.dst, y.dst FROM edges x JOIN edges y ON x.src = y.src UNION SELECT x.dst, y.dst FROM g JOIN edges x
    ON x.src = a JOIN edges y ON y.src = b) SELECT a, b FROM g;
WITH RECURSIVE r (n) AS (SELECT CAST(0 AS BIGINT) UNION SELECT dst FROM r JOIN edges ON src = n), q (n) AS (SELECT src FROM edges WHERE
    src NOT IN (SELECT n FROM r) UNION SELECT dst FROM q JOIN edges ON src = n) SELECT n FROM q;
WITH RECURSIVE r (n) AS (SELECT CAST(0 AS BIGINT) UNION SELECT dst FROM r JOIN edges ON src = n WHERE NOT EXISTS (SELECT 1 FROM edges x
    WHERE x.src = edges.dst AND x.dst = 1)) SELECT n FROM r;
WITH RECURSIVE p AS (SELECT src, dst FROM edges WHERE src < dst UNION ALL SELECT p.src, e.dst FROM p JOIN edges e ON p.dst = e.src WHERE
    e.src < e.dst) SELECT src, dst FROM p;
""")
