"""in_range(value, low, high): the value; an overflow outside the range. It checks types that are narrower than those of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow.compute as pc

from deltic.errors import ArithmeticOverflow, Span
from deltic.expr.arrays.datum import Datum, fail_at, truths
from deltic.expr.functions.signature import check_count
from deltic.expr.nodes import Call, Expr
from deltic.expr.registry import Function, Typed, row_form


def _range(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """A number, and two constants of its type."""
    check_count(name, arguments, 3, 3, span)
    value, low, high = arguments
    assert value.type.is_numeric and value.type == low.type == high.type
    return Typed((value, low, high), value.type, value.nullable)


def in_range(call: Call, value: int, low: int, high: int) -> int:
    """On one row. Raises ArithmeticOverflow."""
    if low <= value <= high:
        return value
    raise ArithmeticOverflow(f"the value {value} is out of range", span=call.span, expected=f"{low} to {high}")


def _in_range_columns(call: Call, length: int, value: Datum, low: Datum, high: Datum) -> Datum:
    bad = truths(pc.or_(pc.less(value, low), pc.greater(value, high)), length)
    fail_at(bad, row_form(call), value, low, high)
    return value


FUNCTIONS: Final = (Function(name="in_range", named=False, signature=_range, can_fail=True, rows=in_range, arrays=_in_range_columns),)
