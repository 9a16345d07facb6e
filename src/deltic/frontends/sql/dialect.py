"""Spark's dialect of sqlglot, changed so that a tree says what was written and where.

Function calls stay calls by the name that was written, with their arguments as written (sqlglot would turn many into other
functions); only forms with a syntax of their own have nodes. CAST and TRY_CAST are told apart. In a
node's `meta` stand `start` and `end`, offsets of a token of its own (`end` inclusive), unless its parts have all its tokens, and
`until`, the last character that had been read when it was made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

Parse = Callable[..., Any]

CALL = "call"
"""Key in `meta` of a node whose parts are its own, whatever stands around it: CAST(…), and the sum that INTERVAL 1 DAY 2 HOURS is."""

SYNTAX_OF_THEIR_OWN = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION")


def _from_keyword(parse: Parse) -> Parse:
    """The node starts at the keyword or operator that has just been read."""

    def placed(self: Any, *arguments: Any) -> Any:
        token = self._prev
        node = parse(self, *arguments)
        return node.update_positions(token) if isinstance(node, exp.Expr) and token.token_type != TokenType.PLUS else node

    return placed


def _from_name(parse: Parse) -> Parse:
    """The node starts at the function's name, one token before the opening parenthesis that has just been read."""

    def placed(self: Any) -> Any:
        token = self._tokens[self._index - 2]
        node = parse(self)
        if isinstance(node, exp.Expr):
            node.update_positions(token)
            node.meta[CALL] = True
        return node

    return placed


def _unary_plus(self: Any) -> exp.Expr:
    """sqlglot drops a unary plus; here it stays, since it has a type."""
    token = self._prev
    operand = self._parse_unary()
    if operand is None:
        self.raise_error("Expected an operand", token)
    return exp.Anonymous(this="positive", expressions=[operand]).update_positions(token)


class DelticParser(SparkParser):
    """See the module."""

    STRICT_CAST = True
    FUNCTIONS: ClassVar[dict[str, Parse]] = {}
    FUNCTION_PARSERS = {name: _from_name(SparkParser.FUNCTION_PARSERS[name]) for name in SYNTAX_OF_THEIR_OWN}  # noqa: RUF012
    NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
        name: _from_keyword(parse) for name, parse in SparkParser.NO_PAREN_FUNCTION_PARSERS.items() if name in ("CASE", "IF")
    }
    UNARY_PARSERS = {  # noqa: RUF012
        **{token: _from_keyword(parse) for token, parse in SparkParser.UNARY_PARSERS.items()},
        TokenType.PLUS: _unary_plus,
    }

    def _parse_hint(self) -> Any:
        """As it is written; hints.py reads it."""
        return exp.Hint(expressions=[self._prev.text]).update_positions(self._prev) if self._match(TokenType.HINT) else None

    def _parse_types(self, *arguments: Any, **options: Any) -> Any:
        token = self._curr
        node = super()._parse_types(*arguments, **options)
        if isinstance(node, exp.DataType) and token and "start" not in node.meta:
            node.update_positions(token)
            node.meta["until"] = self._prev.end
        return node

    def _parse_interval(self, *arguments: Any, **options: Any) -> Any:
        token = self._curr
        node = super()._parse_interval(*arguments, **options)
        if isinstance(node, exp.Add):  # INTERVAL 1 DAY 2 HOURS
            node.meta[CALL] = True
        first = node.this if isinstance(node, exp.Add) else node
        if isinstance(first, exp.Expr) and token:
            first.update_positions(token)
        return node

    def build_cast(self, strict: bool, **parts: Any) -> Any:
        written = parts.get("this")
        node = super().build_cast(strict, **parts)
        return node.update_positions(written) if written is not None else node

    def expression(self, instance: Any, token: Token | None = None, comments: list[str] | None = None) -> Any:
        node = super().expression(instance, token, comments)
        read = self._prev
        if read:
            node.meta.setdefault("until", read.end)
            if not any(True for _ in node.iter_expressions()):
                node.meta.setdefault("start", read.start)
                node.meta.setdefault("end", read.end)
        return node


class DelticDialect(Spark):
    """Spark's dialect, parsed by DelticParser."""

    Parser = DelticParser
