"""Built-in table functions on one row, in plain Python: the oracle's evaluation of `FlatMap` (plan/nodes.py)."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, Final

from deltic.errors import Span
from deltic.expr.failures import illegal_sequence, no_step, too_many_elements
from deltic.expr.nodes import Value
from deltic.expr.rows.dates import add_microseconds
from deltic.intervals import MICROSECOND

MOST_ELEMENTS: Final = 10_000_000
"""The most elements for one row."""


def elements(function: str, arguments: Sequence[Any], span: Span | None = None) -> Sequence[Value]:
    """The elements of a table function of the plan (`FlatMap`), in order. Raises EvaluationError.

    >>> elements("sequence", (3, 1)), list(elements("generate_series", (3, 1))), elements("split", ("a,b,", ",", -1))
    ([3, 2, 1], [], ['a', 'b', ''])
    """
    if function == "array":
        return arguments
    if None in arguments:
        return ()
    if function == "elements":
        return tuple(arguments[0])
    if function == "window_starts":
        return _window_starts(*arguments, span=span)
    if function == "split":
        text, delimiter, limit = arguments
        pieces: list[Value] = text.split(delimiter, limit - 1 if limit > 0 else -1)
        return pieces
    return _steps(function == "sequence", *arguments, span=span)


def count_of(function: str, arguments: Sequence[Any], span: Span | None = None) -> int:
    """How many elements sequence, generate_series or window_starts has. Raises EvaluationError, as `elements` does.

    >>> count_of("sequence", (1, 5_000_000)), count_of("generate_series", (3, 1))
    (5000000, 0)
    """
    if function == "window_starts":
        return len(_window_starts(*arguments, span=span))
    return len(_stepped(function == "sequence", *arguments, span=span)[1])


def _window_starts(time: datetime.datetime, size: int, slide: int, origin: int, *, span: Span | None) -> Sequence[Value]:
    """The last start up to the time, and those before it of windows that do not end before the time."""
    since = ((time - datetime.datetime(1970, 1, 1, tzinfo=time.tzinfo)) // MICROSECOND - origin) % slide
    return [add_microseconds(time, -back, span) for back in range(since, size, slide)]


def _steps(towards: bool, start: Any, stop: Any, step: int | None = None, *, span: Span | None) -> Sequence[Value]:
    """The elements of sequence, if `towards`, or generate_series. Only with `towards` the step must lead to the stop."""
    are_days, numbers = _stepped(towards, start, stop, step, span=span)
    return list(map(datetime.date.fromordinal, numbers) if are_days else numbers)


def _stepped(towards: bool, start: Any, stop: Any, step: int | None = None, *, span: Span | None) -> tuple[bool, Sequence[int]]:
    """(whether they are days, the numbers)."""
    by = step if step is not None else -1 if towards and stop < start else 1
    if isinstance(start, datetime.date):
        return True, _numbers(towards, start.toordinal(), stop.toordinal(), by, start, stop, span)
    return False, _numbers(towards, start, stop, by, start, stop, span)


def _numbers(towards: bool, first: int, last: int, by: int, start: Value, stop: Value, span: Span | None) -> Sequence[int]:
    if by == 0 and not towards:
        raise no_step(span)
    if by == 0 and first == last:
        return [first]
    if towards and (by == 0 or (last - first) * by < 0):
        raise illegal_sequence(start, stop, by, span)
    if (last - first) // by >= MOST_ELEMENTS:
        raise too_many_elements(start, stop, by, MOST_ELEMENTS, span)
    return range(first, last + (1 if by > 0 else -1), by)
