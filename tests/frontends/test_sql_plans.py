"""What queries become: the plans, drawn, and what their parts say."""

from __future__ import annotations

import pytest

from deltic.errors import QueryError
from deltic.frontends.sql import CreateTable, CreateView, DropTable, DropView, bind_query, parse_script
from deltic.frontends.statements import BoundView
from deltic.plan.columns import agrees
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Aggregate, Distinct, Filter, Join, Plan, Project, SetOperation, Table, TopK, Union
from deltic.plan.walk import nodes
from deltic.schema import BIGINT, INT, Field, Schema, decimal
from sql_data import ROWS, TABLES, TestCatalog, bound, weighted
from sql_queries import queries

CHUNK = 100


def shape(plan: Plan) -> str:
    """The classes of the plan's nodes from the top down, inputs in brackets."""
    match plan:
        case Join() | SetOperation():
            return f"{plan.kind}({shape(plan.left)}, {shape(plan.right)})"
        case Union():
            return f"union({', '.join(shape(part) for part in plan.inputs)})"
        case Table():
            return plan.table.name
        case Project() | Filter() | Aggregate() | Distinct() | TopK():
            return f"{type(plan).__name__.lower()}({shape(plan.input)})"
        case _:
            return type(plan).__name__.lower()


SHAPES = {
    "SELECT id FROM t": "project(t)",
    "SELECT 1": "project(values)",
    "SELECT id FROM t WHERE b": "project(filter(t))",
    "SELECT DISTINCT k FROM t": "distinct(project(t))",
    "SELECT id FROM t ORDER BY id": "project(t)",
    "SELECT id FROM t ORDER BY id LIMIT 1": "topk(project(t))",
    "SELECT id FROM t ORDER BY x LIMIT 1": "project(topk(project(t)))",
    "SELECT DISTINCT k FROM t ORDER BY k LIMIT 1": "topk(distinct(project(t)))",
    "SELECT k FROM t GROUP BY k": "project(aggregate(t))",
    "SELECT k FROM t WHERE b GROUP BY k HAVING COUNT(*) > 1": "project(filter(aggregate(filter(t))))",
    "SELECT t.id FROM t JOIN u ON t.id = u.id": "project(inner(t, u))",
    "SELECT t.id FROM t, u WHERE t.id = u.id": "project(inner(t, u))",
    "SELECT t.id FROM t, u, w WHERE t.id = u.id AND u.k = w.k AND t.b": "project(filter(inner(inner(t, u), w)))",
    "SELECT t.id FROM t LEFT JOIN u ON t.id = u.id WHERE t.k = u.k": "project(filter(left(t, u)))",
    "SELECT t.id FROM t LEFT SEMI JOIN u ON t.id = u.id": "project(semi(t, u))",
    "SELECT id FROM t WHERE k IN (SELECT k FROM u)": "project(semi(t, u))",
    "SELECT id FROM t WHERE NOT k IN (SELECT k FROM u)": "project(not_in(t, u))",
    "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)": "project(anti(t, u))",
    "SELECT id FROM t WHERE b AND EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND y > 1)": "project(semi(filter(t), filter(u)))",
    "SELECT id FROM t WHERE k IN (SELECT MAX(k) FROM u)": "project(semi(t, aggregate(u)))",
    "SELECT k FROM t UNION SELECT k FROM u": "distinct(union(project(t), project(u)))",
    "SELECT k FROM t UNION ALL SELECT k FROM u": "union(project(t), project(u))",
    "SELECT k FROM t EXCEPT ALL SELECT k FROM u": "except_all(project(t), project(u))",
    "SELECT k FROM t MINUS SELECT k FROM u": "except(project(t), project(u))",
    "SELECT k FROM t INTERSECT SELECT z FROM w": "intersect(project(project(t)), project(w))",
    "WITH q AS (SELECT id FROM t) SELECT id FROM q": "project(project(t))",
}


@pytest.mark.parametrize(("sql", "expected"), SHAPES.items())
def test_shape(sql: str, expected: str) -> None:
    assert shape(bound(sql)) == expected


