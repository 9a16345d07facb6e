"""Numbers as text by a pattern of digits and signs, and back: TO_CHAR and TO_NUMBER, as Spark's ToNumberParser has them.

A pattern is [MI|S] [$] [0|9|G|,]* [.|D] [0|9]* [PR|MI|S]. A run of digits that begins with 0 stands for exactly so many digits, one that
begins with 9, or follows the point, for at most so many.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

_PATTERN: Final = re.compile(r"(?P<sign>MI|S)?(?P<dollar>\$)?(?P<before>[09,]*)(?P<point>\.)?(?P<after>[09]*)(?P<end>PR|MI|S)?")
_LONGEST: Final = 38
SHAPE: Final = "[MI|S] [$] [0|9|G|,]* [.|D] [0|9]* [PR|MI|S], with a digit, and digits on both sides of each , and G"


@dataclass(frozen=True, slots=True)
class DigitRun:
    """Digits of a pattern. exact: there are exactly so many."""

    count: int
    exact: bool

    def fits(self, count: int) -> bool:
        return count == self.count if self.exact else count <= self.count


@dataclass(frozen=True, slots=True)
class NumberPattern:
    """before: the runs between thousands separators; after: the one after the point, None for none."""

    sign: str
    dollar: bool
    before: tuple[DigitRun, ...]
    point: bool
    after: DigitRun | None
    end: str

    @property
    def scale(self) -> int:
        return 0 if self.after is None else self.after.count

    @property
    def precision(self) -> int:
        return sum(run.count for run in self.before) + self.scale


@lru_cache(maxsize=256)
def number_pattern(text: str) -> NumberPattern | None:
    """The pattern; None for one that is invalid, or of more than 38 digits."""
    match = _PATTERN.fullmatch(text.upper().replace("G", ",").replace("D", "."))
    if match is None:
        return None
    runs = match["before"].split(",") if match["before"] else []
    once = not match["sign"] or match["sign"] != match["end"]
    if not all(runs) or not once or not (runs or match["after"]):
        return None
    pattern = NumberPattern(
        match["sign"] or "",
        match["dollar"] is not None,
        tuple(map(_run, runs)),
        match["point"] is not None,
        _run(match["after"]) if match["after"] else None,
        match["end"] or "",
    )
    return pattern if pattern.precision <= _LONGEST else None


def _run(digits: str) -> DigitRun:
    return DigitRun(len(digits), digits[0] == "0")


class _Input:
    """What is left of a text that is read by a pattern."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0
        self.negative = False

    def takes(self, characters: str) -> str:
        """The next character, if it is one of these; else nothing is taken."""
        character = self.text[self.position : self.position + 1]
        if not character or character not in characters:
            return ""
        self.position += 1
        return character

    def sign(self, kind: str) -> None:
        if kind in ("S", "MI") and self.takes("+-" if kind == "S" else "-") == "-":
            self.negative = not self.negative

    def groups(self, separated: bool) -> list[str]:
        """Digits between separators; white space is skipped."""
        runs = [""]
        while self.position < len(self.text):
            character = self.text[self.position]
            if character == "," and separated:
                runs.append("")
            elif character in "0123456789":
                runs[-1] += character
            elif not character.isspace():
                break
            self.position += 1
        return runs


def parse_number(text: str, pattern: NumberPattern) -> Decimal | None:
    """The number; None if the text does not match."""
    source = _Input(text)
    source.sign(pattern.sign)
    bracket = bool(pattern.end == "PR" and source.takes("<"))
    if pattern.dollar and not source.takes("$"):
        return None
    before = source.groups(True) if pattern.before else [""]
    reached = bool(pattern.point and source.takes("."))
    after = source.groups(False)[0] if pattern.after is not None and (reached or not pattern.before) else ""
    source.sign(pattern.end)
    if bracket and not source.takes(">"):
        return None
    if source.position < len(text) or not _fits(before, pattern.before) or len(after) > pattern.scale:
        return None
    digits = "".join(before)
    if not digits + after or (not reached and after.strip("0")):
        return None
    number = Decimal(f"{digits or '0'}.{after:0<{pattern.scale}}" if pattern.scale else digits)
    return number.copy_negate() if source.negative != bracket and number else number


def _fits(groups: list[str], runs: tuple[DigitRun, ...]) -> bool:
    """Whether the groups, from the last one on, fit the runs; those that are missing are empty."""
    if len(groups) > max(len(runs), 1):
        return False
    sizes = [0] * (len(runs) - len(groups)) + [len(group) for group in groups]
    return all(run.fits(size) for run, size in zip(runs, sizes, strict=False))


def format_number_by(value: Decimal, pattern: NumberPattern) -> str:
    """The number as text; # for each digit if it has more digits than the pattern."""
    whole, _, part = format(value.copy_abs(), "f").partition(".")
    before, after = whole.lstrip("0"), part.rstrip("0")
    width = pattern.precision - pattern.scale
    if len(before) > width or len(after) > pattern.scale:
        before, after = "#" * width, "#" * pattern.scale
    negative = value < 0
    out = _Output()
    if pattern.end == "PR" and negative:
        out.text.append("<")
    out.sign(pattern.sign, negative)
    if pattern.dollar:
        out.text.append("$")
    out.whole(pattern.before, before.rjust(width))
    if pattern.point:
        if out.text and out.text[-1] == " ":
            out.text[-1] = "0"
        out.text.append(".")
    out.text += after.ljust(pattern.scale, "0")
    if pattern.point and not pattern.scale:
        out.text[-1] = " "
    if pattern.end == "PR":
        if negative:
            out.before_blank(">")
        else:
            out.text += "  "
    out.sign(pattern.end, negative)
    return "".join(out.text)


class _Output:
    """The characters of a number so far."""

    def __init__(self) -> None:
        self.text: list[str] = []

    def sign(self, kind: str, negative: bool) -> None:
        """MI is a blank for a number that is not negative."""
        if kind == "S":
            self.before_blank("-" if negative else "+")
        elif kind == "MI" and negative:
            self.before_blank("-")
        elif kind == "MI":
            self.text.append(" ")

    def before_blank(self, character: str) -> None:
        """At the end, but before the blanks that are there."""
        place = len(self.text)
        while place and self.text[place - 1] == " ":
            place -= 1
        self.text.insert(place, character)

    def whole(self, runs: tuple[DigitRun, ...], digits: str) -> None:
        """The digits before the point; blanks among them are zeros in exact runs."""
        start = 0
        for i, run in enumerate(runs):
            if i and self.text[-1].isdecimal():
                self.text.append(",")
            elif i:
                self._blank()
            for digit in digits[start : start + run.count]:
                if digit != " " or run.exact:
                    self.text.append("0" if digit == " " else digit)
                else:
                    self._blank()
            start += run.count

    def _blank(self) -> None:
        """A blank, before a sign that is last."""
        if self.text and self.text[-1] in "<+-":
            self.text[-1:] = [" ", self.text[-1]]
        else:
            self.text.append(" ")
