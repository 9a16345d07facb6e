"""The queries of TPC-H and TPC-DS as Spark's tests have them: DuckDB's answers after a load and after five refreshes."""

from __future__ import annotations

import pytest

import deltic
from benchmarks.queries import SUITES, tables, texts
from deltic.errors import Unsupported
from parts import slow
from tpc_answers import answered
from tpc_shapes import shape_of

CASES = [(suite, name) for suite in SUITES for name in texts(suite)]
QUICK = [("tpch", "q6"), ("tpch", "q19"), ("tpch", "q20")]
REFUSED = [("tpcds", "q51")]


@pytest.mark.filterwarnings("ignore:.*no equality joins")
@pytest.mark.parametrize(("suite", "name"), [*QUICK, *slow(*(case for case in CASES if case not in (*QUICK, *REFUSED)))])
def test_as_duckdb(suite: str, name: str) -> None:
    assert answered(suite, name, shape_of(suite, name))


@pytest.mark.parametrize(("suite", "name"), REFUSED)
def test_refused(suite: str, name: str) -> None:
    session = deltic.Session()
    session.sql(tables(suite))
    with pytest.raises(Unsupported, match="from start to row"):
        session.sql(f"CREATE MATERIALIZED VIEW answer AS {texts(suite)[name]}")
