"""The syntax of types: dataType of Spark's grammar. sql_types.py resolves them."""

from __future__ import annotations

from typing import Final

from deltic.frontends.sql import tree
from deltic.frontends.sql.cursor import TokenCursor
from deltic.frontends.sql.lexer import NUMBER, WORD

_MORE: Final = {
    "DOUBLE": ("PRECISION",),
    "TIMESTAMP": ("WITHOUT", "TIME", "ZONE"),
    "TIME": ("WITHOUT", "TIME", "ZONE"),
}
_OF_TYPES: Final = ("ARRAY", "MAP", "STRUCT")
_CLOSING: Final = (">", ">>", ">>>")


class TypeParser(TokenCursor):
    """The rule for types."""

    def type_name(self) -> tree.TypeName:
        """A type, with its parameters and the contents of <…>."""
        if self.token.kind != WORD:
            raise self.missing()
        first = self.take()
        words = first.word
        if first.word == "INTERVAL":
            while self.token.kind == WORD and self.word in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "TO"):
                words += f" {self.take().word}"
        parameters = self.listed(self._parameter) if first.word == "TIME" and self.word == "(" else ()
        if _MORE.get(first.word) and self.passes(*_MORE[first.word]):
            words += f" {' '.join(_MORE[first.word])}"
        # After other types < and <> are comparisons: x::INT < y.
        parts = self._parts(first.word == "STRUCT") if first.word in _OF_TYPES and self.word in ("<", "<>") else None
        parameters = parameters or (self.listed(self._parameter) if self.word == "(" else ())
        collation = self.collation() if self.passes("COLLATE") else None
        return tree.TypeName(words, parameters, parts, self.since(first.start), collation)

    def collation(self) -> tree.Name:
        """The name of a collation, after COLLATE."""
        start = self.token.start
        words = [self.identifier("a collation").text]
        while self.passes("."):
            words.append(self.identifier("a collation").text)
        return tree.Name(".".join(words), self.since(start))

    def _parameter(self) -> str:
        if self.token.kind not in (NUMBER, WORD):
            raise self.failure("a whole number")
        return self.take().text

    def _parts(self, named: bool) -> tuple[tree.TypePart, ...]:
        """< type, … >, or < name [:] type [NOT NULL] [COMMENT '…'], … >."""
        if self.passes("<>"):
            return ()
        self.expect("<")
        self.deeper()
        parts: list[tree.TypePart] = []
        while not (parts or self.word in _CLOSING) or (parts and self.passes(",")):
            parts.append(self._part(named))
        self.depth -= 1
        self._close()
        return tuple(parts)

    def _part(self, named: bool) -> tree.TypePart:
        start = self.token.start
        name = self.identifier("the name of a field") if named else None
        if name is not None:
            self.passes(":")
        type = self.type_name()
        required = named and self.passes("NOT", "NULL")
        comment = self.string("a comment") if named and self.passes("COMMENT") else None
        return tree.TypePart(name, type, required, self.since(start), comment)

    def _close(self) -> None:
        """One >; the lexer may have read those of several types as one sign, of which the rest stays."""
        token = self.token
        if token.word not in _CLOSING:
            raise self.failure(">")
        if token.word == ">":
            self.position += 1
        else:
            rest = token._replace(text=token.text[1:], word=token.word[1:], start=token.start + 1)
            self.tokens = [*self.tokens[: self.position], rest, *self.tokens[self.position + 1 :]]
