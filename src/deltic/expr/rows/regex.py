"""Functions of regular expressions on the string of one row."""

from __future__ import annotations

import re
from typing import Final

from deltic.expr.failures import invalid
from deltic.expr.nodes import Call
from deltic.expr.rows.java_matching import JavaPattern, Match, compiled, first, scan
from deltic.expr.rows.java_sets import RegexFault
from deltic.expr.rows.text import checked_length
from deltic.expr.rows.utf16 import joined, paired

_REFERENCE: Final = re.compile(r"\\(.?)|\$(?:([0-9])|\{([a-zA-Z][a-zA-Z0-9]*)\})?", re.DOTALL)


def pattern_of(call: Call, pattern: str) -> JavaPattern:
    """The pattern; one that is refused is an error of the row."""
    try:
        return compiled(pattern)
    except RegexFault as error:
        raise invalid(f"the regular expression {pattern!r} is refused: {error}", call.span) from None


def matching(call: Call, text: str, pattern: str) -> bool:
    """RLIKE."""
    return first(pattern_of(call, pattern), text) is not None


def count(call: Call, text: str, pattern: str) -> int:
    """The number of matches."""
    return sum(1 for _ in scan(pattern_of(call, pattern), text)[1])


def position(call: Call, text: str, pattern: str, group: int = 0) -> int:
    """The character where the first match begins, from 1; 0 without a match. The group makes no difference, as in Spark."""
    units, matches = scan(pattern_of(call, pattern), text)
    match = next(matches, None)
    return len(paired(units[: match.start()])) + 1 if match else 0


def extract(call: Call, text: str, pattern: str, group: int) -> str:
    """The group of the first match; empty without a match, or if the group took no part in it."""
    match = first(pattern_of(call, pattern), text)
    if match is None:
        return ""
    if not 0 <= group <= match.re.groups:
        raise invalid(f"regexp_extract: the pattern has {match.re.groups} groups, and not the group {group}", call.span)
    return joined(match[group] or "")


def replace(call: Call, text: str, pattern: str, by: str, start: int) -> str:
    """Each match from position `start` on replaced; what stands before it is not seen."""
    if 1 < start > len(text):
        return text
    before, rest = text[: start - 1], text[start - 1 :]
    units, matches = scan(pattern_of(call, pattern), rest)
    pieces, end, size = [before], 0, len(before)
    for match in matches:
        pieces += units[end : match.start()], _expanded(call, by, match)
        size += len(pieces[-1]) + len(pieces[-2])
        checked_length("regexp_replace", size, call.span)
        end = match.end()
    replaced = "".join([*pieces, units[end:]])
    return replaced if units is rest else joined(replaced)


def _expanded(call: Call, by: str, match: Match) -> str:
    r"""The replacement with $1, ${name} and \x resolved, as Java's appendReplacement does."""
    parts, last = [], 0
    while reference := _REFERENCE.search(by, last):
        parts.append(by[last : reference.start()])
        last = reference.end()
        if reference[0].startswith("\\"):
            if not reference[1]:
                raise invalid("regexp_replace: the replacement ends with a backslash", call.span)
            parts.append(reference[1])
            continue
        group, last = _group_of(call, by, reference, match)
        parts.append(match[group] or "")
    return "".join(parts) + by[last:]


def _group_of(call: Call, by: str, reference: re.Match[str], match: Match) -> tuple[int, int]:
    """The group that a reference names, and where the reference ends: digits belong to it as long as there is such a group."""
    last = reference.end()
    if reference[3] is not None:
        number = match.re.groupindex.get(reference[3])
        if number is None:
            raise invalid(f"regexp_replace: there is no group {{{reference[3]}}}", call.span)
        return number, last
    if reference[2] is None:
        raise invalid("regexp_replace: a $ in the replacement without a group, as in $1", call.span)
    number = int(reference[2])
    if number > match.re.groups:
        raise invalid(f"regexp_replace: there is no group {number}", call.span)
    while last < len(by) and "0" <= by[last] <= "9" and number * 10 + int(by[last]) <= match.re.groups:
        number, last = number * 10 + int(by[last]), last + 1
    return number, last
