"""Matches in characters of two UTF-16 units are those of java.util.regex.Matcher, whose answers these are."""

from __future__ import annotations

import pytest

from deltic.expr.rows.java_matching import compiled, scan
from deltic.expr.rows.java_sets import RegexFault
from deltic.expr.rows.utf16 import in_units, joined

MATCHES = [
    ("x*", "𝒳y", "0-0 1-1 2-2 3-3"),
    ("", "a😀", "0-0 1-1 2-2 3-3"),
    ("\\B", "a😀", "2-2 3-3"),
    ("\\B.", "a😀", "2-3"),
    ("(?<!a).", "a😀b", "0-1 2-3 3-4"),
    ("(?=𝒳)|.", "𝒳𝒳", "0-0 1-2 2-2 3-4"),
    ("(?=.)", "😀a", "0-0 1-1 2-2"),
    ("[^x]*?", "𝒳", "0-0 1-1 2-2"),
    ("[^,]+", "a😀,𝒳", "0-3 4-6"),
    ("\\b", "𝒳😀", "0-0 2-2"),
    ("(?!😀)", "😀", "2-2"),
    ("(?m)^", "\n𝒳\n", "0-0 1-1"),
    ("$", "a😀", "3-3"),
    ("\\A", "😀", "0-0"),
    ("(?<=\\p{L})y", "𝒳y", ""),
    ("(?<=[^a])y", "𝒳y", "2-3"),
    ("(?<=..)", "a𝒳y", "4-4"),
    ("(?<=.{2})", "a𝒳y", "4-4"),
    ("(?<=^.)", "𝒳y", ""),
    ("(?<=𝒳)", "𝒳y", "2-2"),
    ("(?<!\\p{L})", "é𝒳", "0-0 3-3"),
    ("(?<=😀.)|x?", "😀𝒳", "0-0 1-1 2-2 3-3 4-4"),
    ("(?=𝒳)|.(?<=𝒳)", "𝒳", "0-0 1-2"),
    ("(?=𝒳)|.\\b", "𝒳 ", "0-0 1-2"),
    ("(?=𝒳)|.(?<!\\W)", "𝒳", "0-0"),
    ("(?=😀)|\\p{Cs}", "😀", "0-0 1-2"),
    ("a|(b)?", "😀b", "0-0 1-1 2-3 3-3"),
    ("😀*?", "😀", "0-0 1-1 2-2"),
    ("(?<=(?:ab){2})", "abab", "4-4"),
    ("(?<=\\x{1d4b3})", "𝒳", ""),
    ("(?iu)k", "kKK", "0-1 1-2 2-3"),
    ("(?iu)[j-l]", "Kk", "0-1 1-2"),
    ("(?iu)ß", "ẞß", "1-2"),
    ("(?iu)aß", "aẞ", "0-2"),
    ("(?iu)ßa*", "ẞ", ""),
    ("(?iu)[ß]", "ẞß", "1-2"),
    ("(?iu)ẞ", "ßẞ", "0-1 1-2"),
    ("(?iu)[a-z]", "İıſ1", "0-1 1-2 2-3"),
    ("(?iu)σ", "ςΣ", "0-1 1-2"),
    ("(?iu)x*", "😀X", "0-0 1-1 2-3 3-3"),
    ("(?iu)(?:xy)?", "😀XY", "0-0 1-1 2-4 4-4"),
    ("(?iu)[^a-c]", "😀Bd", "0-2 3-4"),
    ("(?iu)\\x41b", "aB", "0-2"),
    ("(?u)k", "K", ""),
]
"""(pattern, text, the first and last unit of each match), by OpenJDK 17."""


def units(pattern: str, text: str) -> str:
    read, matches = scan(compiled(pattern), text)
    return " ".join("-".join(str(len(in_units(read[:place]))) for place in (match.start(), match.end())) for match in matches)


@pytest.mark.parametrize(("pattern", "text", "expected"), MATCHES)
def test_matches_are_those_of_java(pattern: str, text: str, expected: str) -> None:
    assert units(pattern, text) == expected


def test_a_text_in_the_bmp_is_searched_as_it_is() -> None:
    text = "a\u00e9\uffff"
    assert scan(compiled("x*"), text)[0] is text
    assert scan(compiled(","), "a\U0001f600")[0] == "a\U0001f600"


def test_halves_are_joined_or_become_question_marks() -> None:
    halves = in_units("a\U0001f600")
    assert len(halves) == 3 and joined(halves) == "a\U0001f600"
    assert joined(halves[:2]) == "a?" and joined(halves[2:] + halves[1]) == "??"


def test_a_repeated_group_at_the_beginning_of_a_lookbehind_is_refused_if_it_may_be_half_of_a_character() -> None:
    with pytest.raises(RegexFault, match="write it out"):
        compiled("(?<=(?:.a){2})b")
    assert units("(?<=(?:.a){2}\U0001f600)b", "xaxa\U0001f600b") == "6-7"
