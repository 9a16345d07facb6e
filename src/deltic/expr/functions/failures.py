"""fails(e, …) and failure(e, text, …): whether, and how, the first of several expressions fails on a row, as a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from deltic.errors import EvaluationError, Span, shortened
from deltic.expr.arrays.datum import Datum, python_value
from deltic.expr.arrays.distinct import per_distinct_with_nulls
from deltic.expr.collating import as_is
from deltic.expr.columns import Frame, value_of
from deltic.expr.interpreter import Row, evaluate
from deltic.expr.nodes import Call, Expr, Value, calls_python, columns_of
from deltic.expr.registry import Function, Nulls, Typed
from deltic.schema import BOOLEAN, STRING, Field
from deltic.types import struct

FAILS: Final = "fails"
FAILURE: Final = "shown_failure"
ROW_TEXT: Final = "shown_row"
"""States have views of these functions' values: what they give changes only with their names, so that such a view is filled again."""
LONGEST_VALUE: Final = 200
"""The most characters of a value in the text of a row, all of which has as many as an error's message."""
COLUMNS: Final = ("error", "expression", "row")
"""Of a collection of errors: what failed, its text, and the columns that it reads."""
ONE_BY_ONE: Final = 32
"""So few rows are evaluated one by one: columns of them take as long."""
FAILURE_TYPE: Final = struct((Field("error", STRING, False), Field("expression", STRING, False)))


def _fails(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    return Typed(tuple(arguments), BOOLEAN, False)


def _failure(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """Each expression is followed by its text, a literal."""
    assert len(arguments) % 2 == 0
    return Typed(tuple(arguments), FAILURE_TYPE, True)


def _error(expr: Expr, row: Row) -> EvaluationError | None:
    try:
        evaluate(expr, row)
    except EvaluationError as error:
        return error
    return None


def _described(error: EvaluationError, text: Value) -> Value:
    """Without the place and the help, which are those of one text of the same query, and of a long message what the error's text shows."""
    return (f"[{error.code}] {shortened(error.message)}", text)


def _fails_on_row(call: Call, row: Row) -> bool:
    return any(_error(expr, row) is not None for expr in call.arguments)


def _failure_on_row(call: Call, row: Row) -> Value:
    for expr, text in zip(call.arguments[::2], call.arguments[1::2], strict=True):
        if (error := _error(expr, row)) is not None:
            return _described(error, evaluate(text, row))
    return None


def _failing(exprs: Sequence[Expr], frame: Frame) -> Iterator[tuple[int, np.ndarray]]:
    """(the position of an expression, the rows on which it is the first one to fail)."""
    rest = np.arange(frame.length)
    for i, expr in enumerate(exprs):
        rows = failing_rows(expr, frame, rest)
        if len(rows):
            yield i, rows
            rest = np.setdiff1d(rest, rows, assume_unique=True)


def failing_rows(expr: Expr, frame: Frame, rows: np.ndarray) -> np.ndarray:
    """Those of the rows on which it fails. By halves, and few rows one by one: O(log n) evaluations of columns for each row that fails, and
    where many fail one of each row."""
    if not len(rows):
        return rows
    try:
        value_of(expr, frame if len(rows) == frame.length else frame.narrow(rows))
    except EvaluationError:
        if len(rows) == 1:
            return rows
        if len(rows) <= ONE_BY_ONE and not calls_python(expr):
            return rows[[_error(expr, row) is not None for row in read_rows(expr, frame, rows)]]
        half = len(rows) // 2
        return np.concatenate([failing_rows(expr, frame, rows[:half]), failing_rows(expr, frame, rows[half:])])
    return rows[:0]


def read_rows(expr: Expr, frame: Frame, rows: np.ndarray) -> Iterator[Row]:
    """The rows, with NULL in the columns that the expression does not read."""
    read = sorted(columns_of(expr))
    row: list[Value] = [None] * (read[-1] + 1 if read else 0)
    for number in rows.tolist():
        for column in read:
            row[column] = python_value(frame.column(column), number)
        yield tuple(row)


def _fails_on_columns(call: Call, frame: Frame) -> Datum:
    failing = np.zeros(frame.length, np.bool_)
    for _, rows in _failing(call.arguments, frame):
        failing[rows] = True
    return pa.array(failing) if failing.any() else pa.scalar(False)


def _failure_on_columns(call: Call, frame: Frame) -> Datum:
    values: dict[int, Any] = {}
    for i, rows in _failing(call.arguments[::2], frame):
        expr, text = call.arguments[2 * i], call.arguments[2 * i + 1]
        for number, row in zip(rows.tolist(), read_rows(expr, frame, rows), strict=True):
            error = _error(expr, row)
            assert error is not None, "the row form fails where the array form does"
            values[number] = _described(error, evaluate(text, ()))
    if not values:
        return pa.scalar(None, FAILURE_TYPE.arrow)
    listed = (values.get(row) for row in range(frame.length))
    return pa.array(
        [None if value is None else dict(zip(("error", "expression"), value, strict=True)) for value in listed], FAILURE_TYPE.arrow
    )


def _row_text(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """The name of each value, a literal, before it."""
    return Typed(tuple(arguments), STRING, False)


def _text(call: Call, *parts: Value) -> str:
    values = ("NULL" if value is None else shortened(str(value), LONGEST_VALUE) for value in parts[1::2])
    return shortened(", ".join(f"{name!s} = {value}" for name, value in zip(parts[::2], values, strict=True)))


FUNCTIONS: Final = (
    Function(
        name=FAILS,
        named=False,
        signature=_fails,
        nulls=Nulls.LAZY,
        can_fail=False,
        catches=True,
        rows=_fails_on_row,
        arrays=_fails_on_columns,
    ),
    Function(
        name=FAILURE,
        named=False,
        signature=_failure,
        nulls=Nulls.LAZY,
        can_fail=False,
        catches=True,
        rows=_failure_on_row,
        arrays=_failure_on_columns,
    ),
    Function(
        name=ROW_TEXT,
        named=False,
        signature=_row_text,
        nulls=Nulls.SEEN,
        can_fail=False,
        collated=as_is,
        rows=_text,
        arrays=per_distinct_with_nulls,
    ),
)
