"""Moments as numbers since 1970, from their parts, in other zones, and the names of days and months."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from deltic.errors import ArithmeticOverflow, EvaluationError, Span, TypeMismatch
from deltic.expr.arrays import times as arrays
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.functions.signature import (
    DAY,
    INSTANT,
    INTEGER,
    PLAIN_INTEGER,
    PLAIN_LONG,
    PLAIN_NUMBER,
    SECONDS,
    TEXT,
    TIME_ALONE,
    Parameter,
    accept,
    any_nullable,
    check_count,
    takes,
)
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Builder, Function, Rewrite, Signature, Typed, resolve
from deltic.expr.rows import epochs as rows
from deltic.expr.rows.casts import EPOCH
from deltic.expr.rows.dates import micros_of
from deltic.expr.rows.datetime_patterns import MONTHS, WEEKDAYS
from deltic.expr.typing import cast
from deltic.schema import BIGINT, DATE, INT, NULL, STRING, TIME, TIMESTAMP, TIMESTAMP_NTZ

_MOMENT: Final = Parameter("TIMESTAMP", lambda t: TIMESTAMP if t in (TIMESTAMP, NULL) else None)
_DATE: Final = Parameter("DATE", lambda t: DATE if t in (DATE, NULL) else None)
_CLOCK: Final = Parameter("TIMESTAMP_NTZ", lambda t: TIMESTAMP_NTZ if t in (DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING, NULL) else None)
_UTC: Final = Literal("UTC", STRING)
_MIDNIGHT: Final = Literal(datetime.time.min, TIME)
_FROM_DATE: Final = {
    **dict.fromkeys(("make_timestamp", "try_make_timestamp"), (1, 2, 3)),
    **dict.fromkeys(("make_timestamp_ltz", "try_make_timestamp_ltz"), (2, 3)),
}
"""How many arguments a function has whose first one is a date."""
_FIELDS: Final = (INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, SECONDS, TEXT)


def _since_epoch(name: str, unit_us: int) -> Function:
    """Whole units since 1970, the earlier one before it."""
    return Function(
        name=name,
        signature=takes([_MOMENT], BIGINT),
        can_fail=False,
        rows=lambda call, moment: micros_of(moment) // unit_us,
        arrays=per_distinct,
    )


def _of_count(name: str, unit_us: int) -> Function:
    return Function(
        name=name,
        signature=takes([PLAIN_LONG], TIMESTAMP),
        can_fail=True,
        rows=lambda call, count: rows.moment(count * unit_us, call.span),
        arrays=per_distinct,
    )


def _parts(nullable: bool) -> Signature:
    """(year, month, day, hour, minute, second[, zone]), or (date[, time[, zone]])."""

    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
        if len(arguments) in _FROM_DATE.get(name, ()):
            return _at(name, arguments, span)
        check_count(name, arguments, 6, 7, span)
        whole = [*arguments, _UTC][:7]
        taken = tuple(accept(name, i, a, p, span) for i, (a, p) in enumerate(zip(whole, _FIELDS, strict=True), 1))
        return Typed(taken, TIMESTAMP, nullable or any_nullable(taken))

    return rule


def _at(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """(date[, time[, zone]]) as TIMESTAMP."""
    whole = [*arguments, *(_MIDNIGHT, _UTC)[len(arguments) - 1 :]]
    taken = tuple(accept(name, i, a, p, span) for i, (a, p) in enumerate(zip(whole, (_DATE, TIME_ALONE, TEXT), strict=True), 1))
    if taken[2] == _UTC:
        return cast(resolve("date_at_time", taken[:2], span, written=name), TIMESTAMP, span)
    return Call("date_at_time_in", taken, TIMESTAMP, any_nullable(taken), span)


def _made(call: Call, *parts: Any) -> datetime.datetime:
    *numbers, zone = parts
    year, month, day, hour, minute, second = numbers
    assert isinstance(second, Decimal)
    return rows.make_timestamp((year, month, day, hour, minute, second), zone, call.span)


def _try_made(call: Call, *parts: Any) -> datetime.datetime | None:
    try:
        return _made(call, *parts)
    except ArithmeticOverflow:  # Spark has a value outside the years 1 to 9999
        raise
    except EvaluationError:
        return None


def _named(name: str, word: Callable[[datetime.date], str]) -> Function:
    """The first three letters of a day's or month's name."""
    signature = takes([DAY], STRING)
    return Function(name=name, signature=signature, can_fail=False, rows=lambda call, day: word(day)[:3], arrays=per_distinct)


_MOMENT_AND_ZONE: Final = takes([INSTANT, TEXT], TIMESTAMP)


def _zoned(name: str, run: Callable[[datetime.datetime, str, Span | None], datetime.datetime]) -> Function:
    return Function(
        name=name,
        signature=_in_zone,
        can_fail=True,
        rows=lambda call, moment, zone: run(moment, zone, call.span),
        arrays=per_distinct,
    )


def _in_zone(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(moment, zone). As in Spark, a constant zone is valid whether a row has a moment or not; CONVERT_TIMEZONE reads it for rows alone."""
    typed = _MOMENT_AND_ZONE(name, arguments, span)
    assert isinstance(typed, Typed)
    zone = typed.arguments[1]
    if name != "convert_timezone" and isinstance(zone, Literal) and isinstance(zone.value, str):
        try:
            rows.zone(zone.value, zone.span)
        except EvaluationError as error:
            raise TypeMismatch(error.message, span=zone.span or span, expected=error.expected, remedy=error.remedy) from error
    return typed


