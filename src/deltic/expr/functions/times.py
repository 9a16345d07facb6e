"""Times of day: arithmetic with intervals, EXTRACT, and the functions that make and take them.

What always holds: two TIMEs of other places have no common type, as in Spark, but can be subtracted from one another. A sum has six places
if the interval has seconds, else those of the TIME.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays import dates as date_arrays
from deltic.expr.arrays import times as arrays
from deltic.expr.arrays.datum import Datum, Kernel
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import of_plain_texts
from deltic.expr.functions.signature import (
    INTEGER,
    PLAIN_LONG,
    PLAIN_NUMBER,
    PLAIN_TEXT,
    SECONDS,
    TEXT,
    TIME_ALONE,
    Parameter,
    TypeRule,
    accept,
    accept_each,
    any_nullable,
    check_count,
    constant,
    takes,
)
from deltic.expr.nodes import Call, Expr
from deltic.expr.registry import Builder, Function, Rewrite, Typed, resolve
from deltic.expr.rows import dates as date_rows
from deltic.expr.rows import times as rows
from deltic.expr.rows.datetime_patterns import fault
from deltic.expr.typing import cast
from deltic.schema import BIGINT, DAY_TO_SECOND, NULL, STRING, TIME, Type, decimal, interval
from deltic.times import SIZES, cut, micros_of

HOUR_TO_SECOND: Final = interval("HOUR", "SECOND")
_SECONDS: Final = decimal(14, 6)
_FIELDS: Final = {"hour": "HOUR", "minute": "MINUTE", "second_fraction": "SECOND"}
"""The functions of EXTRACT whose field a TIME has."""
_TIME: Final = Parameter("TIME", lambda t: t if t.is_time else TIME if t in (STRING, NULL) else None)
_DAY_TIME: Final = Parameter("an INTERVAL of days or seconds", lambda t: t if t.is_day_time else DAY_TO_SECOND if t == NULL else None)


def plus(arguments: Sequence[Expr], span: Span | None) -> Expr | None:
    """TIME + INTERVAL and INTERVAL + TIME; None where neither is a TIME."""
    left, right = arguments if arguments[0].type.is_time else (arguments[1], arguments[0])
    return _moved("add_to_time", left, right, span)


def minus(arguments: Sequence[Expr], span: Span | None) -> Expr | None:
    """TIME - INTERVAL, and TIME - TIME, where one may be a STRING; None where neither is a TIME."""
    left, right = arguments
    moved = _moved("subtract_from_time", left, right, span) if right.type != NULL else None
    if moved is not None:
        return moved
    type = next((side.type for side in arguments if side.type.is_time), None)
    if type is None or not all(side.type.is_time or side.type in (STRING, NULL) for side in arguments):
        return None
    sides = tuple(side if side.type.is_time else cast(side, type) for side in arguments)
    return Call("times_between", sides, HOUR_TO_SECOND, any_nullable(sides), span)


def _moved(function: str, time: Expr, by: Expr, span: Span | None) -> Expr | None:
    if not time.type.is_time or not (by.type.is_day_time or by.type == NULL):
        return None
    by = cast(by, DAY_TO_SECOND) if by.type == NULL else by
    type = TIME if by.type.fields[1] == "SECOND" else time.type
    return Call(function, (time, by), type, time.nullable or by.nullable, span)


def extract(function: str, word: str, value: Expr, span: Span | None) -> Expr:
    """EXTRACT(field FROM time). Raises TypeMismatch for a field that a TIME does not have."""
    if function not in _FIELDS:
        expected = f"one of {', '.join(_FIELDS.values())}"
        raise TypeMismatch(f"{value.type.sql} has no field {word.upper()}", span=span, expected=expected)
    return resolve(function, [value], span)


def second_fraction(call: Call, value: datetime.datetime | datetime.time) -> object:
    """Of a TIMESTAMP, or of a TIME, which has as many places as its type."""
    if isinstance(value, datetime.datetime):
        return date_rows.second_fraction(value)
    return rows.second_fraction(value, call.arguments[0].type.precision)


def second_fractions(call: Call, length: int, value: Datum) -> Datum:
    """`second_fraction` on columns."""
    kernel = arrays.second_fraction if call.arguments[0].type.is_time else date_arrays.second_fraction
    return kernel(call, length, value)


def _parsed(function: str) -> Builder:
    """(text[, pattern])."""
    lenient = function.startswith("try_")

    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 1, 2, span)
        taken = [accept(name, i, argument, PLAIN_TEXT, span) for i, argument in enumerate(arguments, 1)]
        literal = constant(taken[1]) if len(taken) == 2 else None
        if literal is not None and isinstance(literal.value, str):
            if not lenient and (words := fault(literal.value, True)):
                raise TypeMismatch(words, span=arguments[1].span or span, expected="a pattern of Spark's, such as 'HH:mm:ss'")
            taken[1] = literal
        return Call(function, tuple(taken), TIME, lenient or any_nullable(taken), span)

    return build


def _text_rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 1, 2, span)
    taken = accept_each(name, arguments, PLAIN_TEXT, span)
    return Typed(taken, TIME, True)


def _unit_can_fail(call: Call) -> bool:
    unit = constant(call.arguments[0])
    return unit is None or (unit.value is not None and str(unit.value).upper() not in SIZES)


def _of_number(name: str, rule: TypeRule, run: Callable[..., Any], kernel: Kernel) -> Function:
    return Function(name=name, signature=rule, can_fail=True, rows=run, arrays=kernel)


def _of_count(name: str, size: int) -> Function:
    def run(call: Call, count: int) -> datetime.time:
        return rows.of_count(count, size, name, call.span)

    return _of_number(name, takes([PLAIN_LONG], TIME), run, arrays.of_count(size))


def _count_of(name: str, size: int) -> Function:
    return Function(
        name=name,
        signature=takes([TIME_ALONE], BIGINT),
        can_fail=False,
        rows=lambda call, value: micros_of(value) // size,
        arrays=arrays.count_of(size),
    )


def _sum_type(types: Sequence[Type]) -> Type:
    return TIME if types[1].fields[1] == "SECOND" else types[0]


OPERATORS: Final = (
    Function(
        name="add_to_time",
        named=False,
        signature=takes([TIME_ALONE, _DAY_TIME], _sum_type),
        can_fail=True,
        rows=lambda call, value, by: rows.moved(call, value, by, 1),
        arrays=arrays.moved(1),
    ),
    Function(
        name="subtract_from_time",
        named=False,
        signature=takes([TIME_ALONE, _DAY_TIME], _sum_type),
        can_fail=True,
        rows=lambda call, value, by: rows.moved(call, value, by, -1),
        arrays=arrays.moved(-1),
    ),
    Function(
        name="times_between",
        named=False,
        signature=takes([TIME_ALONE, TIME_ALONE], HOUR_TO_SECOND),
        can_fail=False,
        rows=lambda call, end, start: rows.between(end, start),
        arrays=arrays.between,
    ),
)
"""What + and - call."""
FUNCTIONS: Final[tuple[Function | Rewrite, ...]] = (
    *OPERATORS,
    Function(
        name="make_time",
        signature=takes([INTEGER, INTEGER, SECONDS], TIME),
        can_fail=True,
        rows=lambda call, hour, minute, second: rows.make(hour, minute, second, call.span),
        arrays=per_distinct,
    ),
    Function(name="read_time", named=False, signature=_text_rule, can_fail=True, rows=rows.parsed, arrays=per_distinct),
    Function(
        name="try_read_time", named=False, signature=_text_rule, can_fail=True, rows=partial(rows.parsed, lenient=True), arrays=per_distinct
    ),
    Rewrite(name="to_time", build=of_plain_texts(_parsed("read_time"))),
    Rewrite(name="try_to_time", build=of_plain_texts(_parsed("try_read_time"))),
    Function(
        name="time_trunc",
        signature=takes([TEXT, _TIME], lambda types: types[1]),
        can_fail=_unit_can_fail,
        rows=lambda call, unit, value: cut(value, rows.size_of(unit, "time_trunc", call.span)),
        arrays=arrays.truncate,
    ),
    Function(
        name="time_diff",
        signature=takes([TEXT, _TIME, _TIME], BIGINT),
        can_fail=_unit_can_fail,
        rows=lambda call, unit, start, end: rows.difference(unit, start, end, call.span),
        arrays=arrays.difference,
    ),
    _of_number("time_from_seconds", takes([PLAIN_NUMBER], TIME), lambda call, n: rows.of_seconds(n, call.span), per_distinct),
    _of_count("time_from_millis", 1000),
    _of_count("time_from_micros", 1),
    Function(
        name="time_to_seconds",
        signature=takes([TIME_ALONE], _SECONDS),
        can_fail=False,
        rows=lambda call, value: rows.seconds_of(value),
        arrays=arrays.seconds,
    ),
    _count_of("time_to_millis", 1000),
    _count_of("time_to_micros", 1),
)
