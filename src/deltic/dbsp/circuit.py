"""Circuits: nodes over streams, circuits in circuits, and the clocks that move them.

A step of the root evaluates its nodes once, in a topological order in which feedback counts as known; a child runs to its fixed point.

    >>> circuit = ReferenceCircuit()
    >>> edges = circuit.source("edges")
    >>> scope = circuit.child("closure")
    >>> paths = scope.feedback("paths")
    >>> arrows = scope.import_stream(edges).index_with(lambda edge: edge[0])
    >>> step = paths.index_with(lambda path: path[1]).join(arrows, lambda key, path, edge: (path[0], edge[1]))
    >>> scope.connect(paths, scope.import_stream(edges).plus(step).distinct())
    >>> closure = circuit.sink("closure", scope.export(paths))
    >>> circuit.step(edges=ZSet.of([((0, 1), None, 1), ((1, 2), None, 1)]))
    >>> closure.value
    ZSet([((0, 1), None, 1), ((0, 2), None, 1), ((1, 2), None, 1)])
    >>> circuit.step(edges=ZSet.of([((1, 2), None, -1)]))
    >>> closure.value
    ZSet([((0, 2), None, -1), ((1, 2), None, -1)])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Final, TypeVar

from deltic.dbsp.nodes import (
    ChildNode,
    FeedbackNode,
    ImportNode,
    OperatorNode,
    ReferenceNode,
    ReferenceStream,
    SinkNode,
    SourceNode,
    apply_node,
)
from deltic.dbsp.streams import Delay, Delayed, ReferenceOperator, Value
from deltic.dbsp.zset import IndexedZSet, ZSet, check_kind
from deltic.drawing import Vertex, graphviz, mermaid, text
from deltic.errors import CircuitError, DelticError
from deltic.trace.time import Time

ITERATION_LIMIT: Final = 10_000
"""Iterations of a child that may change something."""

N = TypeVar("N", bound=ReferenceNode)


class ReferenceCircuit:
    """A circuit in the making, and then at work. A step that fails ends it: its error is raised again by the next one.

    owner: the child node that runs it; the root has none. cells: values at the present time by (local id, output).
    """

    def __init__(self, owner: ChildNode | None = None) -> None:
        self.owner = owner
        self.nodes: list[ReferenceNode] = []
        self.cells: dict[tuple[int, int], Value] = {}
        self.epoch = 0
        self._imports: dict[tuple[ReferenceNode, int], ReferenceStream] = {}
        self._schedule: tuple[ReferenceNode, ...] | None = None
        self._failed: BaseException | None = None

    @property
    def path(self) -> tuple[int, ...]:
        """The global id of the child node that runs it; () of the root."""
        return () if self.owner is None else self.owner.path

    # Making it.

    def source(self, name: str) -> ReferenceStream:
        """A source of the root: `step` hands its values in."""
        return ReferenceStream(self.source_node(name))

    def source_node(self, name: str) -> SourceNode:
        """The node of a source."""
        if any(isinstance(node, SourceNode) and node.name == name for node in self.nodes):
            raise CircuitError(f"there is a source {name} already", remedy="give it another name")
        return self._add(SourceNode(self, name))

    def operator(self, operator: ReferenceOperator, *inputs: ReferenceStream) -> ReferenceStream:
        """A node of the operator, which is its own alone. Streams of circuits around are imported."""
        if not isinstance(operator, ReferenceOperator):
            raise CircuitError(f"{operator!r} is no operator", expected="an ReferenceOperator of deltic.dbsp.streams or deltic.dbsp.nested")
        if any(node.operator is operator for node in self._everything() if isinstance(node, OperatorNode)):
            raise CircuitError(f"the operator {operator.name} has a node already", remedy="make another one: it keeps what it has seen")
        return ReferenceStream(self._add(OperatorNode(self, operator, self._local(inputs))))

    def apply(self, name: str, function: Callable[..., Value], *inputs: ReferenceStream) -> ReferenceStream:
        """A node of a function of the values at the present time."""
        return ReferenceStream(self._add(apply_node(self, name, function, self._local(inputs))))

    def feedback(self, name: str, delayed: Delayed | None = None) -> ReferenceStream:
        """What `connect` gives it, one iteration later; nothing at iteration 0. delayed: by default z⁻¹ of Z-sets."""
        return ReferenceStream(self._add(FeedbackNode(self, name, delayed or Delay(ZSet()))))

    def connect(self, feedback: ReferenceStream, stream: ReferenceStream) -> None:
        """Closes the cycle of a feedback."""
        if not isinstance(feedback.node, FeedbackNode):
            raise CircuitError(f"{feedback.id} is no feedback", expected="a stream made by feedback()")
        feedback.node.connect(stream)

    def child(self, name: str, limit: int = ITERATION_LIMIT) -> ReferenceCircuit:
        """A circuit in this one. limit: iterations that may change something; in the next one it must be at its fixed point."""
        node = self._add(ChildNode(self, name, limit))
        node.inner = ReferenceCircuit(node)
        return node.inner

    def import_stream(self, outer: ReferenceStream) -> ReferenceStream:
        """A stream of a circuit around: its value at iteration 0, nothing afterwards. A stream of this circuit is as it is."""
        if outer.circuit is self:
            return outer
        if self.owner is None:
            raise CircuitError(f"stream {outer.id} is not of this circuit nor of one around it", remedy="export it from its child first")
        near = self.owner.circuit.import_stream(outer)
        key = (near.node, near.port)
        if key not in self._imports:
            self._imports[key] = ReferenceStream(self._add(ImportNode(self, near)))
            self.owner.circuit._schedule = None
        return self._imports[key]

    def export(self, stream: ReferenceStream) -> ReferenceStream:
        """A stream of the circuit around: in each of its steps the sum of this one's iterations. Of a feedback, what is fed to it."""
        if self.owner is None or stream.circuit is not self:
            raise CircuitError(f"stream {stream.id} cannot be exported from here", expected="a stream of this circuit, which is a child")
        if isinstance(stream.node, FeedbackNode) and stream.node.inputs:
            stream = stream.node.inputs[0]
        self.owner.exports.append(stream)
        return ReferenceStream(self.owner, len(self.owner.exports) - 1)

    def sink(self, name: str, *inputs: ReferenceStream, callback: Callable[..., object] | None = None) -> SinkNode:
        """A node that keeps the values of its inputs, and gives them to the callback, in each step."""
        return self._add(SinkNode(self, name, self._local(inputs), callback))

    def _add(self, node: N) -> N:
        self.nodes.append(node)
        self._schedule = None
        return node

    def _everything(self) -> Iterator[ReferenceNode]:
        """The nodes of the whole circuit that this one is a part of."""
        root = self
        while root.owner is not None:
            root = root.owner.circuit
        waiting = [root]
        while waiting:
            for node in waiting.pop().nodes:
                yield node
                if isinstance(node, ChildNode):
                    waiting.append(node.inner)

    def _local(self, inputs: tuple[ReferenceStream, ...]) -> tuple[ReferenceStream, ...]:
        return tuple(self.import_stream(stream) for stream in inputs)

    # Running it.

    @property
    def schedule(self) -> tuple[ReferenceNode, ...]:
        """The nodes in a topological order. Raises CircuitError for a cycle without feedback, or a feedback that is not connected."""
        if self._schedule is None:
            self._schedule = self._sorted()
        return self._schedule

    def step(self, **changes: Value) -> None:
        """One epoch of the root: the changes by the names of sources; other sources give nothing."""
        assert self.owner is None, "a child is run by its parent"
        if self._failed is not None:
            raise DelticError("an earlier step of this circuit failed", remedy="make it anew") from self._failed
        sources = {node.name: node for node in self.nodes if isinstance(node, SourceNode)}
        unknown = sorted(changes.keys() - sources.keys())
        if unknown:
            raise CircuitError(f"there is no source {unknown[0]}", expected=f"one of {', '.join(sources)}")
        for name, value in changes.items():
            check_kind(f"source {name}", value, ZSet, IndexedZSet)
        for name, node in sources.items():
            node.value = changes.get(name, ZSet())
        self._check()
        try:
            self.run((self.epoch,))
        except BaseException as error:
            self._failed = error
            raise
        self.epoch += 1

    def _check(self) -> None:
        """Makes the schedules, its own and those of the circuits in it: whatever is wrong with them is found before anything runs."""
        for node in self.schedule:
            if isinstance(node, ChildNode):
                node.inner._check()

    def run(self, now: Time) -> None:
        """One tick of its clock, at the time `now`."""
        for node in self.nodes:
            node.clock_start(0)
        for node in self.schedule:
            for port, value in enumerate(node.evaluate(now)):
                self.cells[node.local, port] = value
        for node in self.nodes:
            node.clock_end(0)

    def _sorted(self) -> tuple[ReferenceNode, ...]:
        for node in self.nodes:
            if isinstance(node, FeedbackNode) and not node.inputs:
                raise CircuitError(f"feedback {node.id} {node.name} is not connected", remedy="connect(feedback, stream) closes its cycle")
        sorter = TopologicalSorter({node: [stream.node for stream in node.before()] for node in self.nodes})
        try:
            return tuple(sorter.static_order())
        except CycleError as error:
            cycle = " → ".join(f"{node.id} {node.name}" for node in error.args[1])
            raise CircuitError(f"a cycle without feedback: {cycle}", remedy="a cycle goes through a feedback of its circuit") from error

    # Showing it.

    def vertices(self) -> Iterator[Vertex]:
        """Its nodes and those in it, each child followed by its own."""
        for node in self.nodes:
            feedback = isinstance(node, FeedbackNode)
            reads = [stream.id.partition(":")[0] for stream in (node.exports if isinstance(node, ChildNode) else node.inputs)]
            label = node.name if node.kind == "operator" else f"{node.kind} {node.name.removeprefix('import ')}"
            yield Vertex(node.id, label, () if feedback else tuple(reads), tuple(reads) if feedback else ())
            if isinstance(node, ChildNode):
                yield from node.inner.vertices()

    def text(self) -> str:
        """A line for each node, with global ids."""
        return text(list(self.vertices()))

    def mermaid(self) -> str:
        """A Mermaid flowchart; children are subgraphs."""
        return mermaid(list(self.vertices()))

    def graphviz(self) -> str:
        """A Graphviz digraph; children are clusters."""
        return graphviz(list(self.vertices()))
