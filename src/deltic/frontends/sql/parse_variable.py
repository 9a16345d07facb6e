"""DECLARE VARIABLE, SET VAR and DROP VARIABLE, by Spark's grammar (SqlBaseParser.g4)."""

from __future__ import annotations

from typing import Final

from deltic.errors import Unsupported
from deltic.frontends.sql import tree
from deltic.frontends.sql.parse_query import QueryParser
from deltic.frontends.sql.variables import SCHEMAS, dropped, unqualified
from deltic.frontends.statements import DropVariable

DECLARE_FORM: Final = "DECLARE [OR REPLACE] [VARIABLE] name [type] [DEFAULT expression]"
SET_FORM: Final = "SET VAR name = expression"
_WORDS: Final = ("VARIABLE", "VAR")


class VariableParser(QueryParser):
    """The rules for statements about variables."""

    def declared_variable(self) -> tree.VariableDeclaration:
        """DECLARE."""
        start = self.token.start
        self.expect("DECLARE")
        or_replace = self.passes("OR", "REPLACE")
        if self.word in _WORDS and self.tokens[self.position + 1].word not in (",", "=", "DEFAULT", ""):
            self.position += 1
        names = self.several(self._variable)
        type = None if self.ended or self.word in ("DEFAULT", "=") else self.type_name()
        default = self.expression() if self.passes("DEFAULT") or self.passes("=") else None
        if not self.ended:
            raise self.failure(DECLARE_FORM)
        return tree.VariableDeclaration(names, type, default, or_replace, self.since(start))

    def assigned_variables(self) -> tree.VariableAssignments:
        """SET VAR."""
        start = self.token.start
        self.expect("SET")
        if not any(map(self.passes, _WORDS)):
            span = self.since(start)
            raise Unsupported("settings are not supported in SQL", span=span, remedy=f"{SET_FORM} sets a variable of the session")
        if self.word == "(":
            raise Unsupported("SET VAR (…) = (query) is not supported", span=self.span, remedy=f"{SET_FORM}, and args= for its value")
        return tree.VariableAssignments(self.several(self._value_of), self.since(start))

    def _value_of(self) -> tuple[tree.Name, tree.Expression | None]:
        name = self._variable()
        self.expect("=")
        return name, None if self.passes("DEFAULT") else self.expression()

    def dropped_variable(self) -> DropVariable:
        """DROP VARIABLE, after DROP."""
        self.take()
        if_exists = self.passes("IF", "EXISTS")
        return dropped(self._variable(), if_exists)

    def _variable(self) -> tree.Name:
        names = [self.identifier("the name of a variable")]
        while self.passes("."):
            names.append(self.identifier("a name after the dot"))
        first, *more = unqualified(tuple(names))
        if more:
            span = self.since(names[0].span.start)
            raise Unsupported("a variable has no schema of its own", span=span, remedy=f"leave it out, or write {'.'.join(SCHEMAS)}")
        return first
