"""Windows: windowSpec, windowFrame and windowClause of Spark's grammar."""

from __future__ import annotations

from abc import ABC
from dataclasses import replace
from typing import Final

from deltic.errors import Span, Unsupported
from deltic.frontends.sql import tree
from deltic.frontends.sql.lexer import QUOTED, WORD
from deltic.frontends.sql.parse_order import OrderParser

_PARTITIONS: Final = (("PARTITION", "BY"), ("DISTRIBUTE", "BY"))
_ORDERS: Final = (("ORDER", "BY"), ("SORT", "BY"))
_UNITS: Final = ("ROWS", "RANGE")
_OVER: Final = "OVER (PARTITION BY x ORDER BY y), or OVER and the name of a window"
_BOUND: Final = "UNBOUNDED PRECEDING, n PRECEDING, CURRENT ROW, n FOLLOWING or UNBOUNDED FOLLOWING"


_PICKING: Final = ("any_value", "first", "first_value", "last", "last_value")
"""The aggregates that take IGNORE NULLS without OVER."""
_PICKING_INSIDE: Final = ("any_value", "first", "last")
"""Those that also take it before the closing parenthesis."""
_PICKING_IN_WINDOWS: Final = ("first_value", "last_value", "lag", "lead", "nth_value")


class WindowParser(OrderParser, ABC):
    """The rules for what follows OVER, and for the clause WINDOW."""

    def over(self, call: tree.FunctionCall, start: int) -> tree.FunctionCall | tree.OverCall:
        """[IGNORE | RESPECT NULLS] [OVER window], after a call."""
        nulls = self.passes_nulls()
        if not self.passes("OVER"):
            return call if nulls is None else _with_nulls(call, nulls, self.since(start))
        window = self.window_specification()
        return tree.OverCall(call, nulls == "IGNORE", window, self.since(start))

    def passes_nulls(self) -> str | None:
        """IGNORE or RESPECT, if that is next with NULLS."""
        for word in ("IGNORE", "RESPECT"):
            if self.sees(word, "NULLS"):
                self.position += 2
                return word
        return None

    def passes_inner_nulls(self, name: str) -> bool:
        """Reads IGNORE NULLS before the closing parenthesis and returns True if it is next: first(x IGNORE NULLS).

        Raises SyntaxFailure where OVER or FILTER follows, and after a function that takes it after the parenthesis alone.
        """
        if name.lower() in _PICKING_IN_WINDOWS and (self.sees("IGNORE", "NULLS", ")") or self.sees("RESPECT", "NULLS", ")")):
            raise self.failure(f"{name}(…) {self.word} NULLS OVER (…)")
        if name.lower() not in _PICKING_INSIDE or not self.sees("IGNORE", "NULLS", ")"):
            return False
        self.position += 2
        following = [token.word for token in self.tokens[self.position + 1 : self.position + 3]]
        if following in (["FILTER", "("], ["IGNORE", "NULLS"], ["RESPECT", "NULLS"]) or following[0] == "OVER":
            self.position += 1
            raise self.failure(f"{name}(x) [FILTER (WHERE condition)] IGNORE NULLS [OVER window]")
        return True

    def window_specification(self) -> tree.WindowText:
        """A name, or ( name ), or ( [PARTITION BY …] [ORDER BY …] [frame] )."""
        start = self.token.start
        if self.word != "(":
            if self.token.kind not in (WORD, QUOTED):
                raise self.failure(_OVER)
            return tree.WindowText(self.identifier(_OVER), (), (), None, self.since(start))
        self.expect("(")
        self.deeper()
        window = self._specified()
        self.depth -= 1
        if self.word != ")":
            raise self.failure("PARTITION BY, ORDER BY, ROWS, RANGE or )")
        self.expect(")")
        return tree.WindowText(window.name, window.partition, window.order, window.frame, self.since(start))

    def _specified(self) -> tree.WindowText:
        start = self.token.start
        if self.token.kind == QUOTED or (self.token.kind == WORD and self.tokens[self.position + 1].word == ")"):
            return tree.WindowText(self.identifier("the name of a window"), (), (), None, self.since(start))
        if self.passes("CLUSTER", "BY"):
            return tree.WindowText(None, self.several(self.expression), (), self._frame(), self.since(start))
        partition = self.several(self.expression) if any(self.passes(*words) for words in _PARTITIONS) else ()
        order = self.several(self.term) if any(self.passes(*words) for words in _ORDERS) else ()
        return tree.WindowText(None, partition, order, self._frame(), self.since(start))

    def _frame(self) -> tree.FrameText | None:
        if self.word not in _UNITS:
            return None
        start = self.token.start
        unit = self.take().word
        if not self.passes("BETWEEN"):
            bound = self._bound()
            return tree.FrameText(unit, bound, tree.BoundText("ROW", False, None, bound.span), self.since(start))
        first = self._bound()
        self.expect("AND")
        return tree.FrameText(unit, first, self._bound(), self.since(start))

    def _bound(self) -> tree.BoundText:
        start = self.token.start
        if self.passes("CURRENT", "ROW"):
            return tree.BoundText("ROW", False, None, self.since(start))
        unbounded = self.passes("UNBOUNDED")
        value = None if unbounded else self.bound_value()
        if self.word not in ("PRECEDING", "FOLLOWING"):
            raise self.failure("PRECEDING or FOLLOWING" if unbounded or value is not None else _BOUND)
        following = self.take().word == "FOLLOWING"
        return tree.BoundText("UNBOUNDED" if unbounded else "VALUE", following, value, self.since(start))

    def bound_value(self) -> tree.Expression:
        """The distance of a bound, which ends before PRECEDING or FOLLOWING."""
        return self.expression()

    def windows(self) -> tuple[tree.NamedWindow, ...]:
        """[WINDOW name AS window, …]."""
        return self.several(self._named_window) if self.passes("WINDOW") else ()

    def _named_window(self) -> tree.NamedWindow:
        start = self.token.start
        name = self.identifier("the name of a window")
        self.expect("AS")
        return tree.NamedWindow(name, self.window_specification(), self.since(start))


def _with_nulls(call: tree.FunctionCall, nulls: str, span: Span) -> tree.FunctionCall:
    """An aggregate with IGNORE or RESPECT NULLS: f(x) IGNORE NULLS is f(x, TRUE). Raises Unsupported."""
    if call.name not in _PICKING:
        remedy = "FILTER (WHERE x IS NOT NULL)" if nulls == "IGNORE" else "leave it out"
        raise Unsupported(f"{call.name} has no {nulls} NULLS without OVER", span=span, remedy=remedy)
    ignores = tree.KeywordExpression("TRUE" if nulls == "IGNORE" else "FALSE", span)
    return replace(call, arguments=(call.arguments[0], ignores)) if len(call.arguments) in (1, 2) else call
