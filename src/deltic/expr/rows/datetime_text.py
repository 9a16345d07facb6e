"""Dates and times as text by a pattern, and read from it. Timestamps are aware datetimes in UTC."""

from __future__ import annotations

import calendar
import datetime
import re
from dataclasses import dataclass, field
from typing import Final, assert_never

from deltic.errors import Span
from deltic.expr.failures import invalid, malformed_by, out_of_calendar
from deltic.expr.rows.datetime_patterns import (
    FractionPart,
    NamePart,
    NumberPart,
    Part,
    PatternFault,
    SectionPart,
    TextPart,
    ZonePart,
    compiled,
)
from deltic.expr.rows.parsing import SHORT_ZONES, parse_zone

_UTC: Final = {
    ("V", 2): "UTC",
    **{("z", count): "UTC" for count in (1, 2, 3)},
    ("z", 4): "Coordinated Universal Time",
    ("O", 1): "GMT",
    ("O", 4): "GMT",
    **{("X", count): "Z" for count in range(1, 6)},
    ("x", 1): "+00",
    ("x", 2): "+0000",
    ("x", 3): "+00:00",
    ("x", 4): "+0000",
    ("x", 5): "+00:00",
    **{("Z", count): "+0000" for count in (1, 2, 3)},
    ("Z", 4): "GMT",
    ("Z", 5): "Z",
}
_OFFSETS: Final = {
    "HHmm": re.compile(r"([+-])([0-9]{2})(?:([0-9]{2}))?()"),
    "HHMM": re.compile(r"([+-])([0-9]{2})([0-9]{2})()"),
    "HH:MM": re.compile(r"([+-])([0-9]{2}):([0-9]{2})()"),
    "HHMMss": re.compile(r"([+-])([0-9]{2})([0-9]{2})([0-9]{2})?"),
    "HH:MM:ss": re.compile(r"([+-])([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?"),
}
_FORMS: Final = ("HHmm", "HHMM", "HH:MM", "HHMMss", "HH:MM:ss")
_NONE: Final = {"x": ("+00", "+0000", "+00:00", "+0000", "+00:00"), "Z": ("+0000", "+0000", "+0000", "", "Z")}
_QUOTED: Final = re.compile("'[^']*'")
_HOURS: Final = frozenset("HhKka")
_SECONDS: Final = frozenset("GyMLdDEFqQVzOXxZms") | _HOURS
"""The letters that show nothing finer than a second; zones are UTC."""
_ZONE: Final = re.compile(r"[A-Za-z0-9/._~+:-]+")


def parts_of(pattern: str, parsing: bool, span: Span | None) -> tuple[Part, ...]:
    """The parts of a pattern; an invalid one is an error of the row."""
    try:
        return compiled(pattern, parsing)
    except PatternFault as error:
        raise invalid(f"the pattern {pattern!r} is invalid: {error}", span) from None


def format_timestamp(value: datetime.datetime, pattern: str, span: Span | None = None) -> str:
    """The timestamp as text, in UTC.

    >>> format_timestamp(datetime.datetime(2020, 2, 29, 12, 34, 56), "EEE d MMM ''yy, h:mm a")
    "Sat 29 Feb '20, 12:34 PM"
    """
    return "".join(_text(part, value) for part in parts_of(pattern, False, span))


def finest_unit(pattern: str) -> int | None:
    """Microseconds of a unit whose starts have the same text as all times in it: a day, hour, minute or second. None if it is not known.

    >>> finest_unit("yyyy-MM-dd 'at' H") == 3_600_000_000, finest_unit("ss.SSS")
    (True, None)
    """
    letters = {letter for letter in _QUOTED.sub("", pattern) if letter.isalpha()}
    if not letters <= _SECONDS:
        return None
    seconds = 1 if "s" in letters else 60 if "m" in letters else 3_600 if letters & _HOURS else 86_400
    return seconds * 1_000_000


def _text(part: Part, value: datetime.datetime) -> str:
    match part:
        case TextPart():
            return part.text
        case NumberPart():
            number = _number(part.field, value)
            return f"{number % 100:02d}" if part.field == "yy" else f"{number:0{part.least}d}"
        case FractionPart():
            return f"{value.microsecond:06d}000"[: part.most]
        case NamePart(field="G"):
            return part.words[0]
        case NamePart():
            return part.words[_index(part.field, value)]
        case ZonePart():
            return _UTC[part.letter, part.count]
        case SectionPart():
            return "".join(_text(inner, value) for inner in part.parts)
        case _:
            assert_never(part)


