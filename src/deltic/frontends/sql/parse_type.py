"""Types as they are written: dataType of Spark's grammar. What a type means is for sql_types.py."""

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


class TypeParser(TokenCursor):
    """The rule for types."""

    def type_name(self) -> tree.TypeName:
        """A type, with its parameters and what stands in <…>."""
        if self.token.kind != WORD:
            raise self.missing()
        first = self.take()
        words = first.word
        if first.word == "INTERVAL":
            while self.token.kind == WORD and self.word.rstrip("S") in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "TO"):
                words += f" {self.take().word}"
        elif _MORE.get(first.word) and self.passes(*_MORE[first.word]):
            words += f" {' '.join(_MORE[first.word])}"
        nested = self.word in ("<", "<>")
        if nested:
            self._skip_nested()
        parameters = self.listed(self._parameter) if self.word == "(" else ()
        if self.passes("COLLATE"):
            words += f" COLLATE {self.identifier('a collation').text.upper()}"
        return tree.TypeName(words, parameters, nested, self.since(first.start))

    def _parameter(self) -> str:
        if self.token.kind not in (NUMBER, WORD):
            raise self.failure("a whole number")
        return self.take().text

    def _skip_nested(self) -> None:
        """What stands in <…>, whose signs the lexer may have read as one."""
        depth = 0
        while not self.ended:
            word = self.take().word
            depth += {"<": 1, ">": -1, ">>": -2, ">>>": -3}.get(word, 0)
            if depth <= 0:
                return
        raise self.failure(">")
