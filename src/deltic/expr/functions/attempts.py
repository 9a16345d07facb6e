"""attempt(expression): its value, NULL on the rows on which it fails. Not in SQL: joins look rows up by it, and then evaluate what was
written, with its error, on the rows that match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from deltic.errors import EvaluationError, Span
from deltic.expr.arrays.datum import Datum
from deltic.expr.columns import Frame, value_where
from deltic.expr.failing import ATTEMPT, can_fail
from deltic.expr.functions.failures import failing_rows
from deltic.expr.functions.signature import check_count
from deltic.expr.interpreter import Row, evaluate
from deltic.expr.nodes import Call, Expr, Value
from deltic.expr.registry import Function, Nulls, Typed


def attempt(expr: Expr) -> Expr:
    """The expression, NULL where it fails."""
    return Call(ATTEMPT, (expr,), expr.type, True, expr.span)


def tried(expr: Expr) -> Expr:
    """The same, and the expression itself if it cannot fail."""
    return attempt(expr) if can_fail(expr) else expr


def _signature(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 1, 1, span)
    return Typed(tuple(arguments), arguments[0].type, True)


def _rows(call: Call, row: Row) -> Value:
    try:
        return evaluate(call.arguments[0], row)
    except EvaluationError:
        return None


def _arrays(call: Call, frame: Frame) -> Datum:
    expr, reached = call.arguments[0], np.ones(frame.length, bool)
    try:
        return value_where(expr, frame, reached)
    except EvaluationError:
        reached[failing_rows(expr, frame, np.arange(frame.length))] = False
    return value_where(expr, frame, reached) if reached.any() else pa.nulls(frame.length, call.type.arrow)


FUNCTIONS: Final = (
    Function(name=ATTEMPT, named=False, signature=_signature, nulls=Nulls.LAZY, can_fail=False, rows=_rows, arrays=_arrays),
)
