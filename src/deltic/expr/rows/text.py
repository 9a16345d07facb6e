"""String functions on one row, some also on BINARY. Positions count code points or bytes from 1, as in Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import AnyStr, Final

from deltic.errors import Span
from deltic.expr.failures import invalid, too_long

MAX_LENGTH: Final = 2**24
"""The most characters of a result of REPEAT, LPAD, RPAD or REPLACE."""


def size_bytes(text: str | bytes) -> int:
    """The bytes of a BINARY, or of a string in UTF-8."""
    return len(text) if isinstance(text, bytes) else len(text.encode())


def substring(text: AnyStr, position: int, length: int) -> AnyStr:
    """Spark's SUBSTRING: positions count from 1, 0 means 1, negative ones count from the end; positions before the text use up length.

    >>> substring("hello", -3, 2), substring("hello", 0, 2), substring("hello", -10, 7)
    ('ll', 'he', 'he')
    """
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    return text[max(start, 0) : max(min(start + length, len(text)), 0)] if length > 0 else text[:0]


def left(text: AnyStr, length: int) -> AnyStr:
    return text[: max(length, 0)]


def right(text: str, length: int) -> str:
    return text[max(len(text) - length, 0) :] if length > 0 else ""


def checked_length(function: str, length: int, span: Span | None) -> None:
    """Raises EvaluationError if the function's result would have more than MAX_LENGTH characters."""
    if length > MAX_LENGTH:
        raise too_long(function, length, MAX_LENGTH, span)


def replace(text: str, search: str, replacement: str, span: Span | None = None) -> str:
    """REPLACE; an empty search string replaces nothing."""
    if not search:
        return text
    if len(replacement) > len(search):
        checked_length("replace", len(text) + text.count(search) * (len(replacement) - len(search)), span)
    return text.replace(search, replacement)


def pad_left(text: AnyStr, length: int, pad: AnyStr, span: Span | None = None) -> AnyStr:
    return _padding("lpad", text, length, pad, span) + text[: max(length, 0)]


def pad_right(text: AnyStr, length: int, pad: AnyStr, span: Span | None = None) -> AnyStr:
    return text[: max(length, 0)] + _padding("rpad", text, length, pad, span)


def _padding(function: str, text: AnyStr, length: int, pad: AnyStr, span: Span | None) -> AnyStr:
    missing = length - len(text)
    if missing <= 0 or not pad:
        return pad[:0]
    checked_length(function, length, span)
    return (pad * (missing // len(pad) + 1))[:missing]


def locate(search: str, text: str, position: int) -> int:
    """The first position of `search` that is at least `position`; 0 if there is none or `position` is below 1."""
    if position < 1:
        return 0
    return 1 if not search else text.find(search, position - 1) + 1


def repeat(text: str, times: int, span: Span | None = None) -> str:
    checked_length("repeat", len(text) * times, span)
    return text * max(times, 0)


def initcap(text: str) -> str:
    """The first letter of each word in title case, the others in lower case; words are separated by spaces.

    >>> initcap("ΟΔΟΣ ΣΑΣ"), initcap("ΑΣ")
    ('Οδος Σας', 'Ας')
    """
    return " ".join(map(_capitalized, text.split(" ")))


def _capitalized(word: str) -> str:
    """Lowers the whole word: a final sigma has its own form."""
    return word[:1].title() + word.lower()[len(word[:1].lower()) :]


def ascii_code(text: str) -> int:
    """The code point of the first character; 0 for empty text."""
    return ord(text[0]) if text else 0


def split_part(text: str, delimiter: str, part: int, span: Span | None = None) -> str:
    """Part number `part`, counted from 1, or from the end if negative; empty if out of range. An empty delimiter splits nothing."""
    return nth_part(text.split(delimiter) if delimiter else [text], part, span)


def nth_part(parts: Sequence[str], part: int, span: Span | None) -> str:
    """As of `split_part`."""
    if part == 0:
        raise invalid("split_part: the index 0 is invalid; parts are counted from 1, or from -1 backwards", span)
    index = part - 1 if part > 0 else len(parts) + part
    return parts[index] if 0 <= index < len(parts) else ""


def concat_ws(separator: str, parts: Sequence[str | None]) -> str:
    """The parts that are not NULL, with the separator between them."""
    return separator.join(part for part in parts if part is not None)


def like_regex(pattern: str, escape: str) -> str | None:
    """A regular expression that matches the same text as a LIKE pattern; None if the pattern is malformed (see `like_fault`).

    >>> like_regex("a_%", "!")
    'a..*'
    """
    if like_fault(pattern, escape):
        return None
    parts, i = [], 0
    while i < len(pattern):
        c = pattern[i]
        if c == escape:
            i += 1
            parts.append(re.escape(pattern[i]))
        else:
            parts.append("." if c == "_" else ".*" if c == "%" else re.escape(c))
        i += 1
    return "".join(parts)


def like_fault(pattern: str, escape: str) -> str | None:
    """The fault of a malformed LIKE pattern: the escape character may only precede _, % and itself. None if it is well-formed."""
    i = 0
    while i < len(pattern):
        if pattern[i] == escape:
            if i + 1 == len(pattern):
                return f"the LIKE pattern {pattern!r} ends with the escape character"
            if pattern[i + 1] not in ("_", "%", escape):
                return f"the LIKE pattern {pattern!r} has the escape character before {pattern[i + 1]!r}"
            i += 1
        i += 1
    return None


def like(text: str, pattern: str, escape: str, span: Span | None = None) -> bool:
    if fault := like_fault(pattern, escape):
        raise invalid(fault, span)
    return _compiled(pattern, escape).fullmatch(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str, escape: str) -> re.Pattern[str]:
    regex = like_regex(pattern, escape)
    assert regex is not None
    return re.compile(regex, re.DOTALL)
