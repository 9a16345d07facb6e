"""ASSERT_TRUE and RAISE_ERROR, which fail rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltic.errors import Span
from deltic.expr.arrays.distinct import per_distinct_with_nulls
from deltic.expr.failures import invalid
from deltic.expr.functions.signature import CONDITION, TEXT, accept, check_count
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Function, Nulls, Typed
from deltic.schema import NULL, STRING

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
    Function(name="assert_true", signature=_asserted, nulls=Nulls.SEEN, can_fail=True, rows=_assert, arrays=per_distinct_with_nulls),
    Function(name="raise_error", signature=_raised, nulls=Nulls.SEEN, can_fail=True, rows=_raise, arrays=per_distinct_with_nulls),
)
