"""Spark itself evaluates every term on edge values: the same value, and an error on the same rows.

Spark evaluates the rows on which Deltic finds a value, all terms of a chunk in one job; then, one by one, for a sample of the
rows on which Deltic finds an error. What may differ is named in `tolerance`, with the reason.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from deltic.errors import ArithmeticOverflow, EvaluationError
from deltic.expr.nodes import Value
from expr_terms import SCHEMA, Term, alike, all_terms, edge_rows, outcome, table_of
from seeds import ROTATION

pyspark = pytest.importorskip("pyspark")
pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

ROWS = edge_rows(120, seed=ROTATION)
TERMS = all_terms()
CHUNK = 60
SAMPLE = 2  # failing rows of each chunk's every seventh term that Spark evaluates, one query each

BEYOND = object()


@pytest.fixture(scope="module")
def spark(spark: Any) -> Any:
    """A session of its own in the shared Spark."""
    session = spark.newSession()
    for setting, value in {
        "session.timeZone": "UTC",
        "ansi.enabled": "true",
        "shuffle.partitions": "1",
        "codegen.wholeStage": "false",
    }.items():
        session.conf.set(f"spark.sql.{setting}", value)
    return session


@pytest.fixture(scope="module")
def edges(spark: Any) -> Any:
    frame = spark.createDataFrame(table_of(ROWS).append_column("row", pa.array(range(len(ROWS)), pa.int32())))
    frame = frame.selectExpr("* EXCEPT (im)", "CAST(im AS INTERVAL YEAR TO MONTH) AS im")
    frame = frame.coalesce(1).cache()
    frame.createOrReplaceTempView("edges")
    return frame


@pytest.mark.parametrize("start", range(0, len(TERMS), CHUNK))
def test_values(spark: Any, edges: Any, start: int) -> None:
    terms = TERMS[start : start + CHUNK]
    outcomes = [[outcome(term.expr, row) for row in ROWS] for term in terms]
    columns = ", ".join(
        f"CASE WHEN {_good(o)} THEN {term.sql} END AS c{k}" for k, (term, o) in enumerate(zip(terms, outcomes, strict=True))
    )
    try:
        answer = spark.sql(f"SELECT row, {columns} FROM edges").toArrow().sort_by("row")
    except Exception:
        pytest.fail("\n".join(_culprits(spark, terms, outcomes)))
    differences = []
    for k, (term, expected) in enumerate(zip(terms, outcomes, strict=True)):
        actual = answer.column(f"c{k}")
        if actual.type != term.expr.type.arrow:
            differences.append(f"{term.sql}: Spark's type is {actual.type}, ours {term.expr.type}")
            continue
        for row, scalar, ours in zip(ROWS, actual.combine_chunks(), expected, strict=True):
            if not isinstance(ours, EvaluationError) and not tolerance(term, theirs := _python(scalar), ours):
                differences.append(f"{term.sql}: Spark {theirs!r}, ours {ours!r} at {_inputs(term, row)}")
    assert not differences, "\n".join(differences[:40])


def _good(outcomes: Sequence[Value | EvaluationError]) -> str:
    rows = [str(k) for k, value in enumerate(outcomes) if not isinstance(value, EvaluationError)]
    return "true" if len(rows) == len(outcomes) else f"row IN ({', '.join(rows)})" if rows else "false"


def _culprits(spark: Any, terms: Sequence[Term], outcomes: Sequence[Sequence[Value | EvaluationError]]) -> Iterator[str]:
    """Which terms Spark refuses or fails, each in a query of its own."""
    for term, expected in zip(terms, outcomes, strict=True):
        try:
            spark.sql(f"SELECT CASE WHEN {_good(expected)} THEN {term.sql} END FROM edges").toArrow()
        except Exception as error:
            yield f"{term.sql}: Spark says {str(error).splitlines()[0][:200]}"


@pytest.mark.parametrize("start", range(0, len(TERMS), CHUNK))
def test_errors(spark: Any, edges: Any, start: int) -> None:
    draw, differences = random.Random(start), []
    for term in TERMS[start : start + CHUNK][:: 1 if start > len(TERMS) * 0.8 else 5]:
        outcomes = [outcome(term.expr, row) for row in ROWS]
        failing = [k for k, value in enumerate(outcomes) if isinstance(value, EvaluationError) and not ours_alone(term, value)]
        for k in draw.sample(failing, min(SAMPLE, len(failing))):
            try:
                actual = spark.sql(f"SELECT {term.sql} FROM edges WHERE row = {k}").toArrow()
            except Exception:
                continue
            if term.sql.startswith("cast(u AS") and _python(actual.column(0)[0]) is BEYOND:
                continue  # text with a year after 9999 is malformed here
            differences.append(f"{term.sql}: Spark {actual.column(0)}, ours {outcomes[k]!r} at {_inputs(term, ROWS[k])}")
    assert not differences, "\n".join(differences[:40])


def _python(scalar: Any) -> Any:
    """The value, or BEYOND for a date that Python cannot hold."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return BEYOND


def _inputs(term: Term, row: tuple[Value, ...]) -> dict[str, Value]:
    return {name: value for name, value in zip(SCHEMA.names, row, strict=True) if name in term.sql}


def tolerance(term: Term, theirs: Any, ours: Value) -> bool:
    """Equal, or different for a reason that Deltic documents."""
    if alike(theirs, ours):
        return True
    if theirs is BEYOND:
        # Text with a year after 9999 is malformed here, so TRY_CAST gives NULL.
        return ours is None and term.sql.startswith("try_cast(u AS")
    # A Java before 19 prints some floats longer than needed.
    return isinstance(theirs, str) and isinstance(ours, str) and len(ours) < len(theirs) and _same_number(theirs, ours)


def _same_number(theirs: str, ours: str) -> bool:
    try:
        return float(theirs) == float(ours)
    except ValueError:
        return False


def ours_alone(term: Term, error: EvaluationError) -> bool:
    """Errors that Spark does not have: dates outside the years 1 to 9999, and a decimal DIV that it wraps around silently."""
    if "years 1 to 9999" in error.message:
        return True
    return isinstance(error, ArithmeticOverflow) and " div " in term.sql
