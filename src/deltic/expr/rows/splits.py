"""Text cut by regular expressions, on one row."""

from __future__ import annotations

from deltic.expr.failures import invalid
from deltic.expr.nodes import Call
from deltic.expr.rows.java_matching import scan
from deltic.expr.rows.maps import Entries, of_entries
from deltic.expr.rows.regex import pattern_of
from deltic.expr.rows.utf16 import joined


def split(call: Call, text: str, pattern: str, limit: int) -> tuple[str, ...]:
    """The pieces between matches; at most `limit` of them, if it is positive. An empty pattern cuts at every character."""
    if not pattern and text:
        most = limit if 0 < limit <= len(text) else len(text)
        return (*text[: most - 1], text[most - 1 :])
    pieces, end = list[str](), 0
    units, matches = scan(pattern_of(call, pattern), text)
    for match in matches:
        if 0 < limit <= len(pieces) + 1:
            break
        if match.end() > 0:  # an empty match at the beginning cuts off nothing
            pieces.append(units[end : match.start()])
            end = match.end()
    pieces.append(units[end:])
    return tuple(pieces if units is text else map(joined, pieces))


def to_map(call: Call, text: str, between: str, after_key: str) -> Entries:
    """Keys and values; a part without a second delimiter has the value NULL."""
    pairs = (split(call, part, after_key, 2) for part in split(call, text, between, -1))
    return of_entries(call, ((key, rest[0] if rest else None) for key, *rest in pairs))


def extract_all(call: Call, text: str, pattern: str, group: int) -> tuple[str, ...]:
    """The group of every match; empty where it took no part in it."""
    pieces = []
    for match in scan(pattern_of(call, pattern), text)[1]:
        if not 0 <= group <= match.re.groups:
            raise invalid(f"regexp_extract_all: the pattern has {match.re.groups} groups, and not the group {group}", call.span)
        pieces.append(joined(match[group] or ""))
    return tuple(pieces)
