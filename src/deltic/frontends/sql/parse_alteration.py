"""ALTER TABLE, by Spark's grammar (SqlBaseParser.g4), and ALTER MATERIALIZED VIEW … REPLAN."""

from __future__ import annotations

from typing import Final

from deltic.errors import SyntaxFailure, Unsupported
from deltic.frontends.sql import tree
from deltic.frontends.sql.parse_query import QueryParser
from deltic.frontends.sql.refusals import ALTERED_COLUMN, refuse
from deltic.frontends.statements import Replan

FORMS: Final = (
    "ADD COLUMN name type [NOT NULL] [DEFAULT expression], DROP COLUMN name, RENAME COLUMN name TO name, "
    "ALTER COLUMN name SET DEFAULT expression, or ALTER COLUMN name DROP DEFAULT"
)
_IF_NOT_EXISTS: Final = "leave it out: after CREATE TABLE in a script, ADD COLUMN alters the table of the state once"
_NEW_TABLE: Final = "make a new table with it, or ADD COLUMN and DROP COLUMN"


class AlterationParser(QueryParser):
    """The rules for statements that alter a definition."""

    def alteration(self) -> tree.TableAlteration | Replan:
        """One of them."""
        start = self.token.start
        self.expect("ALTER")
        if self.passes("TABLE"):
            return self._altered_table(start)
        self.passes("MATERIALIZED")
        self.expect("VIEW")
        name = self.simple_name("view")
        if self.word != "REPLAN":
            raise Unsupported(f"ALTER VIEW … {self.word} is not supported", span=self.span, expected="REPLAN", remedy="CREATE OR REPLACE")
        self.take()
        return Replan(name.text, name.span)

    def _altered_table(self, start: int) -> tree.TableAlteration:
        table = self.simple_name("table")
        added: tuple[tree.ColumnDefinition, ...] = ()
        dropped: tuple[tree.Name, ...] = ()
        defaults: tuple[tuple[tree.Name, tree.Expression | None], ...] = ()
        renamed, if_exists = None, False
        if self.sees("RENAME", "COLUMN"):
            self.position += 2
            old = self.identifier("the name of a column")
            self.expect("TO")
            renamed = old, self.identifier("the new name")
        elif self._columns_of("ADD"):
            if self.sees("IF", "NOT", "EXISTS"):
                raise Unsupported("ADD COLUMN IF NOT EXISTS is not supported", span=self.span, remedy=_IF_NOT_EXISTS)
            added = self.listed(self._added) if self.word == "(" else self.several(self._added)
        elif self._columns_of("DROP"):
            if_exists = self.passes("IF", "EXISTS")
            dropped = self.listed(self._gone) if self.word == "(" else self.several(self._gone)
        elif self.passes("ALTER") or self.passes("CHANGE"):
            self.passes("COLUMN")
            defaults = self.several(self._changed_default)
        else:
            raise Unsupported(f"ALTER TABLE … {self.word} is not supported", span=self.span, expected=FORMS)
        if not self.ended:
            raise self.failure("the end of the statement")
        return tree.TableAlteration(table, added, dropped, renamed, if_exists, self.since(start), defaults)

    def _columns_of(self, word: str) -> bool:
        return self.passes(word, "COLUMNS") or self.passes(word, "COLUMN")

    def _gone(self) -> tree.Name:
        return self.identifier("the name of a column")

    def default(self, before: tree.Expression | None) -> tree.Expression:
        """DEFAULT expression, of a column. before: the column's DEFAULT, if it has one already."""
        start = self.token.start
        self.expect("DEFAULT")
        self.of_column = True
        value = self.expression()
        self.of_column = False
        if before is not None:
            raise SyntaxFailure("duplicate DEFAULT", span=self.since(start), remedy="leave one of them out")
        return value

    def _changed_default(self) -> tuple[tree.Name, tree.Expression | None]:
        """column SET DEFAULT expression, or column DROP DEFAULT."""
        name = self.identifier("the name of a column")
        if self.passes("DROP", "DEFAULT"):
            return name, None
        if self.sees("SET", "DEFAULT"):
            self.take()
            return name, self.default(None)
        forms = "SET DEFAULT expression, or DROP DEFAULT"
        if self.ended:
            raise self.failure(forms)
        what = f"{self.word} NOT NULL" if self.sees("SET", "NOT") or self.sees("DROP", "NOT") else self.word
        raise Unsupported(f"ALTER COLUMN … {what} is not supported", span=self.span, expected=forms, remedy=_NEW_TABLE)

    def _added(self) -> tree.ColumnDefinition:
        start = self.token.start
        name = self.identifier("the name of a column")
        if self.ended or self.word in (",", ")"):
            raise Unsupported("a column requires a type", span=name.span, expected=f"{name.text} BIGINT, for example")
        self.passes(":")
        type, required = self.type_name(), False
        default = comment = None
        while not self.ended and self.word not in (",", ")"):
            if self.passes("NOT", "NULL"):
                required = True
            elif self.word == "DEFAULT":
                default = self.default(default)
            elif self.passes("COMMENT"):
                comment = self.string("the comment, as a string")
            else:
                refuse(self, ALTERED_COLUMN)
                raise self.failure("NOT NULL, DEFAULT expression, COMMENT '…', or a comma")
        return tree.ColumnDefinition(name, type, required, False, self.since(start), None, comment, default)
