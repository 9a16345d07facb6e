"""only_row(value, rows): the value of a scalar subquery that has `rows` rows; an error if there are several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow.compute as pc

from deltic.errors import Span
from deltic.expr.arrays.datum import Datum, fail_at, truths
from deltic.expr.failures import several_rows
from deltic.expr.functions.signature import check_count
from deltic.expr.nodes import Call, Expr, Value
from deltic.expr.registry import Function, Nulls, Typed, row_form
from deltic.schema import BIGINT

ONLY_ROW: Final = "only_row"


def _only_row(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """A value, and a BIGINT."""
    check_count(name, arguments, 2, 2, span)
    value, rows = arguments
    assert rows.type == BIGINT
    return Typed((value, rows), value.type, value.nullable)


def _of_row(call: Call, value: Value, rows: int | None) -> Value:
    if rows is not None and rows > 1:
        raise several_rows(rows, call.span)
    return value


def _of_columns(call: Call, length: int, value: Datum, rows: Datum) -> Datum:
    fail_at(truths(pc.greater(rows, 1), length), row_form(call), value, rows)
    return value


FUNCTIONS: Final = (
    Function(name=ONLY_ROW, named=False, signature=_only_row, nulls=Nulls.SEEN, can_fail=True, rows=_of_row, arrays=_of_columns),
)
