"""The terms of the report on functions: columns give what rows give, and Spark gives the same; the bulk of the latter is slow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.function_comparison import Ask, Term, bound, differences
from benchmarks.function_samples import SCHEMA, Row, sample_rows, table_of
from benchmarks.function_terms import TERMS
from deltic.connectors.recognise import of_spark
from expr_check import check
from parts import slow

ROWS = sample_rows()
NULLS = [(None,) * len(SCHEMA)] * 2
CHUNK = 40
TEXTS = [(name, sql) for name, texts in TERMS.items() for sql in texts]
"""Bound by the tests, not here: every worker imports this module, and binding all of them takes seconds."""


@pytest.mark.parametrize("rows", [sample_rows(40), *slow(ROWS)], ids=len)
@pytest.mark.parametrize("name", TERMS)
def test_columns_equal_rows(name: str, rows: list[Row]) -> None:
    for sql in TERMS[name]:
        term = bound(name, sql)
        for some in (rows, [], rows[7:8], NULLS):
            check(term, some, table_of)


@pytest.fixture(scope="module")
def ask(request: pytest.FixtureRequest) -> Iterator[Ask]:
    """Queries over the samples in the shared Spark."""
    pytest.importorskip("pyspark")
    session: Any = request.getfixturevalue("spark").newSession()
    for setting, value in {"session.timeZone": "UTC", "ansi.enabled": "true", "codegen.wholeStage": "false"}.items():
        session.conf.set(f"spark.sql.{setting}", value)
    table = table_of(ROWS).append_column("row", pa.array(range(len(ROWS)), pa.int32()))
    samples = session.createDataFrame(table).coalesce(1).cache()
    samples.createOrReplaceTempView("samples")
    yield lambda query: of_spark(session.sql(query), "the answer")
    samples.unpersist()


def report(terms: list[Term], ask: Ask) -> str:
    return "\n".join(words for _, words in differences(terms, ROWS, ask))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", range(0, len(TEXTS), CHUNK))
def test_every_term_on_spark(ask: Ask, start: int) -> None:
    assert not report([bound(*text) for text in TEXTS[start : start + CHUNK]], ask)
