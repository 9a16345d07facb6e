"""The six kinds of node of a circuit, and the streams between them.

| kind | in | out | |
|---|---|---|---|
| operator | n | 1 | evaluates its operator |
| child | 0 | n | runs a circuit to its fixed point |
| feedback | 1 | 1 | outputs its input of the previous iteration |
| import | 1 | 1 | outputs a stream of the enclosing circuit at iteration 0 |
| sink | n | 0 | passes values to the user |
| source | 0 | 1 | outputs values from the user |

A node's local id is its position in its circuit; its global id is the path of local ids from the root.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from deltic.dbsp import operators
from deltic.dbsp.nested import ReferenceAggregate, ReferenceDistinct, ReferenceJoin, ReferenceTopK
from deltic.dbsp.operators import Reduction, consolidate, trace_append
from deltic.dbsp.streams import Apply, Changes, Delay, Delayed, Delta0, Differentiate, Integrate, ReferenceOperator, Value
from deltic.dbsp.zset import IndexedZSet, Row, ZSet, ZSetTrace
from deltic.errors import CircuitError, Divergence
from deltic.purity import pure
from deltic.trace.time import Time

if TYPE_CHECKING:
    from deltic.dbsp.circuit import ReferenceCircuit

GROWTH = 3
SAMPLES = 3


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceStream:
    """Output number `port` of a node. Methods add a node to the circuit."""

    node: ReferenceNode
    port: int = 0

    @property
    def circuit(self) -> ReferenceCircuit:
        return self.node.circuit

    @property
    def id(self) -> str:
        return self.node.id if self.port == 0 else f"{self.node.id}:{self.port}"

    @property
    def value(self) -> Any:
        """The value at the current time."""
        return self.circuit.cells[self.node.local, self.port]

    def map(self, function: Callable[[Any], Row]) -> ReferenceStream:
        return self.circuit.apply("map", partial(operators.map, pure(function)), self)

    def filter(self, predicate: Callable[[Any], bool]) -> ReferenceStream:
        return self.circuit.apply("filter", partial(operators.filter, pure(predicate)), self)

    def flat_map(self, function: Callable[[Any], Iterable[Row]]) -> ReferenceStream:
        return self.circuit.apply("flat_map", partial(operators.flat_map, function), self)

    def explode(self, function: Callable[[Any], Iterable[tuple[Row, int]]]) -> ReferenceStream:
        return self.circuit.apply("explode", partial(operators.explode, function), self)

    def index_with(self, key: Callable[[Any], Row]) -> ReferenceStream:
        return self.circuit.apply("index_with", partial(operators.index_with, pure(key)), self)

    def inspect(self, callback: Callable[[ZSet], object]) -> ReferenceStream:
        return self.circuit.apply("inspect", partial(operators.inspect, callback), self)

    def negate(self) -> ReferenceStream:
        return self.circuit.apply("negate", operators.negate, self)

    def plus(self, other: ReferenceStream) -> ReferenceStream:
        return self.circuit.apply("plus", operators.plus, self, other)

    def minus(self, other: ReferenceStream) -> ReferenceStream:
        return self.circuit.apply("minus", operators.minus, self, other)

    def distinct(self) -> ReferenceStream:
        """The change of the distinct elements, at any depth."""
        return self.circuit.operator(ReferenceDistinct(), self)

    def aggregate(self, reduction: Reduction) -> ReferenceStream:
        """The change of (key, reduction) of an indexed Z-set, at any depth."""
        return self.circuit.operator(ReferenceAggregate(reduction), self)

    def top_k(self, limit: int, by: Callable[[Any], Any]) -> ReferenceStream:
        """The change of the first `limit` values of each key, at any depth."""
        return self.circuit.operator(ReferenceTopK(limit, by), self)

    def join(self, other: ReferenceStream, function: Callable[[Any, Any, Any], Row]) -> ReferenceStream:
        """The change of the join of two indexed Z-sets, at any depth."""
        return self.circuit.operator(ReferenceJoin(function), self, other)

    def delay(self, nothing: Changes = ZSet()) -> ReferenceStream:  # noqa: B008  immutable
        """z⁻¹ of the innermost clock. nothing: its first output."""
        return self.circuit.operator(Delay(nothing), self)

    def integrate(self, nothing: Changes = ZSet()) -> ReferenceStream:  # noqa: B008
        """I of the innermost clock."""
        return self.circuit.operator(Integrate(nothing), self)

    def differentiate(self, nothing: Changes = ZSet()) -> ReferenceStream:  # noqa: B008
        """D of the innermost clock."""
        return self.circuit.operator(Differentiate(nothing), self)


class ReferenceNode(ABC):
    """A vertex of a circuit. clock: the number of its evaluations."""

    kind: ClassVar[str]

    def __init__(self, circuit: ReferenceCircuit, name: str, inputs: tuple[ReferenceStream, ...] = ()) -> None:
        self.circuit, self.name, self.inputs = circuit, name, inputs
        self.local = len(circuit.nodes)
        self.clock = 0

    @property
    def path(self) -> tuple[int, ...]:
        return (*self.circuit.path, self.local)

    @property
    def id(self) -> str:
        """The global id.

        >>> from deltic.dbsp.circuit import ReferenceCircuit
        >>> circuit = ReferenceCircuit()
        >>> circuit.child("inner").child("innermost").source_node("x").id
        '0.0.0'
        """
        return ".".join(map(str, self.path))

    def before(self) -> Iterable[ReferenceStream]:
        """The streams of the same circuit that must be evaluated first."""
        return self.inputs

    def clock_start(self, scope: int) -> None:
        """A clock `scope` circuits up is about to tick."""
        return None

    def clock_end(self, scope: int) -> None:
        """A clock `scope` circuits up has ticked."""
        self.clock += scope == 0

    @abstractmethod
    def evaluate(self, now: Time) -> tuple[Value, ...]:
        """Its outputs at `now`."""

    def settled(self, now: Time) -> bool:
        """Whether nothing is due at a time with `now`'s prefix and a greater last coordinate."""
        return True


