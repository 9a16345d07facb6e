"""The clauses after a table's columns or a sink's view: USING, OPTIONS, LOCATION, COMMENT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltic.errors import QueryError, Span, SyntaxFailure
from deltic.frontends.sql.cursor import NO_NAMES, TokenCursor
from deltic.frontends.sql.lexer import NUMBER, QUOTED, STRING, WORD, Token
from deltic.frontends.sql.refusals import AFTER_TABLE, refuse
from deltic.options import Option, Options

OPENING: Final = ("USING", "OPTIONS", "LOCATION")
_VALUE: Final = "a string, a number, TRUE or FALSE"


class ClauseParser(TokenCursor):
    """The rules for these clauses."""

    def clauses(self, bare: Sequence[str] = ()) -> Options:
        """USING connector and the other clauses in any order, to the end of the statement.

        bare: options that are allowed without USING; then the connector is "".
        """
        if self.word == "OPTIONS" and (only := self._bare(bare)) is not None:
            return only
        if self.word in OPENING[1:]:
            raise SyntaxFailure(f"{self.word} without USING", span=self.span, expected="USING parquet, csv or json before it")
        self.expect("USING")
        connector, span = self._connector()
        options: dict[str, Option] = {}
        seen: set[str] = set()
        while not self.ended:
            word = self.word
            if word in seen or word == "USING":
                remedy = "put all options into one OPTIONS (…)" if word == "OPTIONS" else "leave one of them out"
                raise SyntaxFailure(f"duplicate {word}", span=self.span, remedy=remedy)
            seen.add(word)
            self._clause(options)
        return Options(connector, span, options)

    def _bare(self, names: Sequence[str]) -> Options | None:
        """OPTIONS without USING, if it has only options of these names."""
        start, span = self.position, self.span
        options: dict[str, Option] = {}
        self.expect("OPTIONS")
        try:
            self._options(options)
        except SyntaxFailure:
            self.position = start
            return None
        if self.ended and options.keys() <= {*names}:
            return Options("", span, options)
        self.position = start
        return None

    def _connector(self) -> tuple[str, Span]:
        """The connector's name, which may be dotted like a class name."""
        if not is_name(self.token) or self.word in OPENING:
            raise self.failure("a connector, such as parquet, csv or json")
        return self._dotted_text()

    def _clause(self, options: dict[str, Option]) -> None:
        refuse(self, AFTER_TABLE)
        keyword = self.span
        if self.passes("OPTIONS"):
            self._options(options)
        elif self.passes("LOCATION"):
            start = self.token.start
            value = self.string("the folder, as a string")
            _add(Option("LOCATION", value, keyword, self.since(start)), "path", options)
        elif self.passes("COMMENT"):
            self.string("the comment, as a string")
        else:
            raise self.failure("OPTIONS (…), LOCATION '…', COMMENT '…', or the end of the statement")

    def _options(self, options: dict[str, Option]) -> None:
        self.expect("(")
        if self.word == ")":
            raise self.failure("path '…'")
        while True:
            option = self._option()
            _add(option, option.key.lower(), options)
            if self.passes(")"):
                return
            if not self.passes(","):
                raise self.failure(f", or ) after the option {option.key}")

    def _option(self) -> Option:
        start = self.token.start
        if self.token.kind == STRING:
            key = self.take().text
        elif is_name(self.token):
            key, _ = self._dotted_text()
        else:
            raise self.failure("an option: key 'value'")
        key_span = self.since(start)
        self.passes("=")
        if self.word in (",", ")"):
            raise SyntaxFailure(f"the option {key} has no value", span=key_span, expected=f"{key} '…'")
        value, value_span = self._value(key)
        return Option(key, value, key_span, value_span)

    def _value(self, key: str) -> tuple[str, Span]:
        token = self.token
        if token.kind == STRING:
            self.position += 1
            return token.text, self.of(token)
        if token.kind != NUMBER and token.word not in ("TRUE", "FALSE"):
            raise self.failure(f"{_VALUE} for the option {key}")
        self.position += 1
        return token.text.lower(), self.of(token)

    def _dotted_text(self) -> tuple[str, Span]:
        """Names separated by dots."""
        start = self.token.start
        text = self.take().text
        while self.passes("."):
            if not is_name(self.token):
                raise self.failure("a name after the dot")
            text += f".{self.take().text}"
        return text, self.since(start)


def is_name(token: Token) -> bool:
    """Whether the token is a name."""
    return token.kind == QUOTED or (token.kind == WORD and token.word not in NO_NAMES)


def _add(option: Option, key: str, options: dict[str, Option]) -> None:
    if other := options.get(key):
        message = f"the option {option.key} is given twice"
        if {"LOCATION"} & {option.key, other.key}:
            message = "the folder is given twice, by LOCATION and by the option path"
        raise QueryError(message, span=option.key_span, remedy="leave one of them out")
    options[key] = option
