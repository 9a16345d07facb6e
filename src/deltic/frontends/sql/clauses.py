"""What stands behind a table's columns or a sink's view: USING, OPTIONS, LOCATION, COMMENT, read from the tokens one by one.

sqlglot knows no sinks, and keeps no places of options.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from deltic.errors import QueryError, Span, SyntaxFailure, Unsupported
from deltic.frontends.sql.cursor import STRINGS, Cursor, is_name

OPENING: Final = ("USING", "OPTIONS", "LOCATION")
VALUES: Final = (*STRINGS, TokenType.NUMBER, TokenType.TRUE, TokenType.FALSE)
_VALUE: Final = "a string, a number, TRUE or FALSE"
_FLAT: Final = "all files lie in the folder itself"
_QUERY: Final = ("a query behind USING is not supported", "CREATE MATERIALIZED VIEW v AS the query, and CREATE SINK name FROM v")
_NOT_HERE: Final[dict[str, tuple[str, str]]] = {
    "TBLPROPERTIES": ("TBLPROPERTIES is not supported", "put what says how files are read and written into OPTIONS (…)"),
    "PARTITIONED": (f"PARTITIONED BY is not supported: {_FLAT}", "leave it out"),
    "CLUSTERED": (f"CLUSTERED BY is not supported: {_FLAT}", "leave it out"),
    "CLUSTER": (f"CLUSTER BY is not supported: {_FLAT}", "leave it out"),
    "STORED": ("STORED AS is not supported", "USING parquet, csv or json"),
    "ROW": ("ROW FORMAT is not supported", "USING csv OPTIONS (path '…', sep '…')"),
    "AS": _QUERY,
    "SELECT": _QUERY,
}


@dataclass(frozen=True, slots=True)
class Option:
    """A value of OPTIONS, its key as written, and where the two stand."""

    key: str
    value: str
    key_span: Span
    span: Span


@dataclass(slots=True)
class Clauses:
    """What was read. `options` go by key in lower case; `span` is the place of the format's name, which is "" where none is needed."""

    format: str
    span: Span
    options: dict[str, Option] = field(default_factory=dict)


def parse_clauses(cursor: Cursor, bare: Sequence[str] = ()) -> Clauses:
    """USING format, then the others in any order, up to the statement's end. bare: options that may stand without USING."""
    if cursor.word == "OPTIONS" and (found := _bare(cursor, bare)) is not None:
        return found
    if cursor.word in OPENING[1:]:
        raise SyntaxFailure(f"{cursor.word} without USING", span=cursor.span, expected="USING parquet, csv or json before it")
    cursor.expect("USING")
    clauses = _format(cursor)
    seen: set[str] = set()
    while cursor.token is not None:
        word = cursor.word
        if word in seen or word == "USING":
            remedy = "put all options into one OPTIONS (…)" if word == "OPTIONS" else "leave one of them out"
            raise SyntaxFailure(f"{word} stands here twice", span=cursor.span, remedy=remedy)
        seen.add(word)
        _clause(cursor, word, clauses)
    return clauses


def _bare(cursor: Cursor, names: Sequence[str]) -> Clauses | None:
    """OPTIONS alone, if it has just options of these names."""
    ahead = copy(cursor)
    clauses = Clauses("", ahead.span)
    ahead.expect("OPTIONS")
    try:
        _options(ahead, clauses.options)
    except SyntaxFailure:
        return None
    return clauses if ahead.token is None and clauses.options.keys() <= {*names} else None


def _format(cursor: Cursor) -> Clauses:
    """The format's name, dotted as a class's name may be."""
    token = cursor.token
    if token is None or not is_name(token) or cursor.word in OPENING:
        raise cursor.failure("a format: parquet, csv or json")
    return Clauses(*cursor.dotted())


def _clause(cursor: Cursor, word: str, clauses: Clauses) -> None:
    if word in _NOT_HERE:
        message, remedy = _NOT_HERE[word]
        raise Unsupported(message, span=cursor.span, remedy=remedy)
    keyword = cursor.span
    if cursor.passes("OPTIONS"):
        _options(cursor, clauses.options)
    elif cursor.passes("LOCATION"):
        value, span = _string(cursor, "the folder, as a string")
        _add(Option("LOCATION", value, keyword, span), "path", clauses.options)
    elif cursor.passes("COMMENT"):
        _string(cursor, "the comment, as a string")
    else:
        raise cursor.failure("OPTIONS (…), LOCATION '…', COMMENT '…', or the end of the statement")


def _options(cursor: Cursor, options: dict[str, Option]) -> None:
    cursor.expect("(")
    if cursor.word == ")":
        raise cursor.failure("path '…'")
    while True:
        option = _option(cursor)
        _add(option, option.key.lower(), options)
        if cursor.passes(")"):
            return
        if not cursor.passes(","):
            raise cursor.failure(f", or ) behind the option {option.key}")


def _add(option: Option, key: str, options: dict[str, Option]) -> None:
    if other := options.get(key):
        message = f"the option {option.key} is given twice"
        if {"LOCATION"} & {option.key, other.key}:
            message = "the folder is given twice, by LOCATION and by the option path"
        raise QueryError(message, span=option.key_span, remedy="leave one of them out")
    options[key] = option


def _option(cursor: Cursor) -> Option:
    token = cursor.token
    if token is None or (token.token_type not in STRINGS and not is_name(token)):
        raise cursor.failure("an option: key 'value'")
    key, key_span = cursor.text() if token.token_type in STRINGS else cursor.dotted()
    cursor.passes("=")
    if cursor.word in (",", ")"):
        raise SyntaxFailure(f"the option {key} has no value", span=key_span, expected=f"{key} '…'")
    value, value_span = _value(cursor, key)
    return Option(key, value, key_span, value_span)


def _value(cursor: Cursor, key: str) -> tuple[str, Span]:
    token = cursor.token
    if token is None or token.token_type not in VALUES:
        raise cursor.failure(f"{_VALUE} for the option {key}")
    text, span = cursor.text()
    return (text if token.token_type in STRINGS else text.lower()), span


def _string(cursor: Cursor, expected: str) -> tuple[str, Span]:
    if cursor.token is None or cursor.token.token_type not in STRINGS:
        raise cursor.failure(expected)
    return cursor.text()


def split(tokens: Sequence[Token]) -> int:
    """Where in CREATE TABLE the clauses begin that are read here; the number of tokens where none do.

    They are read here if they begin with one of OPENING. Others, such as COMMENT alone, sqlglot reads with the columns.
    """
    words = ["" if token.token_type in (*STRINGS, TokenType.IDENTIFIER) else token.text.upper() for token in tokens]
    if words[0] != "CREATE" or "TABLE" not in words[1:4]:
        return len(tokens)
    at = words.index("TABLE") + 1
    at += 4 if words[at : at + 3] == ["IF", "NOT", "EXISTS"] else 1
    while words[at : at + 1] == ["."]:
        at += 2
    if words[at : at + 1] == ["("]:
        depth = itertools.accumulate((word == "(") - (word == ")") for word in words[at:])
        at += 1 + list(depth).index(0)
    clauses = words[at + 2 :] if words[at : at + 1] == ["COMMENT"] else words[at:]
    return at if clauses and clauses[0] in OPENING else len(tokens)
