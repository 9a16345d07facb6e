"""Collations: which texts are equal, and in which order they are. Source: Apache Spark 4.2, CollationFactory and CollationAwareUTF8String.

A collation is given by its key: two texts are equal where their keys are, and sort as the bytes of their keys in UTF-8 do. What always
holds: a key is a text, and the key of UTF8_BINARY is the text itself. Which collation an expression has is defined in expr/collating.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

BINARY_NAME: Final = "UTF8_BINARY"
_CATALOG: Final = "SYSTEM.BUILTIN."
_DOTTED: Final = "\u0130"
_SPECIAL: Final = {_DOTTED: "i\u0307", "\u03c2": "\u03c3"}
"""Of UTF8_LCASE: I with a dot is two characters in lower case, and a final sigma is a sigma."""


@dataclass(frozen=True, slots=True)
class Collation:
    """folds: letters of both cases are equal. trims: blanks at the end do not count."""

    name: str
    folds: bool = False
    trims: bool = False

    def key(self, text: str) -> str:
        """
        >>> COLLATIONS["UTF8_LCASE_RTRIM"].key("Straße  ")
        'straße'
        """
        return self.fold(self.trim(text))

    def trim(self, text: str) -> str:
        return text.rstrip(" ") if self.trims else text

    def fold(self, text: str) -> str:
        if not self.folds:
            return text
        return text.lower() if text.isascii() else "".join(map(lower_character, text))


@cache
def lower_character(character: str) -> str:
    """One or two characters: a character by itself in lower case, wherever it stands."""
    return _SPECIAL.get(character) or character.lower()


@cache
def matched_character(character: str) -> str:
    """What patterns compare instead of a character: as Java's Pattern with CASE_INSENSITIVE and UNICODE_CASE."""
    upper = character.upper()
    lower = "i" if _DOTTED in (character, upper) else (upper if len(upper) == 1 else character).lower()
    return lower if len(lower) == 1 else character


COLLATIONS: Final[Mapping[str, Collation]] = MappingProxyType(
    {
        one.name: one
        for one in (
            Collation(BINARY_NAME),
            Collation("UTF8_LCASE", folds=True),
            Collation("UTF8_BINARY_RTRIM", trims=True),
            Collation("UTF8_LCASE_RTRIM", folds=True, trims=True),
        )
    }
)
"""Those that Deltic has, by name."""


def collation_of(name: str) -> Collation | None:
    """The collation that a name means, in any case and with or without SYSTEM.BUILTIN; None if Deltic does not have it."""
    return COLLATIONS.get(name.upper().removeprefix(_CATALOG))


def full_name(name: str) -> str:
    """As the function COLLATION gives it."""
    return _CATALOG + name
