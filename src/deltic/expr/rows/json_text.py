"""JSON text as Spark's Jackson reads it, and the values that a path finds in it.

Strings may have single quotes and control characters; whatever follows the first value is not read. Numbers are written again as Java
writes them, so 1.10 becomes 1.1.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from deltic.expr.rows.utf16 import HALVES
from deltic.java_floats import render_double
from deltic.variant_json import ESCAPES

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'((?:[^'\\]|\\.)*)'", re.DOTALL)
_STEP: Final = re.compile(
    r"(?P<every>\s*\.\*|\s*\['\*'\])|\.\s*+(?P<name>[^.\[]+)|\s*\['\s*+(?P<quoted>[^']+)'\]|\[(?P<index>\*|\s*[0-9]+)\]"
)
_SPACE: Final = " \t\n\r"
_LONGEST_NUMBER: Final = 1000
_ESCAPED: Final = re.compile('["\\\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')


@dataclass(frozen=True, slots=True)
class JsonNumber:
    """A number as Java writes it."""

    text: str


@dataclass(frozen=True, slots=True)
class JsonObject:
    """Names and values in their order; a name may be there twice."""

    pairs: tuple[tuple[str, Any], ...]


class Wildcard:
    """[*] of a path; `.*` finds nothing in Spark, and is NOTHING."""


EVERY: Final = Wildcard()
NOTHING: Final = Wildcard()
MISSING: Final = object()
Step = str | int | Wildcard


def _floating(text: str) -> JsonNumber:
    value = float(bounded(text))
    return JsonNumber(f'"{render_double(value)}"' if math.isinf(value) else render_double(value))


def _integer(text: str) -> JsonNumber:
    return JsonNumber(str(int(bounded(text))))


def bounded(text: str) -> str:
    """The number as it is written. Raises ValueError where Jackson stops reading."""
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("a number of too many digits")
    return text


def _refused(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=lambda pairs: JsonObject(tuple(pairs)),
    parse_float=_floating,
    parse_int=_integer,
    parse_constant=_refused,
    strict=False,
)


@lru_cache(maxsize=1024)
def parse(text: str) -> Any:
    """The first value of the text; MISSING if it is malformed or there is none."""
    plain = double_quoted(text).lstrip(_SPACE) if "'" in text else text.lstrip(_SPACE)
    try:
        value, end = _DECODER.raw_decode(plain)
    except (ValueError, RecursionError):
        return MISSING
    following = plain[end : end + 1]
    if isinstance(value, JsonNumber) and following.strip(_SPACE):
        return MISSING
    if (value is None or isinstance(value, bool)) and (following.isidentifier() or following.isdecimal() or following == "$"):
        return MISSING
    return value


def double_quoted(text: str) -> str:
    """The text with its strings in double quotes."""
    return _STRING.sub(_double_quoted, text)


def _double_quoted(match: re.Match[str]) -> str:
    return match[0] if match[1] is None else '"' + match[1].replace('"', '\\"') + '"'


@lru_cache(maxsize=256)
def steps(path: str) -> tuple[Step, ...] | None:
    """A path's steps: names, indexes and [*]; None if it is malformed.

    >>> steps("$.a['b c'][0]")
    ('a', 'b c', 0)
    """
    if not path.startswith("$"):
        return None
    parsed: list[Step] = []
    position = 1
    while path[position:].strip():
        step = _STEP.match(path, position)
        if step is None:
            return None
        position = step.end()
        if step["every"]:
            parsed.append(NOTHING)
        elif step["index"]:
            parsed.append(EVERY if step["index"] == "*" else int(step["index"]))
        else:
            parsed.append(step["name"] or step["quoted"])
    return tuple(parsed)


def value_at(text: str, path: str) -> str | None:
    """What a path finds: a string as it is, everything else as JSON; several values of a [*] as an array. NULL for nothing."""
    way = steps(path)
    value = parse(text)
    if way is None or value is MISSING:
        return None
    results: list[str] = []
    if not _write(value, way, "raw", results):
        return None
    return "".join(results)


_STRICT: Final = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refused, strict=True)
_KINDS: Final = {"object": dict, "array": list, "value": object}


def is_json(text: str, kind: str) -> bool:
    """Whether the text is one value of this kind by RFC 8259: a value, an object, an array or a scalar.

    >>> is_json('{"a": [1, null]}', "object"), is_json("[1", "value"), is_json("'a'", "value"), is_json(" 1e5 ", "scalar")
    (True, False, False, True)
    """
    try:
        value = _STRICT.decode(text)
    except (ValueError, RecursionError):
        return False
    return not isinstance(value, dict | list) if kind == "scalar" else isinstance(value, _KINDS[kind])


def array_length(text: str) -> int | None:
    """The elements of an array; NULL for other text."""
    value = parse(text)
    return len(value) if isinstance(value, list) else None


def _write(value: Any, way: Sequence[Step], style: str, out: list[str]) -> bool:
    """Appends the texts of what the way finds, and says whether it found anything; Spark's evaluatePath, case by case.

    style: raw: a string without quotes; quoted: JSON; flatten: arrays dissolve into the one around them.
    """
    if not way:
        return _write_whole(value, style, out)
    step, rest = way[0], way[1:]
    if isinstance(step, str) and isinstance(value, JsonObject):
        return any(name == step and part is not None and _write(part, rest, style, out) for name, part in value.pairs)
    if not isinstance(value, list):
        return False
    if isinstance(step, int):
        inner = "quoted" if rest[:1] == (EVERY,) else style
        return step < len(value) and _write(value[step], rest, inner, out)
    if step is EVERY:
        return _write_every(value, rest, style, out)
    return False


def _write_whole(value: Any, style: str, out: list[str]) -> bool:
    if style == "raw" and isinstance(value, str):
        out.append(value)
        return HALVES.search(value) is None
    if style == "flatten" and isinstance(value, list):
        return any([_write_whole(part, style, out) for part in value])
    out.append(written(value))
    return True


def _write_every(value: list[Any], rest: Sequence[Step], style: str, out: list[str]) -> bool:
    parts: list[str] = []
    if rest[:1] == (EVERY,):
        matches = [_write(part, rest[1:], "flatten", parts) for part in value]
        out.append(f"[{','.join(parts)}]")
        return any(matches)
    inner = "flatten" if style == "flatten" else "quoted"
    count = sum(_write(part, rest, inner, parts) for part in value)
    if style == "quoted":
        out.append(f"[{','.join(parts)}]")
    elif count:
        out.append(f"[{','.join(parts)}]" if count > 1 else ",".join(parts))
    return count > 0


def written(value: Any) -> str:
    """A value as JSON without blanks, as Jackson writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case JsonNumber():
            return value.text
        case JsonObject():
            return "{" + ",".join(f"{quoted(name)}:{written(part)}" for name, part in value.pairs) + "}"
        case _:
            return "[" + ",".join(map(written, value)) + "]"


def quoted(text: str) -> str:
    """A string of JSON."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    """As Jackson writes it: a character outside the Basic Multilingual Plane as its two UTF-16 units."""
    units = match[0].encode("utf-16-be", "surrogatepass").hex().upper()
    return ESCAPES.get(match[0]) or "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))
