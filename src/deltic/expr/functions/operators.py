"""Arithmetic operators, with the operand and result types of Spark 4 (ANSI, decimal precision loss allowed)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import pyarrow.compute as pc

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays import arithmetic as arrays
from deltic.expr.arrays import decimal_arithmetic as decimals
from deltic.expr.failing import is_never_zero, is_nonzero_number
from deltic.expr.functions import intervals, times
from deltic.expr.functions.signature import NUMBER, TypeRule, accept, check_count, first, takes
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Function, Nulls, Rewrite, Signature, Typed
from deltic.expr.rows import arithmetic as rows
from deltic.expr.typing import MAX_PRECISION, adjusted, cast, common_type, decimal_of
from deltic.schema import BIGINT, DATE, DOUBLE, INT, NULL, TINYINT, Type, decimal

_MIN_QUOTIENT_SCALE: Final = 6


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


def exact_operand(expr: Expr, other: Type) -> Expr:
    """An integer operand beside a decimal, as a decimal; the precision of a literal is its number of digits, unless it is a TINYINT."""
    if not expr.type.is_integer or not other.is_decimal:
        return expr
    if isinstance(expr, Literal) and isinstance(expr.value, int) and not expr.derived and expr.type != TINYINT:
        return cast(expr, decimal(len(str(abs(expr.value))), 0))
    return cast(expr, decimal_of(expr.type))


def _operands(name: str, arguments: Sequence[Expr], span: Span | None) -> tuple[Expr, Expr]:
    """Both operands cast to one type, or both decimals of their own types."""
    check_count(name, arguments, 2, 2, span)
    left, right = arguments
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
    expected = {"+": "numbers, or an INTERVAL and a date, time or INTERVAL", "*": "numbers, or an INTERVAL and a number"}
    return TypeMismatch(f"{name} does not accept {types}", span=span, expected=expected.get(name, "numbers"))


def _typed(left: Expr, right: Expr, type: Type) -> Typed:
    return Typed((left, right), type, left.nullable or right.nullable)


def _sum(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    """+; of a DATE and days, a call of add_days; with an INTERVAL, what that gives. A sum on the left of the same type is extended."""
    check_count(name, arguments, 2, 2, span)
    moved = times.plus(arguments, span) or intervals.plus(name, arguments, span) or intervals.with_text("+", arguments, span)
    moved = moved or _moved_date("add_days", arguments[0], arguments[1], span)
    if moved is not None:
        return moved
    typed = _SUM(name, arguments, span)
    left, right = typed.arguments
    if isinstance(left, Call) and left.function == "add" and left.type == typed.type:
        return typed._replace(arguments=(*left.arguments, right))
    return typed


def _difference(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    """-; of a DATE and days, a call of subtract_days; with an INTERVAL, or of two dates or times, what that gives."""
    check_count(name, arguments, 2, 2, span)
    moved = _moved_date("subtract_days", arguments[0], arguments[1], span) or times.minus(arguments, span)
    moved = moved or intervals.minus(name, arguments, span) or intervals.with_text("-", arguments, span)
    return moved or _SUM(name, arguments, span)


def _product(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    check_count(name, arguments, 2, 2, span)
    return intervals.times(name, arguments, span) or _binary(product_type)(name, arguments, span)


def _unary(function: str) -> Signature:
    """Of a number, or of an INTERVAL, for which `function` is called."""

    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
        return intervals.same_type(function, arguments, span) or takes([NUMBER], first)(name, arguments, span)

    return rule


def _moved_date(function: str, left: Expr, right: Expr, span: Span | None) -> Expr | None:
    """DATE ± days, days + DATE."""
    if function == "add_days" and right.type == DATE and left.type.is_integer:
        left, right = right, left
    if left.type != DATE or not right.type.is_integer or right.type == BIGINT:
        return None
    return _typed(left, cast(right, INT), DATE).call(function, span)


def _binary(decimal_type: Callable[[Type, Type], Type]) -> TypeRule:
    """The signature of an operator whose result has the operands' type, or `decimal_type` for decimals."""

    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
        left, right = _operands(name, arguments, span)
        return _typed(left, right, decimal_type(left.type, right.type) if left.type.is_decimal else left.type)

    return rule


_SUM: Final = _binary(sum_type)


