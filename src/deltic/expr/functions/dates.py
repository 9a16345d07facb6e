"""Date and time functions, EXTRACT, and what INTERVAL literals become. The time zone is UTC; years run from 1 to 9999."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr.functions.signature import (
    DAY,
    DAY_OR_INSTANT,
    DAYS,
    INSTANT,
    INTEGER,
    LONG,
    TEXT,
    Builder,
    accept,
    check_count,
    constant,
    function,
)
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.rows.dates import DATE_UNITS, TIME_UNITS
from deltic.expr.typing import cast
from deltic.schema import BIGINT, DATE, INT, NULL, TIMESTAMP, Type, decimal

_FIELDS: Final = {
    "year": ("year", "years", "y", "yr", "yrs"),
    "yearofweek": ("yearofweek",),
    "quarter": ("quarter", "qtr"),
    "month": ("month", "months", "mon", "mons"),
    "weekofyear": ("week", "weeks", "w"),
    "day": ("day", "days", "d"),
    "dayofweek": ("dayofweek", "dow"),
    "dayofweek_iso": ("dayofweek_iso", "dow_iso"),
    "dayofyear": ("doy",),
    "hour": ("hour", "hours", "h", "hr", "hrs"),
    "minute": ("minute", "minutes", "m", "min", "mins"),
    "second_fraction": ("second", "seconds", "s", "sec", "secs"),
}
_DAY_PARTS: Final = ("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear", "yearofweek")
_TIME_PARTS: Final = ("hour", "minute", "second")
FIELD: Final = {word: field for field, words in _FIELDS.items() for word in words}


def _to(type: Type) -> Builder:
    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        if len(arguments) > 1:
            raise Unsupported(f"{name} with a format", span=arguments[1].span or span, remedy=f"{name}(text) reads the forms of CAST")
        check_count(name, arguments, 1, 1, span)
        return cast(arguments[0], type, span)

    return build


def _extract(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """(field, source): the field is a constant string."""
    check_count(name, arguments, 2, 2, span)
    word = constant(arguments[0])
    field = FIELD.get(word.value.lower()) if word is not None and isinstance(word.value, str) else None
    if field is None:
        fields = ", ".join(words[0].upper() for words in _FIELDS.values())
        raise TypeMismatch(f"{name} does not know this field", span=arguments[0].span or span, expected=f"one of {fields}")
    if field == "dayofweek_iso":
        monday = BUILDERS["weekday"](name, arguments[1:], span)
        return Call("add", (monday, Literal(1, INT)), INT, monday.nullable, span)
    return BUILDERS[field](name, arguments[1:], span)


def _truncation(canonical: str, unit: int, units: Mapping[str, str]) -> Builder:
    plain = function(canonical, [TEXT, INSTANT] if unit == 0 else [DAY, TEXT], TIMESTAMP if unit == 0 else DATE, nullable="always")

    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        call = plain(name, arguments, span)
        assert isinstance(call, Call)
        word = constant(call.arguments[unit])
        known = word is not None and isinstance(word.value, str) and word.value.upper() in units
        nullable = not known or call.arguments[1 - unit].nullable
        return Call(call.function, call.arguments, call.type, nullable, span)

    return build


def _unix_timestamp(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 1, 1, span)
    if arguments[0].type not in (DATE, TIMESTAMP, NULL):
        found = arguments[0].type.sql
        raise TypeMismatch(f"argument 1 of {name} has the wrong type", span=span, expected=f"DATE or TIMESTAMP, found {found}")
    taken = accept(name, 1, arguments[0], INSTANT, span)
    return Call("unix_timestamp", (taken,), BIGINT, taken.nullable, span)


def add_interval(value: Expr, months: int, days: int, microseconds: int, span: Span | None = None) -> Expr:
    """DATE or TIMESTAMP plus an INTERVAL literal of `months`, `days` and `microseconds`, in this order; negative to subtract.

    A DATE stays a DATE unless there are microseconds, then it becomes a TIMESTAMP.
    """
    result = accept("INTERVAL", 1, value, DAY_OR_INSTANT, span)
    if months:
        result = Call("add_months", (result, Literal(months, INT)), result.type, result.nullable, span)
    if days:
        result = Call("add_days", (result, Literal(days, INT)), result.type, result.nullable, span)
    if microseconds:
        instant = cast(result, TIMESTAMP)
        result = Call("add_microseconds", (instant, Literal(microseconds, BIGINT)), TIMESTAMP, instant.nullable, span)
    return result


def _same(types: Sequence[Type]) -> Type:
    return types[0]


BUILDERS: Final[Mapping[str, Builder]] = {
    **{name: function(name, [DAY], INT) for name in _DAY_PARTS},
    **{name: function(name, [INSTANT], INT) for name in _TIME_PARTS},
    "second_fraction": function("second_fraction", [INSTANT], decimal(8, 6)),
    "extract": _extract,
    "date_add": function("add_days", [DAY, DAYS], DATE),
    "date_sub": function("subtract_days", [DAY, DAYS], DATE),
    "datediff": function("datediff", [DAY, DAY], INT),
    "add_months": function("add_months", [DAY, INTEGER], DATE),
    "add_days": function("add_days", [DAY_OR_INSTANT, INTEGER], _same),
    "plus_months": function("add_months", [DAY_OR_INSTANT, INTEGER], _same),
    "add_microseconds": function("add_microseconds", [INSTANT, LONG], TIMESTAMP),
    "last_day": function("last_day", [DAY], DATE),
    "trunc": _truncation("trunc", 1, DATE_UNITS),
    "date_trunc": _truncation("date_trunc", 0, {**DATE_UNITS, **TIME_UNITS}),
    "make_date": function("make_date", [INTEGER, INTEGER, INTEGER], DATE),
    "to_date": _to(DATE),
    "to_timestamp": _to(TIMESTAMP),
    "unix_timestamp": _unix_timestamp,
}
