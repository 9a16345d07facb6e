"""CEIL and FLOOR to a number of places, of exact numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.failures import overflow
from deltic.expr.functions.number_patterns import exact_type
from deltic.expr.functions.signature import INTEGER, Parameter, accept, constant
from deltic.expr.nodes import Call, Expr
from deltic.expr.registry import Function, Typed
from deltic.expr.rows.numbers import fit
from deltic.schema import Type, decimal

_EXACT: Final = Parameter("a number", exact_type)
_LONGEST: Final = 38


def _result(type: Type, places: int) -> Type:
    """One digit more before the point than the number has."""
    whole = type.precision - type.scale + 1
    if places < 0:
        return decimal(min(max(whole, 1 - places), _LONGEST), 0)
    scale = min(type.scale, places)
    return decimal(min(whole + scale, _LONGEST), scale)


def _to_places(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(number, places): the places are a constant."""
    value = accept(name, 1, arguments[0], _EXACT, span)
    places = constant(accept(name, 2, arguments[1], INTEGER, span))
    if places is None or not isinstance(places.value, int):
        raise TypeMismatch(f"the scale of {name} is not a constant", span=arguments[1].span or span, expected="an INT constant")
    return Typed((value, places), _result(value.type, places.value), True)


def _at(name: str, whole: Callable[[Fraction], int]) -> Function:
    def rows(call: Call, value: Decimal, places: int) -> Decimal:
        unit = Fraction(10) ** places
        rounded = fit(Fraction(whole(Fraction(value) * unit)) / unit, call.type)
        if rounded is None:
            raise overflow(f"{call.type.sql} {name.removesuffix('_to')}", call.span)
        return rounded

    return Function(name=name, named=False, signature=_to_places, can_fail=True, rows=rows, arrays=per_distinct)


FUNCTIONS: Final = (_at("ceil_to", math.ceil), _at("floor_to", math.floor))
