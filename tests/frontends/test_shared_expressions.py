"""Expressions that a select list has many times, by the alias of an item or as an operand: computed once, with the same meaning."""

from __future__ import annotations

import time

import pytest

import deltic
from deltic.errors import AmbiguousName, TypeMismatch

STEP = "CASE WHEN {0} > 9 THEN {0} - 9 WHEN {0} < 0 THEN -{0} ELSE {0} END"
ROWS = [(1, 1, -25), (2, 1, 44), (3, 2, 7), (4, 2, None), (5, 2, 7)]

EQUAL = [
    ("SELECT id, s * 2 AS a, a + a AS b, b * a AS c FROM t", "SELECT id, s * 2 AS a, s * 4 AS b, s * 4 * s * 2 AS c FROM t"),
    ("SELECT id, s + 1 AS a, a AS b, b + b AS c FROM t", "SELECT id, s + 1 AS a, s + 1 AS b, s + 1 + s + 1 AS c FROM t"),
    ("SELECT g, sum(s) AS a, a + count(*) AS b, b * a AS c FROM t GROUP BY g", "SELECT g, a, a + n AS b, (a + n) * a AS c FROM sums"),
    ("SELECT sum(s) AS a, a + 1 AS b, b + b AS c FROM t", "SELECT 33 AS a, 34 AS b, 68 AS c FROM (SELECT count(*) FROM t)"),
    ("SELECT g % 2 AS k, k + 1 AS l, l * l AS m, count(*) AS n FROM t GROUP BY k, m", "SELECT k, k + 1 AS l, m, n FROM keys"),
    ("SELECT g % 2 AS k, k + 1 AS l, count(*) AS n FROM t GROUP BY 1, 2", "SELECT k, k + 1 AS l, n FROM keys"),
    ("SELECT g % 2 AS k, k + 1 AS l, count(*) AS n FROM t GROUP BY ALL", "SELECT k, k + 1 AS l, n FROM keys"),
    ("SELECT g % 2 AS k, k * 3 AS l, n FROM keys2 GROUP BY ROLLUP (k, l, n)", "SELECT k, l, n FROM rolled"),
    ("SELECT g + 0 AS k, k + 1 AS l, sum(s) AS a FROM t GROUP BY g + 0 HAVING l > 2", "SELECT g AS k, g + 1 AS l, a FROM sums WHERE g > 1"),
    (
        "SELECT id, s * 2 AS a, a + 1 AS b, sum(b) OVER (PARTITION BY g ORDER BY a, id) AS w, w + b AS c FROM t",
        "SELECT id, a, a + 1 AS b, w, w + a + 1 AS c FROM"
        " (SELECT id, s * 2 AS a, sum(s * 2 + 1) OVER (PARTITION BY g ORDER BY s * 2, id) AS w FROM t)",
    ),
    (
        "SELECT id, s * 2 AS a, a + 1 AS b, row_number() OVER (ORDER BY id) AS n, n + n AS m FROM t QUALIFY n < 4 AND b > 0",
        "SELECT id, s * 2 AS a, s * 2 + 1 AS b, n, n + n AS m FROM (SELECT *, row_number() OVER (ORDER BY id) AS n FROM t)"
        " WHERE n < 4 AND s * 2 + 1 > 0",
    ),
    (
        "SELECT id, s + 1 AS a, (SELECT max(u.s) FROM t AS u WHERE u.g = t.g) + a AS b, b + b AS c, a IN (SELECT s + 1 FROM t) AS d FROM t",
        "SELECT id, a, m + a AS b, 2 * (m + a) AS c, a IN (SELECT s + 1 FROM t) AS d"
        " FROM (SELECT id, s + 1 AS a, (SELECT max(u.s) FROM t AS u WHERE u.g = t.g) AS m FROM t)",
    ),
    ("SELECT id, s * 2 AS a, a + 1 AS b FROM t ORDER BY b + a DESC NULLS LAST, a LIMIT 1", "SELECT 2 AS id, 88 AS a, 89 AS b"),
    ("SELECT id, s * 2 AS a, a + 1 AS b FROM t ORDER BY 3 DESC NULLS LAST LIMIT 1", "SELECT 2 AS id, 88 AS a, 89 AS b"),
    ("SELECT DISTINCT s * 2 AS a, a + 1 AS b FROM t ORDER BY s * 2 DESC NULLS LAST LIMIT 2", "VALUES (88, 89), (14, 15) AS v(a, b)"),
    ("SELECT DISTINCT s * 2 AS a, a + 1 AS b FROM t ORDER BY b DESC NULLS LAST LIMIT 2", "VALUES (88, 89), (14, 15) AS v(a, b)"),
    ("SELECT b, id FROM (SELECT id, s + 1 AS a, s + 1 AS a, a * 2 AS b FROM t WHERE id = 3)", "SELECT 16 AS b, 3 AS id"),
    ("SELECT id, s * 2 AS s, s + 1 AS b FROM t", "SELECT id, s * 2 AS s, t.s + 1 AS b FROM t"),
    (
        "SELECT id, array(s, g) AS a, transform(a, x -> x + a[0]) AS b FROM t",
        "SELECT id, array(s, g) AS a, array(s + s, g + s) AS b FROM t",
    ),
    ("SELECT id, struct(s + 1 AS x) AS a, a.x + a.x AS b FROM t", "SELECT id, struct(s + 1 AS x) AS a, 2 * (s + 1) AS b FROM t"),
    ("SELECT id, 1 + 1 AS p, round(s / 7.0, p) AS r FROM t", "SELECT id, 2 AS p, round(s / 7.0, 2) AS r FROM t"),
    (
        "SELECT id, concat('x', s) AS a, a || a AS b FROM t CROSS JOIN (SELECT 1)",
        "SELECT id, concat('x', s) AS a, concat('x', s, 'x', s) AS b FROM t",
    ),
]


