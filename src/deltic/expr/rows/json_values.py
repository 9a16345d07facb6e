"""JSON text to values of a type and back, as Spark's JacksonParser and JacksonGenerator do in mode PERMISSIVE.

A part that does not fit its type is NULL: a field of a STRUCT by itself, an ARRAY or a MAP as a whole. Text that is not JSON is a STRUCT of
NULLs, or NULL. Whatever follows the first value is not read.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import math
import re
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from typing import Any, Final

from deltic.errors import MalformedVariant
from deltic.expr.nodes import Value
from deltic.expr.rows.casts import EPOCH
from deltic.expr.rows.datetime_fields import Patterns, datetime_reader
from deltic.expr.rows.json_text import JsonObject, bounded, double_quoted, refused, written
from deltic.expr.rows.numbers import fit, in_range, single
from deltic.expr.rows.parsing import parse_decimal
from deltic.expr.rows.utf16 import without_halves
from deltic.java_floats import render_double
from deltic.json_decoding import JsonDecoder
from deltic.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    Type,
)
from deltic.variant_bytes import Form, Writer
from deltic.variant_json import number
from deltic.variants import Variant

READABLE: Final = (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, VARIANT)
"""The types without parameters that JSON is read as; also DECIMAL, TIME, ARRAY, MAP with keys of STRING, and STRUCT."""
_SPACE: Final = " \t\n\r"
_SPECIAL: Final = {
    "NaN": math.nan,
    "+INF": math.inf,
    "+Infinity": math.inf,
    "Infinity": math.inf,
    "-INF": -math.inf,
    "-Infinity": -math.inf,
}
_STRANGE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<special>[+-]?INF\b|\+Infinity\b)', re.DOTALL)
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?")
_LETTERS: Final = re.compile("[A-Za-z0-9+/]*")


class UnfitValue(ValueError):
    """A value of JSON that the type cannot hold."""


class MalformedJson(ValueError):
    """Text that is not JSON."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is written; `whole` without point and exponent."""

    text: str
    whole: bool


def _constant(text: str) -> Number:
    return Number(text, False)


_HOOKS: Final[dict[str, Any]] = {
    "objects": lambda pairs: JsonObject(tuple(pairs)),
    "floats": lambda text: Number(bounded(text), False),
    "integers": lambda text: Number(bounded(text), True),
}
_DECODER: Final = JsonDecoder(**_HOOKS, constants=_constant)


def read(text: str) -> Any:
    """The first value of the text. Raises MalformedJson."""
    plain = text.lstrip(_SPACE)
    if "'" in plain:
        plain = double_quoted(plain)
    if "INF" in plain or "+I" in plain:
        plain = _STRANGE.sub(lambda match: match[0] if match["special"] is None else _plain_special(match[0]), plain)
    try:
        value, _ = _DECODER.value(plain)
    except ValueError:
        raise MalformedJson(text) from None
    return value


def _plain_special(text: str) -> str:
    return "-Infinity" if text.startswith("-") else "Infinity"


Reader = Callable[[Any], Value]
"""A value of JSON, not null, as a value. Raises UnfitValue."""


@cache
def reader(type: Type, patterns: Patterns, *, strict: bool = False) -> Reader:
    """The conversion to a type. strict: a field that is unfit makes its STRUCT unfit."""

    def part(inner: Type) -> Callable[[Any], Value]:
        convert = reader(inner, patterns, strict=strict)
        if inner == VARIANT:
            return convert  # which holds null
        return lambda value: None if value is None else convert(value)

    if type.name == "STRUCT":
        return _structs([(field.name, part(field.type)) for field in type.parts], strict)
    if type.name == "ARRAY":
        element = part(type.parts[0].type)
        return lambda value: tuple(map(element, _of_kind(value, list)))
    if type.name == "MAP":
        item = part(type.parts[1].type)
        return lambda value: tuple((name, item(one)) for name, one in _of_kind(value, JsonObject).pairs)
    if type == VARIANT:
        return _variant
    if (read_text := datetime_reader(type, patterns)) is not None:
        return partial(_timestamp if type == TIMESTAMP else _moment, read_text)
    if type.is_decimal:
        return lambda value: _decimal(value, type)
    return _SCALARS[type.name]


