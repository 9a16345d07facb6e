"""Operators over ticks, and `inspect`, which streams and indexed streams share.

A stream is a sequence of Z-sets: s[t] is its content after tick t; tick 0 is the one in which a session installs the circuit. Operators are
defined on contents; the engine keeps them exact from changes. Weights may be negative, except in an output.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

from deltic.errors import CircuitError
from deltic.expr.nodes import Literal
from deltic.frontends.python.functions import checked_function, inspector
from deltic.frontends.python.windows import windowed
from deltic.plan.nodes import MOST_BATCHED, FlatMap, Inspect, OverTicks, Plan, Union
from deltic.schema import BIGINT


class OverTime(ABC):
    """The operators whose result is a stream of the same kind."""

    __slots__ = ()
    plan: Plan

    @abstractmethod
    def _over(self, plan: Plan) -> Self:
        """The same kind of stream with another plan of the same columns."""

    def delay(self) -> Self:
        """z⁻¹: out[t] = s[t - 1]; empty at tick 0.

        In a recursion, a stream that depends on the recursive relation is delayed by one iteration; any other stream, by one tick.
        """
        return self._over(OverTicks(self.plan, "delay"))

    def delay_trace(self) -> Self:
        """delay of an integral: the sum before this tick."""
        return self.delay()

    def integrate(self) -> Self:
        """I: out[t] = s[0] + … + s[t]. Cost per tick: the size of s[t]; for a stream of changes, the change."""
        return self._over(OverTicks(self.plan, "integrate"))

    def differentiate(self) -> Self:
        """D: out[t] = s[t] - s[t - 1], the change of the tick."""
        return self._over(Union((self.plan, negated(self.delay().plan))))

    def current(self) -> Self:
        """A stream as a relation: it has the stream's rows of this tick, and loses them in the next."""
        return self._over(OverTicks(self.plan, "current"))

    def batched(self, size: int) -> Self:
        """A stream: the rows of several ticks at once, in ticks whose epoch is a multiple of `size`; empty in others.

        The epoch is the number of a transaction, `session.epoch`; a definition has one, too, and gives no rows. Rows that wait are state.
        Cost per tick: its rows, and those that it gives.
        """
        return self._over(batched(self.plan, size))

    def when_closed(self, window: str) -> Self:
        """A stream of the rows of each window, as a whole, in the tick that closes it.

        window: an SQL expression: a column with a lateness, its date, trunc(), date_trunc() or time_bucket(), or a whole number div a
        constant. A window closes when the watermark reaches its end. Cost: the rows of the tick and of the windows that close; the rows of
        open windows are kept.
        """
        return self._over(windowed(self.plan, window, "closed"))

    def while_open(self, window: str) -> Self:
        """A relation of the rows of windows that are open: it loses those of a window when that closes; see `when_closed`."""
        return self._over(windowed(self.plan, window, "open"))

    def delta0(self) -> Self:
        """δ0: out[0] = s[0]; empty later."""
        return self._over(OverTicks(self.plan, "delta0"))

    def negate(self) -> Self:
        """The rows with negated weights."""
        return self._over(negated(self.plan))

    def inspect(self, callback: Callable[..., Any]) -> Self:
        """The stream itself; calls the callback with each tick's change, a tuple of (row, weight), in order.

        It runs in each shard that has rows: in this process, or in Spark's workers, whose output is in their logs. It is also called for a
        tick that fails later and for tasks that Spark repeats, but not for the backfill of a new view. Subscribe to a view for effects that
        must happen exactly once.
        """
        return self._over(Inspect(self.plan, inspector(checked_function(callback, "change"), self.plan.schema.names)))


def batched(plan: Plan, size: int) -> Plan:
    """The plan's rows of `size` ticks at once. Raises CircuitError."""
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= MOST_BATCHED:
        raise CircuitError(f"{size!r} is an invalid number of ticks", expected=f"an integer from 1 to {MOST_BATCHED}")
    return OverTicks(plan, "batched", size=size)


def negated(plan: Plan) -> Plan:
    """The plan with negated weights."""
    return FlatMap(plan, "repeat_row", (Literal(-1, BIGINT),), ())
