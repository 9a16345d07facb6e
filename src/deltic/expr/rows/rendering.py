"""Values as STRING, as Java prints them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import assert_never

from deltic import intervals, times
from deltic.expr.nodes import Value
from deltic.java_floats import render_double, render_single
from deltic.schema import FLOAT, Type


def render(value: Value, type: Type) -> str:
    """CAST(value AS STRING); `value` is not NULL."""
    if type.is_interval and isinstance(value, int | datetime.timedelta):
        return intervals.render(value, type)
    match value:
        case bool():
            return "true" if value else "false"
        case int() | str():
            return str(value)
        case float():
            return render_single(value) if type == FLOAT else render_double(value)
        case Decimal():
            return format(value, "f")
        case datetime.timedelta():
            raise AssertionError(f"a timedelta of type {type}")
        case bytes() | tuple():
            raise AssertionError("casts render bytes and nested values, since that can fail")
        case datetime.datetime():
            return render_timestamp(value)
        case datetime.date():
            return value.isoformat()
        case datetime.time():
            return times.render(value)
        case None:
            raise AssertionError("NULL has no text")
        case _:
            assert_never(value)


def render_timestamp(value: datetime.datetime) -> str:
    """With as many decimal places as the fraction needs.

    >>> render_timestamp(datetime.datetime(2020, 1, 1, 12, 0, 0, 120000))
    '2020-01-01 12:00:00.12'
    """
    text = value.replace(tzinfo=None).isoformat(" ", "seconds")
    return f"{text}.{value.microsecond:06d}".rstrip("0") if value.microsecond else text
