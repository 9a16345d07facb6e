"""ALTER TABLE, by Spark's grammar (SqlBaseParser.g4), and ALTER MATERIALIZED VIEW … REPLAN."""

from __future__ import annotations

from typing import Final

from deltic.errors import Unsupported
from deltic.frontends.sql import tree
from deltic.frontends.sql.parse_query import QueryParser
from deltic.frontends.sql.refusals import ALTERED_COLUMN, refuse
from deltic.frontends.statements import Replan

FORMS: Final = "ADD COLUMN name type [NOT NULL] [DEFAULT value], DROP COLUMN name, or RENAME COLUMN name TO name"


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
        added: tuple[tree.AddedColumn, ...] = ()
        dropped: tuple[tree.Name, ...] = ()
        renamed, if_exists = None, False
        if self.sees("RENAME", "COLUMN"):
            self.position += 2
            old = self.identifier("the name of a column")
            self.expect("TO")
            renamed = old, self.identifier("the new name")
        elif self._columns_of("ADD"):
            added = self.listed(self._added) if self.word == "(" else self.several(self._added)
        elif self._columns_of("DROP"):
            if_exists = self.passes("IF", "EXISTS")
            dropped = self.listed(self._gone) if self.word == "(" else self.several(self._gone)
        else:
            raise Unsupported(f"ALTER TABLE … {self.word} is not supported", span=self.span, expected=FORMS)
        if not self.ended:
            raise self.failure("the end of the statement")
        return tree.TableAlteration(table, added, dropped, renamed, if_exists, self.since(start))

    def _columns_of(self, word: str) -> bool:
        return self.passes(word, "COLUMNS") or self.passes(word, "COLUMN")

    def _gone(self) -> tree.Name:
        return self.identifier("the name of a column")

    def _added(self) -> tree.AddedColumn:
        start = self.token.start
        name = self.identifier("the name of a column")
        if self.ended or self.word in (",", ")"):
            raise Unsupported("a column requires a type", span=name.span, expected=f"{name.text} BIGINT, for example")
        self.passes(":")
        type, required, default = self.type_name(), False, None
        while not self.ended and self.word not in (",", ")"):
            if self.passes("NOT", "NULL"):
                required = True
            elif self.passes("DEFAULT"):
                default = self.expression()
            elif self.passes("COMMENT"):
                self.string("the comment, as a string")
            else:
                refuse(self, ALTERED_COLUMN)
                raise self.failure("NOT NULL, DEFAULT value, COMMENT '…', or a comma")
        return tree.AddedColumn(tree.ColumnDefinition(name, type, required, False, self.since(start)), default)
