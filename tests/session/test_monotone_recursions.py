"""Recursions that are monotone in other ways than by joins: conditions under OR, thresholds of counts, BOOLEANs and correlated values."""

from __future__ import annotations

import random
from time import process_time

import pytest

from checked import Checked, Draft, edges
from deltic.errors import Unsupported
from parts import slow

SCHEMA = "CREATE TABLE edges (src INT, dst INT NOT NULL, cost INT);"
STEPS = {
    "EXISTS under OR": "SELECT dst, src FROM edges WHERE EXISTS (SELECT 1 FROM r WHERE r.b = edges.src) OR cost = 1",
    "IN under OR": "SELECT dst, src FROM edges WHERE src IN (SELECT b FROM r) OR cost IN (SELECT a FROM r WHERE b > 2)",
    "EXISTS by an inequality": "SELECT src, dst FROM edges WHERE cost IS NULL "
    "OR (cost > 1 AND EXISTS (SELECT 1 FROM r WHERE r.b = edges.src AND r.a < edges.dst))",
    "NOT NOT EXISTS": "SELECT dst, src FROM edges WHERE NOT (NOT EXISTS (SELECT 1 FROM r WHERE r.b = edges.src) AND cost = 1)",
    "ANY": "SELECT dst, src FROM edges WHERE src > ANY (SELECT b FROM r) OR cost <= ANY (SELECT b FROM r WHERE r.a <=> edges.src)",
    "another value": "SELECT dst, src FROM edges WHERE src <> ANY (SELECT b FROM r WHERE a = dst) OR NOT (cost = ALL (SELECT a FROM r))",
    "a value or NULL": "SELECT dst, src FROM edges WHERE CASE WHEN EXISTS (SELECT 1 FROM r WHERE r.b = src) THEN cost END >= 1",
    "NOT ALL": "SELECT dst, src FROM edges WHERE NOT (cost < ALL (SELECT b FROM r WHERE r.a = edges.dst))",
    "a correlated least": "SELECT dst, src FROM edges WHERE src > (SELECT min(r.b) FROM r WHERE r.a = edges.dst)",
    "a correlated count": "SELECT dst, src FROM edges WHERE (SELECT count(*) FROM r WHERE r.b = edges.src) >= 2 OR cost = 1",
    "a count": "SELECT dst, src FROM edges WHERE (SELECT count(*) FROM r) >= 4",
    "HAVING count": "SELECT b, 1 FROM r GROUP BY b HAVING count(*) FILTER (WHERE a > 1) >= 2 AND count(DISTINCT a) > 2 OR count(a) > 3",
    "HAVING bool_or": "SELECT b, 1 FROM r GROUP BY b HAVING bool_or(a = 2)",
    "IS TRUE": "SELECT dst, src FROM edges WHERE (EXISTS (SELECT 1 FROM r WHERE r.b = src) OR cost = 1) IS TRUE "
    "AND (src IN (SELECT a FROM r)) = TRUE",
    "CASE": "SELECT dst, src FROM edges WHERE CASE WHEN src < ANY (SELECT b FROM r) THEN TRUE ELSE cost = 1 END "
    "AND CASE WHEN EXISTS (SELECT 1 FROM r WHERE r.b = src) THEN 2 ELSE 1 END + cost > 2",
    "EXISTS under OR in an EXISTS": "SELECT dst, src FROM edges WHERE EXISTS (SELECT 1 FROM r WHERE r.a = src "
    "AND (EXISTS (SELECT 1 FROM r q WHERE q.b = r.a AND q.a = dst) OR cost = 1))",
    "any count": "SELECT dst, src FROM edges WHERE (SELECT count(*) FROM r WHERE r.b = src) <> 0 "
    "AND NOT (SELECT count_if(a > 1) FROM r) = 0",
    "HAVING count_if": "SELECT b, 1 FROM r GROUP BY b HAVING count_if(a > 1) >= 2 OR NOT every(a > 1)",
    "a match in the relation": "SELECT dst, src FROM edges LEFT JOIN r ON r.a = dst AND r.b = src AND cost > 1 "
    "WHERE r.b IS NOT NULL OR cost = 2",
    "one match": "SELECT src, q.a FROM edges LEFT JOIN (SELECT DISTINCT a FROM r WHERE b > 2) q ON q.a = dst "
    "WHERE q.a IS NOT NULL OR cost = 2",
    "the next row": "SELECT a, q.dst FROM r, LATERAL (SELECT dst FROM edges WHERE src > r.b ORDER BY src, cost, dst LIMIT 1) q",
    "the next row or NULL": "SELECT b, q.dst FROM r LEFT JOIN LATERAL (SELECT * FROM edges WHERE dst < r.b ORDER BY dst DESC LIMIT 1) q",
    "a sum by an inequality": "SELECT b, (SELECT CAST(coalesce(sum(cost), 0) % 7 AS INT) FROM edges WHERE dst >= r.a) FROM r",
    "a small count": "SELECT b, a FROM r WHERE (SELECT count(*) FROM edges WHERE src = r.a AND cost > r.b) < 2",
    "ALL of another relation": "SELECT b, a FROM r WHERE a > ALL (SELECT cost FROM edges WHERE src < r.b)",
    "no large group": "SELECT b, a FROM r WHERE NOT EXISTS (SELECT dst FROM edges WHERE src >= r.a GROUP BY dst HAVING count(*) > 1)",
    "not in a few rows": "SELECT b, a FROM r WHERE a NOT IN (SELECT dst FROM edges WHERE src >= r.b ORDER BY dst, src LIMIT 2)",
    "a union": "SELECT b, q.c FROM r, LATERAL (SELECT max(c) AS c FROM "
    "(SELECT dst AS c FROM edges WHERE src > r.a UNION ALL SELECT src FROM edges WHERE dst < r.b)) q",
    "a subquery in a subquery": "SELECT b, a FROM r WHERE a >= (SELECT min(dst) FROM edges WHERE src = r.a AND cost < r.a "
    "AND dst >= (SELECT min(src) FROM edges WHERE dst = r.a AND cost < r.a))",
    "subqueries": "SELECT (SELECT max(dst) FROM edges WHERE src < r.a), (SELECT min(src) FROM edges WHERE dst > r.b "
    "AND cost <= (SELECT max(cost) FROM edges q WHERE q.dst < r.b AND q.src = edges.src)) FROM r",
}
WHOLE = {
    "attendance": "WITH RECURSIVE r (a) AS (SELECT src FROM edges WHERE cost = 1 UNION SELECT dst FROM edges JOIN r ON src = r.a "
    "GROUP BY dst HAVING count(DISTINCT src) >= 2) SELECT a FROM r",
    "derivations": "WITH RECURSIVE r (a, l) AS (SELECT dst, 0 FROM edges UNION ALL SELECT a + 1, l + 1 FROM r WHERE l < 3 "
    "GROUP BY a, l HAVING count(*) >= 2) SELECT a, l FROM r",
    "bool_or": "WITH RECURSIVE r (x, k) AS (SELECT x, bool_or(k) FROM (SELECT dst AS x, cost = 1 AS k FROM edges UNION ALL "
    "SELECT dst, k FROM r JOIN edges ON src = x) GROUP BY x) SELECT x, k FROM r",
    "bool_and": "WITH RECURSIVE r (x, k) AS (SELECT x, bool_and(k) FROM (SELECT dst AS x, cost = 1 AS k FROM edges UNION ALL "
    "SELECT dst, k FROM r JOIN edges ON src = x) GROUP BY x) SELECT x, k FROM r",
    "EXISTS as a column": "WITH RECURSIVE r (a, b) AS (SELECT src, cost = 1 FROM edges UNION "
    "SELECT dst, EXISTS (SELECT 1 FROM r WHERE r.a = edges.src AND r.b) FROM edges) SELECT a, b FROM r",
    "groups counted": "WITH RECURSIVE r (x, n) AS (SELECT x, count(*) FROM (SELECT src AS x FROM edges WHERE cost = 1 UNION ALL "
    "SELECT dst FROM r JOIN edges ON src = x WHERE n >= 2) GROUP BY x) SELECT x, n FROM r",
    "open ways": "WITH RECURSIVE r (x, k) AS (SELECT x, bool_or(k) FROM (SELECT dst AS x, coalesce(cost = 1, FALSE) AS k FROM edges "
    "UNION ALL SELECT dst, (k AND src IS NOT NULL AND dst > 1) OR src = 3 FROM r JOIN edges ON src = x) GROUP BY x) SELECT x, k FROM r",
    "EXISTS as a number": "WITH RECURSIVE r (a, b) AS (SELECT src, 0 FROM edges UNION "
    "SELECT dst, CASE WHEN EXISTS (SELECT 1 FROM r WHERE r.a = edges.src AND r.b >= 1) OR cost = 1 THEN 1 ELSE 0 END FROM edges) "
    "SELECT a, b FROM r",
    "halves": "WITH RECURSIVE r (x, k) AS (SELECT x, max(k) FROM (SELECT 1 AS x, 9 AS k UNION ALL "
    "SELECT dst, CAST(k DIV 2 AS INT) FROM r JOIN edges ON src = x WHERE k / 2 >= cost) GROUP BY x) SELECT x, k FROM r",
    "earliest arrival": "WITH RECURSIVE r (x, k) AS (SELECT x, min(k) FROM (SELECT 1 AS x, TIMESTAMP_NTZ '2024-01-01 08:00:00' AS k "
    "UNION ALL SELECT dst, k + make_dt_interval(0, 0, cost) FROM r JOIN edges ON src = x "
    "WHERE k < TIMESTAMP_NTZ '2024-01-01 08:05:00') GROUP BY x) SELECT x, k FROM r",
    "shortest ways": "WITH RECURSIVE r (x, k) AS (SELECT x, min(k) FROM (SELECT 1 AS x, named_struct('length', 0, 'via', 1) AS k UNION ALL "
    "SELECT dst, named_struct('length', k.length + coalesce(cost, 2), 'via', x) FROM r JOIN edges ON src = x "
    "WHERE k.length < 9) GROUP BY x) SELECT x, k.length, k.via FROM r",
    "bottleneck": "WITH RECURSIVE r (x, k) AS (SELECT x, max(k) FROM (SELECT 1 AS x, 9 AS k UNION ALL "
    "SELECT dst, least(k, cost) FROM r JOIN edges ON src = x) GROUP BY x) SELECT x, k FROM r",
    "a key that is a DOUBLE": "WITH RECURSIVE r (a, b) AS (SELECT CAST(src AS DOUBLE), CAST(dst AS DOUBLE) FROM edges WHERE cost > 2 UNION "
    "SELECT b, (SELECT max(CAST(dst AS DOUBLE)) FROM edges WHERE CAST(src AS DOUBLE) = r.b) FROM r) SELECT a, b FROM r",
    "the likeliest way": "WITH RECURSIVE r (x, k) AS (SELECT x, max(k) FROM (SELECT 1 AS x, 8L AS k UNION ALL "
    "SELECT dst, k * coalesce(cost, 1) DIV greatest(coalesce(src, 1), 3) FROM r JOIN edges ON src = x WHERE 0 <= cost) "
    "GROUP BY x) SELECT x, k FROM r",
    "products of two ways": "WITH RECURSIVE r (a, b, k) AS (SELECT a, b, max(k) FROM (SELECT src AS a, dst AS b, "
    "abs(coalesce(cost, 1)) AS k FROM edges UNION ALL SELECT r.a, q.b, least(r.k * q.k, 9) FROM r JOIN r q ON q.a = r.b) "
    "GROUP BY a, b) SELECT a, b, k FROM r",
    "control": "WITH RECURSIVE r (a, b) AS (SELECT src, src FROM edges UNION SELECT r.a, dst FROM r JOIN edges ON src = r.b "
    "WHERE cost >= 0 GROUP BY r.a, dst HAVING sum(cost) > 2) SELECT a, b FROM r",
    "summed": "WITH RECURSIVE r (x, n) AS (SELECT x, sum(n) FROM (SELECT src AS x, 1L AS n FROM edges WHERE cost = 1 UNION ALL "
    "SELECT dst, n FROM r JOIN edges ON src < dst AND src = x) GROUP BY x) SELECT x, n FROM r",
    "negated twice": "WITH RECURSIVE r (x, k) AS (SELECT x, min(k) FROM (SELECT 1 AS x, 0 AS k UNION ALL "
    "SELECT dst, -(-k - abs(coalesce(cost, 1))) FROM r JOIN edges ON src = x) GROUP BY x) SELECT x, k FROM r",
}
SHAPES = {
    name: f"WITH RECURSIVE r (a, b) AS (SELECT src, dst FROM edges WHERE cost > 2 UNION {step}) SELECT a, b FROM r"
    for name, step in STEPS.items()
} | WHOLE