class OperatorNode(ReferenceNode):
    kind = "operator"

    def __init__(self, circuit: ReferenceCircuit, operator: ReferenceOperator, inputs: tuple[ReferenceStream, ...]) -> None:
        super().__init__(circuit, operator.name, inputs)
        operator.depth = len(circuit.path)
        self.operator = operator

    def clock_start(self, scope: int) -> None:
        self.operator.clock_start(scope)

    def clock_end(self, scope: int) -> None:
        super().clock_end(scope)
        self.operator.clock_end(scope)

    def evaluate(self, now: Time) -> tuple[Value, ...]:
        return (self.operator.evaluate(now, *(stream.value for stream in self.inputs)),)

    def settled(self, now: Time) -> bool:
        return self.operator.settled(now)


class SourceNode(ReferenceNode):
    """value: its output at the next step."""

    kind = "source"
    value: Value

    def evaluate(self, now: Time) -> tuple[Value, ...]:
        return (self.value,)


class SinkNode(ReferenceNode):
    """values: its inputs' values at the last step."""

    kind = "sink"

    def __init__(
        self, circuit: ReferenceCircuit, name: str, inputs: tuple[ReferenceStream, ...], callback: Callable[..., object] | None
    ) -> None:
        super().__init__(circuit, name, inputs)
        self.callback = callback
        self.values: tuple[Any, ...] = ()

    @property
    def value(self) -> Any:
        """The value of a sink with one input."""
        (value,) = self.values
        return value

    def evaluate(self, now: Time) -> tuple[Value, ...]:
        self.values = tuple(stream.value for stream in self.inputs)
        if self.callback is not None:
            self.callback(*self.values)
        return ()


class ImportNode(ReferenceNode):
    """δ0 of a stream of the enclosing circuit."""

    kind = "import"

    def __init__(self, circuit: ReferenceCircuit, outer: ReferenceStream) -> None:
        super().__init__(circuit, f"import {outer.node.name.removeprefix('import ')}", (outer,))
        self.outer = outer

    def before(self) -> Iterable[ReferenceStream]:
        return ()

    def evaluate(self, now: Time) -> tuple[Value, ...]:
        value = self.outer.value
        return (Delta0(type(value)()).evaluate(now, value),)


