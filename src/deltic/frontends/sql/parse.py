"""A script's text into statements: tokens, one tree for each statement, and the places of the nodes.

What always holds: each statement is one tree that sqlglot understood whole. What it does not understand, or only warns of,
is a SyntaxFailure with its place.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot import ErrorLevel, exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from deltic.errors import Span, SyntaxFailure
from deltic.frontends.sql.dialect import DelticDialect
from deltic.frontends.sql.spans import Places

UNDERSTOOD = "CREATE TABLE, CREATE [MATERIALIZED | TEMPORARY] VIEW … AS SELECT …, DROP TABLE, DROP VIEW"


@dataclass(frozen=True, slots=True)
class Parsed:
    """One statement."""

    tree: exp.Expr
    places: Places


def parse(text: str, name: str) -> list[Parsed]:
    """The statements of a script, split at semicolons; empty ones are left out."""
    dialect = DelticDialect()
    parsed = []
    for tokens in _statements(_tokens(dialect, text, name)):
        places = Places(text, name, tokens)
        parsed.append(Parsed(_tree(dialect, places), places))
    return parsed


def _tokens(dialect: DelticDialect, text: str, name: str) -> list[Token]:
    try:
        return dialect.tokenize(text)
    except TokenError as error:
        raise SyntaxFailure("the text is not SQL", span=_place_of(error, text, name), remedy=_advice(error)) from error


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
        except RecursionError as error:
            raise SyntaxFailure("the statement is nested too deeply", span=places.statement, remedy="split it into views") from error
    tree = trees[0] if len(trees) == 1 else None
    if tree is None or warnings or isinstance(tree, exp.Command):
        first = places.keyword(places.tokens[0].text.upper())
        raise SyntaxFailure("this statement is not understood", span=first, expected=UNDERSTOOD)
    return tree


def _syntax_failure(error: ParseError, places: Places) -> SyntaxFailure:
    detail = error.errors[0] if error.errors else {}
    line, column = detail.get("line"), detail.get("col")
    found = next((token for token in places.tokens if (token.line, token.col) == (line, column)), places.tokens[-1])
    span = Span(places.text, found.start, found.end + 1, places.name)
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
