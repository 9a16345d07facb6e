"""Spark's patterns for dates and times, as java.time.format.DateTimeFormatter has them for the locale en-US, strictly.

A pattern is compiled once for formatting or for parsing, whose letters differ. Formatting writes zones as those of UTC; parsing reads V, X,
x and Z, and refuses G, O and z. Adjacent numbers share their digits as in Java: the first of variable width leaves the others theirs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias


class PatternFault(Exception):
    """What is wrong with a pattern, in words."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """Characters that stand for themselves."""

    text: str


@dataclass(frozen=True, slots=True)
class NumberPart:
    """A number. field: the letter that it belongs to. sign: whether one may precede it, as SignStyle has it.

    reserved: digits that the fixed numbers right after it need.
    """

    field: str
    least: int
    most: int
    sign: str = "none"
    reserved: int = 0

    @property
    def is_fixed(self) -> bool:
        return self.least == self.most and self.sign == "none"


@dataclass(frozen=True, slots=True)
class FractionPart:
    """Digits of the fraction of a second, `least` to `most` of them."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class NamePart:
    """A month, a weekday, a quarter, an era, AM or PM in words."""

    field: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ZonePart:
    """A zone or an offset: the letter and how often it stands."""

    letter: str
    count: int


@dataclass(frozen=True, slots=True)
class SectionPart:
    """A section in brackets."""

    parts: tuple[Part, ...]


Part: TypeAlias = TextPart | NumberPart | FractionPart | NamePart | ZonePart | SectionPart

MONTHS: Final = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HALVES: Final = ("AM", "PM")
_QUARTERS: Final = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
_ERAS: Final = {1: ("AD",), 2: ("AD",), 3: ("AD",), 4: ("Anno Domini",)}

_WEEK_BASED: Final = frozenset("YWwuec")
_UNSUPPORTED: Final = frozenset("ABnNpgvlrtijoCIJRTUPbf")
_FORMAT_ONLY: Final = frozenset("EFqQ")
_NOT_PARSED: Final = frozenset("GOz")
_CLOCK: Final = frozenset("HhKkmsSa")
_QUOTED: Final = re.compile("'[^']*'")
_MOST: Final = {
    **dict.fromkeys("GMLEQqzO", 4),
    **dict.fromkeys("dhHkKms", 2),
    **dict.fromkeys("aF", 1),
    **dict.fromkeys("XxZ", 5),
    "y": 6,
    "D": 3,
    "S": 9,
    "V": 2,
}
"""How often a letter may stand in a row."""


DEEPEST: Final = 20
"""The most optional sections within one another: they are read and written recursively."""


@lru_cache(maxsize=256)
def compiled(pattern: str, parsing: bool) -> tuple[Part, ...]:
    """The parts of a pattern. Raises PatternFault."""
    sections: list[list[Part]] = [[]]
    for token in _tokens(pattern):
        if token == "[":
            if len(sections) > DEEPEST:
                raise PatternFault(f"more than {DEEPEST} optional sections within one another")
            sections.append([])
        elif token == "]":
            if len(sections) == 1:
                raise PatternFault("] without [")
            closed = tuple(sections.pop())
            sections[-1].append(SectionPart(_sharing_digits(closed)))
        elif token[0] == "'":
            sections[-1].append(TextPart(token[1:]))
        else:
            sections[-1].append(_part(token, parsing))
    while len(sections) > 1:
        closed = tuple(sections.pop())
        sections[-1].append(SectionPart(_sharing_digits(closed)))
    return _sharing_digits(tuple(sections[0]))


def fault(pattern: str, parsing: bool) -> str | None:
    """What is wrong with the pattern, None if nothing is."""
    try:
        compiled(pattern, parsing)
    except PatternFault as error:
        return f"the pattern {pattern!r} is invalid: {error}"
    return None


