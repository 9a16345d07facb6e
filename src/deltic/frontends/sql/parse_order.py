"""ORDER BY, of a query and of WITHIN GROUP."""

from __future__ import annotations

from abc import ABC, abstractmethod

from deltic.errors import SyntaxFailure
from deltic.frontends.sql import tree
from deltic.frontends.sql.parse_type import TypeParser


class OrderParser(TypeParser, ABC):
    """The rules for the terms of an order."""

    @abstractmethod
    def expression(self) -> tree.Expression:
        """An expression."""

    def within_group(self) -> tuple[tree.OrderTerm, ...]:
        """[WITHIN GROUP (ORDER BY term, …)], after the arguments of an aggregate."""
        if not self.passes("WITHIN", "GROUP"):
            return ()
        self.expect("(")
        if not self.sees("ORDER", "BY"):
            raise self.failure("WITHIN GROUP (ORDER BY …)")
        terms = self.order_by()
        self.expect(")")
        return terms

    def order_by(self) -> tuple[tree.OrderTerm, ...]:
        """[ORDER BY term, …]."""
        if self.sees("SORT", "BY") or not self.sees("ORDER", "BY"):
            return ()
        self.position += 2
        terms = self.several(self.term)
        if self.word in ("FROM", "WHERE", "HAVING") or self.sees("GROUP", "BY"):
            raise self.out_of_order()
        return terms

    def term(self) -> tree.OrderTerm:
        """expression [ASC | DESC] [NULLS FIRST | LAST]."""
        if self.ended:
            raise SyntaxFailure("something is missing after 'ORDER BY', at the end", span=self.of(self.tokens[self.position - 1]))
        expression = self.expression()
        descending = not self.passes("ASC") and self.passes("DESC")
        nulls_first = not descending
        if self.passes("NULLS"):
            if self.word not in ("FIRST", "LAST"):
                raise self.failure("FIRST or LAST")
            nulls_first = self.take().word == "FIRST"
        return tree.OrderTerm(expression, descending, nulls_first)

    def out_of_order(self) -> SyntaxFailure:
        """The error for a clause after one that follows it in the grammar."""
        expected = "FROM, WHERE, GROUP BY, HAVING, QUALIFY, WINDOW, ORDER BY, LIMIT"
        return SyntaxFailure("the clauses are out of order", span=self.span, expected=expected)
