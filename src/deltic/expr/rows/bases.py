"""Whole numbers as text in a base from 2 to 36."""

from __future__ import annotations

from typing import Final

from deltic.errors import Span
from deltic.expr.failures import overflow

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BOUND: Final = 2**64


def convert(text: str, source: int, target: int, span: Span | None = None) -> str | None:
    """The number that `text` begins with in base `source`, of 64 bits, in base |target|; signed where `target` is negative.

    NULL for a base outside 2 to 36 and for empty text; what begins with no digit is 0.

    >>> convert("100", 2, 10), convert("-1", 10, 16), convert("-15", 10, -16), convert("11abc", 10, 16)
    ('4', 'FFFFFFFFFFFFFFFF', '-F', 'B')
    """
    word = text.strip(" ")
    if not (2 <= source <= 36 and 2 <= abs(target) <= 36) or not word:
        return None
    negative = word.startswith("-")
    value = _leading_digits(word[negative:], source, span)
    if negative and target > 0:
        value = _BOUND - 1 if value >= _BOUND >> 1 else -value % _BOUND
    if target < 0 and value >= _BOUND >> 1:
        value, negative = _BOUND - value, True
    return ("-" if negative and target < 0 else "") + _written(value, abs(target))


def _leading_digits(word: str, base: int, span: Span | None) -> int:
    value = 0
    for character in word:
        digit = _DIGITS.find(character.upper()) if character.isascii() else -1
        if not 0 <= digit < base:
            break
        value = value * base + digit
        if value >= _BOUND:
            raise overflow("a number of more than 64 bits in conv", span)
    return value


def _written(value: int, base: int) -> str:
    digits = ""
    while value:
        value, digit = divmod(value, base)
        digits = _DIGITS[digit] + digits
    return digits or "0"
