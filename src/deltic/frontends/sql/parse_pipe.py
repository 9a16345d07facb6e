"""Pipe syntax: operatorPipeRightSide of Spark's grammar (SqlBaseParser.g4)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Final

from deltic.errors import SyntaxFailure, Unsupported
from deltic.frontends.sql import tree
from deltic.frontends.sql.parse_pivot import PivotParser
from deltic.frontends.sql.refusals import AFTER_SOURCE, refuse

PIPE: Final = "|>"
_STEPS: Final = (
    "SELECT, WHERE, EXTEND, SET, DROP, AS, AGGREGATE, PIVOT, UNPIVOT, ORDER BY, LIMIT, OFFSET, a JOIN, UNION, EXCEPT or INTERSECT"
)
_JOINS: Final = frozenset(("INNER", "CROSS", "LEFT", "RIGHT", "FULL", "NATURAL", "SEMI", "ANTI", "JOIN", "ASOF"))


class PipeParser(PivotParser, ABC):
    """The rules for steps after |>."""

    @abstractmethod
    def _item(self) -> tree.SelectItem: ...

    @abstractmethod
    def _select(self, source: tree.Source | None = None) -> tree.SelectQuery: ...

    @abstractmethod
    def _join(self) -> tree.JoinClause | None: ...

    @abstractmethod
    def _query_term(self) -> tree.Query: ...

    @abstractmethod
    def _limit(self) -> tree.LimitClause | None: ...

    def _piped(self, first: tree.Query, start: int) -> tree.Query:
        """The query, with the steps that follow it."""
        steps = []
        while self.word == PIPE:
            pipe = self.take()
            step = self._step()
            steps.append(replace(step, span=self.since(pipe.start)))
        return tree.PipeQuery(first, tuple(steps), self.since(start)) if steps else first

    def _step(self) -> tree.PipeStep:
        span = self.span
        refuse(self, AFTER_SOURCE)
        match self.word:
            case "SELECT":
                return self._selects()
            case "WHERE":
                self.position += 1
                return tree.PipeWhere(self.expression(), span)
            case "EXTEND":
                self.position += 1
                return tree.PipeExtend(self.several(self._item), span)
            case "SET":
                self.position += 1
                return tree.PipeSet(self.several(self._assignment), span)
            case "DROP":
                self.position += 1
                return tree.PipeDrop(self.several(self._dropped), span)
            case "AS":
                self.position += 1
                return tree.PipeAlias(self.identifier(), span)
            case "AGGREGATE":
                self.position += 1
                return self._aggregates()
            case "ORDER" | "SORT" | "DISTRIBUTE" | "CLUSTER" if order := self.organization():
                return tree.PipeOrder(order, span)
            case "UNION" | "EXCEPT" | "MINUS" | "INTERSECT":
                return self._combines()
            case "PIVOT" | "UNPIVOT" if self.sees_pivot():
                return tree.PipePivot(self.pivoted(tree.PipedRows(None, span), self.token.start), span)
            case _:
                return self._other()

    def _other(self) -> tree.PipeStep:
        span = self.span
        if (limit := self._limit()) is not None:
            return tree.PipeLimit(limit, span)
        if self.word in _JOINS and (join := self._join()) is not None:
            return tree.PipeJoin(join, span)
        raise self.failure(_STEPS)

    def _selects(self) -> tree.PipeSelect:
        start = self.token.start
        query = self._select()
        if query.source is not None or query.laterals or query.where is not None or query.having is not None:
            raise SyntaxFailure("SELECT after |> has no clauses of its own", span=query.span, expected="|> SELECT …, then |> WHERE …")
        return tree.PipeSelect(query, self.since(start))

    def _assignment(self) -> tuple[tree.Name, tree.Expression]:
        name = self.identifier("the name of a column")
        if self.word == ".":
            raise Unsupported("SET takes names of columns", span=self.since(name.span.start), expected="SET column = expression")
        self.expect("=")
        return name, self.expression()

    def _dropped(self) -> tree.ColumnName:
        names = [self.identifier("the name of a column")]
        while self.passes("."):
            names.append(self.identifier("a name after the dot"))
        return tree.ColumnName(tuple(names), self.since(names[0].span.start))

    def _aggregates(self) -> tree.PipeAggregate:
        span = self.span
        items = () if self.sees("GROUP", "BY") else self.several(self._item)
        keys = self.several(self._item) if self.passes("GROUP", "BY") else ()
        return tree.PipeAggregate(items, keys, span)

    def _combines(self) -> tree.PipeCombine:
        span, word = self.span, self.take().word
        distinct = not self.passes("ALL")
        if distinct:
            self.passes("DISTINCT")
        by_name = word == "UNION" and self.passes("BY", "NAME")
        return tree.PipeCombine("EXCEPT" if word == "MINUS" else word, distinct, by_name, self._query_term(), span)
