"""A line of CSV to values and back, as Spark reads and writes it: fields in double quotes, with \\ as the escape of a quote."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any, Final

from deltic.expr.nodes import Value
from deltic.expr.rows.datetime_fields import Patterns, datetime_field, datetime_reader
from deltic.expr.rows.numbers import fit, in_range
from deltic.expr.rows.parsing import parse_date, parse_decimal, parse_double, parse_single, parse_timestamp
from deltic.expr.rows.rendering import render
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
    Type,
    decimal,
)

_READABLE: Final = (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)
"""The types without parameters that are read from CSV."""
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?")
_CLOCK: Final = re.compile(r"\s*(\d{1,2}:|T\d{1,2}(:|$))")
"""The beginning of a time without a date, which Spark takes for one of the current day."""
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_INFINITE: Final = ("NaN", "Infinity", "+Infinity", "-Infinity")
_BLANKS: Final = "".join(map(chr, range(33)))


def is_readable(type: Type) -> bool:
    """Whether a field of CSV is read as the type."""
    return type in _READABLE or type.is_decimal or type.is_time or type.is_interval


def is_writable(type: Type) -> bool:
    """Whether values of the type are written as a field of CSV."""
    return is_readable(type) or type == BINARY


def fields(line: str, separator: str) -> list[str]:
    """The texts of the fields."""
    values, position = list[str](), 0
    while True:
        text, position = _quoted(line, position, separator) if line.startswith('"', position) else _plain(line, position, separator)
        values.append(text)
        if position >= len(line):
            return values
        position += len(separator)
        if position == len(line):
            return [*values, ""]


def _plain(line: str, position: int, separator: str) -> tuple[str, int]:
    end = line.find(separator, position)
    end = len(line) if end < 0 else end
    return line[position:end], end


def _quoted(line: str, start: int, separator: str) -> tuple[str, int]:
    """A field in quotes; one whose closing quote is followed by something else is taken as it is written, and so is a quote at the end."""
    text, position = "", start + 1
    while position < len(line):
        character = line[position]
        if character == "\\" and line[position + 1 : position + 2] in ('"', "\\"):
            text, position = text + line[position + 1], position + 2
        elif character == '"':
            end = position + 1
            while end < len(line) and line[end] <= " " and line[end] != separator:
                end += 1
            if end == len(line) or line.startswith(separator, end):
                return text, end
            return _plain(line, start, separator)
        else:
            text, position = text + character, position + 1
    return text or '"', len(line)


def row_of(line: str, type: Type, separator: str, patterns: Patterns) -> tuple[Value, ...]:
    """The fields as the parts of a STRUCT; NULL for one that is empty, not there, or not of its type."""
    texts = fields(line, separator)
    texts += [""] * (len(type.parts) - len(texts))
    return tuple(_reader(part.type, patterns)(text) if text else None for text, part in zip(texts, type.parts, strict=False))


@cache
def _reader(type: Type, patterns: Patterns) -> Callable[[str], Value]:
    """NULL for text that is not of the type."""
    if type == STRING:
        return lambda text: text
    if type == BOOLEAN:
        return lambda text: {"true": True, "false": False}.get(text.lower())
    if type.is_integer:
        return lambda text: int(text) if _INTEGER.fullmatch(text) and in_range(int(text), type) else None
    if type.is_float:
        return lambda text: _floating(text, parse_single if type == FLOAT else parse_double)
    if type.is_decimal:
        return lambda text: _fitted(text, type) if _DECIMAL.fullmatch(text) else None
    reader = datetime_reader(type, patterns)
    assert reader is not None, f"{type} is not readable"
    return reader


def _fitted(text: str, type: Type) -> Value:
    number = parse_decimal(text)
    return None if number is None else fit(number, type)


def _floating(text: str, parse: Callable[[str], float | None]) -> float | None:
    if text in ("Inf", "-Inf"):
        return math.inf if text == "Inf" else -math.inf
    number = parse(text)
    if number is None:
        return None
    named = text.strip()[-1:].isalpha() and text.strip() not in _INFINITE
    return None if named and not math.isfinite(number) else number


def line_of(values: tuple[Any, ...], type: Type, separator: str, patterns: Patterns) -> str:
    """The parts of a STRUCT as a line; NULL is empty, and empty text is ""."""
    texts = (_text(value, part.type, patterns) for value, part in zip(values, type.parts, strict=True))
    return separator.join("" if text is None else _written(text, separator, first=not i) for i, text in enumerate(texts))


def _text(value: Any, type: Type, patterns: Patterns) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return f"[{value.hex(' ').upper()}]"
    if (text := datetime_field(value, type, patterns)) is not None:
        return text
    return str(value) if isinstance(value, Decimal) else render(value, type)


def _written(text: str, separator: str, *, first: bool) -> str:
    """Without white space around it; in quotes if it has to be, also for a # that begins the line."""
    plain = text.strip(_BLANKS)
    if not plain:
        return '""'
    if any(mark in text for mark in (separator, '"', "\n", "\r")) or (first and plain.startswith("#")):
        escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return plain


def inferred(line: str, separator: str) -> list[Type]:
    """The type of each field."""
    return [_type_of(text) for text in fields(line, separator)]


def _type_of(text: str) -> Type:
    if text.endswith(".") and _INTEGER.fullmatch(text[:-1]):
        return decimal(max(1, len(str(abs(int(text[:-1]))))), 0)
    if _INTEGER.fullmatch(text):
        number = int(text)
        if in_range(number, INT):
            return INT
        if in_range(number, BIGINT):
            return BIGINT
        digits = len(str(abs(number)))
        return decimal(digits, 0) if digits <= 38 else DOUBLE
    if text and _floating(text, parse_double) is not None:
        return DOUBLE
    if _DAY.fullmatch(text) and parse_date(text) is not None:
        return DATE
    if parse_timestamp(text) is not None or (
        _CLOCK.match(text) and parse_timestamp(f"1970-01-01T{text.strip().removeprefix('T')}") is not None
    ):
        return TIMESTAMP
    return BOOLEAN if text.lower() in ("true", "false") else STRING
