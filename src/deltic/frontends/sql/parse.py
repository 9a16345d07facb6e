"""A script's text into statements: tokens, one tree for each statement, and the places of the nodes.

What always holds: each statement is one tree that sqlglot understood whole, but for sinks and for the clauses that say where a table's
rows come from, which are read here. What is not understood, or only warned of, is a SyntaxFailure with its place.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from sqlglot import ErrorLevel, exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from deltic.errors import Span, SyntaxFailure
from deltic.frontends.sql.clauses import parse_clauses, split
from deltic.frontends.sql.completeness import check_complete, check_parentheses
from deltic.frontends.sql.cursor import Cursor
from deltic.frontends.sql.declare import as_table
from deltic.frontends.sql.dialect import DelticDialect
from deltic.frontends.sql.hints import check_placed
from deltic.frontends.sql.levels import Levels, check_levels, take_levels
from deltic.frontends.sql.options import WATERMARK, source_of, timed_of
from deltic.frontends.sql.refuse import REFUSED
from deltic.frontends.sql.sinks import parse_sink
from deltic.frontends.sql.spans import Places
from deltic.frontends.sql.statements import CreateSink, DropSink, FileSource, Timed

KINDS: Final = (exp.Create, exp.Drop, exp.Query, exp.Values)
UNDERSTOOD: Final = (
    "CREATE TABLE, CREATE [OR REPLACE] [MATERIALIZED | TEMPORARY] VIEW, CREATE SINK, DECLARE RECURSIVE VIEW, "
    "DROP TABLE, VIEW or SINK, SELECT"
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """One statement: its tree, or what it says of a sink. source, timed: of CREATE TABLE … USING or OPTIONS, whose tokens `places` lacks.

    levels: its MAX RECURSION LEVELs, which `places` has no tokens of. declares: DECLARE RECURSIVE VIEW, whose tree is a CREATE TABLE.
    """

    tree: exp.Expr | CreateSink | DropSink
    places: Places
    source: FileSource | None = None
    timed: Timed | None = None
    levels: Levels = field(default_factory=dict)
    declares: bool = False


def parse(text: str, name: str) -> list[Parsed]:
    """The statements of a script, split at semicolons; empty ones are left out."""
    dialect = DelticDialect()
    parsed = []
    script = _tokens(dialect, text, name)
    check_placed(Places(text, name, script))
    for tokens in _statements(script):
        check_parentheses(Places(text, name, tokens))
        places, levels = take_levels(Places(text, name, tokens))
        sink = parse_sink(places)
        parsed.append(_with_tree(dialect, places, levels) if sink is None else Parsed(sink, places))
    return parsed


def _with_tree(dialect: DelticDialect, places: Places, levels: Levels) -> Parsed:
    if (table := as_table(places)) is not None:
        check_complete(table)
        return Parsed(_tree(dialect, table), table, levels=levels, declares=True)
    cut = split(places.tokens)
    clauses = parse_clauses(Cursor(places, cut), WATERMARK) if cut < len(places.tokens) else None
    head = Places(places.text, places.name, _joined_strings(places.tokens[:cut], places.text))
    check_complete(head)
    tree = _tree(dialect, head)
    check_levels(tree, levels)
    if clauses is None:
        return Parsed(tree, head, levels=levels)
    return Parsed(tree, head, source_of(clauses) if clauses.format else None, timed_of(clauses), levels)


def _tokens(dialect: DelticDialect, text: str, name: str) -> list[Token]:
    try:
        return list(dialect.tokenize(text))
    except TokenError as error:
        raise SyntaxFailure("the text is not SQL", span=_place_of(error, text, name), remedy=_advice(error)) from error


def _joined_strings(tokens: Sequence[Token], text: str) -> list[Token]:
    """String literals one behind the other as one; where they touch, the doubled quote between them is one of its characters."""
    joined: list[Token] = []
    for token in tokens:
        before = joined[-1] if joined else None
        if before is None or not (before.token_type == token.token_type == TokenType.STRING):
            joined.append(token)
            continue
        touch = before.end + 1 == token.start and text[before.end] == text[token.start]
        whole = before.text + text[token.start] * touch + token.text
        joined[-1] = Token(TokenType.STRING, whole, before.line, before.col, before.start, token.end)
    return joined


def _place_of(error: TokenError, text: str, name: str) -> Span:
    """From the last quote or comment that was opened and never closed."""
    opened, at = 0, 0
    while at < len(text):
        closing = next((close for open_, close in _PAIRS if text.startswith(open_, at)), None)
        if closing is None:
            at += 1
            continue
        opened, at = at, _behind(text, at, closing)
        if at < 0:
            return Span(text, opened, len(text), name)
    start = getattr(error, "start", None) or 0
    return Span(text, start, getattr(error, "end", None) or len(text), name)


_PAIRS = (("--", "\n"), ("/*", "*/"), ("'", "'"), ('"', '"'), ("`", "`"))


def _behind(text: str, start: int, closing: str) -> int:
    """The offset behind the `closing` that ends what opens at `start`; -1 where it is missing."""
    at = start + (2 if closing in ("\n", "*/") else 1)
    while at < len(text):
        if text[at] == "\\" and closing in ("'", '"'):
            at += 2
        elif text.startswith(closing, at):
            return at + len(closing)
        else:
            at += 1
    return len(text) if closing == "\n" else -1


def _advice(error: TokenError) -> str | None:
    return "close the quote or the comment" if "Missing" in str(error.__cause__ or error) or error.__cause__ else None


def _statements(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


def _tree(dialect: DelticDialect, places: Places) -> exp.Expr:
    parser = dialect.parser(error_level=ErrorLevel.IMMEDIATE)
    with _warnings() as warnings:
        try:
            trees = parser.parse(list(places.tokens), places.text)
        except ParseError as error:
            raise _syntax_failure(error, places) from error
        except (TypeError, AttributeError) as error:  # sqlglot's own, on words that it does not expect
            raise SyntaxFailure("this statement is not understood", span=places.at(places.tokens[0]), expected=UNDERSTOOD) from error
        except RecursionError as error:
            raise SyntaxFailure("the statement is nested too deeply", span=places.statement, remedy="split it into views") from error
    tree = trees[0] if len(trees) == 1 else None
    if tree is None or warnings or not (isinstance(tree, KINDS) or type(tree) in REFUSED):
        raise _not_understood(places)
    return tree


def _not_understood(places: Places) -> SyntaxFailure:
    return SyntaxFailure("this statement is not understood", span=places.at(places.tokens[0]), expected=UNDERSTOOD)


def _syntax_failure(error: ParseError, places: Places) -> SyntaxFailure:
    if places.tokens[0].token_type == TokenType.VAR:  # no statement begins with a name: sqlglot took it for an expression
        return _not_understood(places)
    detail = error.errors[0] if error.errors else {}
    line, column = detail.get("line"), detail.get("col")
    found = next((token for token in places.tokens if (token.line, token.col) == (line, column)), places.tokens[-1])
    span = places.at(found)
    if found is places.tokens[-1] and "Expected table name" in str(error):
        return SyntaxFailure(f"the statement ends too early, behind {found.text!r}", span=span)
    description = str(detail.get("description") or "").split(" but got")[0]
    expected = description.removeprefix("Expected ") if description.startswith(("Expected", "Expecting")) else None
    expected = expected.removeprefix("Expecting ") if expected else None
    return SyntaxFailure(f"syntax error at {found.text!r}", span=span, expected=expected)


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """What sqlglot warns of while the block runs, which then goes nowhere else."""
    logger, collector = logging.getLogger("sqlglot"), _Collector()
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(collector)
    try:
        yield collector.messages
    finally:
        logger.removeHandler(collector)
        logger.propagate = propagate
