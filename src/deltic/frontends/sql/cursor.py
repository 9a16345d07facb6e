"""The tokens of a statement, read from left to right: the primitives of every grammar rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from deltic.errors import Span, SyntaxFailure, Unsupported
from deltic.frontends.sql.arguments import Arguments
from deltic.frontends.sql.lexer import END, QUOTED, STRING, WORD, Token
from deltic.frontends.sql.tree import Name

DEPTH: Final = 450
"""The nesting limit of parentheses, calls, CASE and subqueries: passes over trees are recursive, and Python's stack is limited."""

LOOKAHEAD: Final = 4
"""The number of END tokens after the last one: rules may look this far ahead."""

_FIRST_WORDS: Final = ("CREATE", "DROP", "DECLARE")
_SECOND_WORDS: Final = ("TABLE", "VIEW", "SINK", "OR", "MATERIALIZED", "TEMPORARY", "TEMP", "RECURSIVE")
Item = TypeVar("Item")


class TokenCursor:
    """The tokens of one statement. position: the index of the next one."""

    def __init__(self, text: str, name: str, tokens: Sequence[Token], arguments: Arguments | None = None) -> None:
        self.text, self.name, self.position, self.depth = text, name, 0, 0
        self.arguments = Arguments() if arguments is None else arguments
        last = tokens[-1].end
        self.tokens = [*tokens, *[Token(END, "", "", last, last)] * LOOKAHEAD]
        self.count = len(tokens)

    @property
    def token(self) -> Token:
        """The next token; one of kind END past the last."""
        return self.tokens[self.position]

    @property
    def word(self) -> str:
        """The next token's word, which the grammar compares."""
        return self.tokens[self.position].word

    @property
    def ended(self) -> bool:
        """Whether all tokens have been read."""
        return self.position == self.count

    @property
    def statement(self) -> Span:
        """The whole statement."""
        return Span(self.text, self.tokens[0].start, self.tokens[self.count - 1].end, self.name)

    @property
    def span(self) -> Span:
        """The next token's place; at the end, that of the last token."""
        return self.of(self.tokens[min(self.position, self.count - 1)])

    def of(self, token: Token) -> Span:
        """The place of one token."""
        return Span(self.text, token.start, token.end, self.name)

    def since(self, start: int) -> Span:
        """From the character `start` to the end of what has been read."""
        return Span(self.text, start, self.tokens[self.position - 1].end, self.name)

    def take(self) -> Token:
        """Reads one token."""
        self.position += 1
        return self.tokens[self.position - 1]

    def sees(self, *words: str) -> bool:
        """Whether the next tokens are these words."""
        return all(token.word == word for token, word in zip(self.tokens[self.position : self.position + len(words)], words, strict=False))

    def passes(self, *words: str) -> bool:
        """Reads the words and returns True if they are next."""
        if self.tokens[self.position].word != words[0] or (len(words) > 1 and not self.sees(*words)):
            return False
        self.position += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Reads the words. Raises SyntaxFailure if they are not next."""
        for word in words:
            if not self.passes(word):
                raise self.failure(word)

    def failure(self, expected: str | None = None) -> SyntaxFailure:
        """The error for an unexpected token."""
        previous = self.tokens[self.position - 1] if self.position else None
        if previous is not None and previous.word in _FIRST_WORDS and self.word in _SECOND_WORDS and self.position > 1:
            return self.unseparated(previous)
        if self.position and self.word in _FIRST_WORDS and self.tokens[self.position + 1].word in _SECOND_WORDS:
            return self.unseparated(self.token)
        if self.ended:
            last = self.tokens[self.count - 1]
            written = self.text[last.start : last.end]
            return SyntaxFailure(f"unexpected end of the statement after {written!r}", span=self.span, expected=expected)
        return SyntaxFailure(f"syntax error at {self._written(self.token)!r}", span=self.span, expected=expected)

    def missing(self) -> SyntaxFailure:
        """The error for a missing operand or list."""
        previous = self.tokens[self.position - 1]
        end = "at the end" if self.ended else f"before {self._written(self.token)!r}"
        return SyntaxFailure(f"something is missing after {self._written(previous)!r}, {end}", span=self.of(previous))

    def _written(self, token: Token) -> str:
        written = self.text[token.start : token.end]
        return written if len(written) <= 40 else f"{written[:37]}…"

    def unseparated(self, first: Token) -> SyntaxFailure:
        """The error for a statement that begins before the last one has ended."""
        message = f"another statement begins at {first.text}, without a semicolon before it"
        return SyntaxFailure(message, span=self.of(first), expected="; between two statements")

    def string(self, expected: str) -> str:
        """Reads a string literal, or adjacent ones, which are concatenated."""
        if self.token.kind != STRING:
            raise self.failure(expected)
        text = self.take().text
        while self.token.kind == STRING:
            text += self.take().text
        return text

    def identifier(self, expected: str = "a name", reserved: frozenset[str] = frozenset()) -> Name:
        """Reads one name."""
        token = self.token
        if token.kind == QUOTED or (token.kind == WORD and token.word not in reserved and not token.word.isdigit()):
            self.position += 1
            return Name(token.text, self.of(token))
        if token.kind in (STRING, "number"):
            remedy = "put it in `back quotes`"
            if expected == "a table" and self.token.kind == STRING:
                remedy += "; session.load(table, path) reads a file"
            raise SyntaxFailure("invalid name", span=self.span, expected=expected, remedy=remedy)
        raise self.failure(expected)

    def simple_name(self, what: str) -> Name:
        """Reads the name of a table, view, sink or function; of a table or view, it may have a schema before it."""
        names = [self.identifier(f"the name of a {what}, in `back quotes` where it has other characters", NO_NAMES)]
        while self.passes("."):
            names.append(self.identifier("a name after the dot"))
        return self.in_schema(names, what)

    def in_schema(self, names: Sequence[Name], what: str) -> Name:
        """`name`, or `schema.name`, as one name: the schemas of a session are one namespace, and `default.name` is `name`."""
        if len(names) == 1:
            return names[0]
        span = self.since(names[0].span.start)
        if len(names) > 2 or what not in ("table", "view", "stream"):
            remedy = f"leave {names[0].text!r} out: a session is one database"
            raise Unsupported(f"{what} names with a database part are not supported", span=span, remedy=remedy)
        schema, name = names
        return Name(name.text if schema.text.lower() == DEFAULT_SCHEMA else f"{schema.text}.{name.text}", span)

    def listed(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        """( item, … ), at least one."""
        self.expect("(")
        items = self.several(item)
        self.expect(")")
        return items

    def several(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        """item, …, at least one."""
        items = [item()]
        while self.passes(","):
            items.append(item())
        return tuple(items)

    def deeper(self) -> None:
        """Enters one more level of nesting. Raises SyntaxFailure at the limit."""
        self.depth += 1
        if self.depth > DEPTH:
            remedy = "split it into views, or into CTEs"
            raise SyntaxFailure("the statement is nested too deeply", span=self.span, expected=f"at most {DEPTH} levels", remedy=remedy)


NO_NAMES: Final = frozenset({"FROM", "USING", "TRUE", "FALSE", "NULL", "AS", "SELECT"})
DEFAULT_SCHEMA: Final = "default"
