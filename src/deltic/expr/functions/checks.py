"""ASSERT_TRUE and RAISE_ERROR, which fail rows, and the check of frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltic.errors import Span
from deltic.expr.arrays.distinct import per_distinct, per_distinct_with_nulls
from deltic.expr.collating import ignoring
from deltic.expr.failures import invalid
from deltic.expr.functions.signature import ANY, CONDITION, TEXT, accept, check_count, takes
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Function, Nulls, Typed
from deltic.expr.rows.frequencies import checked_frequency
from deltic.schema import BIGINT, NULL, STRING

FREQUENCY: Final = "frequency"
"""The function whose value is its argument, a BIGINT of at least 0."""
_UNSAID: Final = Literal(None, STRING)


def _asserted(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(condition[, message])."""
    check_count(name, arguments, 1, 2, span)
    message = accept(name, 2, arguments[1], TEXT, span) if len(arguments) > 1 else _UNSAID
    return Typed((accept(name, 1, arguments[0], CONDITION, span), message), NULL, True)


def _raised(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 1, 1, span)
    return Typed((accept(name, 1, arguments[0], TEXT, span),), NULL, True)


def _assert(call: Call, holds: bool | None, message: str | None) -> None:
    if holds is not True:
        raise invalid(message or "assert_true: the condition is not TRUE", call.span)


def _raise(call: Call, message: str | None) -> None:
    raise invalid(message or "raise_error: the message is NULL", call.span)


FUNCTIONS: Final = (
    Function(
        name=FREQUENCY,
        named=False,
        signature=takes([ANY], BIGINT),
        can_fail=True,
        rows=lambda call, value: checked_frequency(value, call.span),
        arrays=per_distinct,
    ),
    Function(
        name="assert_true",
        collated=ignoring,
        signature=_asserted,
        nulls=Nulls.SEEN,
        can_fail=True,
        rows=_assert,
        arrays=per_distinct_with_nulls,
    ),
    Function(
        name="raise_error",
        collated=ignoring,
        signature=_raised,
        nulls=Nulls.SEEN,
        can_fail=True,
        rows=_raise,
        arrays=per_distinct_with_nulls,
    ),
)
