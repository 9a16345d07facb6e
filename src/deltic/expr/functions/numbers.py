"""Numeric functions: rounding, roots and logarithms, bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow.compute as pc

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays import arithmetic as arrays
from deltic.expr.arrays import decimal_arithmetic as decimals
from deltic.expr.arrays.datum import Kernel
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.failing import is_negative
from deltic.expr.functions import intervals
from deltic.expr.functions.signature import INTEGER, LONG, NUMBER, REAL, Parameter, accept, any_nullable, check_count, constant, takes
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Function, Typed, resolve
from deltic.expr.rows import arithmetic as rows
from deltic.expr.rows import strict_math
from deltic.expr.rows.arithmetic import wrapped
from deltic.expr.rows.numbers import float_quotient, power, saturated
from deltic.expr.typing import MAX_PRECISION, bounded, cast, common_type
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, INT, NULL, Type, decimal


def _sign(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """SIGN's argument: a DOUBLE; of an INTERVAL its number of microseconds or months."""
    check_count(name, arguments, 1, 1, span)
    value = cast(number, DOUBLE) if (number := intervals.number(arguments[0])) is not None else accept(name, 1, arguments[0], REAL, span)
    return Typed((value,), DOUBLE, value.nullable)


def _whole(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    """CEIL and FLOOR: BIGINT, or a DECIMAL without places; a DECIMAL with two arguments."""
    check_count(name, arguments, 1, 2, span)
    if len(arguments) == 2:
        return resolve("floor_to" if name.lower() == "floor" else "ceil_to", arguments, span, written=name)
    argument = accept(name, 1, arguments[0], NUMBER, span)
    if argument.type.is_decimal:
        type = bounded(argument.type.precision - argument.type.scale + 1, 0) if argument.type.scale else argument.type
    else:
        argument = cast(argument, BIGINT if argument.type.is_integer else DOUBLE)
        type = BIGINT
    return Typed((argument,), type, argument.nullable)


def _rounding(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 1, 2, span)
    value = accept(name, 1, arguments[0], NUMBER, span)
    given = accept(name, 2, arguments[1], INTEGER, span) if len(arguments) == 2 else Literal(0, INT)
    places = constant(given)
    if places is None:
        raise TypeMismatch(f"the scale of {name} is not a constant", span=given.span or span, expected="an INT constant")
    type = rounded_type(value.type, places.value if isinstance(places.value, int) else 0)
    return Typed((value, places), type, value.nullable or places.nullable)


def rounded_type(type: Type, places: int) -> Type:
    """The type of ROUND(x, places): a decimal has one more integral digit, and at most `places` places."""
    if not type.is_decimal:
        return type
    integral = type.precision - type.scale + 1
    if places < 0:
        return decimal(min(max(integral, 1 - places), MAX_PRECISION), 0)
    scale = min(type.scale, places)
    return decimal(min(integral + scale, MAX_PRECISION), scale)


def _rounding_can_fail(call: Call) -> bool:
    return call.type.precision == MAX_PRECISION or (call.type.is_integer and is_negative(call.arguments[-1]))


def _integers(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """Two integers of one type."""
    check_count(name, arguments, 2, 2, span)
    common = common_type([a.type for a in arguments])
    common = INT if common == NULL else common
    if common is None or not common.is_integer:
        raise TypeMismatch(f"{name} does not accept {' and '.join(a.type.sql for a in arguments)}", span=span, expected="integers")
    converted = tuple(cast(a, common) for a in arguments)
    return Typed(converted, common, any_nullable(converted))


def _integer(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 1, 1, span)
    argument = arguments[0] if arguments[0].type != NULL else cast(arguments[0], INT)
    if not argument.type.is_integer:
        raise TypeMismatch(f"{name} does not accept {argument.type.sql}", span=span, expected="an integer")
    return Typed((argument,), argument.type, argument.nullable)


_LN: Final = takes([REAL], DOUBLE, nullable="always")
_LOG: Final = takes([REAL, REAL], DOUBLE, nullable="always")


def _log(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    """LOG(base, x), or LOG(x), which is LN."""
    return _LN(name, arguments, span).call("ln", span) if len(arguments) == 1 else _LOG(name, arguments, span)


def _logarithm(call: Call, value: float) -> float | None:
    return None if value <= 0 else strict_math.log(value)


def _logarithm_of(call: Call, base: float, value: float) -> float | None:
    return None if base <= 0 or value <= 0 else float_quotient(strict_math.log(value), strict_math.log(base))


_BITS: Final = Parameter("an integer or BOOLEAN", lambda t: BIGINT if t.is_integer or t == NULL else t if t == BOOLEAN else None)


def _bucketed(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(value, low, high, count), the first three numbers, or INTERVALs of one family."""
    bounds = arguments[:3]
    if all(a.type.is_day_time for a in bounds) or all(a.type.is_year_month for a in bounds):
        units = [number for each in bounds if (number := intervals.number(each)) is not None]
        arguments = [*(cast(each, DOUBLE) for each in units), *arguments[3:]]
    return _BUCKET(name, arguments, span)


_BUCKET: Final = takes([REAL, REAL, REAL, LONG], BIGINT, nullable="always")


def _bucket(call: Call, value: float, low: float, high: float, count: int) -> int | None:
    """The bucket, 1 to `count`, of equal width between two bounds, in either order; 0 or count + 1 outside."""
    if not 0 < count < 2**63 - 1 or math.isnan(value) or low == high or not (math.isfinite(low) and math.isfinite(high)):
        return None
    distance, before, beyond = (value - low, value < low, value >= high) if low < high else (low - value, value > low, value <= high)
    if before or beyond:
        return 0 if before else count + 1
    return wrapped(saturated(float_quotient(float(count) * distance, abs(high - low))) + 1, BIGINT)


def _float(name: str, rows: Kernel, arrays: Kernel) -> Function:
    """The record of a function of one DOUBLE that cannot fail."""
    return Function(name=name, signature=takes([REAL], DOUBLE), can_fail=False, rows=rows, arrays=arrays)


FUNCTIONS: Final = (
    Function(
        name="bit_count",
        signature=takes([_BITS], INT),
        can_fail=False,
        rows=lambda call, value: (value % 2**64).bit_count(),
        arrays=per_distinct,
    ),
    Function(
        name="factorial",
        signature=takes([INTEGER], BIGINT, nullable="always"),
        can_fail=False,
        rows=lambda call, n: math.factorial(n) if 0 <= n <= 20 else None,
        arrays=per_distinct,
    ),
    Function(
        name="width_bucket",
        signature=_bucketed,
        can_fail=False,
        rows=_bucket,
        arrays=per_distinct,
    ),
    Function(
        name="ceil",
        aliases=("ceiling",),
        signature=_whole,
        can_fail=_rounding_can_fail,
        rows=rows.ceil,
        arrays=arrays.whole(np.ceil, decimals.ceil),
    ),
    Function(
        name="floor",
        signature=_whole,
        can_fail=_rounding_can_fail,
        rows=rows.floor,
        arrays=arrays.whole(np.floor, decimals.floor),
    ),
    Function(name="round", signature=_rounding, can_fail=_rounding_can_fail, rows=rows.round_, arrays=arrays.rounding),
    Function(name="bround", signature=_rounding, can_fail=_rounding_can_fail, rows=rows.bround, arrays=arrays.rounding),
    Function(
        name="sign",
        aliases=("signum",),
        signature=_sign,
        can_fail=False,
        rows=lambda call, x: rows.sign(x),
        arrays=arrays.sign,
    ),
    _float("sqrt", lambda call, x: math.nan if x < 0 else math.sqrt(x), lambda call, length, x: pc.sqrt(x)),
    _float("exp", lambda call, x: strict_math.exp(x), arrays.exp),
    Function(name="ln", signature=_LN, can_fail=False, rows=_logarithm, arrays=arrays.ln),
    Function(
        name="log10",
        signature=_LN,
        can_fail=False,
        rows=lambda call, x: None if x <= 0 else strict_math.log10(x),
        arrays=per_distinct,
    ),
    Function(
        name="log2",
        signature=_LN,
        can_fail=False,
        rows=lambda call, x: None if x <= 0 else strict_math.log(x) / math.log(2.0),
        arrays=arrays.log2,
    ),
    Function(name="log", signature=_log, can_fail=False, rows=_logarithm_of, arrays=arrays.log),
    Function(
        name="power",
        aliases=("pow",),
        signature=takes([REAL, REAL], DOUBLE),
        can_fail=False,
        rows=lambda call, x, y: power(x, y),
        arrays=arrays.power,
    ),
    Function(
        name="bit_and",
        symbols=("&",),
        named=False,
        signature=_integers,
        can_fail=False,
        rows=lambda call, a, b: a & b,
        arrays=lambda call, length, a, b: pc.bit_wise_and(a, b),
    ),
    Function(
        name="bit_or",
        symbols=("|",),
        named=False,
        signature=_integers,
        can_fail=False,
        rows=lambda call, a, b: a | b,
        arrays=lambda call, length, a, b: pc.bit_wise_or(a, b),
    ),
    Function(
        name="bit_xor",
        symbols=("^",),
        named=False,
        signature=_integers,
        can_fail=False,
        rows=lambda call, a, b: a ^ b,
        arrays=lambda call, length, a, b: pc.bit_wise_xor(a, b),
    ),
    Function(
        name="bit_not",
        symbols=("~",),
        named=False,
        signature=_integer,
        can_fail=False,
        rows=lambda call, a: ~a,
        arrays=lambda call, length, a: pc.bit_wise_not(a),
    ),
)
