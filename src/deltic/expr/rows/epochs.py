"""Moments as numbers since 1970, from parts, and in other zones, on one row. Timestamps are aware datetimes in UTC."""

from __future__ import annotations

import calendar
import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Final

from deltic.errors import Span
from deltic.expr.failures import invalid, out_of_calendar, overflow
from deltic.expr.rows.casts import EPOCH, SECOND
from deltic.expr.rows.numbers import in_range, saturated
from deltic.expr.rows.parsing import parse_zone
from deltic.schema import BIGINT

_MINUTE: Final = 60 * SECOND


def moment(micros: int, span: Span | None) -> datetime.datetime:
    """The timestamp of microseconds since 1970."""
    if not in_range(micros, BIGINT):
        raise overflow("a TIMESTAMP of more than 64 bits", span)
    try:
        return EPOCH + datetime.timedelta(microseconds=micros)
    except OverflowError:
        raise out_of_calendar("a timestamp", span) from None


def of_seconds(seconds: float | Decimal | int, span: Span | None) -> datetime.datetime | None:
    """The timestamp of seconds since 1970; NULL for NaN and infinities. A DECIMAL of more than six places is an error."""
    if isinstance(seconds, float):
        return moment(saturated(seconds * SECOND), span) if math.isfinite(seconds) else None
    micros = Fraction(seconds) * SECOND
    if micros.denominator != 1:
        raise invalid("timestamp_seconds: more than six places", span)
    return moment(int(micros), span)


def of_day(days: int, span: Span | None) -> datetime.date:
    try:
        return EPOCH.date() + datetime.timedelta(days=days)
    except OverflowError:
        raise out_of_calendar("a date", span) from None


def zone(name: str, span: Span | None) -> datetime.tzinfo:
    tzinfo = parse_zone(name)
    if tzinfo is None:
        raise invalid(f"the time zone {name!r} is unknown", span)
    return tzinfo


def from_utc(value: datetime.datetime, name: str, span: Span | None) -> datetime.datetime:
    """The clock of the zone at a moment, as if it were that of UTC."""
    try:
        return value.astimezone(zone(name, span)).replace(tzinfo=datetime.UTC, fold=0)
    except OverflowError:
        raise out_of_calendar("a timestamp", span) from None


def to_utc(value: datetime.datetime, name: str, span: Span | None) -> datetime.datetime:
    """The moment at which the zone's clock shows what UTC's shows now; the first of two, and past a gap by what the gap skips."""
    try:
        return value.replace(tzinfo=zone(name, span)).astimezone(datetime.UTC)
    except OverflowError:
        raise out_of_calendar("a timestamp", span) from None


def make_timestamp(parts: tuple[int, int, int, int, int, Decimal], name: str, span: Span | None) -> datetime.datetime:
    """Of year, month, day, hour, minute and second, of which 60 is the next minute's 0, in a zone."""
    year, month, day, hour, minute, second = parts
    micros = int(second * SECOND)
    where = zone(name, span)
    if not 0 <= micros <= _MINUTE:
        raise invalid(f"the second {second} is not from 0 to 60", span)
    in_calendar = 1 <= year <= 9999
    try:
        start = datetime.datetime(year if in_calendar else 2000 + (not calendar.isleap(year)), month, day, hour, minute)
    except ValueError:
        raise invalid(f"{year}-{month}-{day} {hour}:{minute}:{second} is not a date and time", span) from None
    if not in_calendar:
        raise out_of_calendar("a timestamp", span)
    try:
        return (start + datetime.timedelta(microseconds=micros)).replace(tzinfo=where).astimezone(datetime.UTC)
    except OverflowError:
        raise out_of_calendar("a timestamp", span) from None
