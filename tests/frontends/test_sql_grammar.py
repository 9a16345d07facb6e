"""Every form of Spark's grammar that Deltic has, wherever an expression or a relation may stand, and what it means."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from deltic.errors import QueryError, SyntaxFailure, TypeMismatch
from deltic.expr import TRUE, Expr, children
from deltic.frontends.sql import bind_query, parse_script, tree
from deltic.frontends.sql.lexer import tokenize
from deltic.frontends.sql.parse_statement import QueryStatement, parse
from deltic.optimizer import optimize
from deltic.plan.evaluate import evaluate
from deltic.plan.walk import expressions, nodes
from parts import slow
from sql_data import ROWS, TestCatalog, bound, weighted
from sql_queries import queries

MOMENT = "TIMESTAMP '2024-01-31 10:00:00'"


def values(query: str) -> list[tuple[Any, ...]]:
    """The rows of a query, sorted."""
    plan = bound(query)
    actual = evaluate(plan, {name: weighted(rows) for name, rows in ROWS.items()})
    return sorted((row for row, weight in actual.pairs() for _ in range(weight)), key=repr)


def value(expression: str) -> Any:
    """What a constant expression is."""
    return values(f"SELECT {expression} AS x")[0][0]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("CASE WHEN CASE WHEN TRUE THEN TRUE END THEN 1 ELSE 2 END", 1),
        ("CASE WHEN (CASE 1 WHEN 1 THEN FALSE END) THEN 1 WHEN (CASE WHEN TRUE THEN TRUE END) THEN 3 END", 3),
        ("CASE (CASE WHEN TRUE THEN 'a' END) WHEN 'a' THEN 1 END", 1),
        ("CASE WHEN TRUE THEN NULL END", None),
        ("CASE WHEN TRUE THEN NULL ELSE 1 END", None),
        ("0.05 BETWEEN 0 AND .06", True),
        ("TRUE AND (.5) = 0.5", True),
        ("1 = 1 AND 1L = 1", True),
        ("1 BETWEEN 0L AND 1L AND 2S BETWEEN 1Y AND 2.5BD", True),
        ("-128Y", -128),
        ("-32768S", -32768),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775808L", -(2**63)),
        ("1D", 1.0),
        ("1.5e5", 150000.0),
        ("1e2", 100.0),
        ("1.5e1D", 15.0),
        ("1.5F", 1.5),
        ("1.5BD", Decimal("1.5")),
        ("1.", Decimal(1)),
        (".5", Decimal("0.5")),
        ("trim(BOTH 'x' FROM 'xxaxx')", "a"),
        ("trim(LEADING 'x' FROM 'xxaxx')", "axx"),
        ("trim(TRAILING 'x' FROM 'xxaxx')", "xxa"),
        ("trim('x' FROM 'xxaxx')", "a"),
        ("trim(BOTH FROM ' a ')", "a"),
        ("ltrim('xy', 'xyaxy')", "axy"),
        ("trim('' FROM ' a ')", " a "),
        ("dateadd(DAY, 1, DATE '2024-01-31')", datetime.datetime(2024, 2, 1, tzinfo=datetime.UTC)),
        (f"timestampadd(MONTH, -2, {MOMENT})", datetime.datetime(2023, 11, 30, 10, tzinfo=datetime.UTC)),
        (f"date_add(HOUR, 2 + 1, {MOMENT})", datetime.datetime(2024, 1, 31, 13, tzinfo=datetime.UTC)),
        (f"timestampadd(QUARTER, 1L, {MOMENT})", datetime.datetime(2024, 4, 30, 10, tzinfo=datetime.UTC)),
        ("date_add(DATE '2024-01-31', 1)", datetime.date(2024, 2, 1)),
        (f"timestampdiff(MONTH, {MOMENT}, TIMESTAMP '2024-03-31 09:59:59')", 1),
        (f"datediff(DAY, {MOMENT}, TIMESTAMP '2024-02-01 09:59:59')", 0),
        (f"datediff(YEAR, {MOMENT}, DATE '2021-01-31')", -3),
        ("timestampdiff(MONTH, DATE '9999-12-31', TIMESTAMP '2020-02-29 12:00:00')", -95757),
        ("timestampdiff(MONTH, TIMESTAMP '2024-01-31 12:00:00', DATE '2024-03-01')", 0),
        ("timestampdiff(MONTH, DATE '2024-03-31', TIMESTAMP '2024-01-31 00:00:01')", -1),
        ("datediff(DATE '2024-02-01', DATE '2024-01-31')", 1),
        (f"timestampdiff(MICROSECOND, {MOMENT}, NULL)", None),
        ("substring('abcdef' FROM 2 FOR 3)", "bcd"),
        ("position('c' IN 'abc')", 3),
        ("s.f IS NOT DISTINCT FROM NULL", None),
        ("2 - 1 - 1", 0),
        ("2 -1", 1),
        ("- - 1", 1),
        ("8 / 2 * 2", 8.0),
        ("7 DIV 2 * 2", 6),
        ("1 + 2 || 3", "33"),
        ("6 & 3 | 8 ^ 1", 11),
        ("NOT 1 = 2 AND TRUE", True),
        ("1 = 1 = TRUE", True),
        ("1 = 1 IS NULL", False),
        ("NOT NULL IS NULL", False),
        ("'it''s' || \"a\"\"b\" || 'c' 'd'", "it'sa\"bcd"),
        (r"'a\tb\u00e4\101'", "a\tbäA"),
        (r"r'a\t'", r"a\t"),
        ("'a%' LIKE 'a\\%'", True),
        ("1 /* a /* nested */ comment */ + -- one\n 1", 2),
        ("CAST('1' AS INT) + '2'::INT", 3),
        (r"CAST('\u007f8' AS INT)", 8),
        (r"try_cast('\u007f8' AS DOUBLE)", None),
        (r"try_cast('8\u007f' AS DECIMAL(3, 1))", None),
        (r"CAST('\u00018\t' AS DOUBLE)", 8.0),
        ("-1::STRING", "-1"),
        ("DATE'epoch'", datetime.date(1970, 1, 1)),
        ("TIMESTAMP ' EPOCH '", datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)),
        ("TIME 'T12:30 '", datetime.time(12, 30)),
        ("try_cast(' T12:30' AS TIME)", None),
        ("1::INT < 2", True),
        ("1::DECIMAL(3, 1)<>1", False),
        ("'a'::STRING<>'b' AND 1::DOUBLE < (3)", True),
        ("size(array(1)::ARRAY<BIGINT>) < 2", True),
        ("1.0000000000000000000000000000000000001", Decimal("1.0000000000000000000000000000000000001")),
        ("1234567890123456789012345678.0123456789BD", Decimal("1234567890123456789012345678.0123456789")),
        ("0.00000000000000000000000000000000000001", Decimal("1e-38")),
    ],
)
def test_expressions_mean_what_they_mean_in_spark(expression: str, expected: Any) -> None:
    if expression.startswith("s.f"):
        with pytest.raises(QueryError, match="no table 's' in FROM"):
            value(expression)
        return
    actual = value(expression)
    assert (actual, type(actual)) == (expected, type(expected))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.id FROM (t JOIN u ON t.id = u.id)",
        "SELECT t.id FROM ((t JOIN u ON t.id = u.id) JOIN w ON w.k = t.k)",
        "SELECT t.id FROM t JOIN (u JOIN w ON u.k = w.k) ON t.id = u.id",
        "SELECT q.x FROM (t CROSS JOIN w) AS q",
        "SELECT t.id FROM t, (u LEFT JOIN w ON u.k = w.k)",
        "SELECT id FROM ((SELECT id FROM t))",
        "(SELECT id FROM t)",
        "((SELECT id FROM t) UNION (SELECT id FROM u)) EXCEPT (SELECT k FROM w)",
        "SELECT coalesce(98, k) FROM t GROUP BY k",
        "SELECT k, count(*) FROM t GROUP BY (k)",
        "SELECT k AS end, id start FROM t",
        "SELECT date, end FROM (SELECT d AS date, k AS `end` FROM t)",
        "SELECT id FROM t WHERE ((k = 1)) AND (k IN (1, 2) OR NOT (k IN (3)))",
        "SELECT id FROM t LIMIT ALL",
        "SELECT count(*) FROM t LIMIT 5",
        "SELECT max(k) AS m FROM t HAVING count(*) > 0 LIMIT 1",
        "SELECT id FROM t LIMIT 0",
        "SELECT * FROM VALUES 1, 2 AS v(a)",
        "SELECT count(*) FROM t ORDER BY 1",
        "WITH a AS (SELECT id FROM t), b AS (SELECT id FROM a) SELECT * FROM b",
        "SELECT k FROM t UNION ALL SELECT k FROM u MINUS SELECT k FROM w",
        "SELECT t.* EXCEPT (k), u.y FROM t JOIN u USING (id)",
        "SELECT id FROM t ORDER BY id NULLS LAST LIMIT 2",
        "SELECT if(b, 1, 2), left(s, 1), right(s, 1) FROM t",
        "SELECT `id`, t.`k` FROM `t`",
    ],
)
def test_queries_are_understood(query: str) -> None:
    try:
        values(query)
    except SyntaxFailure as error:
        pytest.fail(str(error))
    except QueryError as error:
        assert "there is no function" in error.message, error


def test_a_star_among_arguments_is_the_columns() -> None:
    query = "SELECT struct(* EXCEPT (k)), struct(u.* EXCEPT (id, k), t.k, 1 AS one) FROM t JOIN u USING (id)"
    (whole, part) = bound(query).schema
    assert part.name == "struct(y, name, k, 1 AS one)"
    assert [field.name for field in part.type.parts] == ["y", "name", "k", "one"]
    assert [field.name for field in whole.type.parts] == ["id", "x", "s", "d", "ts", "m", "b", "y", "name"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT struct(*, id + 1) FROM t", "a value without a name beside"),
        ("SELECT struct(*)", "requires a FROM clause"),
        ("SELECT struct(q.*) FROM t", "no table 'q'"),
        ("SELECT struct(* EXCEPT (nope)) FROM t", "no column 'nope' to exclude"),
        ("SELECT * EXCEPT (u.k) FROM t", "no column 'u' to exclude"),
        ("SELECT * EXCEPT (k, t.k) FROM t", "leaves it out twice"),
        ("SELECT * EXCEPT (q.k, q) FROM (SELECT struct(id, k) AS q FROM t)", "leaves it out twice"),
        ("SELECT * EXCEPT (q.nope) FROM (SELECT struct(id, k) AS q FROM t)", "no field 'nope' to exclude"),
        ("SELECT * EXCEPT (q.k, q.id) FROM (SELECT struct(id, k) AS q FROM t)", "would have no fields"),
        ("SELECT struct(*) FROM t JOIN u ON t.id = u.id", "two fields of a STRUCT are called id"),
        ("SELECT count(t.*) FROM t", "is not supported here"),
        ("SELECT id FROM t WHERE hash(*) > 0", "is not an argument of a function"),
    ],
)
def test_a_star_among_arguments_is_refused(query: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        values(query)


def test_stars_leave_out_columns_of_one_table_and_fields() -> None:
    assert values("SELECT * EXCEPT (w.k) FROM u JOIN w ON u.k = w.k WHERE u.id = 1 AND z = 2") == [(1, 1, 10, "one", 2)]
    structs = "SELECT IF(b, named_struct('id', id, 'r', struct(id, k)), NULL) AS q, id FROM t WHERE id IN (1, 3)"
    assert values(f"SELECT * EXCEPT (q.r.id) FROM ({structs})") == [((1, (1,)), 1), ((None, (None,)), 3)]
    assert values(f"SELECT q.* EXCEPT (r.k) FROM ({structs})") == [(1, (1,)), (None, (None,))]
    (column,) = bound(f"SELECT struct(* EXCEPT (q.id)) AS s FROM ({structs})").schema
    assert column.type.sql == "STRUCT<q: STRUCT<r: STRUCT<id: BIGINT, k: INT>>, id: BIGINT>"


def test_names_in_qualify_are_those_of_a_select_list_with_windows() -> None:
    assert values("SELECT id, k + 1 AS k FROM t QUALIFY k = 1 AND rank() OVER (ORDER BY id) < 9") == [(1, 2), (2, 2)]
    assert values("SELECT id, k + 1 AS k, rank() OVER (ORDER BY id) AS r FROM t QUALIFY k = 2 AND r < 9") == [(1, 2, 1), (2, 2, 2)]
    assert values("SELECT id, rank() OVER (ORDER BY id DESC) AS k FROM t QUALIFY k = 1") == [(8, 1)]
    assert values("SELECT id, k + 1 AS k, rank() OVER (ORDER BY id) AS r FROM t QUALIFY t.k = 2") == [(3, 3, 3), (4, 3, 4)]


def test_defaults_of_lag_become_the_type_of_its_value() -> None:
    first = "FROM t QUALIFY row_number() OVER (ORDER BY id) = 1"
    assert values(f"SELECT lag(k, 1, 1.5) OVER (ORDER BY id), lag(k, 1, '7') OVER (ORDER BY id) {first}") == [(1, 7)]
    assert values(f"SELECT lag(m, 1, k) OVER (ORDER BY id), lag(d, 1, ts) OVER (ORDER BY id) {first}") == [
        (Decimal("1.00"), datetime.date(2020, 1, 31))
    ]
    for call in ("lag(k, 1, b)", "lag(d, 1, k)", "lag(array(k), 1, array('1'))", "lag(INTERVAL 1 DAY, 1, INTERVAL 1 HOUR)"):
        with pytest.raises(QueryError, match="the default of lag is of another type"):
            values(f"SELECT {call} OVER (ORDER BY id) FROM t")


def test_a_union_has_the_names_of_fields_of_its_first_query() -> None:
    query = "SELECT array(struct(id, k)) AS a FROM t WHERE id = 1 UNION ALL SELECT array(struct(id, y)) FROM u WHERE id = 1"
    assert values(query) == [(((1, 1),),), (((1, 10),),)]
    assert bound(query).schema[0].type.sql == "ARRAY<STRUCT<id: BIGINT, k: INT>>"
    with pytest.raises(QueryError, match="no common type"):
        values("SELECT struct(id, k) FROM t UNION SELECT struct(id, name) FROM u")


def test_limits_of_relations_of_one_row_keep_it() -> None:
    assert values("SELECT count(*) FROM t LIMIT 5") == values("SELECT count(*) FROM t")
    assert values("SELECT 1 LIMIT 1") == [(1,)]
    assert values("SELECT count(*) FROM t LIMIT 0") == []
    assert values("SELECT k, count(*) FROM t GROUP BY k LIMIT 1 OFFSET 1") == [(1, 2)]  # the first is that of NULL


def test_literals_are_checked_where_they_are_compared() -> None:
    for condition, place in (
        ("k = 'x'", "'x'"),
        ("k IN (1, 'y')", "'y'"),
        ("ts > 'yesterday'", "'yesterday'"),
        ("k BETWEEN 0 AND '1z'", "'1z'"),
    ):
        with pytest.raises(TypeMismatch, match="malformed") as caught:
            values(f"SELECT id FROM t WHERE {condition}")
        span = caught.value.span
        assert span is not None
        assert span.text[span.start : span.end] == place
    assert values("SELECT id FROM t WHERE k = '1' AND FALSE") == []
    assert values("SELECT 1 WHERE 1 > 2 AND CAST('x' AS INT) = 1") == []  # an explicit CAST fails on rows alone


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("CREATE VIEW v AS SELECT id FROM t\nCREATE VIEW w AS SELECT id FROM t", "another statement begins at CREATE"),
        ("CREATE TABLE q (a INT)\nCREATE VIEW w AS SELECT id FROM t", "another statement begins at CREATE"),
        ("DROP TABLE t\nDROP TABLE u", "another statement begins at DROP"),
        ("SELECT id FROM t SELECT id FROM t", "another statement begins at SELECT"),
        ("SELECT id FROM catalog.db.t", "leave 'catalog' out"),
        ("SELECT id FROM t, generate_series(1, t.k)", "LATERAL generate_series"),
    ],
)
def test_errors_suggest_similar_names(script: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        list(parse_script(script, "test", TestCatalog())) if script[0] in "CD" else values(script)


def test_group_by_all_means_a_column_called_all() -> None:
    rows = "(VALUES (1, 10), (1, 20), (2, 10)) AS v(a, all)"
    assert values(f"SELECT count(*) FROM {rows} GROUP BY all") == [(1,), (2,)]
    assert values("SELECT a, count(*) FROM (VALUES (1, 10), (1, 20), (2, 10)) AS v(a, b) GROUP BY all") == [(1, 2), (2, 1)]
    assert values("SELECT b AS all, count(*) FROM (VALUES (1, 10), (1, 20)) AS v(a, b) GROUP BY all") == [(10, 1), (20, 1)]


def test_intervals_have_several_parts_and_signs() -> None:
    assert value("DATE '2024-01-31' + INTERVAL 1 MONTH") == datetime.date(2024, 2, 29)
    assert value(f"{MOMENT} + INTERVAL 1 DAY -2 HOURS") == datetime.datetime(2024, 2, 1, 8, tzinfo=datetime.UTC)
    assert value("DATE '2024-01-31' - INTERVAL 1 DAY + INTERVAL '2' DAYS") == datetime.date(2024, 2, 1)
    assert value("DATE '2024-01-31' + (INTERVAL 1 DAY + INTERVAL 1 DAY)") == datetime.date(2024, 2, 2)


def test_every_node_has_its_own_place() -> None:
    """The text at a node's place is read as the very same node."""
    checked = 0
    for query in queries():
        statement = parse(query, "test")[0]
        assert isinstance(statement, QueryStatement)
        for node in tree.walk(statement.query):
            if isinstance(node, tree.Operation | tree.FunctionCall | tree.SearchedCase | tree.CastCall | tree.BetweenTest | tree.InList):
                span = node.span
                again = parse(f"{' ' * (span.start - 7)}SELECT {query[span.start : span.end]}", "test")[0] if span.start >= 7 else None
                if isinstance(again, QueryStatement) and isinstance(again.query, tree.SelectQuery):
                    assert _shape(again.query.items[0].expression) == _shape(node)
                    checked += 1
    assert checked > 300