CASES = [(name, 1 + 2 * (i % 2)) for i, name in enumerate(SHAPES)]
FAST = [case for case in CASES if case[0] in ("EXISTS under OR", "a correlated count", "attendance", "bool_or", "the next row")]


@pytest.mark.parametrize(("name", "shards"), [*FAST, *slow(*(case for case in CASES if case not in FAST))])
def test_random_changes(name: str, shards: int) -> None:
    rng, checked = random.Random(name), Checked(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {SHAPES[name]}", shards)
    sizes = []
    for _ in range(8):
        present = sorted(checked.tables["edges"], key=str)
        deleted = rng.sample(present, min(len(present), rng.randrange(4)))
        inserted = {(rng.choice((None, *range(6))), rng.randrange(6), rng.choice((None, *range(4)))) for _ in range(4)} - set(present)
        view = checked.tick({"edges": edges(*deleted, weight=-1) | edges(*inserted)})["v"]
        sizes.append(sum(weight for _, weight in view.pairs()))
    assert len(set(sizes)) > 1
    checked.session.close()


@pytest.mark.parametrize("n", [7, *slow(40)])
def test_many_correlated_subqueries_are_checked_in_time(n: int) -> None:
    """Each reads the one before it, so as a tree the body has 2ⁿ nodes."""
    subqueries = (f"LATERAL (SELECT dst FROM edges WHERE src > q{i}.dst ORDER BY dst LIMIT 1) q{i + 1}" for i in range(n))
    step = f"SELECT q0.dst, q{n}.dst FROM (SELECT b AS dst FROM r) q0, {', '.join(subqueries)}"
    started = process_time()
    Draft(f"{SCHEMA} CREATE VIEW v AS WITH RECURSIVE r (a, b) AS (SELECT src, dst FROM edges UNION {step}) SELECT a, b FROM r")
    assert process_time() - started < 20


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("SELECT dst, src FROM edges WHERE NOT EXISTS (SELECT 1 FROM r WHERE b = src) OR cost = 1", "by its value in a later iteration"),
        ("SELECT src, CASE WHEN EXISTS (SELECT 1 FROM r WHERE a = dst) THEN dst ELSE 0 END FROM edges", "column b .* may rise and fall"),
        ("SELECT dst, src FROM edges WHERE (SELECT count(*) FROM r WHERE b = src) < 2", "by its value in a later iteration"),
        ("SELECT dst, src FROM edges WHERE src > ALL (SELECT b FROM r)", "by its value in a later iteration"),
        ("SELECT dst, src FROM edges WHERE (EXISTS (SELECT 1 FROM r WHERE b = src)) IS FALSE", "by its value in a later iteration"),
        ("SELECT dst, src FROM edges WHERE (SELECT count(*) FROM r) = 1", "by its value in a later iteration"),
        (
            "SELECT src, dst FROM edges WHERE (cost > 1 AND EXISTS (SELECT 1 FROM r WHERE b = src)) IS NULL",
            "by its value in a later iteration",
        ),
        ("SELECT src, q.a FROM edges LEFT JOIN r q ON q.a = dst", "on the right of a LEFT JOIN"),
        ("SELECT src, q.a FROM edges LEFT JOIN (SELECT a FROM r) q ON q.a = dst", "on the right of a LEFT JOIN"),
        ("SELECT a, CAST(count(*) AS INT) FROM r GROUP BY a", "read by COUNT"),
        ("SELECT * FROM (SELECT a, b FROM r) PIVOT (max(a) FOR b IN (1 AS x, 2 AS y))", "read by a count, of PIVOT"),
        ("SELECT dst, src FROM edges WHERE src = ALL (SELECT b FROM r)", "by its value in a later iteration"),
        ("SELECT b, (SELECT CAST(count(*) AS INT) FROM r q WHERE q.a > r.b AND q.b < r.b) FROM r", "by its value in a later iteration"),
        ("SELECT r.b, q.b FROM r, LATERAL (SELECT b FROM r q WHERE q.a > r.b ORDER BY b LIMIT 1) q", "under ORDER BY"),
        (
            "SELECT q.n, dst FROM edges LEFT JOIN (SELECT r.a, CAST(sum(r.b) AS INT) AS n FROM r JOIN edges e ON e.src > r.a "
            "GROUP BY r.a) q ON q.a = edges.dst",
            "by SUM",
        ),
        (
            "SELECT r.a, q.dst FROM r, LATERAL (SELECT dst, row_number() OVER (ORDER BY cost) AS n FROM edges WHERE src > r.b) q "
            "WHERE n <= 2",
            "a window function in a subquery that a recursion evaluates",
        ),
        ("SELECT b, 1 FROM r GROUP BY b HAVING sum(a) > 3", "by SUM of values that may be negative"),
        ("SELECT b, 1 FROM r WHERE b >= 0 GROUP BY b HAVING sum(a) > 3", "by SUM of values that may be negative"),
        ("SELECT b, 1 FROM r WHERE a >= 0 GROUP BY b HAVING sum(a) < 3", "by its value in a later iteration"),
        (
            "SELECT src, dst FROM edges ANTI JOIN (SELECT r.a, r.b FROM r JOIN edges e ON e.src > r.b GROUP BY r.a, r.b "
            "HAVING count(*) > 1) q ON q.a = dst AND q.b = src",
            "on the right of an ANTI JOIN",
        ),
    ],
)
def test_others_are_refused(step: str, message: str) -> None:
    query = f"WITH RECURSIVE r (a, b) AS (SELECT src, dst FROM edges UNION {step}) SELECT a, b FROM r"
    with pytest.raises(Unsupported, match=message):
        Checked(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {query}")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("named_struct('length', k.length + cost, 'via', x)", "column k .* may rise and fall"),  # NULL in a STRUCT is its least value
        ("named_struct('length', k.length, 'via', k.via)", "column k .* may rise and fall"),
    ],
)
def test_other_structs_are_refused(value: str, message: str) -> None:
    rows = f"SELECT 1 AS x, named_struct('length', 0, 'via', 1) AS k UNION ALL SELECT dst, {value} FROM r JOIN edges ON src = x"
    query = f"WITH RECURSIVE r (x, k) AS (SELECT x, min(k) FROM ({rows}) GROUP BY x) SELECT x, k FROM r"
    with pytest.raises(Unsupported, match=message):
        Checked(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {query}")
