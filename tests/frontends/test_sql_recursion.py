"""WITH RECURSIVE: its plans, its meaning against DuckDB on random graphs and against Spark, its types and its limits."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import duckdb
import pytest

from deltic.errors import Divergence, QueryError
from deltic.frontends.sql import bind_query
from deltic.frontends.sql.lexer import tokenize
from deltic.frontends.statements import DefinedFunction
from deltic.optimizer import optimize
from deltic.plan.columns import agrees
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import ITERATION_LIMIT, Plan, Recursion, references
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.plan.walk import nodes
from deltic.schema import BIGINT, Field, Schema, TableSchema
from goldens import Goldens
from recursive_queries import GRAPH, LINEAR
from sql_data import ROWS, TestCatalog, bound, weighted

SHOWN = {
    "closure": GRAPH[0],
    "shortest paths": "WITH RECURSIVE d (node, cost) AS (SELECT node, min(cost) FROM (SELECT 0L AS node, 0L AS cost UNION ALL "
    "SELECT dst, cost + 1 FROM d JOIN edges ON src = node) GROUP BY node) SELECT cost FROM d WHERE node = 7",
    "non-linear": "WITH RECURSIVE p AS (SELECT src, dst FROM edges UNION SELECT a.src, b.dst FROM p a JOIN p b ON a.dst = b.src) "
    "SELECT * FROM p",
    "several terms": "WITH RECURSIVE c (n) MAX RECURSION LEVEL 500 AS (SELECT src FROM edges UNION ALL SELECT n + 1L FROM c WHERE n < 5 "
    "UNION ALL SELECT 0L UNION ALL SELECT n + 2L FROM c WHERE n < 3) SELECT n FROM c",
    "recursion in recursion": "WITH RECURSIVE r (n) AS (SELECT 0L UNION SELECT m FROM (WITH RECURSIVE s (m) AS (SELECT dst FROM r "
    "JOIN edges ON src = n UNION SELECT m + 1L FROM s WHERE m < 3) SELECT m FROM s)) SELECT n FROM r",
    "nothing recursive": "WITH RECURSIVE c (n) AS (SELECT src FROM edges) SELECT n FROM c",
}


class Edges:
    """A catalog of edges alone."""

    def relation(self, name: str) -> TableSchema | Plan | None:
        return TableSchema("edges", Schema((Field("src", BIGINT), Field("dst", BIGINT)))) if name.lower() == "edges" else None

    def names(self) -> list[str]:
        return ["edges"]

    def functions(self) -> dict[str, DefinedFunction]:
        return {}


def over_edges(sql: str) -> Plan:
    return bind_query(sql, "test", Edges())


@pytest.mark.parametrize("name", SHOWN)
def test_plans(name: str, goldens: Goldens) -> None:
    plan = over_edges(SHOWN[name])
    goldens.check(name, f"{show(plan)}\n-->\n{show(optimize(plan))}")


def test_goldens_are_those_of_the_queries(goldens: Goldens) -> None:
    goldens.check_names(list(SHOWN))


@pytest.mark.parametrize("sql", GRAPH)
def test_duckdb_agrees_on_random_graphs(sql: str) -> None:
    plan, rng = over_edges(sql), Random(sql)
    assert agrees(plan) and agrees(optimize(plan))
    with duckdb.connect() as database:
        database.execute("CREATE TABLE edges (src BIGINT, dst BIGINT)")
        for _ in range(12):
            ends = [*range(rng.randint(2, 7)), *([None] if rng.random() < 0.3 else [])]
            rows = [(rng.choice(ends), rng.choice(ends)) for _ in range(rng.randint(1, 12))]
            database.execute("DELETE FROM edges")
            database.executemany("INSERT INTO edges VALUES (?, ?)", rows)
            expected = Relation((row, 1) for row in database.execute(sql).fetchall())
            tables = {"edges": Relation((row, 1) for row in rows)}
            assert evaluate(plan, tables) == expected, rows
            assert evaluate(optimize(plan), tables) == expected, rows


@pytest.mark.parametrize("sql", LINEAR)
def test_the_oracle_runs(sql: str) -> None:
    plan = bound(sql)
    assert agrees(plan)
    tables = {name: weighted(rows) for name, rows in ROWS.items()}
    actual = evaluate(plan, tables)
    assert actual == evaluate(optimize(plan), tables)
    for row in actual:
        assert not any(value is None and not field.nullable for value, field in zip(row, plan.schema, strict=True))


def recursions(sql: str) -> list[Recursion]:
    return [node for node in nodes(bound(sql)) if isinstance(node, Recursion)]


def test_the_limit_is_that_of_its_own_cte() -> None:
    sql = (
        "WITH RECURSIVE a (n) MAX RECURSION LEVEL 7 AS (SELECT 1 UNION SELECT n FROM a), b AS (SELECT 1 AS n UNION SELECT n FROM b), "
        "`c d` MAX RECURSION LEVEL 9 (SELECT 1 AS n UNION SELECT n FROM `c d`) SELECT * FROM a, b, `c d`"
    )
    assert {node.result: node.limit for node in recursions(sql)} == {"a": 7, "b": ITERATION_LIMIT, "c d": 9}


def test_a_limit_passed_is_an_error_that_tells_how_it_grew() -> None:
    plan = bound("WITH RECURSIVE c (n, s) MAX RECURSION LEVEL 4 AS (SELECT 1, 'x' UNION ALL SELECT n + 1, NULL FROM c) SELECT n FROM c")
    with pytest.raises(Divergence) as caught:
        evaluate(plan, {})
    assert str(caught.value) == (
        "[DELTIC-3007] test:1:99: the recursive relation c has not converged after 4 iterations: "
        "the last ones changed 1, 1, 1 rows, such as (5, NULL)\n"
        "  WITH RECURSIVE c (n, s) MAX RECURSION LEVEL 4 AS (SELECT 1, 'x' UNION ALL SELECT n + 1, NULL FROM c) SELECT n FROM c\n"
        f"  {' ' * 98}^\n"
        "help: add a condition that ends it, such as n < 100, or raise the limit; "
        "on cycles, UNION, not UNION ALL, or distinct() in a circuit ends"
    )


def test_a_column_is_null_where_a_later_iteration_makes_it_so() -> None:
    chain = "WITH RECURSIVE c (a, b, d) AS (SELECT 1, 2, 3 UNION ALL SELECT NULL, a, b FROM c WHERE d IS NOT NULL) SELECT a, b, d FROM c"
    assert [field.nullable for field in bound(chain).schema] == [True, True, True]
    shallow = "WITH RECURSIVE c (a, b) AS (SELECT 1, 2 UNION ALL SELECT a + 1, NULL FROM c WHERE a < 3) SELECT a, b FROM c"
    assert [field.nullable for field in bound(shallow).schema] == [False, True]


def test_inner_and_outer_relations_of_one_name_differ() -> None:
    inner = "WITH RECURSIVE c (n) AS (SELECT 5 UNION SELECT n + 1 FROM c WHERE n < 8) SELECT n FROM c"
    sql = f"WITH RECURSIVE c (n) AS (SELECT 1 UNION SELECT c.n + i.n FROM c JOIN ({inner}) i ON i.n = c.n + 4) SELECT n FROM c"
    assert {node.result for node in recursions(sql)} == {"c", "c_2"}
    assert set(evaluate(bound(sql), {})) == {(1,), (6,)}


def test_mutated_queries_are_bound_whole_or_refused() -> None:
    rng = Random(11)
    pool = [[sql[token.start : token.end] for token in tokenize(sql, "test")] for sql in LINEAR]
    words = [word for query in pool for word in query]
    recursive = 0
    for _ in range(600):
        query = list(rng.choice(pool))
        at = rng.randrange(len(query))
        query[at : at + 1] = rng.choice(([], [query[at]] * 2, [rng.choice(words)], [rng.choice(words), query[at]]))
        try:
            plan = bound(" ".join(query))
        except QueryError:
            continue
        assert agrees(plan) and agrees(optimize(plan)) and not references(plan)
        recursive += any(isinstance(node, Recursion) for node in nodes(plan))
    assert recursive > 20


@pytest.fixture(scope="module")
def tables(spark: Any) -> Iterator[Any]:
    """The tables of sql_data as Spark's views."""
    schemas = {name: TestCatalog().relation(name) for name in ROWS}
    for name, rows in ROWS.items():
        table = schemas[name]
        assert isinstance(table, TableSchema)
        spark.createDataFrame(list(rows), ", ".join(f"{f.name} {f.type.sql}" for f in table.schema)).createOrReplaceTempView(name)
    yield spark
    for name in ROWS:
        spark.catalog.dropTempView(name)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("sql", LINEAR)
