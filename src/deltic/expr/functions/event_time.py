"""Windows of event time: window_time, the last moment of a window, and the end of a row's own session."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.functions.signature import check_count
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Function, Rewrite, Typed, resolve
from deltic.expr.rows.durations import later, parse_duration
from deltic.schema import BIGINT, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type

MOMENTS: Final = (TIMESTAMP, TIMESTAMP_NTZ)
WINDOW_FIELDS: Final = ("start", "end")


def is_window(type: Type) -> bool:
    """Whether it is the type of a window: STRUCT<start, end> of two times of one type.

    >>> is_window(TIMESTAMP)
    False
    """
    if type.name != "STRUCT" or tuple(part.name.lower() for part in type.parts) != WINDOW_FIELDS:
        return False
    start, end = (part.type for part in type.parts)
    return start == end and start in MOMENTS


def moved_by(moment: Expr, micros: int, span: Span | None = None) -> Expr:
    """The time so many microseconds later."""
    return Call("add_microseconds", (moment, Literal(micros, BIGINT)), moment.type, moment.nullable, span)


def last_moment(window: Expr, span: Span | None = None) -> Expr:
    """A microsecond before the end of a window."""
    return moved_by(resolve("field", [window, Literal("end", STRING)], span), -1, span)


def _window_time(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 1, 1, span)
    if not is_window(arguments[0].type):
        expected = f"STRUCT<start: TIMESTAMP, end: TIMESTAMP>, as window() has it; found {arguments[0].type.sql}"
        raise TypeMismatch(f"the argument of {name} is not a window", span=arguments[0].span or span, expected=expected)
    return last_moment(arguments[0], span)


def _session_end(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(time, gap): the time after the gap, a text; NULL if that is no duration."""
    time, gap = arguments
    assert time.type in MOMENTS and gap.type == STRING
    return Typed((time, gap), time.type, True)


def _later(call: Call, time: datetime.datetime, gap: str) -> datetime.datetime | None:
    duration = parse_duration(gap)
    return None if duration is None else later(time, duration, call.span)


FUNCTIONS: Final = (
    Rewrite(name="window_time", build=_window_time),
    Function(name="session_end", named=False, signature=_session_end, can_fail=True, rows=_later, arrays=per_distinct),
)
