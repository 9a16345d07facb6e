"""Searching texts of UTF8_LCASE, in which letters of both cases are equal. Source: Apache Spark 4.2, CollationAwareUTF8String.

A character is found whole or not at all: İ is i and a dot in lower case, and neither of them is found in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from deltic.collations import COLLATIONS, lower_character, matched_character
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.expr.rows.text import checked_length, nth_part
from deltic.expr.rows.utf16 import in_units
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


def key_for(type: Type) -> Callable[[Value], Value]:
    """From a value of the type to what is compared in its place."""
    return (lambda value: key_of_value(value, type)) if type.is_collated else _itself


def _itself(value: Value) -> Value:
    return value


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


def _pieces(text: str, delimiter: str, most: float = math.inf) -> list[str]:
    if not delimiter:
        return [text]
    folded, pattern = Folded.of(text), fold(delimiter)
    pieces, start = list[str](), 0
    while len(pieces) + 1 < most and (end := folded.find(pattern, start)) >= 0:
        pieces.append(text[start:end])
        start = folded.end_of(pattern, end)
    return [*pieces, text[start:]]


def replace(text: str, search: str, by: str, span: Span | None) -> str:
    pieces = _pieces(text, search) if text else [text]
    checked_length("replace", sum(map(len, pieces)) + (len(pieces) - 1) * len(by), span)
    return by.join(pieces)


def translate(text: str, search: str, by: str) -> str:
    """Replaces each character of `search` by the one at its position in `by`, or deletes it.

    As in Spark, i with a dot is İ if İ is replaced, and then the last character of the text may stay.
    """
    table = _translation(search, by)
    dotted = _SMALL + _DOT in table
    pieces, kept, position = [], "", 0
    while position < len(text):
        if kept:
            character, kept = kept, ""
        else:
            character, position = text[position], position + 1
        if dotted and character == _SMALL and position < len(text):
            following, position = text[position], position + 1
            if following == _DOT:
                character = _DOTTED
            else:
                kept = following
        pieces.append(table.get(lower_character(character), character))
    return "".join(pieces) + kept


def _translation(search: str, by: str) -> dict[str, str]:
    """By characters in lower case. Of characters that are equal without case the first one in Java's HashMap counts, as in Spark."""
    first = {one: i for i, one in reversed(list(enumerate(search)))}
    given = sorted(first.items(), key=lambda entry: entry[1])
    size = 16
    while len(given) > size * 3 // 4:
        size *= 2
    table: dict[str, str] = {}
    for one, i in sorted(given, key=lambda entry: _java_hash(entry[0]) & (size - 1)):
        table.setdefault(lower_character(one), by[i] if i < len(by) and by[i] != "\0" else "")
    return table


def entries(text: str, between: str, after_key: str) -> Iterator[tuple[str, str | None]]:
    """Of STR_TO_MAP; a part without a second delimiter has the value NULL."""
    for part in _pieces(text, between):
        key, *rest = _pieces(part, after_key, 2)
        yield key, rest[0] if rest else None


def _java_hash(character: str) -> int:
    """As HashMap has it of a String."""
    code = 0
    for unit in in_units(character):
        code = 31 * code + ord(unit)
    return code ^ code >> 16


def split_part(text: str, delimiter: str, part: int, span: Span | None) -> str:
    return nth_part(_pieces(text, delimiter), part, span)


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
