"""Values from text: one strict grammar for CSV and for the strings of JSON, in ASCII digits and without white space around.

Integers: digits with an optional sign. DECIMAL: these, also with a point and an exponent, if no digit is lost. FLOAT and DOUBLE: so,
rounded once, and NaN, Inf and Infinity in any case; a finite number beyond the range is refused. BOOLEAN: true or false in any case.
DATE: yyyy-mm-dd. TIMESTAMP: a date, then optionally T or a space and hh, hh:mm or hh:mm:ss with up to six digits after the point
(more if they are zeros), then optionally a zone: Z, UTC, GMT, ±hh, ±hhmm or ±hh:mm, with or without a space; UTC if there is none.
TIMESTAMP_NTZ: so, without a zone. BINARY: base 64.
A month, day, hour, minute or second may be one digit, which costs time. Years are 1 to 9999, with four digits.
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
from deltic.schema import INTEGER_BITS, Type

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
_NO_NUMBER: Final = re.compile("[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_DAY: Final = "([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
_TIME: Final = r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,6})0*)?)?)?"
_ZONE: Final = " ?(?:Z|UTC|GMT|([+-])([0-9]{2})(?::?([0-9]{2}))?)"
_DATE: Final = re.compile(_DAY)
_TIMESTAMP: Final = re.compile(f"{_DAY}(?:[T ]{_TIME}(?:{_ZONE})?)?")
_ZONED: Final = r"[T ][0-9:.]+(Z|[+-][0-9:]+)$"
_FIRST: Final = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
_LAST: Final = datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=datetime.UTC)
MOST_DIGITS: Final = 38
_LONGEST_INTEGER: Final = 1000
_LONGEST_EXPONENT: Final = 6


@lru_cache(maxsize=1024)
def from_text(wanted: Type) -> Conversion:
    """From string[n] to values of `wanted`."""
    fast, slow = _ways(wanted)
    return Conversion(wanted.arrow, fast, lambda scalar: slow(scalar.as_py()))


def parse(text: str, wanted: Type) -> Any | Fault:
    """The value that `text` says."""
    return _ways(wanted)[1](text)


def expected_text(wanted: Type) -> str:
    """What a text of this type may say."""
    if wanted.is_decimal:
        return f"{wanted.sql}, a number of at most {wanted.precision - wanted.scale} digits before the point and {wanted.scale} after it"
    if wanted.is_float:
        return f"{wanted.sql}, a number in its range, NaN, Infinity or -Infinity"
    if wanted.name == "DATE":
        return "DATE, such as 2024-05-31"
    if wanted.name == "TIMESTAMP":
        return "TIMESTAMP, such as 2024-05-31T23:59:59.999999Z, in UTC if it names no zone"
    if wanted.name == "TIMESTAMP_NTZ":
        return "TIMESTAMP_NTZ, such as 2024-05-31T23:59:59.999999, without a zone"
    if wanted.name == "BINARY":
        return "BINARY, in base 64"
    return wanted.values


def is_no_number(text: str) -> bool:
    """Whether it says NaN or an infinity."""
    return _NO_NUMBER.fullmatch(text) is not None


def _ways(wanted: Type) -> tuple[Callable[[pa.Array], pa.Array], Callable[[str], Any]]:
    if wanted.is_integer:
        return lambda array: _integers(array, wanted), lambda text: _integer(text, wanted)
    if wanted.is_float:
        return lambda array: _floats(array, wanted), lambda text: _float(text, wanted)
    if wanted.is_decimal:
        return lambda array: _decimals(array, wanted), lambda text: _decimal(text, wanted)
    return {
        "BOOLEAN": (_booleans, lambda text: _boolean(text, wanted)),
        "DATE": (_dates, lambda text: _date(text, wanted)),
        "TIMESTAMP": (_timestamps, lambda text: _timestamp(text, wanted)),
        "TIMESTAMP_NTZ": (_local_timestamps, lambda text: _local_timestamp(text, wanted)),
        "BINARY": (_bytes, lambda text: _bytes_of(text, wanted)),
        "STRING": (lambda array: array, lambda text: text),
    }[wanted.name]


def _refuse(wrong: pa.Array) -> None:
    """Leaves an array with such values to the slow way."""
    if pc.any(wrong).as_py():
        raise pa.ArrowInvalid("for the slow way")


def _malformed(text: str, wanted: Type) -> Fault:
    return Fault(f"{quoted(text)} does not parse as {wanted.sql}", expected_text(wanted))


def _unfit(text: str, wanted: Type) -> Fault:
    return Fault(f"{quoted(text)} does not fit {wanted.sql}", expected_text(wanted), out=True)


def _integers(array: pa.Array, wanted: Type) -> pa.Array:
    _refuse(pc.match_substring(array, "x", ignore_case=True))  # Arrow takes hexadecimal digits
    return array.cast(wanted.arrow)


def _integer(text: str, wanted: Type) -> int | Fault:
    if not _INTEGER.fullmatch(text):
        return _malformed(text, wanted)
    bound = 1 << (INTEGER_BITS[wanted.name] - 1)
    if len(text) > _LONGEST_INTEGER or not -bound <= (value := int(text)) < bound:
        return _unfit(text, wanted)
    return value


def _floats(array: pa.Array, wanted: Type) -> pa.Array:
    values = array.cast(wanted.arrow)
    odd = pc.invert(pc.is_finite(values))
    if pc.any(odd).as_py():
        _refuse(pc.invert(pc.match_substring_regex(array.filter(odd), f"^{_NO_NUMBER.pattern}$", ignore_case=True)))
    return values


def _float(text: str, wanted: Type) -> float | Fault:
    if is_no_number(text):
        return float(text)
    if not _NUMBER.fullmatch(text):
        return _malformed(text, wanted)
    value: float = pa.array([text]).cast(wanted.arrow)[0].as_py()  # as FLOAT rounded once, which Python cannot
    return value if math.isfinite(value) else _unfit(text, wanted)


def _decimals(array: pa.Array, wanted: Type) -> pa.Array:
    """Arrow lets more digits overflow, and may crash on an exponent."""
    _refuse(pc.or_(pc.greater(pc.binary_length(array), MOST_DIGITS), pc.match_substring(array, "e", ignore_case=True)))
    return array.cast(wanted.arrow)


def _decimal(text: str, wanted: Type) -> decimal.Decimal | Fault:
    match = _NUMBER.fullmatch(text)
    if not match:
        return _malformed(text, wanted)
    if len((match[1] or "").lstrip("+-0")) > _LONGEST_EXPONENT:
        return _unfit(text, wanted) if re.match(r"[^eE]*[1-9]", text) else decimal.Decimal(0)
    sign, all_digits, exponent = decimal.Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, all_digits)).rstrip("0")
    exponent += len(all_digits) - len(digits)
    if digits and (-exponent > wanted.scale or len(digits) + exponent > wanted.precision - wanted.scale):
        return _unfit(text, wanted)
    return decimal.Decimal((sign, tuple(map(int, digits)), exponent)) if digits else decimal.Decimal(0)


def _booleans(array: pa.Array) -> pa.Array:
    lower = pc.ascii_lower(array)
    true = pc.equal(lower, "true")
    _refuse(pc.invert(pc.or_(true, pc.equal(lower, "false"))))
    return true


def _boolean(text: str, wanted: Type) -> bool | Fault:
    word = text.lower()
    return word == "true" if word in ("true", "false") else _malformed(text, wanted)


def _dates(array: pa.Array) -> pa.Array:
    values = array.cast(pa.date32())
    _refuse(pc.less(values, pa.scalar(_FIRST.date())))
    return values


def _date(text: str, wanted: Type) -> datetime.date | Fault:
    match = _DATE.fullmatch(text)
    try:
        return datetime.date(*map(int, match.groups())) if match else _malformed(text, wanted)
    except ValueError:
        return _malformed(text, wanted)


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


def _timestamp(text: str, wanted: Type) -> datetime.datetime | Fault:
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return _malformed(text, wanted)
    year, month, day, hour, minute, second, micros = (int(group or 0) for group in [*match.groups()[:6], (match[7] or "").ljust(6, "0")])
    sign, hours, minutes = match[8], int(match[9] or 0), int(match[10] or 0)
    if hours > 23 or minutes > 59:
        return _malformed(text, wanted)
    try:
        local = datetime.datetime(year, month, day, hour, minute, second, micros, datetime.UTC)
    except ValueError:
        return _malformed(text, wanted)
    offset = datetime.timedelta(hours=hours, minutes=minutes)
    try:
        return local - offset if sign == "+" else local + offset
    except OverflowError:
        return _unfit(text, wanted)


def _local_timestamps(array: pa.Array) -> pa.Array:
    _refuse(pc.match_substring_regex(array, _ZONED))
    values = array.cast(pa.timestamp("us"))
    _refuse(pc.or_(pc.less(values, pa.scalar(_FIRST.replace(tzinfo=None))), pc.greater(values, pa.scalar(_LAST.replace(tzinfo=None)))))
    return values


def _local_timestamp(text: str, wanted: Type) -> datetime.datetime | Fault:
    if _TIMESTAMP.fullmatch(text) and not re.search(f"{_ZONE}$", text[10:]):
        value = _timestamp(text, wanted)
        return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
    return _malformed(text, wanted)


def _bytes(array: pa.Array) -> pa.Array:
    try:
        values = [None if text is None else base64.b64decode(text, validate=True) for text in array.to_pylist()]
    except (binascii.Error, ValueError):
        raise pa.ArrowInvalid("for the slow way") from None
    return pa.array(values, pa.binary())


def _bytes_of(text: str, wanted: Type) -> bytes | Fault:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return _malformed(text, wanted)
