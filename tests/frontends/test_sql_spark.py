"""Every query of sql_queries on Spark and on the oracle: the same rows as often, and columns of the same types and names."""

from __future__ import annotations

import datetime
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pytest

from deltic.connectors.files.connector import FileSourceSpec
from deltic.connectors.registry import source_spec
from deltic.errors import QueryError
from deltic.frontends.sql import CreateTable, parse_script
from deltic.frontends.sql.lexer import tokenize
from deltic.plan.evaluate import evaluate
from linear_queries import linear_queries
from random_options import random_source, written_options, written_string
from seeds import ROTATION, rotating
from sql_data import ROWS, TABLES, TestCatalog, bound, weighted
from sql_queries import queries

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture(scope="module")
def spark(spark: Any) -> Any:
    """A session of its own in the shared Spark, with the tables of sql_data."""
    session = spark.newSession()
    for setting, value in {"shuffle.partitions": "1", "adaptive.enabled": "false", "crossJoin.enabled": "true"}.items():
        session.conf.set(f"spark.sql.{setting}", value)
    for name, table in TABLES.items():
        schema = ", ".join(f"{f.name} {f.type.sql}{'' if f.nullable else ' NOT NULL'}" for f in table.schema)
        session.createDataFrame(list(ROWS[name]), schema).createOrReplaceTempView(name)
    return session


