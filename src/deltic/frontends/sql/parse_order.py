"""ORDER BY, of a query and of WITHIN GROUP, and the clauses that stand for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from deltic.errors import SyntaxFailure
from deltic.frontends.sql import tree
from deltic.frontends.sql.parse_type import TypeParser

ORGANIZING: Final = ("ORDER", "SORT", "DISTRIBUTE", "CLUSTER")
"""The words before BY that begin the order of a query."""


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

    def organization(self) -> tuple[tree.OrderTerm, ...]:
        """[ORDER BY …, SORT BY …, CLUSTER BY …, or DISTRIBUTE BY … [SORT BY …]], what Spark's grammar calls queryOrganization.

        The rows are one partition here, so each of them is an order.
        """
        word = self.word if self.tokens[self.position + 1].word == "BY" else ""
        if word not in ORGANIZING:
            return ()
        if word == "ORDER":
            terms = self.order_by()
        else:
            self.position += 2
            terms = tuple(self.several(self.term if word == "SORT" else self._key))
            if word == "DISTRIBUTE" and self.passes("SORT", "BY"):
                terms = (*self.several(self.term), *terms)
        if self.word in ORGANIZING and self.tokens[self.position + 1].word == "BY":
            expected = "one of them, or DISTRIBUTE BY … SORT BY …"
            raise SyntaxFailure(f"{self.word} BY after {word} BY", span=self.span, expected=expected)
        return terms

    def _key(self) -> tree.OrderTerm:
        return tree.OrderTerm(self.expression(), False, True)

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