@pytest.mark.parametrize("start", range(0, len(queries()), CHUNK))
def test_every_column_agrees_with_what_it_reads_and_the_oracle_runs(start: int) -> None:
    for sql in queries()[start : start + CHUNK]:
        plan = bound(sql)
        assert agrees(plan), sql
        actual = evaluate(plan, {name: weighted(rows) for name, rows in ROWS.items()})
        assert all(len(row) == len(plan.schema) for row in actual), sql
        nullable = [field.nullable for field in plan.schema]
        assert all(value is not None or may_be for row in actual for value, may_be in zip(row, nullable, strict=True)), sql


def join_of(sql: str) -> Join:
    return next(node for node in nodes(bound(sql)) if isinstance(node, Join))


def test_equalities_are_keys_and_the_rest_is_the_residual() -> None:
    join = join_of("SELECT t.id FROM t JOIN u ON t.k = u.k AND t.id < u.id AND u.id = t.id")
    assert len(join.keys) == 2
    assert join.residual is not None


def test_a_fallible_equality_after_a_guarding_condition_is_not_a_key() -> None:
    guarded = join_of("SELECT t.id FROM t JOIN u ON u.y <> 0 AND t.k = 10 div u.y")
    assert guarded.keys == ()
    alone = join_of("SELECT t.id FROM t JOIN u ON t.k = 10 div u.y AND u.y <> 0")
    assert len(alone.keys) == 1


def test_an_equality_of_where_that_can_fail_stays_in_where() -> None:
    assert join_of("SELECT t.id FROM t, u WHERE u.y <> 0 AND t.k = 10 div u.y").keys == ()


def test_keys_have_one_type() -> None:
    ((left, right),) = join_of("SELECT t.id FROM t JOIN w ON t.k = w.z").keys
    assert left.type == right.type == BIGINT


def test_correlated_equalities_are_keys_and_other_conditions_the_residual() -> None:
    join = join_of("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.y > t.id AND y < 7)")
    assert len(join.keys) == 1
    assert join.residual is not None
    assert isinstance(join.right, Filter)


def test_not_in_has_its_value_and_its_correlation_apart() -> None:
    join = join_of("SELECT id FROM t WHERE k NOT IN (SELECT k FROM u WHERE u.id = t.id)")
    assert join.kind == "not_in"
    assert len(join.keys) == 1
    assert join.value is not None


def test_equal_aggregates_are_one() -> None:
    aggregate = next(
        n for n in nodes(bound("SELECT k, SUM(id), SUM(id) + 1 FROM t GROUP BY k HAVING SUM(id) > 1")) if isinstance(n, Aggregate)
    )
    assert len(aggregate.aggregates) == 1


def test_min_and_max_do_not_care_for_distinct() -> None:
    assert bound("SELECT MIN(DISTINCT k) AS m FROM t") == bound("SELECT MIN(k) AS m FROM t")


@pytest.mark.parametrize(
    ("term", "descending", "nulls_first"),
    [
        ("k", False, True),
        ("k DESC", True, False),
        ("k ASC NULLS LAST", False, False),
        ("k DESC NULLS FIRST", True, True),
        ("k NULLS FIRST", False, True),
    ],
)
def test_where_nulls_stand(term: str, descending: bool, nulls_first: bool) -> None:
    top = bound(f"SELECT k FROM t ORDER BY {term} LIMIT 1")
    assert isinstance(top, TopK)
    assert (top.order[0].descending, top.order[0].nulls_first) == (descending, nulls_first)


def test_spans_are_of_the_whole_script() -> None:
    text = "CREATE TABLE a (id INT);\nCREATE VIEW b AS SELECT nope FROM t"
    with pytest.raises(QueryError) as caught:
        list(parse_script(text, "script.sql", TestCatalog()))
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (2, 25)
    assert text[caught.value.span.start : caught.value.span.end] == "nope"


