"""Matches of Java's regular expressions in a text, where java.util.regex.Matcher.find has them.

Java counts UTF-16 units. After an empty match it tries again one unit later, which may be within a character outside the BMP: it finds
the second unit there, and in UTF-8 a unit without its other half becomes `?`. A pattern in whose sets Java expects no such character is
tried at every unit from the start. Texts within the BMP, and patterns that cannot match there, are matched as they are.

Within a character, `re` matches a text that has the second unit in place of the character, by a translation of its own (java_regex).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from deltic.expr.rows.java_regex import translated
from deltic.expr.rows.java_sets import RegexFault
from deltic.expr.rows.utf16 import PAIRS, in_units, units_of
from deltic.stacks import roomy


@dataclass(frozen=True, slots=True)
class JavaPattern:
    """A pattern as written, and for `re`.

    by_unit: it is tried at every UTF-16 unit, otherwise at every character. looks_back: it tests what is before a position.
    begins_within: a match may begin within a character.
    """

    written: str
    pattern: re.Pattern[str]
    by_unit: bool
    looks_back: bool
    begins_within: bool

    @property
    def groups(self) -> int:
        return self.pattern.groups

    def within(self, text: str, place: int) -> re.Match[str] | None:
        """A match that begins at the second unit of the character at `place`."""
        character = text[place]
        pattern = _within(self.written, character) if self.looks_back else self.pattern
        return pattern.match(f"{text[:place]}{units_of(character)[1]}{text[place + 1 :]}", place)


@dataclass(frozen=True, slots=True)
class UnitMatch:
    """A match in the units of a text, with the interface of re.Match."""

    first: int
    last: int
    match: re.Match[str]

    def start(self) -> int:
        return self.first

    def end(self) -> int:
        return self.last

    @property
    def re(self) -> re.Pattern[str]:
        return self.match.re

    def __getitem__(self, group: int) -> str | None:
        return self.match[group]


Match = re.Match[str] | UnitMatch


@lru_cache(maxsize=256)
@roomy
def compiled(pattern: str) -> JavaPattern:
    """The pattern for `re`. Raises RegexFault."""
    translation = translated(pattern)
    whole = _for_re(translation.text)
    begins_within = translation.begins_within or whole.match("") is not None
    return JavaPattern(pattern, whole, not translation.wide, translation.looks_back, begins_within)


@lru_cache(maxsize=256)
@roomy
def _within(pattern: str, character: str) -> re.Pattern[str]:
    return _for_re(translated(pattern, character).text)


def _for_re(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, OverflowError) as error:
        raise RegexFault(f"it is not supported: {error}") from None


def fault(pattern: str) -> str | None:
    """What is wrong with the pattern, None if nothing is."""
    try:
        compiled(pattern)
    except RegexFault as error:
        return f"the regular expression {pattern!r} is refused: {error}"
    return None


def scan(pattern: JavaPattern, text: str) -> tuple[str, Iterator[Match]]:
    """All matches, and the text that their places refer to: in UTF-16 units if a match may begin within a character."""
    units = in_units(text) if pattern.begins_within else text
    return units, _matches(pattern.pattern, text) if units is text else _unit_matches(pattern, text)


def first(pattern: JavaPattern, text: str) -> Match | None:
    """The first match."""
    return next(scan(pattern, text)[1], None)


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """After an empty match the search resumes a character later, where `re` looks there once more."""
    start = 0
    while start <= len(text) and (match := pattern.search(text, start)):
        yield match
        start = match.end() + (match.end() == match.start())


def _unit_matches(pattern: JavaPattern, text: str) -> Iterator[UnitMatch]:
    """After an empty match the search resumes a unit later."""
    units = list(accumulate((1 + (character > "\uffff") for character in text), initial=0))
    place, within = 0, False
    while place <= len(text) and (occurrence := _search(pattern, text, place, within)):
        match, within = occurrence
        start, place = match.span()
        yield UnitMatch(units[start] + within, units[place] + (within and start == place), match)
        if start < place:
            within = False
        elif not within and text[place : place + 1] > "\uffff":
            within = True
        else:
            place, within = place + 1, False


def _search(pattern: JavaPattern, text: str, place: int, within: bool) -> tuple[re.Match[str], bool] | None:
    """The next match, and whether it begins within a character; from the character at `place` on, or from within it."""
    if within:
        if match := pattern.within(text, place):
            return match, True
        place += 1
    match = pattern.pattern.search(text, place)
    if pattern.by_unit:
        for pair in PAIRS.finditer(text, place, match.start() if match else len(text)):
            if inside := pattern.within(text, pair.start()):
                return inside, True
    return (match, False) if match else None
