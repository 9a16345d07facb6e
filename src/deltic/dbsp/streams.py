"""Operators on streams: evaluated once at each time of their circuit, with state between times.

An operator belongs to one node. Its circuit sets its depth, passes the current time, and reports when a clock starts and ends: scope 0 is
the clock of its own circuit, scope 1 that of the enclosing circuit, and so on. An operator reports whether it is at its fixed point.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from deltic.dbsp.operators import minus, plus, trace_append, untimed_trace_append
from deltic.dbsp.zset import IndexedZSet, ZSet, ZSetTrace
from deltic.trace.time import Time

Value = ZSet | IndexedZSet | ZSetTrace
Changes = ZSet | IndexedZSet


class ReferenceOperator(ABC):
    """The base class: stateless, always at its fixed point."""

    depth = 0
    """The number of circuits that enclose its own."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def evaluate(self, now: Time, *inputs: Any) -> Value:
        """The output at `now` for the inputs at `now`. Times increase lexicographically."""

    def clock_start(self, scope: int) -> None:  # noqa: B027  most are stateless
        """A clock `scope` circuits up is about to tick."""

    def clock_end(self, scope: int) -> None:  # noqa: B027
        """A clock `scope` circuits up has ticked. Where it is the root's, `scope` is `depth`."""

    def settled(self, now: Time) -> bool:
        """Whether empty inputs give empty outputs at all times with `now`'s prefix and a greater last coordinate.

        `now` may be shorter than the times of the operator's own circuit: then it is the time of an enclosing circuit.
        """
        return True


class Apply(ReferenceOperator):
    """A function of the current values."""

    def __init__(self, name: str, function: Callable[..., Value]) -> None:
        super().__init__(name)
        self.function = function

    def evaluate(self, now: Time, *inputs: Any) -> Value:
        return self.function(*inputs)


class Delayed(ReferenceOperator):
    """The previous input. Its output is known before its input, so it can implement a feedback node."""

    def __init__(self, name: str, nothing: Value) -> None:
        super().__init__(name)
        self.nothing = nothing
        self.held = nothing

    def evaluate(self, now: Time, *inputs: Any) -> Value:
        previous = self.held
        self.take(inputs[0])
        return previous

    def take(self, value: Value) -> None:
        self.held = value


class Delay(Delayed):
    """z⁻¹: out[t] = in[t - 1] of the innermost clock, empty at iteration 0; at depth 0, in[epoch - 1]."""

    def __init__(self, nothing: Changes) -> None:
        super().__init__("delay", nothing)

    def clock_start(self, scope: int) -> None:
        if scope:
            self.held = self.nothing

    def settled(self, now: Time) -> bool:
        return not self.held


class DelayTrace(Delayed):
    """The trace at the previous time; after the end of an epoch, with its times made past.

    A change of the trace alone causes no output in its readers, so it is always settled.
    """

    def __init__(self) -> None:
        super().__init__("delay_trace", ZSetTrace())

    def clock_end(self, scope: int) -> None:
        if scope == self.depth and isinstance(self.held, ZSetTrace):
            self.held = self.held.past()


class TraceAppend(ReferenceOperator):
    """trace_append at the present time."""

    def __init__(self) -> None:
        super().__init__("trace_append")

    def evaluate(self, now: Time, *inputs: Any) -> ZSetTrace:
        return trace_append(inputs[0], inputs[1], now)


class UntimedTraceAppend(ReferenceOperator):
    """untimed_trace_append."""

    def __init__(self) -> None:
        super().__init__("untimed_trace_append")

    def evaluate(self, now: Time, *inputs: Any) -> ZSetTrace:
        return untimed_trace_append(*inputs)


class Integrate(ReferenceOperator):
    """I: out[t] = in[0] + … + in[t] of the innermost clock. Settled if the last input was empty."""

    def __init__(self, nothing: Changes) -> None:
        super().__init__("integrate")
        self.nothing = nothing
        self.sum: Any = nothing
        self.changed = False

    def evaluate(self, now: Time, *inputs: Any) -> Changes:
        total: Changes = plus(self.sum, inputs[0])
        self.sum, self.changed = total, bool(inputs[0])
        return total

    def clock_start(self, scope: int) -> None:
        if scope:
            self.sum = self.nothing

    def settled(self, now: Time) -> bool:
        return not self.changed


class Differentiate(ReferenceOperator):
    """D: out[t] = in[t] - in[t - 1] of the innermost clock. Settled if the last two inputs are equal."""

    def __init__(self, nothing: Changes) -> None:
        super().__init__("differentiate")
        self.nothing = nothing
        self.previous: Any = nothing
        self.changed = False

    def evaluate(self, now: Time, *inputs: Any) -> Changes:
        change: Changes = minus(inputs[0], self.previous)
        self.previous, self.changed = inputs[0], bool(change)
        return change

    def clock_start(self, scope: int) -> None:
        if scope:
            self.previous = self.nothing

    def settled(self, now: Time) -> bool:
        return not self.changed


class Delta0(ReferenceOperator):
    """δ0: the input at iteration 0, then empty."""

    def __init__(self, nothing: Changes) -> None:
        super().__init__("delta0")
        self.nothing = nothing

    def evaluate(self, now: Time, *inputs: Any) -> Changes:
        value: Changes = inputs[0]
        return value if now[-1] == 0 else self.nothing
