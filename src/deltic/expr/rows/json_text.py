"""JSON text as Spark's Jackson reads it, and the values that a path finds in it.

Strings may have single quotes and control characters; whatever follows the first value is not read. Numbers are written again as Java
writes them, so 1.10 becomes 1.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from deltic.expr.rows.utf16 import HALVES
from deltic.java_floats import render_double
from deltic.json_decoding import JsonDecoder
from deltic.stacks import unbounded
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


def refused(text: str) -> Any:
    """For NaN and Infinity. Raises ValueError."""
    raise ValueError(f"{text} is not JSON")


_DECODER: Final = JsonDecoder(
    objects=lambda pairs: JsonObject(tuple(pairs)), floats=_floating, integers=_integer, constants=refused, strict=False
)


@lru_cache(maxsize=1024)
def parse(text: str) -> Any:
    """The first value of the text; MISSING if it is malformed or there is none."""
    plain = double_quoted(text).lstrip(_SPACE) if "'" in text else text.lstrip(_SPACE)
    try:
        value, end = _DECODER.value(plain)
    except ValueError:
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


_STRICT: Final = JsonDecoder(objects=dict, floats=str, integers=str, constants=refused)
_KINDS: Final = {"object": dict, "array": list, "value": object}


def is_json(text: str, kind: str) -> bool:
    """Whether the text is one value of this kind by RFC 8259, of up to 1000 levels: a value, an object, an array or a scalar.

    >>> is_json('{"a": [1, null]}', "object"), is_json("[1", "value"), is_json("'a'", "value"), is_json(" 1e5 ", "scalar")
    (True, False, False, True)
    """
    try:
        value = _STRICT.whole(text)
    except ValueError:
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
    for i, step in enumerate(way):
        if isinstance(step, str) and isinstance(value, JsonObject):
            values_of_name = [part for name, part in value.pairs if name == step and part is not None]
            if len(values_of_name) != 1:
                return any(_recursion(way, i)(part, way[i + 1 :], style, out) for part in values_of_name)
            value = values_of_name[0]
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            style = "quoted" if way[i + 1 : i + 2] == (EVERY,) else style
            value = value[step]
        else:
            return step is EVERY and isinstance(value, list) and _write_every(value, way[i + 1 :], style, out)
    return _write_whole(value, style, out)


_write_deep: Final = unbounded(_write)
_LONG_WAY: Final = 16


def _recursion(way: Sequence[Step], position: int) -> Callable[[Any, Sequence[Step], str, list[str]], bool]:
    """What continues after a step: a long way could lead through more frames than a stack has."""
    return _write_deep if len(way) - position > _LONG_WAY else _write


def _write_whole(value: Any, style: str, out: list[str]) -> bool:
    if style == "raw" and isinstance(value, str):
        out.append(value)
        return HALVES.search(value) is None
    if style != "flatten" or not isinstance(value, list):
        out.append(written(value))
        return True
    left, count = value[::-1], len(out)
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += reversed(one)
        else:
            out.append(written(one))
    return len(out) > count


def _write_every(value: list[Any], rest: Sequence[Step], style: str, out: list[str]) -> bool:
    parts: list[str] = []
    if rest[:1] == (EVERY,):
        matches = [_recursion(rest, 0)(part, rest[1:], "flatten", parts) for part in value]
        out.append(f"[{','.join(parts)}]")
        return any(matches)
    inner = "flatten" if style == "flatten" else "quoted"
    count = sum(_recursion(rest, 0)(part, rest, inner, parts) for part in value)
    if style == "quoted":
        out.append(f"[{','.join(parts)}]")
    elif count:
        out.append(f"[{','.join(parts)}]" if count > 1 else ",".join(parts))
    return count > 0


def written(value: Any, number: Callable[[Any], str] = lambda number: number.text) -> str:
    """A value as JSON without blanks, as Jackson writes it; `number`: the text of one. Without recursion: a value may be nested deeply."""
    parts: list[str] = []
    left: list[Any] = [value]
    while left:
        one = left.pop()
        if type(one) is _Verbatim:
            parts.append(one)
        elif isinstance(one, str):
            parts.append(quoted(one))
        elif one is None or isinstance(one, bool):
            parts.append(_WORDS[one])
        elif isinstance(one, JsonObject):
            parts.append("{")
            left.append(_OBJECT_END)
            for name, part in reversed(one.pairs):
                left += (part, _Verbatim(f",{quoted(name)}:"))
            if one.pairs:
                left[-1] = _Verbatim(left[-1][1:])
        elif isinstance(one, list):
            parts.append("[")
            left.append(_ARRAY_END)
            for part in reversed(one):
                left += (part, _COMMA)
            if one:
                left.pop()
        else:
            parts.append(number(one))
    return "".join(parts)


class _Verbatim(str):
    """A part of the text that `written` makes."""

    __slots__ = ()


_OBJECT_END, _ARRAY_END, _COMMA = _Verbatim("}"), _Verbatim("]"), _Verbatim(",")
_WORDS: Final[dict[bool | None, str]] = {None: "null", True: "true", False: "false"}


def quoted(text: str) -> str:
    """A string of JSON."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    """As Jackson writes it: a character outside the Basic Multilingual Plane as its two UTF-16 units."""
    units = match[0].encode("utf-16-be", "surrogatepass").hex().upper()
    return ESCAPES.get(match[0]) or "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))
