"""Compares a term of SQL between Deltic and Spark, row by row: the same type, the same values, and errors on the same rows."""

from __future__ import annotations

import functools
import math
import random
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from benchmarks.function_samples import SCHEMA, Row
from deltic.errors import EvaluationError, QueryError
from deltic.expr import Expr, Value
from deltic.expr.interpreter import evaluate
from deltic.frontends.sql import bind_query
from deltic.frontends.statements import DefinedFunction
from deltic.plan.nodes import Plan, Project
from deltic.schema import TableSchema
from deltic.types import frozen, type_of

Ask = Callable[[str], pa.Table]
"""Spark's answer to a query over the view `samples`, which has the columns of SCHEMA and `row`, an INT."""
SPARK_ERRORS: Final = (PySparkException, Py4JJavaError)
"""The latter where Spark has no condition for what a job met, as an overflow in Java's own arithmetic."""
SAMPLED_ERRORS: Final = 2
"""Rows on which Deltic fails that Spark evaluates, one query each."""
BEYOND: Final = object()
"""A date or time outside the years 1 to 9999."""
LAST_PLACE: Final = 4.5e-16
"""How far functions of the C library may be from Java's, relatively."""
APPROXIMATE: Final = frozenset(("sin", "cos", "tan", "cot", "csc", "sec"))
"""Functions of the C library, where Java has the processor's."""


OURS_ALONE: Final = ("years 1 to 9999", "would make a string of", "would make an ARRAY of", "which a MAP cannot hold")
"""Words of errors that Spark does not have: of dates, of long values, and of JSON objects with a name twice."""


class Samples:
    """The catalog of the one table `samples`."""

    def relation(self, name: str) -> TableSchema | Plan | None:
        return TableSchema("samples", SCHEMA) if name.lower() == "samples" else None

    def names(self) -> Iterable[str]:
        return ("samples",)

    def functions(self) -> Mapping[str, DefinedFunction]:
        return {}


@dataclass(frozen=True, slots=True)
class Term:
    """A term that Deltic accepts: the function that it is about, its SQL, and its expression over the columns of the samples."""

    function: str
    sql: str
    expr: Expr


@functools.cache
def bound(function: str, sql: str) -> Term:
    """The term of this SQL; an INTERVAL as text, since Python's Arrow does not have all of them. Raises QueryError if Deltic refuses it."""
    plan = bind_query(f"SELECT {sql} AS c FROM samples", "term", Samples())
    assert isinstance(plan, Project), plan
    if plan.columns[0][1].type.is_interval:
        return bound(function, f"CAST({sql} AS STRING)")
    return Term(function, sql, plan.columns[0][1])


def accepted(function: str, texts: Iterable[str]) -> tuple[list[Term], list[tuple[str, QueryError]]]:
    """The terms that Deltic accepts, and the texts that it refuses."""
    terms, refused = [], []
    for sql in texts:
        try:
            terms.append(bound(function, sql))
        except QueryError as error:
            refused.append((sql, error))
    return terms, refused


def outcome(expr: Expr, row: Row) -> Value | EvaluationError:
    """The oracle's value, or the error that it raises."""
    try:
        return evaluate(expr, row)
    except EvaluationError as error:
        return error


def differences(terms: Sequence[Term], rows: Sequence[Row], ask: Ask) -> Iterator[tuple[Term, str]]:
    """What differs, in words; all terms in one query, and one more for each of a few rows that fail."""
    outcomes = [[outcome(term.expr, row) for row in rows] for term in terms]
    try:
        answer = _answer([_guarded(term, values) for term, values in zip(terms, outcomes, strict=True)], ask)
    except SPARK_ERRORS:
        for term, values in zip(terms, outcomes, strict=True):
            yield from _alone(term, values, rows, ask)
    else:
        for k, (term, values) in enumerate(zip(terms, outcomes, strict=True)):
            yield from ((term, words) for words in _compared(term, values, rows, answer.column(f"c{k}")))
    for term, values in zip(terms, outcomes, strict=True):
        yield from ((term, words) for words in _errors(term, values, rows, ask))


