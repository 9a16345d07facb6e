"""Searching texts of UTF8_LCASE, in which letters of both cases are equal. Source: Apache Spark 4.2, CollationAwareUTF8String.

A character is found whole or not at all: İ is i and a dot in lower case, and neither of them is found in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deltic.collations import COLLATIONS, lower_character, matched_character
from deltic.errors import Span
from deltic.expr.failures import invalid
from deltic.expr.nodes import Value
from deltic.expr.rows.text import checked_length
from deltic.schema import Type

fold: Final = COLLATIONS["UTF8_LCASE"].fold
_DOTTED: Final = "\u0130"
_SMALL, _DOT = tuple(lower_character(_DOTTED))


def key_of_value(value: Value, type: Type) -> Value:
    """The value with the key of its collation for each text in it."""
    if value is None or not type.is_collated:
        return value
    if isinstance(value, str):
        return COLLATIONS[type.collation].key(value)
    assert isinstance(value, tuple)
    if type.name == "STRUCT":
        return tuple(key_of_value(item, part.type) for item, part in zip(value, type.parts, strict=True))
    element = type.entries.parts[0].type
    return tuple(key_of_value(item, element) for item in value)


def pattern_key(text: str) -> str:
    """The text as patterns that ignore case compare it."""
    return "".join(map(matched_character, text))


@dataclass(frozen=True, slots=True)
class Folded:
    """A text to be searched. characters: each by itself in lower case; key: all of them. Positions are those of the text."""

    characters: Sequence[str]
    key: str

    @staticmethod
    def of(text: str) -> Folded:
        key = fold(text)
        return Folded(key if len(key) == len(text) else [lower_character(character) for character in text], key)

    @property
    def is_aligned(self) -> bool:
        return len(self.key) == len(self.characters)

    def end_of(self, pattern: str, start: int) -> int:
        """Where the folded pattern that begins at a position ends; -1 if it does not begin there."""
        if self.is_aligned:
            return start + len(pattern) if self.key.startswith(pattern, start) else -1
        offset = 0
        while offset < len(pattern) and start < len(self.characters) and pattern.startswith(self.characters[start], offset):
            offset += len(self.characters[start])
            start += 1
        return start if offset == len(pattern) else -1

    def start_of(self, pattern: str, end: int) -> int:
        """Where the folded pattern that ends at a position begins; -1 if it does not end there."""
        if self.is_aligned:
            return end - len(pattern) if self.key.endswith(pattern, 0, end) else -1
        offset = len(pattern)
        while offset > 0 and end > 0 and pattern.endswith(self.characters[end - 1], 0, offset):
            end -= 1
            offset -= len(self.characters[end])
        return end if offset == 0 else -1

    def find(self, pattern: str, start: int) -> int:
        """The first position from `start` on at which the folded pattern begins; -1 if there is none."""
        if self.is_aligned:
            return self.key.find(pattern, start)
        return next((i for i in range(start, len(self.characters) + 1) if self.end_of(pattern, i) >= 0), -1)

    def find_end(self, pattern: str, end: int) -> int:
        """The last position up to `end` at which the folded pattern ends; -1 if there is none."""
        return next((i for i in range(end, -1, -1) if self.start_of(pattern, i) >= 0), -1)


def contains(text: str, part: str) -> bool:
    return Folded.of(text).find(fold(part), 0) >= 0


def starts_with(text: str, prefix: str) -> bool:
    return Folded.of(text).end_of(fold(prefix), 0) >= 0


def ends_with(text: str, suffix: str) -> bool:
    return Folded.of(text).start_of(fold(suffix), len(text)) >= 0


def locate(search: str, text: str, position: int) -> int:
    if position < 1:
        return 0
    return Folded.of(text).find(fold(search), position - 1) + 1 if search else 1


def _pieces(text: str, delimiter: str) -> list[str]:
    if not delimiter:
        return [text]
    folded, pattern = Folded.of(text), fold(delimiter)
    pieces, start = [], 0
    while (end := folded.find(pattern, start)) >= 0:
        pieces.append(text[start:end])
        start = folded.end_of(pattern, end)
    return [*pieces, text[start:]]


def replace(text: str, search: str, by: str, span: Span | None) -> str:
    pieces = _pieces(text, search) if text else [text]
    checked_length("replace", sum(map(len, pieces)) + (len(pieces) - 1) * len(by), span)
    return by.join(pieces)


def split_part(text: str, delimiter: str, part: int, span: Span | None) -> str:
    if part == 0:
        raise invalid("split_part: the index 0 is invalid; parts are counted from 1, or from -1 backwards", span)
    parts = _pieces(text, delimiter)
    index = part - 1 if part > 0 else len(parts) + part
    return parts[index] if 0 <= index < len(parts) else ""


def substring_index(text: str, delimiter: str, count: int) -> str:
    """What stands before the count-th delimiter; counted from the end where negative, what stands after it. Delimiters may overlap."""
    if not delimiter or not count:
        return ""
    folded, pattern = Folded.of(text), fold(delimiter)
    position = -1 if count > 0 else len(text) + 1
    for _ in range(abs(count)):
        position = folded.find(pattern, position + 1) if count > 0 else folded.find_end(pattern, position - 1)
        if position < 0:
            return text
    return text[:position] if count > 0 else text[position:]


def trimmed_left(text: str, characters: str) -> str:
    return text[_trimmed([lower_character(one) for one in text], characters, _SMALL, _DOT) :]


def trimmed_right(text: str, characters: str) -> str:
    return text[: len(text) - _trimmed([lower_character(one) for one in reversed(text)], characters, _DOT, _SMALL)]


def trimmed(text: str, characters: str) -> str:
    return trimmed_right(trimmed_left(text, characters), characters)


def _trimmed(text: Sequence[str], characters: str, first: str, second: str) -> int:
    """How many characters are trimmed. As in Spark, İ among the characters trims i with a dot too, and then the last character of the
    text may stay."""
    among = {lower_character(one) for one in characters}
    count = position = 0
    kept: str | None = None
    while position < len(text):
        if kept is not None:
            character, kept = kept, None
        else:
            character, position = text[position], position + 1
        if character == first and position < len(text) and lower_character(_DOTTED) in among:
            kept, character, position = character, text[position], position + 1
            if character == second:
                count, kept = count + 2, None
            elif kept in among:
                count, kept = count + 1, character
            else:
                break
        elif character in among:
            count += 1
        else:
            break
    return count