def is_clock(pattern: str) -> bool:
    """Whether it is a valid pattern of a time of day alone, down to microseconds."""
    plain = _QUOTED.sub("", pattern)
    letters = {letter for letter in plain if letter.isalpha()}
    return letters <= _CLOCK and plain.count("S") <= 6 and fault(pattern, True) is None and fault(pattern, False) is None


def has_zone(pattern: str) -> bool:
    """Whether it shows or reads a zone."""
    return bool(set(_QUOTED.sub("", pattern)) & set("VzOXxZ"))


def _tokens(pattern: str) -> list[str]:
    """Runs of a letter, brackets, and text, which has a quote before it."""
    tokens: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "'":
            token, position = _quoted(pattern, position)
        elif character.isascii() and character.isalpha():
            end = position
            while end < len(pattern) and pattern[end] == character:
                end += 1
            token, position = pattern[position:end], end
        elif character in "{}#":
            raise PatternFault(f"{character} is reserved")
        else:
            token, position = character if character in "[]" else f"'{character}", position + 1
        tokens.append(token)
    return tokens


def _quoted(pattern: str, position: int) -> tuple[str, int]:
    match = re.compile(r"'((?:[^']|'')*)'").match(pattern, position)
    if match is None:
        raise PatternFault("a quote is not closed")
    return "'" + (match[1].replace("''", "'") or "'"), match.end()


def _part(token: str, parsing: bool) -> Part:
    letter, count = token[0], len(token)
    _check(letter, count, parsing)
    match letter:
        case "y":
            return _year(count)
        case "M" | "L" if count > 2:
            return NamePart("M", _cut(MONTHS, count))
        case "E":
            return NamePart("E", _cut(WEEKDAYS, count))
        case "Q" | "q" if count > 2:
            return NamePart("Q", _QUARTERS if count == 4 else ("Q1", "Q2", "Q3", "Q4"))
        case "G":
            return NamePart("G", _ERAS[count])
        case "a":
            return NamePart("a", HALVES)
        case "S":
            return FractionPart(1 if parsing else count, count)
        case "V" | "z" | "O" | "X" | "x" | "Z":
            return ZonePart(letter, count)
        case "D" if count > 1:
            return NumberPart("D", count, 3)
    field = {"L": "M", "q": "Q"}.get(letter, letter)
    return NumberPart(field, 2, 2) if count == 2 else NumberPart(field, 1, 19, "minus")


def _check(letter: str, count: int, parsing: bool) -> None:
    if letter in _WEEK_BASED:
        raise PatternFault(f"{letter} is not supported by Spark: weeks have no pattern")
    if letter in _UNSUPPORTED or letter not in _MOST or (parsing and letter in _FORMAT_ONLY):
        raise PatternFault(f"{letter} is not a letter of patterns" + " for parsing" * (parsing and letter in _FORMAT_ONLY))
    if parsing and letter in _NOT_PARSED:
        raise PatternFault(f"{letter} is not supported for parsing")
    if count > _MOST[letter] or (letter == "V" and count != 2) or (letter == "O" and count not in (1, 4)):
        raise PatternFault(f"too many or too few {letter} in a row")


def _year(count: int) -> NumberPart:
    if count == 2:
        return NumberPart("yy", 2, 2)
    return NumberPart("y", count, 19, "minus" if count < 4 else "exceeding")


def _cut(names: tuple[str, ...], count: int) -> tuple[str, ...]:
    return names if count == 4 else tuple(name[:3] for name in names)


def _sharing_digits(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Numbers right after another: the first reserves the digits of the fixed ones after it."""
    shared: list[Part] = []
    active: int | None = None
    for part in parts:
        if not isinstance(part, NumberPart):
            active = None
        elif active is not None and part.is_fixed:
            first = shared[active]
            assert isinstance(first, NumberPart)
            shared[active] = replace(first, reserved=first.reserved + part.most)
        else:
            if active is not None:
                first = shared[active]
                assert isinstance(first, NumberPart)
                shared[active] = replace(first, reserved=0)
            active = len(shared)
        shared.append(part)
    return tuple(shared)
