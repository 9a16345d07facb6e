"""Where in the user's text a node of the tree stands.

Offsets are characters of the whole script; `start` is inclusive and `end` exclusive in a Span, while sqlglot's tokens end inclusively.
A node's place is the hull of its own tokens and of its parts, widened until the parentheses in it are opened and closed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from deltic.errors import Span

_KEYWORDS: Final = {
    "SELECT": "Select Union Except Intersect",
    "EXISTS": "Exists",
    "LIMIT": "Limit",
    "OFFSET": "Offset",
    "FETCH": "Fetch",
    "SORT": "Sort",
    "CLUSTER": "Cluster",
    "QUALIFY": "Qualify",
    "TABLESAMPLE": "TableSample",
    "LATERAL": "Lateral",
    "ROLLUP": "Rollup",
    "CUBE": "Cube",
    "GROUPING": "GroupingSets",
    "DISTINCT": "Distinct",
    "USING": "FileFormatProperty",
    "LOCATION": "LocationProperty",
    "PARTITIONED": "PartitionedByProperty",
    "DEFAULT": "DefaultColumnConstraint",
    "CHECK": "CheckColumnConstraint",
    "FOREIGN": "ForeignKey",
    "REFERENCES": "Reference",
    "INSERT": "Insert",
    "UPDATE": "Update",
    "DELETE": "Delete",
    "MERGE": "Merge",
    "TRUNCATE": "TruncateTable",
    "ALTER": "Alter",
    "INTO": "Into",
}
LEADING: Final[dict[type[exp.Expr], str]] = {getattr(exp, kind): word for word, kinds in _KEYWORDS.items() for kind in kinds.split()}
"""The keyword that a node begins with, which sqlglot leaves out of its positions."""


@dataclass(frozen=True, slots=True)
class Places:
    """One statement's tokens in a script, and the places of its nodes."""

    text: str
    name: str
    tokens: Sequence[Token]

    @property
    def statement(self) -> Span:
        """The whole statement."""
        return self._span(self.tokens[0].start, self.tokens[-1].end)

    def of(self, node: exp.Expr) -> Span:
        """The place of a node; the statement's where nothing is known of it."""
        starts, ends = [], []
        for part in node.walk():
            if part.meta.get("start") is not None:
                starts.append(part.meta["start"])
                ends.append(part.meta["end"])
        leading = LEADING.get(type(node), "")
        if not starts:
            return self.keyword(leading) if leading else self.statement
        first, last = self._at(min(starts)), self._at(max([*ends, node.meta.get("until", 0)]))
        first, last = self._closed(first, last, isinstance(node, exp.Anonymous))
        first = self._led(first, leading)
        return self._span(self.tokens[first].start, self.tokens[last].end)

    def keyword(self, *words: str, after: int = 0) -> Span:
        """The first token at or behind offset `after` that is one of the words; the statement's place where there is none."""
        for token in self.tokens:
            if token.start >= after and _first_word(token) in words:
                return self.at(token)
        return self.statement

    def at(self, token: Token) -> Span:
        """The place of one token."""
        return self._span(token.start, token.end)

    def before(self, node: exp.Expr) -> Token | None:
        """The token before the node, opening parentheses left aside."""
        at = self._at(self.of(node).start) - 1
        while at >= 0 and self.tokens[at].token_type == TokenType.L_PAREN:
            at -= 1
        return self.tokens[at] if at >= 0 else None

    def behind(self, node: exp.Expr) -> Token | None:
        """The token behind the node."""
        at = self._at(self.of(node).end - 1) + 1
        return self.tokens[at] if at < len(self.tokens) else None

    def _at(self, offset: int) -> int:
        """Position of the token that holds the character at `offset`."""
        return max(0, bisect_right(self.tokens, offset, key=lambda token: token.start) - 1)

    def _closed(self, first: int, last: int, call: bool) -> tuple[int, int]:
        """The range of tokens widened to where every parenthesis in it is opened and closed, and those of a call's arguments."""
        if call and first == last and last + 1 < len(self.tokens) and self.tokens[last + 1].token_type == TokenType.L_PAREN:
            last += 1
        depth, lowest = 0, 0
        for token in self.tokens[first : last + 1]:
            depth += _depth(token)
            lowest = min(lowest, depth)
        depth -= lowest
        while lowest < 0 and first > 0:
            first -= 1
            lowest += _depth(self.tokens[first])
        while depth > 0 and last + 1 < len(self.tokens):
            last += 1
            depth += _depth(self.tokens[last])
        return first, last

    def _led(self, first: int, keyword: str) -> int:
        """The position of the nearest `keyword` at or before `first`; `first` where there is none."""
        found = (at for at in range(first, -1, -1) if _first_word(self.tokens[at]) == keyword)
        return next(found, first) if keyword else first

    def _span(self, start: int, end: int) -> Span:
        return Span(self.text, start, end + 1, self.name)


def _depth(token: Token) -> int:
    return (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)


def _first_word(token: Token) -> str:
    return token.text.upper().partition(" ")[0]
