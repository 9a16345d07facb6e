"""Dates and times by Spark's patterns: DATE_FORMAT, TO_DATE and TO_TIMESTAMP with a format, UNIX_TIMESTAMP of text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays import dates as arrays
from deltic.expr.arrays.datum import Datum, python_value
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import ignoring, of_plain_texts
from deltic.expr.functions.signature import INSTANT, LONG, TEXT, Parameter, accept, check_count, constant
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Builder, Function, Rewrite, Typed
from deltic.expr.rows import dates as rows
from deltic.expr.rows.datetime_patterns import fault
from deltic.expr.rows.datetime_text import finest_unit, format_timestamp, parse_by
from deltic.expr.typing import cast
from deltic.schema import BIGINT, DATE, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type

_QUOTED: Final = re.compile("'[^']*'")
_DEFAULT: Final = Literal("yyyy-MM-dd HH:mm:ss", STRING)
_MOMENTS: Final = (STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)
_MOMENT: Final = Parameter("STRING, DATE or TIMESTAMP", lambda t: t if t in _MOMENTS else STRING if t == NULL else None)


def _pattern(name: str, position: int, argument: Expr, parsing: bool, span: Span | None) -> Expr:
    """The pattern, as a literal if it is constant. Raises TypeMismatch if that one is invalid."""
    pattern = accept(name, position, argument, TEXT, span)
    literal = constant(pattern)
    if literal is not None and isinstance(literal.value, str) and (words := fault(literal.value, parsing)):
        raise TypeMismatch(words, span=argument.span or span, expected="a pattern of Spark's, such as 'yyyy-MM-dd HH:mm:ss'")
    return literal or pattern


def _pattern_can_fail(call: Call) -> bool:
    return not isinstance(call.arguments[1], Literal)


def _formatted(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 2, 2, span)
    taken = accept(name, 1, arguments[0], INSTANT, span), _pattern(name, 2, arguments[1], False, span)
    return Typed(taken, STRING, any(a.nullable for a in taken))


def _from_seconds(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """(seconds since 1970[, pattern])."""
    check_count(name, arguments, 1, 2, span)
    moment = cast(accept(name, 1, arguments[0], LONG, span), TIMESTAMP, span)
    return _formatted(name, (moment, arguments[1] if len(arguments) == 2 else _DEFAULT), span).call("date_format", span)


def _parsed(function: str, type: Type) -> Builder:
    """(text[, pattern]) as `type`: without a pattern a cast; of a DATE or TIMESTAMP a cast too, and the pattern counts for nothing.

    `function` reads text by a pattern as a TIMESTAMP. Where it is lenient, so is the cast.
    """
    lenient = function.startswith("try_")

    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 1, 2, span)
        if len(arguments) == 1 and not lenient:
            return cast(arguments[0], type, span)
        value = accept(name, 1, arguments[0], _MOMENT, span)
        if len(arguments) == 1 or value.type != STRING:
            return cast(value, type, span, lenient=lenient)
        pattern = _pattern(name, 2, arguments[1], True, span)
        nullable = lenient or value.nullable or pattern.nullable
        return cast(Call(function, (value, pattern), TIMESTAMP, nullable, span), type, span)

    return build


def _without_zone(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """TO_TIMESTAMP_NTZ, as TO_TIMESTAMP; a zone that the pattern reads would be counted, where Spark leaves it out."""
    bound = _parsed("parse_timestamp", TIMESTAMP_NTZ)(name, arguments, span)
    literal = constant(arguments[1]) if len(arguments) == 2 and arguments[0].type == STRING else Literal("", STRING)
    if literal is None or set(_QUOTED.sub("", str(literal.value))) & set("VzOXxZ"):
        place = arguments[1].span or span
        raise TypeMismatch(f"the pattern of {name} reads a zone", span=place, expected="a constant without the letters VzOXxZ")
    return bound


def _by_pattern(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 2, 2, span)
    taken = accept(name, 1, arguments[0], TEXT, span), _pattern(name, 2, arguments[1], True, span)
    return Typed(taken, TIMESTAMP, True)


def _seconds(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(text, DATE or TIMESTAMP[, pattern]) as seconds since 1970."""
    check_count(name, arguments, 1, 2, span)
    value = accept(name, 1, arguments[0], _MOMENT, span)
    if value.type == STRING:
        pattern = _pattern(name, 2, arguments[1] if len(arguments) == 2 else _DEFAULT, True, span)
        value = Call("parse_timestamp", (value, pattern), TIMESTAMP, value.nullable or pattern.nullable, span)
    moment = cast(value, TIMESTAMP, span)
    return Typed((moment,), BIGINT, moment.nullable)


def _formatted_columns(call: Call, length: int, moments: Datum, pattern: Datum) -> pa.Array:
    """Once per day, hour, minute or second, if the pattern shows nothing finer."""
    shown = None if isinstance(pattern, pa.Array) else python_value(pattern)
    unit = finest_unit(shown) if isinstance(shown, str) else None
    if unit is None or not isinstance(moments, pa.Array):
        return per_distinct(call, length, moments, pattern)
    micros = moments.view(pa.int64())
    values = np.asarray(micros.fill_null(0) if micros.null_count else micros)
    nulls = np.asarray(micros.is_null()) if micros.null_count else None
    floored = pa.array(values - values % unit, mask=nulls).view(moments.type)
    return per_distinct(call, length, floored, pattern)


FUNCTIONS: Final[tuple[Function | Rewrite, ...]] = (
    Function(
        name="date_format",
        collated=ignoring,
        signature=_formatted,
        can_fail=_pattern_can_fail,
        rows=lambda call, moment, pattern: format_timestamp(moment, pattern, call.span),
        arrays=_formatted_columns,
    ),
    Function(
        name="parse_timestamp",
        named=False,
        signature=_by_pattern,
        can_fail=True,
        rows=lambda call, text, pattern: parse_by(text, pattern, call.span),
        arrays=per_distinct,
    ),
    Function(
        name="try_parse_timestamp",
        named=False,
        signature=_by_pattern,
        can_fail=True,
        rows=lambda call, text, pattern: parse_by(text, pattern, call.span, lenient=True),
        arrays=per_distinct,
    ),
    Rewrite(name="from_unixtime", build=of_plain_texts(_from_seconds)),
    Rewrite(name="to_date", build=of_plain_texts(_parsed("parse_timestamp", DATE))),
    Rewrite(name="to_timestamp", aliases=("to_timestamp_ltz",), build=of_plain_texts(_parsed("parse_timestamp", TIMESTAMP))),
    Rewrite(name="to_timestamp_ntz", build=of_plain_texts(_without_zone)),
    Rewrite(name="try_to_date", build=of_plain_texts(_parsed("try_parse_timestamp", DATE))),
    Rewrite(name="try_to_timestamp", build=of_plain_texts(_parsed("try_parse_timestamp", TIMESTAMP))),
    Function(
        name="unix_timestamp",
        collated=ignoring,
        aliases=("to_unix_timestamp",),
        signature=_seconds,
        can_fail=False,
        rows=lambda call, moment: rows.unix_timestamp(moment),
        arrays=arrays.unix_timestamp,
    ),
)
