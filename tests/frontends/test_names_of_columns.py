"""Names of output columns without AS: those that Spark gives them."""

from __future__ import annotations

from typing import Any

import pytest

from sql_data import bound

NAMES = {
    "sqrt(x)": "SQRT(x)",
    "(k, 3)": "named_struct(k, k, col2, 3)",
    "ceil(x)": "CEIL(x)",
    "ceil(x, 1)": "ceil(x, 1)",
    "ceiling(x)": "ceiling(x)",
    "log(x)": "LOG(E(), x)",
    "pow(x, 2)": "pow(x, 2)",
    "power(x, 2)": "POWER(x, 2)",
    "sum(sqrt(x) + 1)": "sum((SQRT(x) + 1))",
    "substring(s, 2)": "substring(s, 2, 2147483647)",
    "SUBSTRING(s FROM 2)": "substring(s, 2, 2147483647)",
    "lpad(s, 5)": "lpad(s, 5,  )",
    "split(s, 'a')": "split(s, a, -1)",
    "regexp_replace(s, 'a', 'b')": "regexp_replace(s, a, b, 1)",
    "mask(s, 'A')": "mask(s, A, x, n, NULL)",
    "POSITION('a' IN s)": "locate(a, s, 1)",
    "trim(BOTH FROM s)": "trim(s)",
    "trim(LEADING 'a' FROM s)": "TRIM(LEADING a FROM s)",
    "listagg(s)": "listagg(s, NULL)",
    "string_agg(s) WITHIN GROUP (ORDER BY s DESC)": "listagg(s, NULL) WITHIN GROUP (ORDER BY s DESC NULLS LAST)",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC)": "percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC)",
    "mode(k, true)": "mode() WITHIN GROUP (ORDER BY k DESC)",
    "first(k, true)": "first(k)",
    "array_agg(DISTINCT k)": "collect_list(DISTINCT k)",
    "isnull(k)": "(k IS NULL)",
    "if(b, k, id)": "(IF(b, k, id))",
    "k div 2": "(k div 2)",
    "k NOT IN (1, 2)": "(NOT (k IN (1, 2)))",
    "k NOT BETWEEN 1 AND 2": "(NOT between(k, 1, 2))",
    "s LIKE 'a%'": "s LIKE a%",
    "s NOT LIKE 'a/%' ESCAPE '/'": "(NOT s LIKE a/% ESCAPE '/')",
    "s ILIKE 'a%'": "ilike(s, a%)",
    "s RLIKE 'a'": "RLIKE(s, a)",
    "s COLLATE UTF8_LCASE": "collate(s, UTF8_LCASE)",
    "extract(YEAR FROM d)": "extract(YEAR FROM d)",
    "datepart('YEAR', d)": "datepart(YEAR FROM d)",
    "hex(x'cafe')": "hex(X'CAFE')",
    "make_dt_interval(1, 2)": "make_dt_interval(1, 2, 0, 0.000000)",
    "abs(INTERVAL '1 2' DAY TO HOUR)": "abs(INTERVAL '1 02' DAY TO HOUR)",
    "date_add(DATE '2020-2-1', 1)": "date_add(DATE '2020-02-01', 1)",
    "1e1 + 2D + 01.50": "((10.0 + 2.0) + 1.50)",
    "int(s) + 1": "(s + 1)",
    "CAST(array(k) AS ARRAY<BIGINT>)": "array(k)",
    "CAST(k AS BIGINT)": "k",
    "try_cast((t.K) AS STRING)": "K",
    "(s::STRING)": "s",
    "k::BIGINT::STRING": "CAST(CAST(k AS BIGINT) AS STRING)",
    "string(CAST(k AS BIGINT))": "CAST(k AS BIGINT)",
    "CAST(k + 1 AS BIGINT)": "CAST((k + 1) AS BIGINT)",
    "CAST(max(k) AS BIGINT)": "CAST(max(k) AS BIGINT)",
    "max(CAST(k AS BIGINT))": "max(CAST(k AS BIGINT))",
    "CAST(k AS BIGINT) + 1": "(CAST(k AS BIGINT) + 1)",
    "CAST(1 AS BIGINT)": "CAST(1 AS BIGINT)",
    "transform(array(k), (v, i) -> v + i)": (
        "transform(array(k), lambdafunction((namedlambdavariable() + namedlambdavariable()), namedlambdavariable(), namedlambdavariable()))"
    ),
    "aggregate(array(k), 0, (a, v) -> a + v)": (
        "aggregate(array(k), 0, lambdafunction((namedlambdavariable() + namedlambdavariable()), namedlambdavariable(), "
        "namedlambdavariable()), lambdafunction(namedlambdavariable(), namedlambdavariable()))"
    ),
    "named_struct('a', k).a": "named_struct(a, k).a",
    "t.k + 1": "(k + 1)",
    "from_json(s, 'a INT')": "from_json(s)",
    "count(*)": "count(1)",
}
"""Text of an item over the table t: Spark's name."""
FIELDS = {"q.st.a": "a", "st.a + q.st.b": "(st.a + st.b)", "m.x": "x", "coalesce(m.x, 1)": "coalesce(m[x], 1)"}
FIELDS |= {"CAST(st AS STRING)": "st", "CAST(st.a AS STRING)": "CAST(st.a AS STRING)", "q.st.a::STRING": "CAST(st.a AS STRING)"}
"""The same over a STRUCT st and a MAP m of a relation q."""
NESTED = "FROM (SELECT named_struct('a', k, 'b', k) AS st, map('x', k) AS m FROM t) q"

