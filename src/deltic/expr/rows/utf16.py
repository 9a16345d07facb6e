"""Texts in the UTF-16 units of Java. Half of a character, a surrogate without the other, is a character of its own in Python."""

from __future__ import annotations

import re
from typing import Final

PAIRS: Final = re.compile("[\U00010000-\U0010ffff]")
"""A character of two units."""
HALVES: Final = re.compile("[\ud800-\udfff]")


def without_halves(text: str) -> str:
    """Each half of a character as a question mark, as Java writes it in UTF-8."""
    return HALVES.sub("?", text)


def in_units(text: str) -> str:
    """Each character outside the BMP as its two units; the text itself without any."""
    if text.isascii() or PAIRS.search(text) is None:
        return text
    return PAIRS.sub(lambda pair: units_of(pair[0]), text)


def paired(units: str) -> str:
    """Two halves that follow one another as a character; a single half stays."""
    if HALVES.search(units) is None:
        return units
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def joined(units: str) -> str:
    """Text as Java writes it in UTF-8: half of a character becomes a question mark."""
    return without_halves(paired(units))


def units_of(character: str) -> str:
    """The two units of a character outside the BMP."""
    code = ord(character) - 0x10000
    return chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))