def _quotient(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    """DECIMAL of decimals, an INTERVAL of an INTERVAL and a number, else DOUBLE."""
    check_count(name, arguments, 2, 2, span)
    if (parts := intervals.over(name, arguments, span)) is not None:
        return parts
    left, right = _operands(name, arguments, span)
    if left.type.is_decimal and arguments[0].type != NULL:  # NULL / x is a DOUBLE
        return _typed(left, right, quotient_type(left.type, right.type))
    return _typed(cast(left, DOUBLE), cast(right, DOUBLE), DOUBLE)


def _whole_quotient(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """BIGINT of numbers, and of intervals of one family."""
    check_count(name, arguments, 2, 2, span)
    if all(argument.type.is_interval for argument in arguments) and common_type([argument.type for argument in arguments]) is not None:
        numbers = [cast(number, BIGINT) for argument in arguments if (number := intervals.number(argument)) is not None]
        return _typed(numbers[0], numbers[1], BIGINT)
    left, right = _operands(name, arguments, span)
    if left.type.is_float:
        raise _mismatch(name, arguments, span)
    if left.type.is_integer:
        left, right = cast(left, BIGINT), cast(right, BIGINT)
    return _typed(left, right, BIGINT)


def _positive(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 1, 1, span)
    number = arguments[0] if arguments[0].type.is_interval else accept(name, 1, arguments[0], NUMBER, span)
    return replace(number, derived=True) if isinstance(number, Literal) else number  # DECIMAL + +1 has the digits of INT in Spark


def _leaves_type(call: Call) -> bool:
    """Whether the result may be out of range: a decimal below 38 digits holds every sum and product; floats have infinities."""
    return not call.type.is_float and not (call.type.is_decimal and call.type.precision < MAX_PRECISION)


def _quotient_can_fail(call: Call) -> bool:
    return _division_can_fail(call) and (call.type.is_decimal or not is_never_zero(call.arguments[1]))


def _division_can_fail(call: Call) -> bool:
    if not is_nonzero_number(call.arguments[1]):
        return True
    return call.type.is_decimal and call.type.precision == MAX_PRECISION


def _pmod_can_fail(call: Call) -> bool:
    """Where a remainder is negative the divisor is added to it: a type that holds all remainders may be too short for the sum."""
    divisor, type = call.arguments[1].type, call.type
    return _division_can_fail(call) or (type.is_decimal and divisor.precision - divisor.scale > type.precision - type.scale)


def _whole_division_can_fail(call: Call) -> bool:
    divisor = call.arguments[1]
    return _division_can_fail(call) or divisor.type.is_decimal or (isinstance(divisor, Literal) and divisor.value == -1)


FUNCTIONS: Final = (
    Function(
        name="add",
        symbols=("+",),
        named=False,
        signature=_sum,
        nulls=Nulls.FOLDED,
        can_fail=_leaves_type,
        rows=rows.add,
        arrays=arrays.ring(pc.add_checked, pc.add, operator.add, decimals.add),
    ),
    Function(
        name="subtract",
        symbols=("-",),
        named=False,
        signature=_difference,
        can_fail=_leaves_type,
        rows=rows.subtract,
        arrays=arrays.ring(pc.subtract_checked, pc.subtract, operator.sub, decimals.subtract),
    ),
    Function(
        name="multiply",
        symbols=("*",),
        named=False,
        signature=_product,
        can_fail=_leaves_type,
        rows=rows.multiply,
        arrays=arrays.ring(pc.multiply_checked, pc.multiply, operator.mul, decimals.multiply),
    ),
    Function(
        name="divide",
        symbols=("/",),
        named=False,
        signature=_quotient,
        nulls=Nulls.STRICT_BACKWARDS,
        can_fail=_quotient_can_fail,
        rows=rows.divide,
        arrays=arrays.divide,
    ),
    Function(
        name="integral_divide",
        aliases=("div",),
        named=False,
        signature=_whole_quotient,
        nulls=Nulls.STRICT_BACKWARDS,
        can_fail=_whole_division_can_fail,
        rows=rows.integral_divide,
        arrays=arrays.integral_divide,
    ),
    Function(
        name="remainder",
        aliases=("mod",),
        symbols=("%",),
        named=False,
        signature=_binary(remainder_type),
        nulls=Nulls.STRICT_BACKWARDS,
        can_fail=_division_can_fail,
        rows=rows.remainder,
        arrays=arrays.remainder,
    ),
    Function(
        name="pmod",
        signature=_binary(remainder_type),
        nulls=Nulls.STRICT_BACKWARDS,
        can_fail=_pmod_can_fail,
        rows=rows.pmod,
        arrays=arrays.pmod,
    ),
    Function(
        name="negate",
        aliases=("negative",),
        named=False,
        signature=_unary("negate_interval"),
        can_fail=_leaves_type,
        rows=rows.negate,
        arrays=arrays.ring(pc.negate_checked, pc.negate, operator.neg, decimals.negate),
    ),
    Function(
        name="abs",
        signature=_unary("abs_interval"),
        can_fail=_leaves_type,
        rows=rows.absolute,
        arrays=arrays.ring(pc.abs_checked, pc.abs, abs, decimals.absolute),
    ),
    Rewrite(name="positive", build=_positive),
)