class FeedbackNode(ReferenceNode):
    """Outputs, at the next iteration, its input at this one."""

    kind = "feedback"

    def __init__(self, circuit: ReferenceCircuit, name: str, delayed: Delayed) -> None:
        super().__init__(circuit, name)
        delayed.depth = len(circuit.path)
        self.delayed = delayed

    def before(self) -> Iterable[ReferenceStream]:
        return ()

    def connect(self, stream: ReferenceStream) -> None:
        """Sets the stream that is fed back; it must be of the same circuit."""
        if stream.circuit is not self.circuit:
            raise CircuitError(f"feedback {self.id} {self.name} is connected to a stream of another circuit, {stream.id}")
        if self.inputs:
            raise CircuitError(f"feedback {self.id} {self.name} is connected twice, to {self.inputs[0].id} and {stream.id}")
        self.inputs = (stream,)

    def clock_start(self, scope: int) -> None:
        self.delayed.clock_start(scope)

    def clock_end(self, scope: int) -> None:
        super().clock_end(scope)
        if scope == 0:
            self.delayed.take(self.inputs[0].value)
        self.delayed.clock_end(scope)

    def evaluate(self, now: Time) -> tuple[Value, ...]:
        return (self.delayed.held,)

    def settled(self, now: Time) -> bool:
        return self.delayed.settled(now)


class ChildNode(ReferenceNode):
    """Runs its circuit to its fixed point. limit: the number of iterations after which it must have reached it."""

    kind = "child"

    def __init__(self, circuit: ReferenceCircuit, name: str, limit: int) -> None:
        super().__init__(circuit, name)
        self.limit = limit
        self.inner: ReferenceCircuit
        self.exports: list[ReferenceStream] = []

    def before(self) -> Iterable[ReferenceStream]:
        return (node.outer for node in self.inner.nodes if isinstance(node, ImportNode))

    def clock_start(self, scope: int) -> None:
        for node in self.inner.nodes:
            node.clock_start(scope + 1)

    def clock_end(self, scope: int) -> None:
        super().clock_end(scope)
        for node in self.inner.nodes:
            node.clock_end(scope + 1)

    def evaluate(self, now: Time) -> tuple[Value, ...]:
        traces = [ZSetTrace() for _ in self.exports]
        indexed = [False for _ in self.exports]
        growth: list[dict[ReferenceNode, int]] = []
        for i in range(self.limit + 1):
            time = (*now, i)
            self.inner.run(time)
            for n, stream in enumerate(self.exports):
                indexed[n] = isinstance(stream.value, IndexedZSet)
                traces[n] = trace_append(stream.value, traces[n], time)
            if all(node.settled(time) for node in self.inner.nodes):
                return tuple(_exported(trace, keep) for trace, keep in zip(traces, indexed, strict=True))
            growth.append({node: len(node.delayed.held) for node in self.inner.nodes if isinstance(node, FeedbackNode)})
        raise self._divergence(growth[-GROWTH:])

    def settled(self, now: Time) -> bool:
        return all(node.settled(now) for node in self.inner.nodes)

    def _divergence(self, growth: list[dict[ReferenceNode, int]]) -> Divergence:
        moving = [node for node in self.inner.nodes if isinstance(node, FeedbackNode) and node.delayed.held]
        message = f"the child {self.id} {self.name} has not reached a fixed point after {self.limit:,} iterations"
        for node in moving[:1]:
            rows = ", ".join(repr(entry[0]) for entry in list(node.delayed.held)[:SAMPLES])
            sizes = ", ".join(f"{step[node]:,}" for step in growth)
            message += f": the last ones changed {sizes} rows of {node.name}, such as {rows}"
        return Divergence(message, remedy="apply distinct in the cycle, or increase the limit of the child")


def _exported(trace: ZSetTrace, indexed: bool) -> Changes:
    """The sum of this step's iterations, as a value of the stream's kind."""
    total = consolidate(trace)
    return total if indexed else ZSet.of((element, None, weight) for (element, _), _, weight in total.triples())


def apply_node(circuit: ReferenceCircuit, name: str, function: Callable[..., Value], inputs: tuple[ReferenceStream, ...]) -> OperatorNode:
    """A node that applies a function to the current values."""
    return OperatorNode(circuit, Apply(name, function), inputs)