def test_spark_agrees(tables: Any, sql: str) -> None:
    frame, plan = tables.sql(sql), bound(sql)
    assert [field.type.sql for field in plan.schema] == [field.dataType.simpleString().upper() for field in frame.schema]
    actual = evaluate(plan, {name: weighted(rows) for name, rows in ROWS.items()})
    assert actual == Relation((tuple(row), 1) for row in frame.collect())


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("limit", [3, 4, 5, 6])
def test_spark_has_the_same_limits(tables: Any, limit: int) -> None:
    sql = f"WITH RECURSIVE c (n) MAX RECURSION LEVEL {limit} AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT n FROM c"
    try:
        ours = len(evaluate(bound(sql), {}))
    except Divergence:
        ours = 0
    try:
        theirs = tables.sql(sql).count()
    except Exception as error:  # Spark's come through Java, in many classes
        assert "RECURSION_LEVEL_LIMIT_EXCEEDED" in str(error)
        theirs = 0
    assert ours == theirs == (5 if limit >= 5 else 0)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("step", ["CAST(n + 1 AS BIGINT)", "n + 0.5", "'x'"])
def test_spark_refuses_wider_steps_too(tables: Any, step: str) -> None:
    sql = f"WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT {step} FROM c WHERE n < 5) SELECT n FROM c"
    with pytest.raises(QueryError):
        bound(sql)
    with pytest.raises(Exception, match="CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE"):
        tables.sql(sql)