def test_create_table() -> None:
    (statement,) = parse_script(
        "CREATE TABLE IF NOT EXISTS x (id BIGINT, `a b` INT NOT NULL, m NUMERIC(10, 2), n DEC, PRIMARY KEY (`a b`, ID))", "s", TestCatalog()
    )
    assert isinstance(statement, CreateTable)
    assert statement.if_not_exists
    assert statement.table.key == (1, 0)
    assert statement.table.schema == Schema(
        (Field("id", BIGINT, False), Field("a b", INT, False), Field("m", decimal(10, 2)), Field("n", decimal(10, 0)))
    )


def test_create_view() -> None:
    text = "CREATE OR REPLACE MATERIALIZED VIEW v (a, b COMMENT 'b') AS SELECT id, w.z FROM T JOIN w ON t.k = w.k"
    (statement,) = parse_script(f"-- first\n{text};\n", "s", TestCatalog())
    assert isinstance(statement, CreateView)
    assert (statement.name, statement.materialized, statement.or_replace, statement.if_not_exists) == ("v", True, True, False)
    assert statement.depends_on == ("t", "w")
    assert statement.plan.schema.names == ("a", "b")
    assert statement.rebind(TestCatalog()) == BoundView(statement.plan, ("t", "w"))
    assert statement.plan == bind_query(text, "s", TestCatalog())


@pytest.mark.parametrize("kind", ["VIEW", "TEMPORARY VIEW", "TEMP VIEW"])
def test_plain_views_are_not_materialized(kind: str) -> None:
    (statement,) = parse_script(f"CREATE {kind} v AS SELECT 1 AS a", "s", TestCatalog())
    assert isinstance(statement, CreateView)
    assert not statement.materialized


def test_drops() -> None:
    script = "DROP TABLE a; DROP VIEW IF EXISTS b; DROP MATERIALIZED VIEW c"
    table, view, materialized = parse_script(script, "s", TestCatalog())
    assert isinstance(table, DropTable)
    assert (table.name, table.if_exists) == ("a", False)
    assert isinstance(view, DropView)
    assert (view.name, view.if_exists) == ("b", True)
    assert isinstance(materialized, DropView)


def test_statements_are_bound_one_after_another() -> None:
    catalog = TestCatalog()
    script = parse_script("CREATE VIEW a AS SELECT id AS n FROM t; CREATE VIEW b AS SELECT n + 1 AS n FROM A", "s", catalog)
    first = next(script)
    assert isinstance(first, CreateView)
    catalog.views["a"] = first.plan
    second = next(script)
    assert isinstance(second, CreateView)
    assert second.depends_on == ("a",)
    assert shape(second.plan) == "project(project(t))"


def test_a_script_is_parsed_whole_before_its_first_statement() -> None:
    with pytest.raises(QueryError):
        parse_script("CREATE TABLE a (id INT); CREATE TABLE b (id INT", "s", TestCatalog())


def test_an_empty_script_has_no_statements() -> None:
    assert list(parse_script("  ;; -- nothing\n /* at all */ ;", "s", TestCatalog())) == []


NAMES = {
    "SELECT COUNT(*), sum(k), k + 1, -k FROM t GROUP BY k": ("count(1)", "sum(k)", "(k + 1)", "(- k)"),
    "SELECT t.k, UPPER(s), k IS NULL, NOT b, 1.50, 'x', NULL FROM t": ("k", "upper(s)", "(k IS NULL)", "(NOT b)", "1.50", "x", "NULL"),
    "SELECT COUNT(DISTINCT k, s) FROM t": ("count(DISTINCT k, s)",),
}


@pytest.mark.parametrize(("sql", "names"), NAMES.items())
def test_names_of_columns_without_alias(sql: str, names: tuple[str, ...]) -> None:
    assert bound(sql).schema.names == names


def test_the_catalog_has_all_tables_of_the_queries() -> None:
    assert set(TABLES) == set(ROWS)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        bound(f"SELECT {'(' * 5000}id{')' * 5000} FROM t")


def test_long_lists_and_conjunctions_are_fine() -> None:
    assert shape(bound(f"SELECT id FROM t WHERE k IN ({', '.join(map(str, range(3000)))})")) == "project(filter(t))"
    assert shape(bound(f"SELECT id FROM t WHERE {' AND '.join(f'k <> {i}' for i in range(100))}")) == "project(filter(t))"
