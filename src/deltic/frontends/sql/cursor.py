"""A statement's tokens read one by one, for the statements and clauses that sqlglot does not know."""

from __future__ import annotations

import re
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from deltic.errors import Span, SyntaxFailure, Unsupported
from deltic.frontends.sql.spans import Places

STRINGS: Final = (TokenType.STRING, TokenType.RAW_STRING)
_NO_NAMES: Final = ("FROM", "USING", "TRUE", "FALSE", "NULL")


class Cursor:
    """A statement's tokens from left to right."""

    def __init__(self, places: Places, at: int) -> None:
        self.places, self.at = places, at

    @property
    def token(self) -> Token | None:
        """The next one; None behind the last."""
        return self.places.tokens[self.at] if self.at < len(self.places.tokens) else None

    @property
    def word(self) -> str:
        """The next token in upper case; nothing behind the last, and for quoted names and strings."""
        token = self.token
        return "" if token is None or token.token_type in (*STRINGS, TokenType.IDENTIFIER) else token.text.upper()

    @property
    def span(self) -> Span:
        """The next token's place; behind the last, that one's."""
        return self.places.at(self.token or self.places.tokens[-1])

    def passes(self, *words: str) -> bool:
        """Steps over the words if they are the next ones."""
        start = self.at
        for word in words:
            if self.word != word:
                self.at = start
                return False
            self.at += 1
        return True

    def expect(self, word: str) -> None:
        """Steps over the word, which must be next."""
        if not self.passes(word):
            raise self.failure(word)

    def failure(self, expected: str) -> SyntaxFailure:
        """The error that something else stands here."""
        if self.token is None:
            last = self.places.tokens[-1]
            return SyntaxFailure(f"the statement ends too early, behind {last.text!r}", span=self.span, expected=expected)
        return SyntaxFailure(f"syntax error at {self.token.text!r}", span=self.span, expected=expected)

    def name(self, what: str) -> tuple[str, Span]:
        """One name; `what` says of what."""
        token = self.token
        if token is None or not is_name(token):
            raise self.failure(f"the name of {what}, in `back quotes` where it has other characters")
        span = self.span
        self.at += 1
        if self.word == ".":
            raise Unsupported(f"{what.partition(' ')[2]}s have one name, without a database", span=span, remedy="leave the database out")
        return token.text, span

    def text(self) -> tuple[str, Span]:
        """Steps over a token: its text and place. A string goes on where a doubled quote stands for one of its characters."""
        token = self._take()
        text, end, quote = token.text, token, self.places.text[token.end]
        while token.token_type == TokenType.STRING and self._touches(end, quote):
            end = self._take()
            text += quote + end.text
        return text, self._span(token, end)

    def dotted(self) -> tuple[str, Span]:
        """Steps over names with dots between them."""
        first = end = self._take()
        text = first.text
        while self.passes("."):
            if self.token is None or not is_name(self.token):
                raise self.failure("a name behind the dot")
            end = self._take()
            text += f".{end.text}"
        return text, self._span(first, end)

    def _take(self) -> Token:
        self.at += 1
        return self.places.tokens[self.at - 1]

    def _touches(self, before: Token, quote: str) -> bool:
        token = self.token
        return (
            token is not None
            and token.token_type == TokenType.STRING
            and token.start == before.end + 1
            and self.places.text[token.start] == quote
        )

    def _span(self, first: Token, last: Token) -> Span:
        return Span(self.places.text, first.start, last.end + 1, self.places.name)


def is_name(token: Token) -> bool:
    """Whether a name may be written so."""
    if token.token_type in (TokenType.IDENTIFIER, *STRINGS):
        return token.token_type == TokenType.IDENTIFIER
    return token.text.upper() not in _NO_NAMES and re.fullmatch(r"\d*[^\W\d]\w*", token.text) is not None
