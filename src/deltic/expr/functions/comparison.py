"""Comparisons, BETWEEN, GREATEST and LEAST, and tests for NULL and NaN."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import pyarrow.compute as pc

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays import compare as arrays
from deltic.expr.arrays.datum import Datum
from deltic.expr.arrays.distinct import per_distinct, per_distinct_with_nulls
from deltic.expr.collating import as_is, choosing, comparing
from deltic.expr.functions.operators import exact_operand
from deltic.expr.functions.signature import ANY, TypeRule, any_nullable, check_count, first, takes
from deltic.expr.nodes import WIDENED, Call, Column, Expr, Literal, OuterColumn, Value
from deltic.expr.registry import Function, Nulls, Rewrite, Typed, resolve
from deltic.expr.rows.collated_text import key_for
from deltic.expr.rows.ordering import equal, normalized, order, zero_signs
from deltic.expr.typing import cast, common_type_without_strings, compared_type, type_names
from deltic.schema import BOOLEAN, DOUBLE, FLOAT, INT, NULL, STRING, Type


def comparable(name: str, arguments: Sequence[Expr], span: Span | None) -> tuple[Expr, Expr]:
    """Two expressions cast to the type in which they are compared."""
    left, right = arguments
    left, right = filled(left, right), filled(right, left)
    left, right = exact_operand(left, right.type), exact_operand(right, left.type)
    common = compared_type([left.type, right.type])
    if common is None:
        types = f"{left.type.sql} and {right.type.sql}"
        raise TypeMismatch(f"{name} cannot compare {types}", span=span, expected="operands of one type", remedy="cast one of them")
    check_ordered(name, common, span)
    return cast(left, common), cast(right, common)


def filled(expr: Expr, other: Expr) -> Expr:
    """A text, or a CHAR of a table, filled with blanks where what it is compared with is a longer CHAR of a table, or a longer text."""
    length = _length(other)
    if isinstance(expr, Literal) and isinstance(expr.value, str) and isinstance(other, Column | OuterColumn):
        return replace(expr, value=expr.value.ljust(length))
    if isinstance(expr, Column | OuterColumn) and 0 < expr.filled < length:
        return resolve("rpad", [expr, Literal(length, INT)], expr.span)
    return expr


def filled_members(value: Expr, items: Sequence[Expr]) -> list[Expr]:
    """(value, items) of IN, filled with blanks up to the longest of them if the value is a CHAR of a table, and the items are texts."""
    if not isinstance(value, Column) or not value.filled or not all(isinstance(item, Literal) for item in items):
        return [value, *(filled(item, value) for item in items)]
    longest = max(items, key=_length)
    column = filled(value, longest)
    length = max(value.filled, _length(longest))
    return [column, *(filled(item, replace(value, filled=length)) for item in items)]


def _length(expr: Expr) -> int:
    """Of a CHAR of a table, or of a text, the number of characters; 0 otherwise."""
    if isinstance(expr, Column | OuterColumn):
        return expr.filled
    return len(expr.value) if isinstance(expr, Literal) and isinstance(expr.value, str) else 0


def check_ordered(name: str, type: Type, span: Span | None) -> None:
    """Raises TypeMismatch for a MAP or a VARIANT, and a type with one in it: as in Spark they cannot be compared."""
    if not type.is_ordered:
        remedy = "compare a cast of it, such as v::STRING" if type.has_variant else "compare map_keys() and map_values()"
        raise TypeMismatch(f"{name} does not support {type.sql}: {incomparable(type)}", span=span, remedy=remedy)


def check_grouped(type: Type, span: Span | None) -> None:
    """Raises TypeMismatch for a key of GROUP BY with a VARIANT in it. A MAP is a key by its entries in the order of their keys."""
    if type.has_variant:
        check_ordered("GROUP BY", type, span)


def incomparable(type: Type) -> str:
    """Why a type is not ordered."""
    return f"a {'VARIANT' if type.has_variant else 'MAP'} cannot be compared"


def _two(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 2, 2, span)
    sides = comparable(name, arguments, span)
    return Typed(sides, BOOLEAN, any_nullable(sides))


def _never_null(rule: TypeRule) -> TypeRule:
    return lambda name, arguments, span: rule(name, arguments, span)._replace(nullable=False)


def common_arguments(name: str, arguments: Sequence[Expr], type: Type | None, span: Span | None) -> tuple[Expr, ...]:
    """The arguments cast to their common type. Raises TypeMismatch if `type` is None."""
    if type is None:
        raise TypeMismatch(f"the arguments of {name} have no common type", span=span, expected=f"one type, found {type_names(arguments)}")
    return tuple(cast(a, type) for a in arguments)


def _best(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 2, None, span)
    converted = common_arguments(name, arguments, common_type_without_strings([a.type for a in arguments]), span)
    check_ordered(name, converted[0].type, span)
    return Typed(converted, converted[0].type, all(a.nullable for a in converted))


def _extreme(better: Callable[[int], bool]) -> Callable[..., Value]:
    def rows(call: Call, *values: Value) -> Value:
        best: Value = None
        key = key_for(call.type)
        for value in values:
            if value is not None and (best is None or better(order(key(value), key(best)))):
                best = value
        return best

    return rows


def _extreme_of_columns(function: str) -> Callable[..., Datum]:
    of_bytes = arrays.extreme(function)
    return lambda call, length, *values: (per_distinct_with_nulls if call.type.is_collated else of_bytes)(call, length, *values)


def _same(call: Call, left: Value, right: Value) -> bool:
    return left is right if left is None or right is None else equal(left, right)


def _number(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """ISNAN's argument: a DOUBLE or FLOAT."""
    check_count(name, arguments, 1, 1, span)
    argument = arguments[0]
    if argument.type != FLOAT:
        if not (argument.type.is_numeric or argument.type in (STRING, NULL)):
            sql = argument.type.sql
            raise TypeMismatch(f"argument 1 of {name} has the wrong type", span=span, expected=f"DOUBLE or FLOAT, found {sql}")
        argument = cast(argument, DOUBLE)
    return Typed((argument,), BOOLEAN, False)