def _current_timezone(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """Deltic's zone is UTC always."""
    check_count(name, arguments, 0, 0, span)
    return _UTC


def _zoneless(function: str) -> Builder:
    """(year, month, day, hour, minute, second) or (date, time) as TIMESTAMP_NTZ."""

    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        if len(arguments) == 2:
            return resolve("date_at_time", arguments, span, written=name)
        check_count(name, arguments, 6, 6, span)
        return cast(resolve(function, arguments, span, written=name), TIMESTAMP_NTZ, span)

    return build


def _converted(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """([source zone,] target zone, clock): what the target's clock shows when the source's shows this; the source is UTC."""
    check_count(name, arguments, 2, 3, span)
    source, target, clock = (_UTC, *arguments)[-3:]
    local = accept(name, len(arguments), clock, _CLOCK, span)
    moment = resolve("to_utc_timestamp", [cast(local, TIMESTAMP), source], span, written=name)
    return cast(resolve("from_utc_timestamp", [moment, target], span, written=name), TIMESTAMP_NTZ, span)


def _seconds(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """A TIMESTAMP; NULL of a float that is not finite."""
    typed = takes([PLAIN_NUMBER], TIMESTAMP)(name, arguments, span)
    return typed._replace(nullable=typed.nullable or typed.arguments[0].type.is_float)


FUNCTIONS: Final[tuple[Function | Rewrite, ...]] = (
    _since_epoch("unix_seconds", 1_000_000),
    _since_epoch("unix_millis", 1000),
    _since_epoch("unix_micros", 1),
    _of_count("timestamp_millis", 1000),
    _of_count("timestamp_micros", 1),
    Function(
        name="timestamp_seconds",
        signature=_seconds,
        can_fail=True,
        rows=lambda call, seconds: rows.of_seconds(seconds, call.span),
        arrays=per_distinct,
    ),
    Function(
        name="unix_date",
        signature=takes([_DATE], INT),
        can_fail=False,
        rows=lambda call, day: day.toordinal() - EPOCH.toordinal(),
        arrays=per_distinct,
    ),
    Function(
        name="date_from_unix_date",
        signature=takes([PLAIN_INTEGER], DATE),
        can_fail=True,
        rows=lambda call, days: rows.of_day(days, call.span),
        arrays=per_distinct,
    ),
    _named("dayname", lambda day: WEEKDAYS[day.weekday()]),
    _named("monthname", lambda day: MONTHS[day.month - 1]),
    _zoned("from_utc_timestamp", rows.from_utc),
    _zoned("to_utc_timestamp", rows.to_utc),
    Function(
        name="make_timestamp",
        aliases=("make_timestamp_ltz",),
        signature=_parts(False),
        can_fail=True,
        rows=_made,
        arrays=per_distinct,
    ),
    Function(
        name="try_make_timestamp",
        aliases=("try_make_timestamp_ltz",),
        signature=_parts(True),
        can_fail=True,
        rows=_try_made,
        arrays=per_distinct,
    ),
    Function(
        name="date_at_time",
        named=False,
        signature=takes([_DATE, TIME_ALONE], TIMESTAMP_NTZ),
        can_fail=False,
        rows=lambda call, day, time: datetime.datetime.combine(day, time),
        arrays=arrays.date_at_time,
    ),
    Function(
        name="date_at_time_in",
        named=False,
        signature=takes([_DATE, TIME_ALONE, TEXT], TIMESTAMP),
        can_fail=True,
        rows=lambda call, day, time, zone: rows.to_utc(datetime.datetime.combine(day, time), zone, call.span),
        arrays=per_distinct,
    ),
    Rewrite(name="make_timestamp_ntz", build=_zoneless("make_timestamp")),
    Rewrite(name="try_make_timestamp_ntz", build=_zoneless("try_make_timestamp")),
    Rewrite(name="convert_timezone", build=_converted),
    Rewrite(name="current_timezone", build=_current_timezone),
)
