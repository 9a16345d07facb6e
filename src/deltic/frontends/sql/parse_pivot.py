"""PIVOT and UNPIVOT after a relation: pivotClause and unpivotClause of Spark's grammar."""

from __future__ import annotations

from abc import ABC, abstractmethod

from deltic.errors import SyntaxFailure
from deltic.frontends.sql import tree
from deltic.frontends.sql.lexer import QUOTED, WORD
from deltic.frontends.sql.parse_expression import NO_OPERANDS
from deltic.frontends.sql.parse_grouping import GroupingParser


class PivotParser(GroupingParser, ABC):
    """Rules for the clauses that turn values into columns, and columns into rows."""

    @abstractmethod
    def table_alias(self) -> tree.TableAlias | None:
        """[AS] name."""

    def sees_pivot(self) -> bool:
        """Whether PIVOT or UNPIVOT is next, and not an alias of this name."""
        nulls = self.sees("UNPIVOT", "INCLUDE", "NULLS") or self.sees("UNPIVOT", "EXCLUDE", "NULLS")
        return nulls or self.sees("PIVOT", "(") or self.sees("UNPIVOT", "(")

    def pivoted(self, source: tree.Source, start: int) -> tree.PivotedTable | tree.UnpivotedTable:
        """The clause, over the relation before it."""
        if self.take().word == "PIVOT":
            return self._pivot(source, start)
        return self._unpivot(source, start)

    def _pivot(self, source: tree.Source, start: int) -> tree.PivotedTable:
        self.expect("(")
        self.deeper()
        aggregates = self.several(self._pivot_aggregate)
        self._passes_for()
        columns = self.listed(self._pivot_column) if self.word == "(" else (self._pivot_column(),)
        self.expect("IN")
        values = self.listed(self._pivot_value)
        self.depth -= 1
        self.expect(")")
        return tree.PivotedTable(source, aggregates, columns, values, self._pivot_alias(), self.since(start))

    def _pivot_aggregate(self) -> tree.SelectItem:
        start = self.token.start
        expression = self.expression()
        name = self._pivot_name()
        return tree.SelectItem(expression, () if name is None else (name,), self.since(start))

    def _passes_for(self) -> None:
        if not self.passes("FOR"):
            raise self.failure("FOR column IN (…)")

    def _pivot_column(self) -> tree.ColumnName:
        start = self.token.start
        names = [self.identifier("a column")]
        while self.passes("."):
            names.append(self.identifier("a name after the dot"))
        return tree.ColumnName(tuple(names), self.since(start))

    def _pivot_value(self) -> tree.PivotValue:
        start = self.token.start
        value = self.expression()
        return tree.PivotValue(value, self._pivot_name(), self.since(start))

    def _pivot_name(self) -> tree.Name | None:
        """[[AS] name]."""
        if self.passes("AS") or self.token.kind == QUOTED or (self.token.kind == WORD and self.word not in NO_OPERANDS | {"FOR"}):
            return self.identifier()
        return None

    def _unpivot(self, source: tree.Source, start: int) -> tree.UnpivotedTable:
        include = self.passes("INCLUDE", "NULLS")
        if not include:
            self.passes("EXCLUDE", "NULLS")
        self.expect("(")
        self.deeper()
        several = self.word == "("
        values = self.listed(self.identifier) if several else (self.identifier("the name of the column of values"),)
        self._passes_for()
        name = self.identifier("the name of the column of names")
        self.expect("IN")
        columns = self.listed(lambda: self._unpivoted(len(values), several))
        self.depth -= 1
        self.expect(")")
        return tree.UnpivotedTable(source, values, name, columns, include, self._pivot_alias(), self.since(start))

    def _unpivoted(self, count: int, several: bool) -> tree.UnpivotedColumns:
        start = self.token.start
        if several != (self.word == "("):
            raise self.failure("(column, …), as there are several columns of values" if several else "a column")
        columns = self.listed(self._pivot_column) if several else (self._pivot_column(),)
        if len(columns) != count:
            raise SyntaxFailure("the columns of UNPIVOT do not fit its values", span=self.since(start), expected=f"{count} columns")
        return tree.UnpivotedColumns(columns, self._pivot_name(), self.since(start))

    def _pivot_alias(self) -> tree.TableAlias | None:
        alias = self.table_alias()
        if alias is not None and alias.columns:
            expected = "a name without columns, as in Spark"
            raise SyntaxFailure("PIVOT and UNPIVOT have no list of columns", span=alias.span, expected=expected)
        return alias