def _of_kind(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise UnfitValue
    return value


def _structs(fields: list[tuple[str, Reader]], strict: bool) -> Reader:
    positions = {name: i for i, (name, _) in enumerate(fields)}

    def convert(value: Any) -> Value:
        values: list[Value] = [None] * len(fields)
        for name, one in _of_kind(value, JsonObject).pairs:
            i = positions.get(name)
            if i is not None:
                with nullcontext() if strict else suppress(UnfitValue):  # the field keeps what an earlier one of its name gave
                    values[i] = fields[i][1](one)
        return tuple(values)

    return convert


def _boolean(value: Any) -> bool:
    result: bool = _of_kind(value, bool)
    return result


def _integer(type: Type) -> Reader:
    def convert(value: Any) -> int:
        if not isinstance(value, Number) or not value.whole or len(value.text) > 20:
            raise UnfitValue
        number = int(value.text)
        if type == TINYINT and 127 < number < 256:
            return number - 256  # as Jackson's getByteValue
        if not in_range(number, type):
            raise UnfitValue
        return number

    return convert


def _floating(narrow: bool) -> Reader:
    def convert(value: Any) -> float:
        if isinstance(value, Number):
            special = _SPECIAL.get(value.text)
            number = special if special is not None else _double(value)
            return single(number) if narrow and math.isfinite(number) else number
        if isinstance(value, str) and value in _SPECIAL:
            return _SPECIAL[value]
        raise UnfitValue

    return convert


def _double(number: Number) -> float:
    """-0 is 0.0, and -0.0 itself."""
    value = float(number.text)
    return abs(value) if number.whole and value == 0 else value


def _decimal(value: Any, type: Type) -> Decimal:
    text = value.text if isinstance(value, Number) else value
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise UnfitValue
    number = parse_decimal(text)
    fitted = None if number is None else fit(number, type)
    if fitted is None:
        raise UnfitValue
    return fitted


def _text(value: Any) -> str:
    return without_halves(value) if isinstance(value, str) else written(value, _number_text)


def _number_text(number: Number) -> str:
    """As Java writes it."""
    if number.whole:
        return "0" if number.text == "-0" else number.text
    special = _SPECIAL.get(number.text)
    value = float(number.text) if special is None else special
    return render_double(value) if math.isfinite(value) else f'"{render_double(value)}"'


def _variant(value: Any) -> Variant:
    writer = Writer()
    try:
        writer.tree(value, _form)
    except (MalformedVariant, UnicodeEncodeError):
        raise UnfitValue from None
    return Variant(*writer.result)


def _form(value: Any) -> tuple[Form, Any]:
    if isinstance(value, JsonObject):
        return "object", value.pairs
    if isinstance(value, Number):
        return "scalar", _SPECIAL[value.text] if value.text in _SPECIAL else number(value.text)
    return ("array", value) if isinstance(value, list) else ("scalar", value)


def _binary(value: Any) -> bytes:
    text = _of_kind(value, str)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        if _LETTERS.fullmatch(text) and len(text) % 4 == 1:
            raise MalformedJson(text) from None  # here Jackson reads past the end of the string
        raise UnfitValue from None


def _moment(read_text: Callable[[str], Value], value: Any) -> Value:
    moment = read_text(_of_kind(value, str))
    if moment is None:
        raise UnfitValue
    return moment


def _timestamp(read_text: Callable[[str], Value], value: Any) -> Value:
    """A whole number is seconds since 1970."""
    if isinstance(value, Number) and value.whole and len(value.text) < 20:
        try:
            return EPOCH + datetime.timedelta(seconds=int(value.text))
        except OverflowError:
            raise UnfitValue from None
    return _moment(read_text, value)


_SCALARS: Final[dict[str, Reader]] = {
    "BOOLEAN": _boolean,
    **{type.name: _integer(type) for type in (TINYINT, SMALLINT, INT, BIGINT)},
    "FLOAT": _floating(True),
    "DOUBLE": _floating(False),
    "STRING": _text,
    "BINARY": _binary,
}


def value_of_type(text: str, type: Type, convert: Reader) -> Value:
    """The text as a value of a nested type; NULL for an empty one. Raises MalformedJson."""
    if not text.strip(_SPACE):
        return None
    value = read(text)
    if value is None and type != VARIANT:
        raise MalformedJson(text)
    if type.name == "ARRAY" and type.parts[0].type.name == "STRUCT" and isinstance(value, JsonObject):
        value = [value]  # one object stands for an array of it
    try:
        return convert(value)
    except UnfitValue:
        raise MalformedJson(text) from None


def keys(text: str) -> tuple[str, ...] | None:
    """The names of an object, in order; NULL for other text."""
    try:
        value = read_leniently(text)
    except MalformedJson:
        return None
    return tuple(name for name, _ in value.pairs) if isinstance(value, JsonObject) else None


def field_text(text: str, name: str) -> str | None:
    """The last field of this name of an object: a string as it is, everything else as JSON; NULL if it is null or not there."""
    try:
        value = read_leniently(text)
    except MalformedJson:
        return None
    member = next((part for key, part in reversed(value.pairs) if key == name), None) if isinstance(value, JsonObject) else None
    return None if member is None else _text(member)


_LENIENT: Final = JsonDecoder(**_HOOKS, constants=refused, strict=False)


def read_leniently(text: str) -> Any:
    """As `read`, with control characters in strings, without NaN. Raises MalformedJson."""
    plain = text.lstrip(_SPACE)
    try:
        value, _ = _LENIENT.value(double_quoted(plain) if "'" in plain else plain)
    except ValueError:
        raise MalformedJson(text) from None
    return value
