"""Test support: scripts of recursive views, including those whose deletions other systems compute incorrectly."""

EDGES = "CREATE TABLE edges (src BIGINT NOT NULL, dst BIGINT NOT NULL);"
CLOSURE = (
    EDGES
    + """
    CREATE MATERIALIZED VIEW paths AS
        WITH RECURSIVE p AS (SELECT src, dst FROM edges UNION SELECT p.src, e.dst FROM p JOIN edges e ON p.dst = e.src)
        SELECT src, dst FROM p;
    """
)
NON_LINEAR = (
    EDGES
    + """
    CREATE MATERIALIZED VIEW paths AS
        WITH RECURSIVE p AS (SELECT src, dst FROM edges UNION SELECT a.src, b.dst FROM p a JOIN p b ON a.dst = b.src)
        SELECT src, dst FROM p;
    """
)
REACHABLE = (
    EDGES
    + """
    CREATE MATERIALIZED VIEW reached AS
        WITH RECURSIVE r (node) AS (SELECT 0L UNION SELECT e.dst FROM r JOIN edges e ON r.node = e.src)
        SELECT node FROM r;
    """
)
SHORTEST = """
    CREATE TABLE roads (src BIGINT NOT NULL, dst BIGINT NOT NULL, cost BIGINT NOT NULL);
    CREATE MATERIALIZED VIEW distances AS
        WITH RECURSIVE d (node, cost) AS (
            SELECT node, min(cost) FROM (
                SELECT 0L AS node, 0L AS cost
                UNION ALL
                SELECT r.dst, d.cost + r.cost FROM d JOIN roads r ON r.src = d.node
            ) GROUP BY node
        )
        SELECT node, cost FROM d;
"""
SAME_GENERATION = """
    CREATE TABLE parents (child STRING NOT NULL, parent STRING NOT NULL);
    CREATE MATERIALIZED VIEW generation AS
        WITH RECURSIVE g (a, b) AS (
            SELECT p.child, q.child FROM parents p JOIN parents q ON p.parent = q.parent
            UNION
            SELECT p.child, q.child FROM g JOIN parents p ON p.parent = g.a JOIN parents q ON q.parent = g.b
        )
        SELECT a, b FROM g WHERE a <> b;
"""
PARITY = """
    CREATE TABLE steps (a BIGINT NOT NULL, b BIGINT NOT NULL);
    CREATE TABLE blocked (n BIGINT NOT NULL);
    DECLARE RECURSIVE VIEW even (n BIGINT);
    DECLARE RECURSIVE VIEW odd (n BIGINT);
    CREATE MATERIALIZED VIEW even AS
        SELECT 0 AS n UNION ALL SELECT s.b AS n FROM odd JOIN steps s ON s.a = odd.n WHERE s.b NOT IN (SELECT n FROM blocked);
    CREATE MATERIALIZED VIEW odd AS SELECT s.b AS n FROM even JOIN steps s ON s.a = even.n;
    CREATE MATERIALIZED VIEW neither AS
        SELECT b AS n FROM steps WHERE b NOT IN (SELECT n FROM even) AND NOT EXISTS (SELECT 1 FROM odd WHERE odd.n = steps.b);
    CREATE MATERIALIZED VIEW above AS
        WITH RECURSIVE f (n) AS (
            SELECT n FROM neither UNION SELECT s.b FROM f JOIN steps s ON s.a = f.n WHERE s.b NOT IN (SELECT n FROM odd)
        )
        SELECT n FROM f;
"""
