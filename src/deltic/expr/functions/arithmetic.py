"""Arithmetic operators and numeric functions: operand and result types as Spark 4 has them (ANSI, decimal precision loss allowed)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.functions.signature import INTEGER, NUMBER, REAL, Builder, accept, any_nullable, check_count, constant, function
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.typing import adjusted, bounded, cast, common_type, decimal_of
from deltic.schema import BIGINT, DATE, DOUBLE, INT, NULL, Type, decimal

_MIN_QUOTIENT_SCALE: Final = 6
_MAX_PRECISION: Final = 38


def sum_type(left: Type, right: Type) -> Type:
    """The DECIMAL of left + right and left - right."""
    scale = max(left.scale, right.scale)
    return adjusted(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def product_type(left: Type, right: Type) -> Type:
    """The DECIMAL of left * right."""
    return adjusted(left.precision + right.precision + 1, left.scale + right.scale)


def quotient_type(left: Type, right: Type) -> Type:
    """The DECIMAL of left / right.

    >>> quotient_type(decimal(2, 1), decimal(3, 2)).sql
    'DECIMAL(9,6)'
    """
    scale = max(_MIN_QUOTIENT_SCALE, left.scale + right.precision + 1)
    return adjusted(left.precision - left.scale + right.scale + scale, scale)


def remainder_type(left: Type, right: Type) -> Type:
    """The DECIMAL of left % right."""
    scale = max(left.scale, right.scale)
    return adjusted(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


_DECIMAL_RESULT: Final = {
    "add": sum_type,
    "subtract": sum_type,
    "multiply": product_type,
    "divide": quotient_type,
    "remainder": remainder_type,
    "pmod": remainder_type,
}


def exact_operand(expr: Expr, other: Type) -> Expr:
    """An integer that meets a decimal, as a decimal; a literal takes the digits that it is written with."""
    if not expr.type.is_integer or not other.is_decimal:
        return expr
    if isinstance(expr, Literal) and isinstance(expr.value, int) and not expr.derived:
        return cast(expr, decimal(len(str(abs(expr.value))), 0))
    return cast(expr, decimal_of(expr.type))


def _arithmetic(canonical: str) -> Builder:
    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 2, 2, span)
        left, right = arguments
        if canonical in ("add", "subtract") and (dates := _date_arithmetic(canonical, left, right, span)) is not None:
            return dates
        left, right = _operands(name, left, right, span)
        if canonical == "divide" and not left.type.is_decimal:
            left, right = cast(left, DOUBLE), cast(right, DOUBLE)
        if canonical == "integral_divide" and left.type.is_integer:
            left, right = cast(left, BIGINT), cast(right, BIGINT)
        if canonical == "integral_divide" and left.type.is_float:
            raise _mismatch(name, arguments, span)
        type = left.type
        if canonical == "integral_divide":
            type = BIGINT
        elif type.is_decimal:
            type = _DECIMAL_RESULT[canonical](type, right.type)
        return Call(canonical, (left, right), type, left.nullable or right.nullable, span)

    return build


def _operands(name: str, left: Expr, right: Expr, span: Span | None) -> tuple[Expr, Expr]:
    """Both of one type, or both decimals each of its own type."""
    if left.type == right.type == NULL:
        return cast(left, DOUBLE), cast(right, DOUBLE)
    a, b = exact_operand(left, right.type), exact_operand(right, left.type)
    if a.type.is_decimal and b.type.is_decimal:
        return a, b
    common = common_type([left.type, right.type])
    if common is None or not common.is_numeric:
        raise _mismatch(name, (left, right), span)
    return cast(left, common), cast(right, common)


def _mismatch(name: str, arguments: Sequence[Expr], span: Span | None) -> TypeMismatch:
    types = " and ".join(a.type.sql for a in arguments)
    remedy = "datediff(a, b) gives the days between two dates" if name == "-" and all(a.type == DATE for a in arguments) else None
    return TypeMismatch(f"{name} cannot take {types}", span=span, expected="numbers", remedy=remedy)


def _date_arithmetic(canonical: str, left: Expr, right: Expr, span: Span | None) -> Expr | None:
    """DATE ± days, days + DATE."""
    if canonical == "add" and right.type == DATE and left.type.is_integer:
        left, right = right, left
    if left.type != DATE or not right.type.is_integer or right.type == BIGINT:
        return None
    name = "add_days" if canonical == "add" else "subtract_days"
    return Call(name, (left, cast(right, INT)), DATE, left.nullable or right.nullable, span)


def _integers(canonical: str) -> Builder:
    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 2, 2, span)
        common = common_type([a.type for a in arguments])
        common = INT if common == NULL else common
        if common is None or not common.is_integer:
            raise TypeMismatch(f"{name} cannot take {' and '.join(a.type.sql for a in arguments)}", span=span, expected="integers")
        taken = tuple(cast(a, common) for a in arguments)
        return Call(canonical, taken, common, any_nullable(taken), span)

    return build


def _bit_not(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 1, 1, span)
    argument = arguments[0] if arguments[0].type != NULL else cast(arguments[0], INT)
    if not argument.type.is_integer:
        raise TypeMismatch(f"{name} cannot take {argument.type.sql}", span=span, expected="an integer")
    return Call("bit_not", (argument,), argument.type, argument.nullable, span)


def _positive(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 1, 1, span)
    return accept(name, 1, arguments[0], NUMBER, span)


def _whole(canonical: str) -> Builder:
    """CEIL and FLOOR: BIGINT, or a DECIMAL without places."""

    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 1, 1, span)
        argument = accept(name, 1, arguments[0], NUMBER, span)
        if argument.type.is_decimal:
            type = bounded(argument.type.precision - argument.type.scale + 1, 0) if argument.type.scale else argument.type
        else:
            argument = cast(argument, BIGINT if argument.type.is_integer else DOUBLE)
            type = BIGINT
        return Call(canonical, (argument,), type, argument.nullable, span)

    return build


def _rounding(canonical: str) -> Builder:
    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 1, 2, span)
        value = accept(name, 1, arguments[0], NUMBER, span)
        given = accept(name, 2, arguments[1], INTEGER, span) if len(arguments) == 2 else Literal(0, INT)
        places = constant(given)
        if places is None:
            raise TypeMismatch(f"the places of {name} are not a constant", span=given.span or span, expected="an INT constant")
        type = rounded_type(value.type, places.value if isinstance(places.value, int) else 0)
        return Call(canonical, (value, places), type, value.nullable or places.nullable, span)

    return build


def rounded_type(type: Type, places: int) -> Type:
    """What ROUND(x, places) gives: one more integral digit of a decimal, and no more places than asked for."""
    if not type.is_decimal:
        return type
    integral = type.precision - type.scale + 1
    if places < 0:
        return decimal(min(max(integral, 1 - places), _MAX_PRECISION), 0)
    scale = min(type.scale, places)
    return decimal(min(integral + scale, _MAX_PRECISION), scale)


def _same(types: Sequence[Type]) -> Type:
    return types[0]


_LOGARITHMS: Final = (
    function("log", [REAL, REAL], DOUBLE, nullable="always"),
    function("ln", [REAL], DOUBLE, nullable="always"),
)


def _log(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """LOG(x), or LOG(base, x)."""
    return _LOGARITHMS[len(arguments) == 1](name, arguments, span)


BUILDERS: Final[Mapping[str, Builder]] = {
    "add": _arithmetic("add"),
    "subtract": _arithmetic("subtract"),
    "multiply": _arithmetic("multiply"),
    "divide": _arithmetic("divide"),
    "integral_divide": _arithmetic("integral_divide"),
    "remainder": _arithmetic("remainder"),
    "pmod": _arithmetic("pmod"),
    "negate": function("negate", [NUMBER], _same),
    "positive": _positive,
    "abs": function("abs", [NUMBER], _same),
    "sign": function("sign", [REAL], DOUBLE),
    "ceil": _whole("ceil"),
    "floor": _whole("floor"),
    "round": _rounding("round"),
    "bround": _rounding("bround"),
    "sqrt": function("sqrt", [REAL], DOUBLE),
    "exp": function("exp", [REAL], DOUBLE),
    "ln": function("ln", [REAL], DOUBLE, nullable="always"),
    "log10": function("log10", [REAL], DOUBLE, nullable="always"),
    "log2": function("log2", [REAL], DOUBLE, nullable="always"),
    "power": function("power", [REAL, REAL], DOUBLE),
    "log": _log,
    "bit_and": _integers("bit_and"),
    "bit_or": _integers("bit_or"),
    "bit_xor": _integers("bit_xor"),
    "bit_not": _bit_not,
}
