"""The queries of TPC-H and TPC-DS as Spark's tests have them: DuckDB's answers after a load and after five refreshes."""

from __future__ import annotations

import pytest

from benchmarks.queries import SUITES, texts
from parts import slow
from tpc_answers import answered
from tpc_shapes import shape_of

CASES = [(suite, name) for suite in SUITES if suite != "nexmark" for name in texts(suite)]
QUICK = [("tpch", "q6"), ("tpch", "q19"), ("tpch", "q20")]


@pytest.mark.filterwarnings("ignore:.*no equality joins")
@pytest.mark.parametrize(("suite", "name"), [*QUICK, *slow(*(case for case in CASES if case not in QUICK))])
def test_as_duckdb(suite: str, name: str) -> None:
    assert answered(suite, name, shape_of(suite, name))
