"""CAST of one value. As in ANSI mode, a value that the target type cannot represent raises CastFailure."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from deltic import intervals, times
from deltic.errors import CastFailure, Span
from deltic.expr.failures import cast_overflow, malformed, out_of_calendar
from deltic.expr.nodes import Value, lookup_key
from deltic.expr.rows.numbers import fit, half_up, in_range, of_double, single
from deltic.expr.rows.ordering import normalized
from deltic.expr.rows.parsing import (
    parse_boolean,
    parse_date,
    parse_decimal,
    parse_double,
    parse_integer,
    parse_local_timestamp,
    parse_single,
    parse_timestamp,
)
from deltic.expr.rows.rendering import render
from deltic.expr.rows.variants import read, written
from deltic.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, STRING, TIMESTAMP, TIMESTAMP_NTZ, VARIANT, Type
from deltic.variant_bytes import VariantPlace
from deltic.variant_json import text_of

EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND: Final = datetime.timedelta(microseconds=1)
SECOND: Final = 1_000_000

_PARSERS: Final[dict[str, Callable[[str], Value]]] = {
    "BOOLEAN": parse_boolean,
    "FLOAT": parse_single,
    "DOUBLE": parse_double,
    "DATE": parse_date,
    "TIMESTAMP": parse_timestamp,
    "TIMESTAMP_NTZ": parse_local_timestamp,
    "TIME": times.parse,
    "BINARY": str.encode,
}


def cast_value(value: Value, source: Type, target: Type, span: Span | None = None, *, lenient: bool = False) -> Value:
    """The value cast to `target`; `value` is not NULL and of type `source`. NaN and infinities become NULL as DECIMAL."""
    if source.is_collated or target.is_collated:
        return value  # only the collation differs
    if target == VARIANT:
        return written(value, source)
    if source == VARIANT:
        return _of_variant(value, target, span, lenient)
    if isinstance(value, tuple):
        return _nested_text(value, source, span) if target == STRING else _nested(value, source, target, span, lenient)
    if isinstance(value, bytes):
        return _text(value, span)
    if target == STRING:
        return render(value, source)
    if source.is_interval or target.is_interval:
        return _interval(value, source, target, span)
    if isinstance(value, str):
        return cast_text(value, target, span)
    if isinstance(value, datetime.time):
        return _cast_time(value, source, target, span)
    if isinstance(value, datetime.datetime):
        return _cast_timestamp(value, target, span)
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC if target == TIMESTAMP else None)
    assert isinstance(value, bool | int | float | Decimal)
    return _cast_number(value, source, target, span)


def _of_variant(value: Any, target: Type, span: Span | None, lenient: bool) -> Value:
    """Raises CastFailure. lenient: what cannot be cast is NULL, also within a nested value."""

    def cast(scalar: Value, source: Type, target: Type) -> Value:
        return cast_value(scalar, source, target, span)

    return read(VariantPlace(*value), target, cast, span, lenient=lenient)


def _nested(value: tuple[Value, ...], source: Type, target: Type, span: Span | None, lenient: bool) -> Value:
    """Part by part. Raises CastFailure, also for a MAP of which two keys become one.

    lenient: a part that fails is NULL instead, as in Spark's TRY_CAST, but for the key of a MAP.
    """

    def part(given: Value, i: int) -> Value:
        a, b = source.parts[i].type, target.parts[i].type
        if given is None or a == b:
            return given
        try:
            return cast_value(given, a, b, span, lenient=lenient)
        except CastFailure:
            if not lenient or (source.name == "MAP" and i == 0):
                raise
            return None

    if source.name == "STRUCT":
        return tuple(part(given, i) for i, given in enumerate(value))
    if source.name == "ARRAY":
        return tuple(part(given, 0) for given in value)
    entries = tuple((part(entry[0], 0), part(entry[1], 1)) for entry in value if isinstance(entry, tuple))
    if len({lookup_key(normalized(key)) for key, _ in entries}) < len(entries):
        raise malformed("with keys that become equal", source, target, span)
    return entries


def _nested_text(value: tuple[Value, ...], type: Type, span: Span | None) -> str:
    """[a, b], {a, b}, {k -> v}; NULL is null."""

    def part(given: Any, i: int) -> str:
        if given is None:
            return "null"
        if type.parts[i].type == VARIANT:
            return text_of(VariantPlace(*given))
        text = cast_value(given, type.parts[i].type, STRING, span)
        assert isinstance(text, str)
        return text

    if type.name == "STRUCT":
        return f"{{{', '.join(part(given, i) for i, given in enumerate(value))}}}"
    if type.name == "ARRAY":
        return f"[{', '.join(part(given, 0) for given in value)}]"
    return f"{{{', '.join(f'{part(e[0], 0)} -> {part(e[1], 1)}' for e in value if isinstance(e, tuple))}}}"


def _interval(value: Value, source: Type, target: Type, span: Span | None) -> Value:
    """From or to an interval. A number counts the last field.

    Between intervals what is shorter than the last field is cut off; of a DECIMAL it stays, as in Spark, though the text does not show it.
    """
    if isinstance(value, str):
        given = intervals.parse(value, target)
        if given is None:
            raise malformed(repr(value), STRING, target, span)
        return given
    if source.is_interval:
        assert isinstance(value, int | datetime.timedelta)
        units = intervals.units_of(value)
        if target.is_interval:
            return intervals.interval_of(intervals.cut(units, intervals.UNITS[target.fields[1]]), target)
        count = Fraction(units, intervals.SIZES[source.fields[1]])
        text = render(value, source)
        return _fitted(count, text, source, target, span) if target.is_decimal else _integer(math.trunc(count), text, source, target, span)
    assert isinstance(value, int | Decimal)
    result = intervals.interval_of(half_up(Fraction(value) * intervals.SIZES[target.fields[1]], 0), target)
    if result is None:
        raise cast_overflow(render(value, source), source, target, span)
    return result


def _text(value: bytes, span: Span | None) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise malformed(f"X'{value.hex().upper()}'", BINARY, STRING, span) from None


def cast_text(value: str, target: Type, span: Span | None = None) -> Value:
    """A STRING cast to `target`."""
    if target.is_integer:
        number = parse_integer(value)
        if number is not None and in_range(number, target):
            return number
    elif target.is_decimal:
        fraction = parse_decimal(value)
        if fraction is not None:
            return _fitted(fraction, repr(value), STRING, target, span)
    elif (parsed := _PARSERS[target.name](value)) is not None:
        return parsed
    raise malformed(repr(value), STRING, target, span)


def _cast_time(value: datetime.time, source: Type, target: Type, span: Span | None) -> Value:
    """To seconds, or to fewer places; text keeps all its places, and so does a cast to more."""
    if target.is_time:
        return times.cut(value, times.unit_of(target.precision))
    seconds = Fraction(times.micros_of(value), SECOND)
    text = times.render(value)
    return _fitted(seconds, text, source, target, span) if target.is_decimal else _integer(math.floor(seconds), text, source, target, span)


def _cast_timestamp(value: datetime.datetime, target: Type, span: Span | None) -> Value:
    if target == DATE:
        return value.date()
    if target in (TIMESTAMP, TIMESTAMP_NTZ):
        return value.replace(tzinfo=datetime.UTC if target == TIMESTAMP else None)
    micros = (value - EPOCH) // MICROSECOND
    return _cast_seconds(Fraction(micros, SECOND), micros, render(value, TIMESTAMP), target, span)


def _cast_seconds(seconds: Fraction, micros: int, text: str, target: Type, span: Span | None) -> Value:
    if target.is_integer:
        return _integer(math.floor(seconds), text, TIMESTAMP, target, span)
    if target.is_decimal:
        return _fitted(seconds, text, TIMESTAMP, target, span)
    number = float(micros) / SECOND  # as in Spark, rounded twice where micros has more than 53 bits
    return single(number) if target == FLOAT else number


def _cast_number(value: bool | int | float | Decimal, source: Type, target: Type, span: Span | None) -> Value:
    if target == BOOLEAN:
        return bool(value != 0)
    if target == TIMESTAMP:
        return _timestamp(value, source, span)
    if target.is_float:
        return _floating(value, target)
    if isinstance(value, float):
        return _cast_float(value, source, target, span)
    if target.is_integer:
        return _integer(math.trunc(value), render(value, source), source, target, span)
    return _fitted(Fraction(value), render(value, source), source, target, span)


def _floating(value: bool | int | float | Decimal, target: Type) -> float:
    if target == DOUBLE:
        return value if isinstance(value, float) else float(Fraction(value))
    return single(value if isinstance(value, float) else Fraction(value))


def _cast_float(value: float, source: Type, target: Type, span: Span | None) -> Value:
    if target.is_decimal:
        exact = of_double(value)
        return None if exact is None else _fitted(exact, render(value, source), source, target, span)
    if not math.isfinite(value):
        raise cast_overflow(render(value, source), source, target, span)
    if target == BIGINT and value == 2.0**63:
        return 2**63 - 1  # Spark compares with the double nearest to BIGINT's greatest value, which is 2^63
    return _integer(math.trunc(value), render(value, source), source, target, span)


def _integer(value: int, text: str, source: Type, target: Type, span: Span | None) -> int:
    if not in_range(value, target):
        raise cast_overflow(text, source, target, span)
    return value


def _fitted(value: Fraction, text: str, source: Type, target: Type, span: Span | None) -> Decimal:
    result = fit(value, target)
    if result is None:
        raise cast_overflow(text, source, target, span)
    return result


def _timestamp(value: bool | int | float | Decimal, source: Type, span: Span | None) -> datetime.datetime:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise malformed(render(value, source), source, TIMESTAMP, span)
        micros = math.trunc(value * SECOND) if math.isfinite(value * SECOND) else SECOND**4
    else:
        micros = math.trunc(Fraction(value) * SECOND)
    try:
        return EPOCH + datetime.timedelta(microseconds=micros)
    except OverflowError:
        raise out_of_calendar("a cast to TIMESTAMP", span) from None