def _index(name: str, value: datetime.datetime) -> int:
    match name:
        case "M":
            return value.month - 1
        case "E":
            return value.weekday()
        case "Q":
            return (value.month - 1) // 3
        case _:
            assert name == "a", name
            return value.hour // 12


def _number(name: str, value: datetime.datetime) -> int:
    match name:
        case "y" | "yy":
            return value.year
        case "M":
            return value.month
        case "d":
            return value.day
        case "D":
            return value.timetuple().tm_yday
        case "Q":
            return (value.month + 2) // 3
        case "F":
            return (value.day - 1) % 7 + 1
        case "H":
            return value.hour
        case "k":
            return value.hour or 24
        case "K":
            return value.hour % 12
        case "h":
            return value.hour % 12 or 12
        case "m":
            return value.minute
        case _:
            assert name == "s", name
            return value.second


def parse_by(text: str, pattern: str, span: Span | None = None, *, lenient: bool = False) -> datetime.datetime | None:
    """The timestamp that a text denotes by a pattern; fields that it lacks are those of 1970-01-01 00:00:00, its zone UTC.

    Raises CastFailure for other text, unless `lenient`: then it is None. Years outside 1 to 9999 are errors.
    """
    parts = parts_of(pattern, True, span)
    reading = _Reading(text)
    moment = reading.moment() if reading.read(parts) and reading.position == len(text) else None
    if moment is None and not lenient:
        raise malformed_by(text, pattern, span)
    if moment is not None and moment is _BEYOND:
        raise out_of_calendar("a date", span)
    return moment


def parse_clock(text: str, pattern: str, span: Span | None = None) -> tuple[datetime.time, int]:
    """(the time of day that a text denotes by a pattern, what the text has beyond its microseconds, in nanoseconds).

    A date and a zone are read and count for nothing. Raises CastFailure for other text.
    """
    parts = parts_of(pattern, True, span)
    reading = _Reading(text)
    clock = reading.clock() if reading.read(parts) and reading.position == len(text) and reading.moment() is not None else None
    if clock is None:
        raise malformed_by(text, pattern, span, "try_to_time")
    micros, nanos = divmod(reading.fields.get("S", 0), 1000)
    return datetime.time(*clock, micros), nanos


_BEYOND: Final = datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
"""Stands for a moment that Spark has and Deltic has not."""


