"""Parts of dates and times, EXTRACT, and parsing of dates. The time zone is UTC; years run from 1 to 9999."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow.compute as pc

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays import dates as arrays
from deltic.expr.arrays.dates import SECOND
from deltic.expr.arrays.datum import Kernel
from deltic.expr.functions import intervals, times
from deltic.expr.functions.signature import DAY, INSTANT, Parameter, check_count, constant, takes
from deltic.expr.nodes import Expr, Literal
from deltic.expr.registry import Function, Rewrite, Typed, resolve
from deltic.schema import INT, decimal

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
_CLOCK: Final = Parameter("TIMESTAMP or TIME", lambda type: type if type.is_time else INSTANT.accept(type))
FIELD: Final = {word: field for field, words in _FIELDS.items() for word in words}


def _extract(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """(field, source): the field is a constant string."""
    check_count(name, arguments, 2, 2, span)
    word = constant(arguments[0])
    field = FIELD.get(word.value.lower()) if word is not None and isinstance(word.value, str) else None
    if field is None:
        fields = ", ".join(words[0].upper() for words in _FIELDS.values())
        remedy = "unix_timestamp(ts)" if word is not None and str(word.value).lower() == "epoch" else None
        raise TypeMismatch(f"unknown field in {name}", span=arguments[0].span or span, expected=f"one of {fields}", remedy=remedy)
    if arguments[1].type.is_interval:
        return intervals.extract(field, str(word.value if word else ""), arguments[1], span)
    if arguments[1].type.is_time:
        return times.extract(field, str(word.value if word else ""), arguments[1], span)
    if field == "dayofweek_iso":
        monday = resolve("weekday", arguments[1:], span, written=name)
        return Typed((monday, Literal(1, INT)), INT, monday.nullable).call("add", span)
    return resolve(field, arguments[1:], span, written=name)


def _part(name: str, rows: Callable[[Any], int], arrays: Kernel, *, named: bool = True, aliases: tuple[str, ...] = ()) -> Function:
    """The record of a part of a DATE, an INT."""
    signature = takes([DAY], INT)
    return Function(
        name=name, aliases=aliases, named=named, signature=signature, can_fail=False, rows=lambda call, d: rows(d), arrays=arrays
    )


def _clock(name: str, rows: Callable[[Any], int], arrays: Kernel) -> Function:
    """The record of a part of a TIMESTAMP or a TIME, an INT."""
    return Function(name=name, signature=takes([_CLOCK], INT), can_fail=False, rows=lambda call, t: rows(t), arrays=arrays)


FUNCTIONS: Final = (
    _part("year", lambda d: d.year, arrays.part(pc.year)),
    _part("quarter", lambda d: (d.month + 2) // 3, arrays.part(pc.quarter)),
    _part("month", lambda d: d.month, arrays.part(pc.month)),
    _part("day", lambda d: d.day, arrays.part(pc.day), aliases=("dayofmonth",)),
    _part("dayofweek", lambda d: d.isoweekday() % 7 + 1, arrays.part(pc.day_of_week, count_from_zero=False, week_start=7)),
    _part("weekday", lambda d: d.weekday(), arrays.part(pc.day_of_week)),
    _part("dayofyear", lambda d: d.timetuple().tm_yday, arrays.part(pc.day_of_year)),
    _part("weekofyear", lambda d: d.isocalendar()[1], arrays.part(pc.iso_week)),
    _part("yearofweek", lambda d: d.isocalendar()[0], arrays.part(pc.iso_year), named=False),
    _clock("hour", lambda t: t.hour, arrays.clock(lambda t: t // (3600 * SECOND) % 24)),
    _clock("minute", lambda t: t.minute, arrays.clock(lambda t: t // (60 * SECOND) % 60)),
    _clock("second", lambda t: t.second, arrays.clock(lambda t: t // SECOND % 60)),
    Function(
        name="second_fraction",
        named=False,
        signature=takes([_CLOCK], decimal(8, 6)),
        can_fail=False,
        rows=times.second_fraction,
        arrays=times.second_fractions,
    ),
    Rewrite(name="extract", aliases=("date_part", "datepart"), build=_extract),
)
