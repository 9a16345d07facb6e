"""Operators on streams: what a node evaluates once for each time of its circuit, and what it keeps between two times.

An operator belongs to one node. Its circuit tells it its depth, the present time, and when a clock starts and ends: scope 0 is the clock
of its own circuit, scope 1 that of the circuit around, and so on. An operator says whether it has come to its fixed point.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from deltic.dbsp.operators import minus, plus, trace_append, untimed_trace_append
from deltic.dbsp.zset import IndexedZSet, Trace, ZSet
from deltic.trace.time import Time

Value = ZSet | IndexedZSet | Trace
Changes = ZSet | IndexedZSet


class ReferenceOperator(ABC):
    """The base of all: keeps nothing, is always at its fixed point."""

    depth = 0
    """How many circuits are around its own."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def evaluate(self, now: Time, *inputs: Any) -> Value:
        """The output at `now` for the inputs at `now`. Times only go on, in the lexicographic order."""

    def clock_start(self, scope: int) -> None:  # noqa: B027  most keep nothing
        """A clock `scope` circuits up is about to tick."""

    def clock_end(self, scope: int) -> None:  # noqa: B027
        """A clock `scope` circuits up has ticked. Where it is the root's, `scope` is `depth`."""

    def settled(self, now: Time) -> bool:
        """Whether nothing comes out at a time with `now`'s prefix and a greater last coordinate, if nothing comes in there.

        `now` may be shorter than the times of the operator's own circuit: then it is that of a circuit around.
        """
        return True


class Apply(ReferenceOperator):
    """A function of the values at the present time."""

    def __init__(self, name: str, function: Callable[..., Value]) -> None:
        super().__init__(name)
        self.function = function

    def evaluate(self, now: Time, *inputs: Any) -> Value:
        return self.function(*inputs)


class Delayed(ReferenceOperator):
    """What came in one time ago. Such an operator can give before it takes, so that a feedback node can be made of it."""

    def __init__(self, name: str, nothing: Value) -> None:
        super().__init__(name)
        self.nothing = nothing
        self.held = nothing

    def evaluate(self, now: Time, *inputs: Any) -> Value:
        given = self.held
        self.take(inputs[0])
        return given

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
    """The trace as it was one time ago, in the order in which times come; of an epoch that is over, past.

    A trace that has changed alone makes nothing come out of what reads it, so it is always settled.
    """

    def __init__(self) -> None:
        super().__init__("delay_trace", Trace())

    def clock_end(self, scope: int) -> None:
        if scope == self.depth and isinstance(self.held, Trace):
            self.held = self.held.past()


class TraceAppend(ReferenceOperator):
    """trace_append at the present time."""

    def __init__(self) -> None:
        super().__init__("trace_append")

    def evaluate(self, now: Time, *inputs: Any) -> Trace:
        return trace_append(inputs[0], inputs[1], now)


class UntimedTraceAppend(ReferenceOperator):
    """untimed_trace_append."""

    def __init__(self) -> None:
        super().__init__("untimed_trace_append")

    def evaluate(self, now: Time, *inputs: Any) -> Trace:
        return untimed_trace_append(*inputs)


class Integrate(ReferenceOperator):
    """I: out[t] = in[0] + … + in[t] of the innermost clock. Settled when nothing has come in."""

    def __init__(self, nothing: Changes) -> None:
        super().__init__("integrate")
        self.nothing = nothing
        self.sum: Any = nothing
        self.moved = False

    def evaluate(self, now: Time, *inputs: Any) -> Changes:
        now_sum: Changes = plus(self.sum, inputs[0])
        self.sum, self.moved = now_sum, bool(inputs[0])
        return now_sum

    def clock_start(self, scope: int) -> None:
        if scope:
            self.sum = self.nothing

    def settled(self, now: Time) -> bool:
        return not self.moved


class Differentiate(ReferenceOperator):
    """D: out[t] = in[t] - in[t - 1] of the innermost clock. Settled when the input was the one before."""

    def __init__(self, nothing: Changes) -> None:
        super().__init__("differentiate")
        self.nothing = nothing
        self.before: Any = nothing
        self.moved = False

    def evaluate(self, now: Time, *inputs: Any) -> Changes:
        change: Changes = minus(inputs[0], self.before)
        self.before, self.moved = inputs[0], bool(change)
        return change

    def clock_start(self, scope: int) -> None:
        if scope:
            self.before = self.nothing

    def settled(self, now: Time) -> bool:
        return not self.moved


class Delta0(ReferenceOperator):
    """δ0: the input at iteration 0, nothing afterwards."""

    def __init__(self, nothing: Changes) -> None:
        super().__init__("delta0")
        self.nothing = nothing

    def evaluate(self, now: Time, *inputs: Any) -> Changes:
        value: Changes = inputs[0]
        return value if now[-1] == 0 else self.nothing