PARTS = {
    "struct(k, (t.id), K + 1, k::BIGINT, CAST(k AS INT), x AS y)": ["k", "id", "col3", "col4", "col5", "y"],
    "struct(S, nested.A)": ["S", "A"],
    "struct(max(k), count(*), max(k) AS top)": ["col1", "col2", "top"],
    "struct(max(nested).a, first(m)['x'], collect_list(k)[0])": ["a", "x", "col3"],
    "struct(k, rank() OVER (ORDER BY k), sum(k) OVER ())": ["k", "col2", "col3"],
    "struct(k, (SELECT max(k) FROM t), EXISTS (SELECT 1 FROM t), (SELECT max(nested) FROM t).a)": ["k", "col2", "col3", "a"],
    "struct(m['x'], (m)['y'], m[s], m.z, array(k)[0], nested['a'])": ["x", "y", "col3", "z", "col5", "a"],
    "struct(TRUE, NULL, parse_json(s):b, parse_json(s):b::INT)": ["col1", "col2", "b", "col4"],
    "(SELECT struct(max(k), min(k)) FROM t)": ["col1", "col2"],
    "transform(array(struct(k + 1)), v -> struct(v, v.col1))[0]": ["v", "col1"],
    "arrays_zip(array(1), a, collect_list(k) OVER (), A::ARRAY<BIGINT>)[0]": ["0", "a", "2", "3"],
    "arrays_zip(collect_list(k), collect_list(k), (SELECT max(a) FROM t))[0]": ["0", "1", "2"],
    "arrays_zip(am['x'], max(nested).b)[0]": ["x", "b"],
}
"""Text of a STRUCT: the names of its fields in Spark."""
AROUND = {
    "SELECT k + 1 AS next, max(k) AS top, struct(next, top) AS st FROM t GROUP BY k + 1": ["next", "top"],
    "SELECT k, rank() OVER (ORDER BY k) AS place, struct(k, place) AS st FROM t": ["k", "place"],
    "SELECT m['x'], struct(m['x'], count(*)) AS st FROM t GROUP BY m['x']": ["x", "col2"],
    "SELECT struct(k, max(x)) AS st FROM t GROUP BY k HAVING st.col2 > 1": ["k", "col2"],
    "SELECT struct(*) AS st FROM (SELECT k::STRING, max(x) AS x FROM t GROUP BY k)": ["k", "x"],
}
COLUMNS = "id, k, x, s, named_struct('a', k, 'b', array(k)) AS nested, map('x', k) AS m, array(k) AS a, map('x', array(k)) AS am"


def _name(query: str) -> str:
    (name,) = bound(query).schema.names
    return name


@pytest.mark.parametrize(("text", "name"), NAMES.items())
def test_names(text: str, name: str) -> None:
    assert _name(f"SELECT {text} FROM t") == name


@pytest.mark.parametrize(("text", "name"), FIELDS.items())
def test_names_of_fields(text: str, name: str) -> None:
    assert _name(f"SELECT {text} {NESTED}") == name


def _queries() -> dict[str, list[str]]:
    queries = {f"SELECT {text} AS st FROM t{' GROUP BY am' * ('am[' in text)}": names for text, names in PARTS.items()} | AROUND
    return {f"WITH t AS (SELECT {COLUMNS} FROM t) {query}": names for query, names in queries.items()}


@pytest.mark.parametrize(("query", "names"), _queries().items())
def test_names_of_the_fields_of_structs(query: str, names: list[str]) -> None:
    schema = bound(query).schema
    assert [part.name for part in schema[len(schema) - 1].type.parts] == names


def test_a_column_that_is_cast_is_read_by_its_name() -> None:
    for query, names in {
        "SELECT k FROM (SELECT CAST(k AS STRING), count(*) FROM t GROUP BY k)": ["k"],
        "SELECT k::STRING, count(*) FROM t GROUP BY k::STRING HAVING k = '1'": ["k", "count(1)"],
        "SELECT k::STRING FROM t UNION ALL SELECT s FROM t": ["k"],
        "SELECT k + 1 AS next, CAST(next AS STRING) FROM t": ["next", "next"],
        "SELECT r.* FROM t, LATERAL (SELECT CAST(t.k AS STRING)) r": ["k"],
        "FROM t |> EXTEND k::STRING |> SELECT t.s, x": ["s", "x"],
    }.items():
        assert list(bound(query).schema.names) == names


@pytest.mark.slow
@pytest.mark.spark
def test_the_names_are_those_of_spark(spark: Any) -> None:
    session = spark.newSession()
    session.sql("CREATE TEMP VIEW t AS SELECT 1L AS id, 1 AS k, 1D AS x, 'a' AS s, DATE '2020-01-01' AS d, true AS b")
    queries = {f"SELECT {text} FROM t": name for text, name in NAMES.items()}
    queries |= {f"SELECT {text} {NESTED}": name for text, name in FIELDS.items()}
    assert {query: session.sql(query).columns for query in queries} == {query: [name] for query, name in queries.items()}
    fields = {query: session.sql(query).schema[-1].dataType.names for query in _queries()}
    assert fields == _queries()