def session() -> deltic.Session:
    made = deltic.Session()
    made.sql("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, g INT, s INT)")
    made.sql("CREATE VIEW sums AS SELECT g, sum(s) AS a, count(*) AS n FROM t GROUP BY g")
    made.sql("CREATE VIEW keys2 AS SELECT g, count(*) AS n FROM t GROUP BY g")
    made.sql("CREATE VIEW keys AS SELECT k, (k + 1) * (k + 1) AS m, count(*) AS n FROM (SELECT g % 2 AS k FROM t) GROUP BY k")
    made.sql("CREATE VIEW rolled AS SELECT k, l, n FROM (SELECT g % 2 AS k, g % 2 * 3 AS l, n FROM keys2) GROUP BY ROLLUP (k, l, n)")
    return made


@pytest.mark.parametrize(("query", "same"), EQUAL, ids=[query for query, _ in EQUAL])
def test_an_alias_means_its_expression(query: str, same: str) -> None:
    with session() as made:
        made.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        for row in ROWS:
            made.sql("INSERT INTO t VALUES (" + ", ".join("NULL" if value is None else str(value) for value in row) + ")")
        expected = made.query(same).rows()
        assert expected
        for rows in (made.view("v").rows(), made.query(query).rows()):
            assert sorted(map(str, (tuple(row.values()) for row in rows))) == sorted(map(str, (tuple(row.values()) for row in expected)))


@pytest.mark.parametrize("step", [STEP, "{0} + {0}", "coalesce(nullif({0}, 3), g)", "{0} * {0} % 11 + {0}"])
def test_a_chain_of_aliases_is_planned_in_the_time_of_its_text(step: str) -> None:
    """Substituted, the expression of the last item would have more than 2^100 nodes."""
    chain = ", ".join(step.format(f"a{i}") + f" AS a{i + 1}" for i in range(100))
    query = f"SELECT id, CAST(s AS DOUBLE) AS a0, {chain} FROM t"
    with session() as made:
        made.sql("INSERT INTO t VALUES (1, 1, -25), (2, 1, 44), (3, 2, NULL)")
        began = time.process_time()
        made.sql(f"CREATE MATERIALIZED VIEW v AS {query} ORDER BY a100")
        assert time.process_time() - began < 5
        below = "SELECT id, g, CAST(s AS DOUBLE) AS a FROM t"
        for _ in range(100):
            below = f"SELECT id, g, {step.format('a')} AS a FROM ({below})"
        assert [(row["id"], row["a100"]) for row in made.view("v").rows()] == [(row["id"], row["a"]) for row in made.query(below).rows()]


def test_an_item_that_is_read_is_computed_in_one_projection() -> None:
    with session() as made:
        made.sql("CREATE MATERIALIZED VIEW v AS SELECT upper(CAST(s AS STRING)) AS a, a || a AS b, lower(b) AS c FROM t")
        assert str(made.explain("v")).count("upper") == 1


def test_an_item_that_no_item_reads_needs_no_projection() -> None:
    with session() as made:
        made.sql("CREATE MATERIALIZED VIEW v AS SELECT id, s + 1 AS a FROM t ORDER BY a LIMIT 3")
        assert "order1" not in str(made.explain("v"))


def test_errors_of_aliases() -> None:
    with session() as made:
        with pytest.raises(AmbiguousName, match="'a' is ambiguous"):
            made.query("SELECT s + 1 AS a, s + 2 AS a, a * 2 AS b FROM t")
        with pytest.raises(TypeMismatch, match="neither aggregated nor in GROUP BY"):
            made.query("SELECT s + 1 AS a, a * 2 AS b, count(*) AS n FROM t GROUP BY g")


NESTED = [
    "f({})",
    "coalesce(nullif({}, 7), g)",
    "CASE {} WHEN 1 THEN 2 WHEN 2 THEN 3 WHEN 3 THEN 4 ELSE 1 END",
    "CAST({} BETWEEN 0 AND 3 AS INT)",
    "CASE WHEN s > 0 THEN f({}) ELSE 100 / s END",
]