def _guarded(term: Term, outcomes: Sequence[Value | EvaluationError]) -> str:
    """The term on the rows where Deltic has a value."""
    good = [str(k) for k, value in enumerate(outcomes) if not isinstance(value, EvaluationError)]
    if len(good) == len(outcomes):
        return term.sql
    return f"CASE WHEN row IN ({', '.join(good)}) THEN {term.sql} END" if good else f"CASE WHEN row < 0 THEN {term.sql} END"


def _answer(texts: Sequence[str], ask: Ask) -> pa.Table:
    columns = ", ".join(f"{text} AS c{k}" for k, text in enumerate(texts))
    return ask(f"SELECT row, {columns} FROM samples").sort_by("row")


def _alone(term: Term, outcomes: Sequence[Value | EvaluationError], rows: Sequence[Row], ask: Ask) -> Iterator[tuple[Term, str]]:
    try:
        answer = _answer([_guarded(term, outcomes)], ask)
    except SPARK_ERRORS as error:
        yield term, f"{term.sql}: Spark says {str(error).strip().splitlines()[0][:300]}"
    else:
        yield from ((term, words) for words in _compared(term, outcomes, rows, answer.column("c0")))


def _compared(term: Term, outcomes: Sequence[Value | EvaluationError], rows: Sequence[Row], column: Any) -> Iterator[str]:
    if type_of(column.type) != type_of(term.expr.type.arrow):  # Arrow does not say a collation, nor the places of a TIME
        yield f"{term.sql}: Spark's type is {column.type}, ours {term.expr.type}"
        return
    for row, scalar, ours in zip(rows, column.combine_chunks(), outcomes, strict=True):
        if not isinstance(ours, EvaluationError) and not agrees(term, theirs := _python(scalar), ours):
            yield f"{term.sql}: Spark {theirs!r}, ours {ours!r} at {_inputs(term, row)}"


def _errors(term: Term, outcomes: Sequence[Value | EvaluationError], rows: Sequence[Row], ask: Ask) -> Iterator[str]:
    failing = [k for k, value in enumerate(outcomes) if isinstance(value, EvaluationError) and not ours_alone(value)]
    for k in random.Random(term.sql).sample(failing, min(SAMPLED_ERRORS, len(failing))):
        try:
            spark_values = ask(f"SELECT CASE WHEN row = {k} THEN {term.sql} END AS c FROM samples WHERE row = {k}").column("c")
        except SPARK_ERRORS:
            continue
        yield f"{term.sql}: Spark {spark_values.to_pylist()}, ours {outcomes[k]!r} at {_inputs(term, rows[k])}"


def agrees(term: Term, theirs: Any, ours: Value) -> bool:
    """Equal bit for bit; within the last place for functions of the C library."""
    if isinstance(theirs, float) and isinstance(ours, float):
        if struct.pack("d", theirs) == struct.pack("d", ours) or (math.isnan(theirs) and math.isnan(ours)):
            return True
        return term.function in APPROXIMATE and math.isclose(theirs, ours, rel_tol=LAST_PLACE)
    if isinstance(theirs, tuple) and isinstance(ours, tuple):
        return len(theirs) == len(ours) and all(agrees(term, a, b) for a, b in zip(theirs, ours, strict=True))
    return type(theirs) is type(ours) and bool(theirs == ours)


def ours_alone(error: EvaluationError) -> bool:
    """An error that Spark does not have."""
    return any(words in error.message for words in OURS_ALONE)


def _python(scalar: Any) -> Any:
    """The value, or BEYOND for a date that Python cannot hold."""
    try:
        return frozen(scalar.as_py())
    except (OverflowError, ValueError):
        return BEYOND


def _inputs(term: Term, row: Row) -> dict[str, Value]:
    words = set("".join(c if c.isalnum() else " " for c in term.sql).split())
    return {name: value for name, value in zip(SCHEMA.names, row, strict=True) if name in words}
