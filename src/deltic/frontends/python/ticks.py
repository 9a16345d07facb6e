"""What streams and indexed streams have in common: operators over ticks, and those that only look.

A stream is a sequence of Z-sets: s[t] is its content after tick t, and tick 0 the one in which a session takes the circuit. Every operator
is one of these contents; how it is kept exact by changes is the engine's business. Weights may be negative; an output may not have such.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

from deltic.expr.nodes import Literal
from deltic.frontends.python.functions import inspector, taking
from deltic.plan.nodes import FlatMap, Inspect, OverTicks, Plan, Union
from deltic.schema import BIGINT


class OverTime(ABC):
    """The operators that give a stream of the same kind."""

    __slots__ = ()
    plan: Plan

    @abstractmethod
    def _over(self, plan: Plan) -> Self:
        """The same with another plan of the same columns."""

    def delay(self) -> Self:
        """z⁻¹: out[t] = s[t - 1], and nothing at tick 0.

        Within a recursion, of what reads its relation: what that was in the iteration before. Of anything else the clock is that of ticks.
        """
        return self._over(OverTicks(self.plan, "delay"))

    def delay_trace(self) -> Self:
        """delay, of an integral: all that came before this tick."""
        return self.delay()

    def integrate(self) -> Self:
        """I: out[t] = s[0] + … + s[t]. Costs all of s[t] in each tick: of a stream of changes, the change."""
        return self._over(OverTicks(self.plan, "integrate"))

    def differentiate(self) -> Self:
        """D: out[t] = s[t] - s[t - 1]: what the tick changed."""
        return self._over(Union((self.plan, negated(self.delay().plan))))

    def delta0(self) -> Self:
        """δ0: out[0] = s[0], and nothing later."""
        return self._over(OverTicks(self.plan, "delta0"))

    def negate(self) -> Self:
        """The rows with the other sign."""
        return self._over(negated(self.plan))

    def inspect(self, callback: Callable[..., Any]) -> Self:
        """The stream itself. The callback sees each tick's change: a tuple of (row, weight), in order.

        It runs where the rows are, in each shard that has any: here, or on Spark in its workers, whose output is in their log. A tick that
        fails later, or a task that Spark repeats, has been seen nevertheless; what fills a new view is not. Subscribe to a view for what
        must happen once.
        """
        return self._over(Inspect(self.plan, inspector(taking(callback, "change"), self.plan.schema.names)))


def negated(plan: Plan) -> Plan:
    """Every weight with the other sign."""
    return FlatMap(plan, "repeat_row", (Literal(-1, BIGINT),), ())