def _shape(node: object) -> object:
    if isinstance(node, tree.OrderTerm):
        return [_shape(part) for part in tree.parts(node)], node.descending, node.nulls_first
    if not hasattr(node, "span"):
        return node
    return type(node).__name__, node.span.start, node.span.end, [_shape(part) for part in tree.parts(node)]


def test_mutated_texts_never_raise_anything_raw() -> None:
    rng = random.Random(5)
    pool = [[query[token.start : token.end] for token in tokenize(query, "test")] for query in queries()]
    words = [word for query in pool for word in query]
    for _ in range(3000):
        query = list(rng.choice(pool))
        for _ in range(rng.choice((1, 1, 2, 3))):
            at = rng.randrange(len(query) + 1)
            query[at : at + rng.choice((0, 1, 2))] = rng.choices(words, k=rng.choice((0, 1, 2)))
        try:
            bind_query(" ".join(query)[: rng.choice((10_000, rng.randrange(1, 80)))], "test", TestCatalog())
        except QueryError as error:
            assert error.span is None or 0 <= error.span.start <= error.span.end <= len(error.span.text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT '\ud800'", "a lone surrogate"),
        (f"SELECT {'9' * 100_000}", "more than 38 digits"),
        (f"SELECT 1.{'9' * 100_000}", "more than 38 digits"),
        (f"SELECT {'9' * 100_000}L", "more than 38 digits"),
        (f"SELECT 1.{'0' * 37}1", "more than 38 digits"),
        (f"SELECT 0.{'0' * 38}1", "more than 38 digits"),
        (f"SELECT 1e{'9' * 100_000}", "does not fit DOUBLE"),
        (f"SELECT id FROM t ORDER BY id LIMIT {'9' * 100_000}", "LIMIT is too large"),
        (f"SELECT id FROM t ORDER BY {'9' * 100_000}", "is not in the select list"),
        (f"SELECT d + INTERVAL {'9' * 100_000} DAYS FROM t", "INTERVAL"),
        (f"SELECT CAST(k AS DECIMAL({'9' * 100_000}, 2)) FROM t", "DECIMAL"),
        ("SELECT id AS `` FROM t", "a name is empty"),
        ("SELECT id AS ` ` FROM t", "a name is of blanks alone"),
    ],
)
def test_invalid_queries_raise_one_clear_error(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        values(text)
    assert len(str(caught.value)) < 1000
    str(caught.value).encode()


WIDE: dict[str, Callable[[int], str]] = {
    "and": lambda n: f"SELECT id FROM t WHERE {' AND '.join(f'k <> {i + 10}' for i in range(n))}",
    "or": lambda n: f"SELECT id FROM t WHERE {' OR '.join(f'k = {i}' for i in range(n))}",
    "concatenation": lambda n: f"SELECT {' || '.join(['s'] * n)} AS x FROM t",
    "sum": lambda n: f"SELECT {' + '.join(['id'] * n)} AS x FROM t",
    "difference": lambda n: f"SELECT {' - '.join(['id'] * n)} AS x FROM t",
    "product": lambda n: f"SELECT {' * '.join(['id'] * n)} AS x FROM t",
    "quotient": lambda n: f"SELECT {' / '.join(['id'] * n)} AS x FROM t",
    "sums and differences": lambda n: f"SELECT {' - id + '.join(['k * 2'] * n)} AS x FROM t",
    "in": lambda n: f"SELECT id FROM t WHERE id IN ({', '.join(map(str, range(n)))})",
    "case": lambda n: f"SELECT CASE k {' '.join(f'WHEN {i} THEN {i + 1}' for i in range(n))} END AS x FROM t",
    "union": lambda n: " UNION ALL ".join(f"SELECT id + {i} AS id FROM t" for i in range(n // 5)),
}


@pytest.mark.parametrize("terms", [2_000, *slow(10_000)])
@pytest.mark.parametrize("name", WIDE)
def test_wide_queries_are_no_deeper_than_narrow_ones(name: str, terms: int) -> None:
    plan = optimize(bind_query(WIDE[name](terms), "test", TestCatalog()))
    assert max(len(_deepest(expr)) for node in nodes(plan) for expr in (*expressions(node), TRUE)) < 10
    assert sum(1 for _ in nodes(plan)) < 5000


def _deepest(expr: Expr) -> list[Expr]:
    below = [_deepest(part) for part in children(expr)]
    return [expr, *max(below, key=len, default=[])]


@pytest.mark.parametrize(
    "expression",
    [f"{'(' * 200}id{')' * 200}", f"{'abs(' * 140}id{')' * 140}", f"{'CASE WHEN b THEN ' * 140}1{' END' * 140}", f"{'- ' * 140}id"],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a plan of before that is freed where the stack ends
def test_nesting_has_a_limit_that_says_so(expression: str) -> None:
    optimize(bound(f"SELECT {expression} AS x FROM t"))
    with pytest.raises(SyntaxFailure, match="nested too deeply"):
        values(f"SELECT {'(- ' * 80}{'(' * 220}{expression}{')' * 300} AS x FROM t")


@pytest.mark.parametrize("terms", [2_000, *slow(10_000)])
@pytest.mark.parametrize("operator", ["&", "="])
def test_long_chains_of_other_operators_are_one_clear_error(operator: str, terms: int) -> None:
    with pytest.raises(QueryError, match=r"nested too deeply|cannot compare"):
        values(f"SELECT {f' {operator} '.join(['id'] * terms)} AS x FROM t")