@dataclass(slots=True)
class _Reading:
    """How far a text has been read, and the fields that it gave, by the letter of the pattern."""

    text: str
    position: int = 0
    fields: dict[str, int] = field(default_factory=dict)
    zone: datetime.tzinfo | None = None

    def read(self, parts: tuple[Part, ...]) -> bool:
        """Whether these parts follow in the text; if so, they are read."""
        return all(self._part(part) for part in parts)

    def _part(self, part: Part) -> bool:
        match part:
            case TextPart():
                return self._literal(part.text)
            case NumberPart():
                return self._number(part)
            case FractionPart():
                return self._fraction(part)
            case NamePart():
                return self._name(part)
            case ZonePart():
                return self._offset(part)
            case SectionPart():
                kept = self.position, dict(self.fields), self.zone
                if not self.read(part.parts):
                    self.position, self.fields, self.zone = kept
                return True
            case _:
                assert_never(part)

    def _literal(self, text: str) -> bool:
        end = self.position + len(text)
        matched = self.text[self.position : end].lower() == text.lower()
        self.position = end if matched else self.position
        return matched

    def _set(self, name: str, value: int) -> bool:
        """Whether a field that is there twice has one value."""
        return self.fields.setdefault(name, value) == value

    def _number(self, part: NumberPart) -> bool:
        start, sign = self.position, self.text[self.position : self.position + 1]
        if sign in ("+", "-"):
            if part.sign == "none" or (sign == "+" and part.sign != "exceeding"):
                return False
            start += 1
        available = len(self._digits(start, part.most + part.reserved))
        count = min(max(part.least, available - part.reserved), available) if part.reserved else available
        if count < part.least:
            return False
        if part.sign == "exceeding" and ((sign == "+" and count <= part.least) or (sign not in ("+", "-") and count > part.least)):
            return False
        value = int(self.text[start : start + count])
        if sign == "-" and not value:
            return False
        self.position = start + count
        return self._set("y", 2000 + value) if part.field == "yy" else self._set(part.field, -value if sign == "-" else value)

    def _digits(self, start: int, most: int) -> str:
        end = start
        while end < min(start + most, len(self.text)) and "0" <= self.text[end] <= "9":
            end += 1
        return self.text[start:end]

    def _fraction(self, part: FractionPart) -> bool:
        digits = self._digits(self.position, part.most)
        self.position += len(digits)
        return len(digits) >= part.least and self._set("S", int(digits.ljust(9, "0")))

    def _name(self, part: NamePart) -> bool:
        rest = self.text[self.position :].lower()
        longest = max(
            (k for k, word in enumerate(part.words) if rest.startswith(word.lower())), key=lambda k: len(part.words[k]), default=None
        )
        if longest is None:
            return False
        self.position += len(part.words[longest])
        return self._set(part.field, longest + (part.field == "M"))

    def _offset(self, part: ZonePart) -> bool:
        if part.letter == "V":
            return self._zone_name()
        none = "Z" if part.letter == "X" else _NONE[part.letter][part.count - 1]
        if none and self._literal(none):
            self.zone = datetime.UTC
            return True
        form = _FORMS[part.count - 1] if part.letter != "Z" else "HH:MM:ss" if part.count == 5 else "HHMM"
        match = _OFFSETS[form].match(self.text, self.position)
        if match is None or int(match[3] or 0) > 59 or int(match[4] or 0) > 59:
            return False
        size = datetime.timedelta(hours=int(match[2]), minutes=int(match[3] or 0), seconds=int(match[4] or 0))
        if size > datetime.timedelta(hours=18):
            return False
        self.position = match.end()
        self.zone = datetime.timezone(size if match[1] == "+" else -size)
        return True

    def _zone_name(self) -> bool:
        match = _ZONE.match(self.text, self.position)
        zone = parse_zone(match[0]) if match and match[0] not in SHORT_ZONES else None
        if match is None or zone is None:
            return False
        self.position, self.zone = match.end(), zone
        return True

    def moment(self) -> datetime.datetime | None:
        """The timestamp of the fields; None where they contradict one another, or are none."""
        clock = self.clock()
        year, month, day = self._day()
        if clock is None or not (1 <= month <= 12 and 1 <= day <= 31):
            return None
        if not 1 <= year <= 9999:
            return _BEYOND
        if day > calendar.monthrange(year, month)[1]:
            return None
        hour, minute, second = clock
        local = datetime.datetime(year, month, day, hour, minute, second, self.fields.get("S", 0) // 1000)
        try:
            return local.replace(tzinfo=self.zone or datetime.UTC).astimezone(datetime.UTC)
        except OverflowError:
            return _BEYOND

    def _day(self) -> tuple[int, int, int]:
        """Year, month and day; the month 0 where they contradict one another."""
        given = self.fields
        year, month, day = given.get("y", 1970), given.get("M", 1), given.get("d", 1)
        of_year = given.get("D")
        if of_year is None or not 1 <= year <= 9999:
            return year, month, day
        if not 1 <= of_year <= 365 + calendar.isleap(year):
            return year, 0, day
        by_number = datetime.date(year, 1, 1) + datetime.timedelta(days=of_year - 1)
        if given.get("M", by_number.month) != by_number.month or given.get("d", by_number.day) != by_number.day:
            return year, 0, day
        return year, by_number.month, by_number.day

    def clock(self) -> tuple[int, int, int] | None:
        """Hour, minute and second; None where one is out of its range, or they contradict one another."""
        given = self.fields
        if not all(low <= given.get(letter, low) <= high for letter, (low, high) in _RANGES.items()):
            return None
        hours = {given[letter] % size for letter, size in (("H", 24), ("k", 24)) if letter in given}
        halves = {given[letter] % 12 for letter in ("K", "h") if letter in given}
        half = given.get("a")
        if half is not None and halves:
            hours |= {12 * half + hour for hour in halves}
        whole = bool(hours) and ("m" in given or not {"s", "S"} & given.keys()) and not ("S" in given and "s" not in given)
        if len(hours) > 1 or len(halves) > 1:
            return None
        hour = min(hours, default=min(halves, default=12 if half else 0))
        if whole and ((half is not None and hour // 12 != half) or (halves and hour % 12 not in halves)):
            return None
        return hour, given.get("m", 0), given.get("s", 0)


_RANGES: Final = {"H": (0, 23), "k": (1, 24), "K": (0, 11), "h": (1, 12), "m": (0, 59), "s": (0, 59)}