@pytest.mark.parametrize("form", NESTED)
@pytest.mark.parametrize("count", [1, 4, 9, 40])
def test_operands_that_are_read_several_times_are_computed_once(form: str, count: int) -> None:
    """Of the last one, f is not always evaluated, and its operand must not be computed for other rows: so it is substituted."""
    if form == NESTED[-1] and count > 4:
        return
    with session() as made:
        made.sql("CREATE FUNCTION f(x INT) RETURNS INT RETURN CASE WHEN x > 9 THEN x - 9 WHEN x < 0 THEN -x ELSE x END")
        made.sql("INSERT INTO t VALUES (1, 1, -25), (2, 1, 44), (3, 2, NULL), (4, NULL, 7)")
        nested, below = "s", "SELECT id, g, s, s AS x FROM t"
        for _ in range(count):
            nested, below = form.format(nested), f"SELECT id, g, s, {form.format('x')} AS x FROM ({below})"
        began = time.process_time()
        made.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id, {nested} AS x FROM t")
        assert time.process_time() - began < 5
        expected = made.query(f"SELECT id, x FROM ({below})").rows()
        assert made.view("v").rows() == expected
        assert made.query(f"SELECT id, {nested} AS x FROM t ORDER BY {nested}, id").rows() == sorted(
            expected, key=lambda row: (row["x"] is not None, row["x"], row["id"])
        )


CLAUSES = [
    ("SELECT id FROM t WHERE {} > 0", "SELECT id FROM b WHERE x > 0"),
    ("SELECT * FROM t WHERE {} > 0 AND id > 1", "SELECT id, g, s FROM b WHERE x > 0 AND id > 1"),
    (
        "SELECT g, sum({}) AS n, count(*) FILTER (WHERE {} > 0) AS m FROM t GROUP BY g",
        "SELECT g, sum(x) AS n, count_if(x > 0) AS m FROM b GROUP BY g",
    ),
    ("SELECT {} AS k, count(*) AS n FROM t GROUP BY 1 HAVING max({}) > 0", "SELECT x AS k, count(*) AS n FROM b GROUP BY x HAVING x > 0"),
    (
        "SELECT id, sum({}) OVER (PARTITION BY g ORDER BY {}, id) AS w, s FROM t QUALIFY w > 0",
        "SELECT id, w, s FROM (SELECT id, sum(x) OVER (PARTITION BY g ORDER BY x, id) AS w, s FROM b) WHERE w > 0",
    ),
]


@pytest.mark.parametrize("form", NESTED[:-1])
@pytest.mark.parametrize(("query", "same"), CLAUSES, ids=[query for query, _ in CLAUSES])
def test_every_clause_computes_such_operands_once(form: str, query: str, same: str) -> None:
    with session() as made:
        made.sql("CREATE FUNCTION f(x INT) RETURNS INT RETURN CASE WHEN x > 9 THEN x - 9 WHEN x < 0 THEN -x ELSE x END")
        nested, below = "s", "SELECT id, g, s, s AS x FROM t"
        for _ in range(12):
            nested, below = form.format(nested), f"SELECT id, g, s, {form.format('x')} AS x FROM ({below})"
        began = time.process_time()
        made.sql(f"CREATE MATERIALIZED VIEW v AS {query.replace('{}', nested)}")
        assert time.process_time() - began < 5
        for row in ((1, 1, -25), (2, 1, 44), (3, 2, "NULL"), (4, "NULL", 7), (5, 2, 1)):
            made.sql("INSERT INTO t VALUES ({}, {}, {})".format(*row))
        made.sql("DELETE FROM t WHERE id = 2")
        expected = made.query(f"WITH b AS ({below}) {same}").rows()
        assert sorted(map(str, made.view("v").rows())) == sorted(map(str, expected))
        assert sorted(map(str, made.query(query.replace("{}", nested)).rows())) == sorted(map(str, expected))


def test_what_some_rows_do_not_evaluate_is_not_computed_for_them() -> None:
    """100 DIV g fails on rows where g is 0, which do not evaluate it; it has 512 places in the expression."""
    nested = "100 DIV g"
    for i in range(9):
        nested = f"coalesce(nullif({nested}, {i}), 1)"
    with session() as made:
        made.sql("INSERT INTO t VALUES (1, 0, 1), (2, 5, 1)")
        made.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id, CASE WHEN g <> 0 THEN {nested} END AS x FROM t")
        assert made.view("v").rows() == [{"id": 1, "x": None}, {"id": 2, "x": 20}]
        made.sql(f"CREATE MATERIALIZED VIEW w AS SELECT sum({nested}) FILTER (WHERE g <> 0) AS x FROM t")
        made.sql(
            f"CREATE MATERIALIZED VIEW u AS SELECT id, sum({nested}) FILTER (WHERE g <> 0) OVER () AS x FROM t WHERE g = 0 OR {nested} > 0"
        )
        assert made.view("w").rows() == [{"x": 20}]
        assert made.view("u").rows() == [{"id": 1, "x": 20}, {"id": 2, "x": 20}]
