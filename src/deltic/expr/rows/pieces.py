"""Strings of one row by their parts and characters."""

from __future__ import annotations

from typing import Final

KEPT: Final = "\0"
"""Among masks: such characters stay."""
MASKS: Final = "Xxn" + KEPT
"""What masks upper case, lower case, digits and other characters unless something else is said."""
_ENGLISH_DIGITS: Final = "0123456789"


def char(code: int) -> str:
    """The character of the code modulo 256; none for a negative code."""
    return chr(code % 256) if code >= 0 else ""


def find_in_set(text: str, texts: str) -> int:
    """Where `text` is among the parts of `texts` between commas, from 1; 0 where it is not, or has a comma itself."""
    parts = texts.split(",")
    return parts.index(text) + 1 if text in parts else 0


def luhn_check(text: str) -> bool:
    """Whether the digits end with their check digit; False for text other than digits."""
    if not text or text.strip(_ENGLISH_DIGITS):
        return False
    digits = [int(character) for character in reversed(text)]
    return (sum(digits[::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])) % 10 == 0


def mask(text: str, masks: str) -> str:
    """Each character by the mask of its class. One outside the Basic Multilingual Plane counts as two others, as in Java.

    >>> mask("Ab-1", MASKS), mask("Ab-1", "Q" + KEPT + "do")
    ('Xx-n', 'Qbod')
    """
    return "".join(map(lambda character: _masked(character, *masks), text))


def _masked(character: str, upper: str, lower: str, digit: str, other: str) -> str:
    if character > "\uffff":
        return character if other == KEPT else 2 * other
    by = upper if character.isupper() else lower if character.islower() else digit if character.isdecimal() else other
    return character if by == KEPT else by


def substring_index(text: str, delimiter: str, count: int) -> str:
    """What stands before the count-th delimiter; counted from the end where negative, what stands after it. Delimiters may overlap.

    >>> substring_index("a.b.c", ".", 2), substring_index("a.b.c", ".", -1), substring_index("aaaa", "aa", 2)
    ('a.b', 'c', 'a')
    """
    if not delimiter or not count:
        return ""
    position = -1 if count > 0 else len(text) - len(delimiter) + 1
    for _ in range(abs(count)):
        position = text.find(delimiter, position + 1) if count > 0 else text.rfind(delimiter, 0, max(position - 1 + len(delimiter), 0))
        if position < 0:
            return text
    return text[:position] if count > 0 else text[position + len(delimiter) :]
