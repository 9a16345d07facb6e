"""TIMESTAMPADD and TIMESTAMPDIFF, also written DATEADD(unit, …) and DATEDIFF(unit, …)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.functions.signature import INSTANT, LONG, accept, any_nullable, check_count, constant
from deltic.expr.nodes import Expr, Literal
from deltic.expr.registry import Function, Rewrite, Typed, resolve
from deltic.expr.rows.units import MICROS, MONTHS, whole_units
from deltic.schema import BIGINT, STRING

_DAYS: Final = {"WEEK": 7, "DAY": 1, "DAYOFYEAR": 1}
_ADDED: Final = {
    **{unit: ("plus_months", months) for unit, months in MONTHS.items()},
    **{unit: ("add_days", days) for unit, days in _DAYS.items()},
    **{unit: ("add_microseconds", micros) for unit, micros in MICROS.items() if unit not in _DAYS},
}
"""By unit: the function that adds to a moment, and its argument for one unit."""


def _unit(name: str, argument: Expr, units: Sequence[str], span: Span | None) -> str:
    word = constant(argument)
    unit = str(word.value).upper() if word is not None else ""
    if unit not in units:
        raise TypeMismatch(f"unknown unit in {name}", span=argument.span or span, expected=f"one of {', '.join(units)}")
    return unit


def _added(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """(unit, amount, moment) -> TIMESTAMP."""
    check_count(name, arguments, 3, 3, span)
    function, size = _ADDED[_unit(name, arguments[0], tuple(_ADDED), span)]
    amount, moment = accept(name, 2, arguments[1], LONG, span), accept(name, 3, arguments[2], INSTANT, span)
    many = amount if size == 1 else resolve("*", [amount, Literal(size, BIGINT)], span)
    return resolve(function, [moment, many], span)


def _difference(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(unit, start, end) -> BIGINT."""
    check_count(name, arguments, 3, 3, span)
    unit = _unit(name, arguments[0], (*MONTHS, *MICROS), span)
    moments = tuple(accept(name, i, a, INSTANT, span) for i, a in enumerate(arguments[1:], 2))
    return Typed((Literal(unit, STRING), *moments), BIGINT, any_nullable(moments))


FUNCTIONS: Final = (
    Rewrite(name="timestampadd", build=_added),
    Function(
        name="timestampdiff",
        signature=_difference,
        can_fail=False,
        rows=lambda call, unit, start, end: whole_units(unit, start, end),
        arrays=per_distinct,
    ),
)
