"""Names of output columns without AS: those that Spark gives them."""

from __future__ import annotations

from typing import Any

import pytest

from deltic.frontends.sql import bind_query
from sql_data import TestCatalog

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
"""The same over a STRUCT st and a MAP m of a relation q."""
NESTED = "FROM (SELECT named_struct('a', k, 'b', k) AS st, map('x', k) AS m FROM t) q"


def _name(query: str) -> str:
    (name,) = bind_query(query, "test", TestCatalog()).schema.names
    return name


@pytest.mark.parametrize(("text", "name"), NAMES.items())
def test_names(text: str, name: str) -> None:
    assert _name(f"SELECT {text} FROM t") == name


@pytest.mark.parametrize(("text", "name"), FIELDS.items())
def test_names_of_fields(text: str, name: str) -> None:
    assert _name(f"SELECT {text} {NESTED}") == name


@pytest.mark.slow
@pytest.mark.spark
def test_the_names_are_those_of_spark(spark: Any) -> None:
    session = spark.newSession()
    session.sql("CREATE TEMP VIEW t AS SELECT 1L AS id, 1 AS k, 1D AS x, 'a' AS s, DATE '2020-01-01' AS d, true AS b")
    queries = {f"SELECT {text} FROM t": name for text, name in NAMES.items()}
    queries |= {f"SELECT {text} {NESTED}": name for text, name in FIELDS.items()}
    assert {query: session.sql(query).columns for query in queries} == {query: [name] for query, name in queries.items()}
