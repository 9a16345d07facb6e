"""VARIANT from JSON and as JSON, as Spark's parse_json and to_json do it.

JSON is read strictly, as Jackson reads it: up to DEEPEST levels, numbers of up to 1000 digits, no name twice in an object. A number without
an exponent is a BIGINT or else a DECIMAL, if it has up to 38 digits, any other a DOUBLE. What follows the first value is not read.
"""

from __future__ import annotations

import base64
import datetime
import json
import math
import re
from decimal import Decimal
from typing import Any, Final

from deltic.errors import MalformedVariant
from deltic.java_floats import render_double, render_single
from deltic.variant_bytes import Form, Parts, VariantPlace, Writer, folded

_TOKEN: Final = re.compile(
    r"[ \t\n\r]*+(?:(?P<mark>[\[\]{},:])"
    r'|"(?P<text>(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+)"'
    r"|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)"
    r"|(?P<word>true|false|null))"
)
_WORDS: Final = {"true": True, "false": False, "null": None}
_MOST_DIGITS: Final = 1000
_LONGEST_NAME: Final = 50_000
_LONG: Final = 2**63
_PLACES: Final = 38
ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
"""Characters that a string of JSON has a short escape for."""
_ESCAPED: Final = re.compile('["\\\\\x00-\x1f]')


class WrittenNumber(str):
    """A number of JSON as it is written; also NaN, Infinity and -Infinity."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """An object of JSON: names and values in their order; a name may be there twice."""


def number(text: str) -> int | float | Decimal:
    """The value of a number. Raises MalformedVariant."""
    digits = text.lstrip("-")
    whole = digits.isdecimal()
    if len(digits) > _MOST_DIGITS + (0 if whole else 2):  # as Jackson counts them
        raise MalformedVariant(f"a number of more than {_MOST_DIGITS} digits")
    if whole and -_LONG <= (value := int(text)) < _LONG:
        return value
    if "e" in text or "E" in text or text.endswith(("NaN", "Infinity")):
        return float(text)
    exact = Decimal(text)
    _, significant, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    return exact if -exponent <= _PLACES and len(significant) <= _PLACES else float(text)


def form_of_json(value: Any) -> tuple[Form, Any]:
    """For Writer.tree: a value as json.loads reads it, with WrittenNumber and Pairs."""
    if isinstance(value, Pairs):
        return "object", value
    if isinstance(value, list):
        return "array", value
    return "scalar", number(value) if isinstance(value, WrittenNumber) else value


def parsed(text: str) -> Parts:
    """The VARIANT that the text is. Raises MalformedVariant."""
    writer, objects, position, state = Writer(), list[bool](), 0, "value"
    while True:
        token = _TOKEN.match(text, position)
        if token is None:
            raise MalformedVariant(f"unexpected character at {position}" if text[position:].strip(" \t\n\r") else "the text ends too early")
        position, mark = token.end(), token["mark"]
        if mark and mark in "]}":
            if not objects or (mark == "}") != objects[-1] or state not in ("end", "first"):
                raise MalformedVariant(f"unexpected {mark} at {position - 1}")
            writer.end()
            objects.pop()
            state = "end"
        elif mark == "," and state == "end":
            state = "name" if objects[-1] else "value"
        elif mark == ":" and state == "colon":
            state = "value"
        elif token["text"] is not None and objects and objects[-1] and state in ("name", "first"):
            writer.name(_name(token["text"]))
            state = "colon"
        elif mark in ("{", "[") and (state == "value" or (state == "first" and not objects[-1])):
            writer.begin(is_object=mark == "{")
            objects.append(mark == "{")
            state = "first"
        elif not mark and (state == "value" or (state == "first" and not objects[-1])):
            writer.scalar(_scalar(token))
            state = "end"
        else:
            raise MalformedVariant(f"unexpected character at {token.start()}")
        if not objects:
            _check_end(token, text)
            return writer.result


def _check_end(token: re.Match[str], text: str) -> None:
    """Raises MalformedVariant if what follows belongs to the number or the word."""
    following = text[token.end() : token.end() + 1]
    if token["number"] and following.strip(" \t\n\r"):
        raise MalformedVariant(f"unexpected character at {token.end()}")
    if token["word"] and (f"a{following}".isidentifier() or following == "$") and following:
        raise MalformedVariant(f"unexpected character at {token.end()}")


def _name(raw: str) -> str:
    name = _unescaped(raw)
    if len(name) > _LONGEST_NAME:
        raise MalformedVariant(f"a name of more than {_LONGEST_NAME} characters")
    return name


def _scalar(token: re.Match[str]) -> Any:
    if token["text"] is not None:
        return _unescaped(token["text"])
    return number(token["number"]) if token["number"] else _WORDS[token["word"]]


def _unescaped(raw: str) -> str:
    if "\\" not in raw:
        return raw
    text: str = json.loads(f'"{raw}"')
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MalformedVariant("half of a surrogate pair") from None
    return text


def text_of(place: VariantPlace) -> str:
    """As JSON without blanks."""
    return folded(place, _text_of_scalar, _text_of_array, _text_of_object)


def _text_of_array(parts: list[str]) -> str:
    return f"[{','.join(parts)}]"


def _text_of_object(fields: list[tuple[str, str]]) -> str:
    return f"{{{','.join(f'{quoted(name)}:{part}' for name, part in fields)}}}"


def _text_of_scalar(place: VariantPlace) -> str:
    value = place.scalar
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case bytes():
            return f'"{base64.b64encode(value).decode()}"'
        case float():
            text = render_single(value) if place.kind == "FLOAT" else render_double(value)
            return text if math.isfinite(value) else f'"{text}"'
        case Decimal():
            return format(value, "f")
        case datetime.datetime():
            fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
            return f'"{value.replace(tzinfo=None).isoformat(" ", "seconds")}{fraction}{"" if value.tzinfo is None else "+00:00"}"'
        case _:
            return f'"{value}"' if isinstance(value, datetime.date) else str(value)


def quoted(text: str) -> str:
    """A string of JSON."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    return ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}"