def _canonical(value: Any) -> Any:
    """NaN equal to itself, -0.0 different from 0.0, Spark's local time as UTC, its arrays as tuples, and its maps as sorted entries."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).isoformat()
    if isinstance(value, dict):
        return tuple(sorted(((_canonical(key), _canonical(each)) for key, each in value.items()), key=repr))
    return tuple(map(_canonical, value)) if isinstance(value, list | tuple) else value


def _multiset(rows: Iterable[tuple[Iterable[Any], int]]) -> Counter[tuple[Any, ...]]:
    actual: Counter[tuple[Any, ...]] = Counter()
    for row, weight in rows:
        actual[tuple(_canonical(value) for value in row)] += weight
    return actual


@pytest.mark.parametrize("query", queries())
def test_the_oracle_agrees_with_spark(spark: Any, query: str) -> None:
    frame = spark.sql(query)
    plan = bound(query)
    assert [_plain(f.type.sql) for f in plan.schema] == [_sql(f.dataType) for f in frame.schema]
    actual = evaluate(plan, {name: weighted(rows) for name, rows in ROWS.items()})
    assert _multiset(actual.pairs()) == _multiset((row, 1) for row in frame.collect())


def _sql(type: Any) -> str:
    return _plain(str(type.simpleString()))


def _plain(sql: str) -> str:
    return sql.upper().replace("VOID", "NULL").replace(": ", ":").replace(", ", ",")


def _mutations(seed: int, queries: Sequence[str]) -> Iterator[str]:
    """Queries with tokens left out, doubled, exchanged or taken from other ones, without end."""
    rng = random.Random(seed)
    pool = [[query[token.start : token.end] for token in tokenize(query, "test")] for query in queries]
    words = [word for query in pool for word in query]
    while True:
        query = list(rng.choice(pool))
        for _ in range(rng.choice((1, 1, 2, 3))):
            at, other = rng.randrange(len(query)), rng.choice(pool)
            start = rng.randrange(len(other))
            piece = rng.choice(
                ([], [query[at]] * 2, [rng.choice(words), query[at]], [rng.choice(words)], other[start : start + rng.randrange(1, 6)])
            )
            query[at : at + 1] = piece or ["1"] * (len(query) == 1)
        yield " ".join(query)


def _outcome(run: Callable[[], Iterable[tuple[Iterable[Any], int]]]) -> Counter[tuple[Any, ...]] | None:
    """The rows, or None where evaluating them fails."""
    try:
        return _multiset(run())
    except Exception:  # Spark's come through Java, in many classes
        return None


ANY_OF_SEVERAL = re.compile(r"\b((MIN|MAX)_BY|LIMIT|OFFSET)\b|\b((FIRST|LAST)(_VALUE)?|ANY_VALUE) *\(", re.IGNORECASE)
"""What takes, in Spark, any of the rows that tie."""
NOT_COLLECTED = re.compile(r"\bINTERVAL (YEAR|MONTH)")
"""The type whose values PySpark does not collect."""


@pytest.mark.parametrize(("pool", "expected"), [("all", 400), ("those that make rows", 200)])
def test_mutated_queries_mean_the_same_or_are_refused(spark: Any, pool: str, expected: int) -> None:
    accepted, stricter = 0, []
    for query in islice(_mutations(ROTATION, queries() if pool == "all" else linear_queries()), 20_000):
        try:
            plan = bound(query)
        except QueryError:
            continue
        accepted += 1
        try:
            frame = spark.sql(query)
        except Exception:
            stricter.append(query)
            continue
        assert [_plain(f.type.sql) for f in plan.schema] == [_sql(f.dataType) for f in frame.schema], query
        tables = {name: weighted(rows) for name, rows in ROWS.items()}
        ours = _outcome(lambda plan=plan, tables=tables: evaluate(plan, tables).pairs())
        if not ANY_OF_SEVERAL.search(query) and not any(NOT_COLLECTED.search(_sql(f.dataType)) for f in frame.schema):
            assert ours == _outcome(lambda frame=frame: ((row, 1) for row in frame.collect())), query
        if accepted == expected:
            break
    assert accepted == expected
    assert len(stricter) <= accepted // 50, "\n".join(stricter)


REFUSED_BY_BOTH = """
SELECT nope FROM t
SELECT t.nope FROM t
SELECT nope.id FROM t
SELECT x.id FROM t AS y
SELECT * FROM nope
SELECT nope(id) FROM t
SELECT k FROM t JOIN u ON t.id = u.id
SELECT id FROM t JOIN u USING (k)
SELECT * FROM t JOIN u USING (x)
SELECT k, s FROM t GROUP BY k
SELECT k FROM t GROUP BY k HAVING s = 'a'
SELECT k FROM t WHERE COUNT(*) > 1
SELECT COUNT(COUNT(*)) FROM t
SELECT k FROM t GROUP BY COUNT(*)
SELECT k FROM t GROUP BY 2
SELECT k FROM t ORDER BY 2
SELECT DISTINCT k FROM t ORDER BY id
SELECT d + 1.5 FROM t
SELECT k + d FROM t WHERE k + TRUE
SELECT b + 1 FROM t
SELECT SUM(b) FROM t
SELECT SUM(d) FROM t
SELECT * FROM t WHERE k
SELECT * FROM t WHERE s + 'a'
SELECT CASE WHEN k THEN 1 END FROM t
SELECT CASE WHEN b THEN 1 ELSE d END FROM t
SELECT CAST(d AS INT) FROM t
SELECT CAST(b AS DATE) FROM t
SELECT k FROM t UNION SELECT k, id FROM t
SELECT k FROM t UNION SELECT b FROM t
SELECT k IN (1, DATE '2020-01-01') FROM t
SELECT * FROM t WHERE k IN (SELECT k, id FROM u)
SELECT * FROM t WHERE (k, id) IN (SELECT k FROM u)
SELECT a FROM u AS q(a, b)
SELECT t.* FROM u
SELECT 1, * EXCEPT (nope) FROM t
SELECT DATE '2020-02-30'
SELECT INT '5'
SELECT 999Y
SELECT UPPER() FROM t
SELECT id AS a, id + 1 AS a, a FROM t
VALUES (1, 2), (3)
VALUES (TIME '10:00:00'), ('11:00')
VALUES (1), ('1')
VALUES (parse_json('1')), ('1')
SELECT array_join(array(parse_json('1')), ',') FROM t
WITH q AS (SELECT 1), q AS (SELECT 2) SELECT * FROM q
WITH q(a, b) AS (SELECT 1) SELECT * FROM q
SELECT a FROM (SELECT 1 AS a, 2 AS a)
SELECT q.id FROM (SELECT id FROM t) AS p
SELECT LENGTH(s, 1) FROM t
SELECT -s = d FROM t
SELECT ORDER FROM t FROM t
SELECT k FROM t WHERE NULL
SELECT t.id FROM t JOIN u ON NULL
SELECT CASE WHEN NULL THEN 1 END FROM t
SELECT * FROM t NATURAL NATURAL JOIN u
SELECT * FROM t RIGHT OUTER OUTER JOIN u ON t.k = u.k
SELECT * FROM t LEFT OUTER SEMI JOIN u ON t.k = u.k
"""


@pytest.mark.parametrize("query", REFUSED_BY_BOTH.strip().splitlines())
def test_what_spark_refuses_is_refused(spark: Any, query: str) -> None:
    with pytest.raises(Exception, match=r"(?s).+"):
        spark.sql(query).schema  # noqa: B018
    with pytest.raises(QueryError):
        bound(query)


def _spark_table(spark: Any, sql: str) -> tuple[str, dict[str, str]]:
    """The format and the options, by keys in lower case, that Spark's parser finds in CREATE TABLE."""
    spec = spark._jsparkSession.sessionState().sqlParser().parsePlan(sql).tableSpec()
    pairs = spec.optionExpression().options()
    options = {pairs.apply(i)._1().lower(): pairs.apply(i)._2().toString() for i in range(pairs.size())}
    if spec.location().isDefined():
        options["path"] = spec.location().get()
    return spec.provider().get().lower(), options


def test_options_are_read_as_spark_reads_them(spark: Any) -> None:
    for seed in rotating(100):
        chance = random.Random(seed)
        format, options = random_source(chance)
        clauses = [f"OPTIONS{written_options(options, chance)}", "COMMENT 'x'"]
        if chance.random() < 0.3:
            path = options.pop("path")
            clauses = [f"OPTIONS{written_options({'on_error': 'fail', **options}, chance)}", f"LOCATION {written_string(path, chance)}"]
        chance.shuffle(clauses)
        sql = f"CREATE TABLE x (a INT NOT NULL) USING {format} {' '.join(clauses)}"
        (statement,) = parse_script(sql, "s", TestCatalog())
        assert isinstance(statement, CreateTable)
        assert statement.source is not None
        source = source_spec(statement.table, statement.source)
        assert isinstance(source, FileSourceSpec)
        spark_format, options = _spark_table(spark, sql)
        assert source.format == spark_format
        assert source.path == options["path"]
        assert (source.op_column, source.dead_letter_path) == (options.get("op_column"), options.get("dead_letter_path"))
        assert (source.header, source.null_value) == (options.get("header") == "true", options.get("nullvalue", ""))
        assert source.sep == options.get("sep", options.get("delimiter", ","))
