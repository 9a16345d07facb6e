"""Bits of integers: shifts, single bits, and the buckets of a bitmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from deltic.errors import Span
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.failures import invalid
from deltic.expr.functions.signature import INTEGER, LONG, Parameter, accept, any_nullable, check_count, first, takes
from deltic.expr.nodes import Call, Expr
from deltic.expr.registry import Function, Typed
from deltic.expr.rows.arithmetic import wrapped
from deltic.schema import BIGINT, BINARY, INT, INTEGER_BITS, NULL, STRING, TINYINT, Type

BUCKET: Final = 32768
"""Bits of a bucket of a bitmap."""


def _shifted_type(type: Type) -> Type | None:
    if type == BIGINT:
        return BIGINT
    return INT if type.is_numeric or type in (STRING, NULL) else None


_SHIFTED: Final = Parameter("INT or BIGINT", _shifted_type)
_WHOLE: Final = Parameter("an integer", lambda t: t if t.is_integer else INT if t == NULL else None)


def _shift(name: str, symbol: str, run: Callable[[int, int, int], int]) -> Function:
    """run(value, count, bits): the count is taken modulo the bits of the type, as Java does."""

    def rows(call: Call, value: int, count: int) -> int:
        bits = INTEGER_BITS[call.type.name]
        return wrapped(run(value, count % bits, bits), call.type)

    signature = takes([_SHIFTED, INTEGER], first)
    return Function(name=name, symbols=(symbol,), signature=signature, can_fail=False, rows=rows, arrays=per_distinct)


def _bit(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 2, 2, span)
    taken = accept(name, 1, arguments[0], _WHOLE, span), accept(name, 2, arguments[1], INTEGER, span)
    return Typed(taken, TINYINT, any_nullable(taken))


def _bit_at(call: Call, value: int, position: int) -> int:
    bits = INTEGER_BITS[call.arguments[0].type.name]
    if not 0 <= position < bits:
        raise invalid(f"bit_get: the position {position} is not in 0 to {bits - 1}", call.span)
    return value >> position & 1


def _bucket_number(call: Call, value: int) -> int:
    """From 1 for the positive values; 0 and below for the others, towards zero."""
    return 1 + (value - 1) // BUCKET if value > 0 else -(-value // BUCKET)


def _position_in_bucket(call: Call, value: int) -> int:
    return (value - 1) % BUCKET if value > 0 else -value % BUCKET


_BITMAP: Final = Parameter("BINARY", lambda t: BINARY if t == BINARY else None)

FUNCTIONS: Final = (
    Function(
        name="bitmap_count",
        signature=takes([_BITMAP], BIGINT),
        can_fail=False,
        rows=lambda call, bitmap: int.from_bytes(bitmap, "big").bit_count(),
        arrays=per_distinct,
    ),
    _shift("shiftleft", "<<", lambda value, count, bits: value << count),
    _shift("shiftright", ">>", lambda value, count, bits: value >> count),
    _shift("shiftrightunsigned", ">>>", lambda value, count, bits: value % 2**bits >> count),
    Function(name="bit_get", aliases=("getbit",), signature=_bit, can_fail=True, rows=_bit_at, arrays=per_distinct),
    Function(name="bitmap_bucket_number", signature=takes([LONG], BIGINT), can_fail=False, rows=_bucket_number, arrays=per_distinct),
    Function(name="bitmap_bit_position", signature=takes([LONG], BIGINT), can_fail=False, rows=_position_in_bucket, arrays=per_distinct),
)
