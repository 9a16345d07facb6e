"""Dates, times and intervals as fields of JSON and CSV, by patterns that options give or in Spark's own form."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from deltic import intervals, times
from deltic.errors import CastFailure
from deltic.expr.nodes import Value
from deltic.expr.rows.datetime_text import format_timestamp, parse_by, parse_clock
from deltic.expr.rows.parsing import parse_date, parse_timestamp, parse_zoneless_timestamp
from deltic.expr.rows.rendering import render
from deltic.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, Type

_TIMESTAMPS: Final = "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]"
_LOCAL_TIMESTAMPS: Final = "yyyy-MM-dd'T'HH:mm:ss[.SSS]"


class Patterns(NamedTuple):
    """Of DATEs, TIMESTAMPs, TIMEs and TIMESTAMP_NTZs in JSON and CSV; None for Spark's own."""

    dates: str | None = None
    timestamps: str | None = None
    times: str | None = None
    local_timestamps: str | None = None


DEFAULT: Final = Patterns()


def datetime_reader(type: Type, patterns: Patterns) -> Callable[[str], Value] | None:
    """What reads text as the type, and gives None for text of another form; None for a type that is no date, time or interval."""
    if type == DATE:
        return lambda text: _date(text, patterns.dates)
    if type == TIMESTAMP:
        pattern = patterns.timestamps
        return parse_timestamp if pattern is None else lambda text: parse_by(text, pattern, lenient=True)
    if type == TIMESTAMP_NTZ:
        return lambda text: _local_timestamp(text, patterns.local_timestamps)
    if type.is_time:
        return lambda text: _time(text, patterns.times)
    return (lambda text: intervals.parse(text, type)) if type.is_interval else None


def _date(text: str, pattern: str | None) -> datetime.date | None:
    if pattern is None:
        return parse_date(text)
    moment = parse_by(text, pattern, lenient=True)
    return None if moment is None else moment.date()


def _local_timestamp(text: str, pattern: str | None) -> datetime.datetime | None:
    """By a pattern without zones, or as a cast reads it; None for text with a zone, too."""
    if pattern is None:
        return parse_zoneless_timestamp(text)
    moment = parse_by(text, pattern, lenient=True)
    return None if moment is None else moment.replace(tzinfo=None)


def _time(text: str, pattern: str | None) -> datetime.time | None:
    """By a pattern, or as a cast reads it; None for what is finer than microseconds, too."""
    if pattern is None:
        return times.parse(text)
    try:
        time, finer = parse_clock(text, pattern)
    except CastFailure:
        return None
    return None if finer else time


def datetime_field(value: Any, type: Type, patterns: Patterns) -> str | None:
    """A value as text; None for a value that is no date, time or interval."""
    if type == DATE:
        moment = datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC)
        return value.isoformat() if patterns.dates is None else format_timestamp(moment, patterns.dates)
    if type == TIMESTAMP:
        return format_timestamp(value, patterns.timestamps or _TIMESTAMPS)
    if type == TIMESTAMP_NTZ:
        return format_timestamp(value.replace(tzinfo=datetime.UTC), patterns.local_timestamps or _LOCAL_TIMESTAMPS)
    if type.is_time and patterns.times is not None:
        return format_timestamp(datetime.datetime.combine(datetime.date(1970, 1, 1), value, datetime.UTC), patterns.times)
    return render(value, type) if type.is_time or type.is_interval else None
