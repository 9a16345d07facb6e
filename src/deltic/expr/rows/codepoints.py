"""Sets of characters as ascending ranges of code points: what a character class of a regular expression denotes."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import groupby
from typing import Final, TypeVar

from deltic.collations import matched_character

TOP: Final = sys.maxunicode

Value = TypeVar("Value")
CodePoints = tuple[tuple[int, int], ...]
"""Ascending, disjoint, not adjacent; both ends belong to a range."""


def points(*ranges: tuple[int, int]) -> CodePoints:
    """The union of ranges in any order.

    >>> points((5, 9), (1, 2), (3, 6))
    ((1, 9),)
    """
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)


def characters(text: Iterable[str]) -> CodePoints:
    return points(*((ord(c), ord(c)) for c in text))


def union(left: CodePoints, right: CodePoints) -> CodePoints:
    return points(*left, *right)


def complement(ranges: CodePoints) -> CodePoints:
    """All other characters.

    >>> complement(((1, 9),)) == ((0, 0), (10, TOP))
    True
    """
    others, following = [], 0
    for low, high in ranges:
        if low > following:
            others.append((following, low - 1))
        following = high + 1
    return (*others, (following, TOP)) if following <= TOP else tuple(others)


def intersection(left: CodePoints, right: CodePoints) -> CodePoints:
    return complement(union(complement(left), complement(right)))


def with_both_cases(ranges: CodePoints) -> CodePoints:
    """With the other case of each letter of ASCII."""
    low, high = intersection(ranges, ((97, 122),)), intersection(ranges, ((65, 90),))
    return points(*ranges, *((a - 32, b - 32) for a, b in low), *((a + 32, b + 32) for a, b in high))


_CASED_END: Final = 0x20000
"""Past the last character with two cases."""


def simple_upper(character: str) -> str:
    """Java's Character.toUpperCase: one character for one."""
    upper = character.upper()
    if len(upper) > 1:
        upper = character.title()
    return upper if len(upper) == 1 else character


@cache
def _folds() -> Mapping[str, str]:
    """Of each character that differs from its lower or upper case, what a pattern that ignores case compares."""
    cased = filter(lambda one: one.upper() != one or one.lower() != one, map(chr, range(_CASED_END)))
    return {one: matched_character(one) for one in cased}


@cache
def _same_folds() -> Mapping[str, CodePoints]:
    groups: dict[str, list[str]] = {}
    for one, fold in _folds().items():
        groups.setdefault(fold, []).append(one)
    return {fold: characters(group) for fold, group in groups.items()}


def is_cased(character: str) -> bool:
    """Whether its upper and its lower case differ."""
    return simple_upper(character) != _folds().get(character, character)


def in_every_case(character: str) -> CodePoints:
    """The characters that Java takes for this one with the flags i and u.

    >>> in_every_case("k") == characters("kK\u212a"), in_every_case("1") == characters("1")
    (True, True)
    """
    return _same_folds().get(_folds().get(character, character), characters(character))


def in_any_case(ranges: CodePoints) -> CodePoints:
    """A range with the characters whose upper case, or its lower case, is in it, as Java has it with the flags i and u."""

    def holds(character: str) -> bool:
        return any(low <= ord(character) <= high for low, high in ranges)

    return union(ranges, characters(one for one, fold in _folds().items() if holds(fold) or holds(simple_upper(one))))


def as_class(ranges: CodePoints) -> str:
    """A regular expression of Python's for one character of the set.

    >>> as_class(((48, 57),)), as_class(()), as_class(complement(((10, 10),)))
    ('[\\\\U00000030-\\\\U00000039]', '(?!)', '[^\\\\U0000000a]')
    """
    if not ranges:
        return "(?!)"
    if ranges == ((0, TOP),):
        return "(?s:.)"
    others = complement(ranges)
    negated = len(others) < len(ranges) or ranges[-1][1] == TOP
    parts = [f"\\U{low:08x}" + ("" if low == high else f"-\\U{high:08x}") for low, high in (others if negated else ranges)]
    return f"[{'^' if negated else ''}{''.join(parts)}]"


@lru_cache(maxsize=64)
def category(prefix: str) -> CodePoints:
    """The characters whose general category begins with `prefix`."""
    return points(*((low, high) for low, high, name in _categories() if name.startswith(prefix)))


@lru_cache(maxsize=16)
def satisfying(test: Callable[[str], bool]) -> CodePoints:
    """The characters that pass a test. Cost: the first time, 0.1 s."""
    return tuple((low, high) for low, high, passes in _runs(test) if passes)


@lru_cache(maxsize=1)
def _categories() -> list[tuple[int, int, str]]:
    """The general category of each character. Cost: the first time, 0.1 s."""
    return list(_runs(unicodedata.category))


def _runs(attribute: Callable[[str], Value]) -> Iterator[tuple[int, int, Value]]:
    """The longest ranges of characters with one value of an attribute, ascending."""
    low = 0
    for value, run in groupby(map(attribute, map(chr, range(TOP + 1)))):
        following = low + len(list(run))
        yield low, following - 1, value
        low = following
