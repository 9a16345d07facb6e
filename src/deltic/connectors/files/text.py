"""Parses values from text: one strict grammar for CSV and JSON strings, in ASCII digits and without surrounding white space.

Integers: digits with an optional sign. DECIMAL: also with a point and an exponent, if no digit is lost. FLOAT and DOUBLE: as DECIMAL,
rounded once, or NaN, Inf and Infinity in any case; a finite number out of range is refused. BOOLEAN: true or false in any case.
DATE: yyyy-mm-dd. TIMESTAMP: a date, then optionally T or a space and hh, hh:mm or hh:mm:ss with up to six digits after the point
(more if they are zeros), then optionally a zone: Z, UTC, GMT, ±hh, ±hhmm or ±hh:mm, with or without a space; UTC if there is none.
TIMESTAMP_NTZ: so, without a zone. TIME: hh:mm or hh:mm:ss, so too. BINARY: base 64. INTERVAL: as SQL casts it to text, or only what
stands in its quotes.
A month, day, hour, minute or second may have one digit, which is slower to parse. Years are 1 to 9999, with four digits.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from deltic.connectors.files.converting import Conversion
from deltic.connectors.files.portions import Fault, quoted
from deltic.intervals import UNITS, render, units_of
from deltic.intervals import parse as parse_interval
from deltic.schema import DAY_TO_SECOND, INTEGER_BITS, Type

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
_NO_NUMBER: Final = re.compile("[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_DAY: Final = "([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
_TIME: Final = r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,6})0*)?)?)?"
_ZONE: Final = " ?(?:Z|UTC|GMT|([+-])([0-9]{2})(?::?([0-9]{2}))?)"
_DATE: Final = re.compile(_DAY)
_TIMESTAMP: Final = re.compile(f"{_DAY}(?:[T ]{_TIME}(?:{_ZONE})?)?")
_CLOCK: Final = re.compile(r"([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,6})0*)?)?")
_ZONED: Final = r"[T ][0-9:.]+(Z|[+-][0-9:]+)$"
_FIRST: Final = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
_LAST: Final = datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=datetime.UTC)
_SAMPLE: Final = datetime.timedelta(days=1, hours=2, minutes=3)
_SAMPLE_MONTHS: Final = 14
MOST_DIGITS: Final = 38
_LONGEST_INTEGER: Final = 1000
_LONGEST_EXPONENT: Final = 6


@lru_cache(maxsize=1024)
def from_text(target: Type) -> Conversion:
    """The conversion from string[n] to values of `target`."""
    fast, slow = _ways(target)
    return Conversion(target.arrow, fast, lambda scalar: slow(scalar.as_py()))


def parse(text: str, target: Type) -> Any | Fault:
    """The value of `text`, or a Fault."""
    return _ways(target)[1](text)


def expected_text(target: Type) -> str:
    """The expected text for a type, for messages."""
    if target.is_decimal:
        return f"{target.sql}, a number of at most {target.precision - target.scale} digits before the point and {target.scale} after it"
    if target.is_float:
        return f"{target.sql}, a number in its range, NaN, Infinity or -Infinity"
    if target.name == "DATE":
        return "DATE, such as 2024-05-31"
    if target.name == "TIMESTAMP":
        return "TIMESTAMP, such as 2024-05-31T23:59:59.999999Z, in UTC if it names no zone"
    if target.name == "TIMESTAMP_NTZ":
        return "TIMESTAMP_NTZ, such as 2024-05-31T23:59:59.999999, without a zone"
    if target.is_time:
        return f"{target.sql}, such as 23:59:59.999999"
    if target.is_interval:
        return f"{target.sql}, such as {render(_SAMPLE_MONTHS if target.is_year_month else _SAMPLE, target)}"
    if target.name == "BINARY":
        return "BINARY, in base 64"
    return target.values


def is_no_number(text: str) -> bool:
    """Whether the text is NaN or an infinity."""
    return _NO_NUMBER.fullmatch(text) is not None


def _ways(target: Type) -> tuple[Callable[[pa.Array], pa.Array], Callable[[str], Any]]:
    if target.is_integer:
        return lambda array: _integers(array, target), lambda text: _integer(text, target)
    if target.is_float:
        return lambda array: _floats(array, target), lambda text: _float(text, target)
    if target.is_decimal:
        return lambda array: _decimals(array, target), lambda text: _decimal(text, target)
    if target.is_interval:
        return lambda array: _intervals(array, target), lambda text: _interval(text, target)
    return {
        "BOOLEAN": (_booleans, lambda text: _boolean(text, target)),
        "DATE": (_dates, lambda text: _date(text, target)),
        "TIMESTAMP": (_timestamps, lambda text: _timestamp(text, target)),
        "TIMESTAMP_NTZ": (_local_timestamps, lambda text: _local_timestamp(text, target)),
        "TIME": (_times, lambda text: _time(text, target)),
        "BINARY": (_bytes, lambda text: _bytes_of(text, target)),
        "STRING": (lambda array: array, lambda text: text),
    }[target.read.name]


def _refuse(wrong: pa.Array) -> None:
    """Raises for an array with such values, which are parsed one by one."""
    if pc.any(wrong).as_py():
        raise pa.ArrowInvalid("for the slow way")


def _malformed(text: str, target: Type) -> Fault:
    return Fault(f"{quoted(text)} does not parse as {target.sql}", expected_text(target))


def _unfit(text: str, target: Type) -> Fault:
    return Fault(f"{quoted(text)} does not fit {target.sql}", expected_text(target), out=True)


def _integers(array: pa.Array, target: Type) -> pa.Array:
    _refuse(pc.match_substring(array, "x", ignore_case=True))  # Arrow takes hexadecimal digits
    return array.cast(target.arrow)


def _integer(text: str, target: Type) -> int | Fault:
    if not _INTEGER.fullmatch(text):
        return _malformed(text, target)
    bound = 1 << (INTEGER_BITS[target.name] - 1)
    if len(text) > _LONGEST_INTEGER or not -bound <= (value := int(text)) < bound:
        return _unfit(text, target)
    return value


def _floats(array: pa.Array, target: Type) -> pa.Array:
    values = array.cast(target.arrow)
    odd = pc.invert(pc.is_finite(values))
    if pc.any(odd).as_py():
        _refuse(pc.invert(pc.match_substring_regex(array.filter(odd), f"^{_NO_NUMBER.pattern}$", ignore_case=True)))
    return values


def _float(text: str, target: Type) -> float | Fault:
    if is_no_number(text):
        return float(text)
    if not _NUMBER.fullmatch(text):
        return _malformed(text, target)
    value: float = pa.array([text]).cast(target.arrow)[0].as_py()  # rounds to FLOAT once, which Python cannot
    return value if math.isfinite(value) else _unfit(text, target)


def _decimals(array: pa.Array, target: Type) -> pa.Array:
    """Raises for texts that Arrow would let overflow, or whose exponent may crash it."""
    _refuse(pc.or_(pc.greater(pc.binary_length(array), MOST_DIGITS), pc.match_substring(array, "e", ignore_case=True)))
    return array.cast(target.arrow)


def _decimal(text: str, target: Type) -> decimal.Decimal | Fault:
    match = _NUMBER.fullmatch(text)
    if not match:
        return _malformed(text, target)
    if len((match[1] or "").lstrip("+-0")) > _LONGEST_EXPONENT:
        return _unfit(text, target) if re.match(r"[^eE]*[1-9]", text) else decimal.Decimal(0)
    sign, all_digits, exponent = decimal.Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, all_digits)).rstrip("0")
    exponent += len(all_digits) - len(digits)
    if digits and (-exponent > target.scale or len(digits) + exponent > target.precision - target.scale):
        return _unfit(text, target)
    return decimal.Decimal((sign, tuple(map(int, digits)), exponent)) if digits else decimal.Decimal(0)


def _intervals(array: pa.Array, target: Type) -> pa.Array:
    values = [None if text is None else _interval(text, target) for text in array.to_pylist()]
    if any(isinstance(value, Fault) for value in values):
        raise pa.ArrowInvalid("for the slow way")
    return pa.array(values, target.arrow)


def _interval(text: str, target: Type) -> datetime.timedelta | int | Fault:
    """In the form of the type, or a day-time one in that of DAY TO SECOND, in which those within nested values are written."""
    value = parse_interval(text, target) if text == text.strip() else None
    if value is None and target.is_day_time:
        value = parse_interval(text, DAY_TO_SECOND)
        if value is not None and units_of(value) % UNITS[target.fields[1]]:
            return _unfit(text, target)
    return _malformed(text, target) if value is None else value


def _booleans(array: pa.Array) -> pa.Array:
    lower = pc.ascii_lower(array)
    true = pc.equal(lower, "true")
    _refuse(pc.invert(pc.or_(true, pc.equal(lower, "false"))))
    return true


def _boolean(text: str, target: Type) -> bool | Fault:
    word = text.lower()
    return word == "true" if word in ("true", "false") else _malformed(text, target)


def _dates(array: pa.Array) -> pa.Array:
    values = array.cast(pa.date32())
    _refuse(pc.less(values, pa.scalar(_FIRST.date())))
    return values


def _date(text: str, target: Type) -> datetime.date | Fault:
    match = _DATE.fullmatch(text)
    try:
        return datetime.date(*map(int, match.groups())) if match else _malformed(text, target)
    except ValueError:
        return _malformed(text, target)


def _timestamps(array: pa.Array) -> pa.Array:
    zoned = pc.match_substring_regex(array, _ZONED)
    if not pc.any(zoned).as_py():
        values = pc.assume_timezone(array.cast(pa.timestamp("us")), "UTC")
    elif pc.all(zoned).as_py():
        values = array.cast(pa.timestamp("us", "UTC"))
    else:
        raise pa.ArrowInvalid("for the slow way")
    _refuse(pc.or_(pc.less(values, pa.scalar(_FIRST)), pc.greater(values, pa.scalar(_LAST))))
    return values


def _timestamp(text: str, target: Type) -> datetime.datetime | Fault:
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return _malformed(text, target)
    year, month, day, hour, minute, second, micros = (int(group or 0) for group in [*match.groups()[:6], (match[7] or "").ljust(6, "0")])
    sign, hours, minutes = match[8], int(match[9] or 0), int(match[10] or 0)
    if hours > 23 or minutes > 59:
        return _malformed(text, target)
    try:
        local = datetime.datetime(year, month, day, hour, minute, second, micros, datetime.UTC)
    except ValueError:
        return _malformed(text, target)
    offset = datetime.timedelta(hours=hours, minutes=minutes)
    try:
        return local - offset if sign == "+" else local + offset
    except OverflowError:
        return _unfit(text, target)


def _local_timestamps(array: pa.Array) -> pa.Array:
    _refuse(pc.match_substring_regex(array, _ZONED))
    values = array.cast(pa.timestamp("us"))
    _refuse(pc.or_(pc.less(values, pa.scalar(_FIRST.replace(tzinfo=None))), pc.greater(values, pa.scalar(_LAST.replace(tzinfo=None)))))
    return values


def _local_timestamp(text: str, target: Type) -> datetime.datetime | Fault:
    if _TIMESTAMP.fullmatch(text) and not re.search(f"{_ZONE}$", text[10:]):
        value = _timestamp(text, target)
        return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
    return _malformed(text, target)


def _times(array: pa.Array) -> pa.Array:
    _refuse(pc.invert(pc.match_substring(array, ":")))
    return array.cast(pa.time64("us"))


def _time(text: str, target: Type) -> datetime.time | Fault:
    match = _CLOCK.fullmatch(text)
    try:
        if match is not None:
            return datetime.time(int(match[1]), int(match[2]), int(match[3] or 0), int((match[4] or "").ljust(6, "0")))
    except ValueError:
        pass  # 24:00, for example
    return _malformed(text, target)


def _bytes(array: pa.Array) -> pa.Array:
    try:
        values = [None if text is None else base64.b64decode(text, validate=True) for text in array.to_pylist()]
    except (binascii.Error, ValueError):
        raise pa.ArrowInvalid("for the slow way") from None
    return pa.array(values, pa.binary())


def _bytes_of(text: str, target: Type) -> bytes | Fault:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return _malformed(text, target)
