"""The report on functions: it reads Spark's examples, and a difference of one value, type or error is found."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from benchmarks.function_comparison import Ask, bound, differences
from benchmarks.function_samples import SCHEMA, sample_rows, table_of
from benchmarks.functions import Finding, examples, probes, summary, tried
from deltic.expr.columns import evaluate_columns

ROWS = sample_rows(40)


def test_examples_are_queries() -> None:
    text = "\n    Examples:\n      > SELECT _FUNC_(1);\n       1\n      > SELECT _FUNC_(a)\n          FROM t;\n       2\n  "
    assert examples("f", text) == ["SELECT f(1)", "SELECT f(a)\n          FROM t"]


@pytest.mark.parametrize(("answer", "verdict"), [([2], "same"), ([3], "wrong"), ([2, 2], "wrong"), ([2.0], "wrong")])
def test_an_example_is_compared(answer: list[float], verdict: str) -> None:
    finding = Finding("+", "math_funcs")
    tried(finding, ["SELECT 1 + 1"], lambda query: pa.table({"c": answer}))
    assert finding.verdict == verdict


def test_refused_queries_are_counted_by_error() -> None:
    finding = Finding("nonsense", "misc_funcs")
    tried(finding, ["SELECT nonsense(1)"], lambda query: pa.table({"c": [1]}))
    result = summary([finding, Finding("rand", "math_funcs"), Finding("to_xml", "xml_funcs"), Finding("make_ready", "datetime_funcs")])
    assert result["refused"] == {
        "no example": ["make_ready"],
        "of the moment": ["rand"],
        "there is no function nonsense": ["nonsense"],
        "xml_funcs": ["to_xml"],
    }
    assert result["kinds"]["math_funcs"] == {"of the moment": 1} and result["deterministic"] == {"refused": 2}


def test_the_share_is_that_of_deterministic_functions() -> None:
    alike = [Finding("abs", "math_funcs", agreeing=1), Finding("sin", "math_funcs", agreeing=1), Finding("mode", "agg_funcs", agreeing=1)]
    result = summary([*alike, Finding("nonsense", "misc_funcs"), Finding("to_xml", "xml_funcs")])
    assert (result["of"], result["same_percent"]) == (3, 33.3)
    assert result["deterministic"] == {"same": 1, "differs": 1, "any": 1, "refused": 1}


def test_a_function_without_terms_is_tried_on_columns_of_every_type() -> None:
    assert {"upper(s)", "upper(i)"} <= set(probes("upper"))


def imitation(change: bool = False, type: pa.DataType | None = None) -> Ask:
    """Answers as Deltic's columns do; `change` alters the last value, `type` the type."""

    def ask(query: str) -> pa.Table:
        rows = ROWS
        if only := re.search(r"row = (\d+)$", query):
            rows = [ROWS[int(only[1])]]
        sql = query.removeprefix("SELECT row, ").removeprefix("SELECT ").partition(" AS c")[0]
        column = evaluate_columns(bound("", sql).expr, [c.combine_chunks() for c in table_of(rows).columns], len(rows))
        if change:
            column = pa.array([*column.to_pylist()[:-1], 77], column.type)
        return pa.table({"row": range(len(rows)), "c0": column.cast(type or column.type), "c": column})

    return ask


def test_differences_of_values_types_and_errors_are_detected() -> None:
    term = bound("length", "length(s)")
    assert not list(differences([term], ROWS, imitation()))
    assert len(list(differences([term], ROWS, imitation(change=True)))) == 1
    assert "type" in next(iter(differences([term], ROWS, imitation(type=pa.int64()))))[1]
    failing = bound("bit_get", "bit_get(i, j)")
    assert SCHEMA.names.index("j") and list(differences([failing], ROWS, lambda query: imitation()("SELECT length(s) AS c")))
