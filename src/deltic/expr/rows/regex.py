"""What regular expressions find in the string of one row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from deltic.expr.failures import invalid
from deltic.expr.nodes import Call
from deltic.expr.rows.java_regex import RegexFault, compiled
from deltic.expr.rows.text import checked_length

_REFERENCE: Final = re.compile(r"\\(.?)|\$(?:([0-9])|\{([a-zA-Z][a-zA-Z0-9]*)\})?", re.DOTALL)


def pattern_of(call: Call, pattern: str) -> re.Pattern[str]:
    """The pattern for `re`; one that is refused is an error of the row."""
    try:
        return compiled(pattern)
    except RegexFault as error:
        raise invalid(f"the regular expression {pattern!r} is refused: {error}", call.span) from None


def matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """All matches as Java finds them: after an empty one the search resumes a character later, where Python looks there once more."""
    start = 0
    while start <= len(text) and (match := pattern.search(text, start)):
        yield match
        start = match.end() + (match.end() == match.start())


def position(call: Call, text: str, pattern: str, group: int = 0) -> int:
    """Where the first match begins, from 1; 0 without a match. The group makes no difference, as in Spark."""
    match = pattern_of(call, pattern).search(text)
    return match.start() + 1 if match else 0


def extract(call: Call, text: str, pattern: str, group: int) -> str:
    """The group of the first match; empty without a match, or if the group took no part in it."""
    match = pattern_of(call, pattern).search(text)
    if match is None:
        return ""
    if not 0 <= group <= match.re.groups:
        raise invalid(f"regexp_extract: the pattern has {match.re.groups} groups, and not the group {group}", call.span)
    return match[group] or ""


def replace(call: Call, text: str, pattern: str, by: str, start: int) -> str:
    """Each match from position `start` on replaced; what stands before it is not seen."""
    before = start - 1
    if before and before >= len(text):
        return text
    searched = pattern_of(call, pattern)
    pieces, end, size = [text[:before]], before, before
    rest = text[before:]
    for match in matches(searched, rest):
        pieces += rest[end - before : match.start()], _expanded(call, by, match)
        size += len(pieces[-1]) + len(pieces[-2])
        checked_length("regexp_replace", size, call.span)
        end = before + match.end()
    return "".join([*pieces, text[end:]])


def _expanded(call: Call, by: str, match: re.Match[str]) -> str:
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


def _group_of(call: Call, by: str, reference: re.Match[str], match: re.Match[str]) -> tuple[int, int]:
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