def _normalize(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    """The value in a key: 0.0 for -0.0, and one NaN. Types other than floats are returned unchanged."""
    check_count(name, arguments, 1, 1, span)
    argument = arguments[0]
    return Typed((argument,), argument.type, argument.nullable) if argument.type.has_zeros else argument


def _between(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 3, 3, span)
    value, low, high = arguments
    above = resolve("greater_equal", (value, low), span, written=name)
    below = resolve("less_equal", (value, high), span, written=name)
    return Call("and", (above, below), BOOLEAN, above.nullable or below.nullable, span)


def _comparison(name: str, symbols: tuple[str, ...], holds: Callable[[int], bool]) -> Function:
    return Function(
        name=name,
        symbols=symbols,
        named=False,
        signature=_two,
        collated=comparing,
        can_fail=False,
        ignores_sign_of_zero=True,
        rows=lambda call, a, b: holds(order(a, b)),
        arrays=arrays.comparison(name),
    )


FUNCTIONS: Final = (
    _comparison("equal", ("=", "=="), lambda sign: sign == 0),
    _comparison("not_equal", ("<>", "!="), lambda sign: sign != 0),
    _comparison("less", ("<",), lambda sign: sign < 0),
    _comparison("less_equal", ("<=",), lambda sign: sign <= 0),
    _comparison("greater", (">",), lambda sign: sign > 0),
    _comparison("greater_equal", (">=",), lambda sign: sign >= 0),
    Function(
        name="same",
        collated=comparing,
        aliases=("equal_null",),
        symbols=("<=>",),
        named=False,
        signature=_never_null(_two),
        nulls=Nulls.SEEN,
        can_fail=False,
        ignores_sign_of_zero=True,
        rows=_same,
        arrays=lambda call, length, a, b: arrays.same(call.arguments[0].type, a, b),
    ),
    Rewrite(name="between", named=False, build=_between),
    Function(
        name="is_null",
        collated=as_is,
        aliases=("isnull",),
        named=False,
        signature=takes([ANY], BOOLEAN, nullable="never"),
        nulls=Nulls.SEEN,
        can_fail=False,
        ignores_sign_of_zero=True,
        rows=lambda call, value: value is None,
        arrays=lambda call, length, value: pc.is_null(value),
    ),
    Function(
        name="is_not_null",
        collated=as_is,
        aliases=("isnotnull",),
        named=False,
        signature=takes([ANY], BOOLEAN, nullable="never"),
        nulls=Nulls.SEEN,
        can_fail=False,
        ignores_sign_of_zero=True,
        rows=lambda call, value: value is not None,
        arrays=lambda call, length, value: pc.is_valid(value),
    ),
    Function(
        name="isnan",
        signature=_number,
        nulls=Nulls.SEEN,
        can_fail=False,
        ignores_sign_of_zero=True,
        rows=lambda call, value: value is not None and math.isnan(value),
        arrays=arrays.isnan,
    ),
    Function(
        name="normalize",
        named=False,
        signature=_normalize,
        can_fail=False,
        ignores_sign_of_zero=True,
        rows=lambda call, value: normalized(value),
        arrays=arrays.normalize,
    ),
    Function(
        name="zero_signs",
        named=False,
        signature=takes([ANY], STRING),
        can_fail=False,
        rows=lambda call, value: zero_signs(value),
        arrays=per_distinct,
    ),
    Function(
        name=WIDENED,
        collated=as_is,
        named=False,
        signature=takes([ANY], first, nullable="always"),
        can_fail=False,
        rows=lambda call, value: value,
        arrays=lambda call, length, value: value,
    ),
    Function(
        name="greatest",
        signature=_best,
        nulls=Nulls.SEEN,
        can_fail=False,
        rows=_extreme(lambda sign: sign > 0),
        arrays=_extreme_of_columns("greater"),
        collated=choosing,
    ),
    Function(
        name="least",
        signature=_best,
        nulls=Nulls.SEEN,
        can_fail=False,
        rows=_extreme(lambda sign: sign < 0),
        arrays=_extreme_of_columns("less"),
        collated=choosing,
    ),
)
