"""Scopes: a child circuit that runs to its fixed point within one step of its parent, with imports and feedback.

Iteration 0 of a step sees the imported changes. Feedback emits in iteration i + 1 the rows that it received in iteration i; it is read
before it is written, so the schedule has no cycle. The scope stops when no feedback holds rows for the next iteration and no rows are due
later in it or in its inner scopes; the clock skips iterations without rows. The child's output is the sum over the iterations of the step.
A scope runs on the home shard or, if its relation can be spread, on every shard, each to its own fixed point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from deltic.circuit.clock import Clock
from deltic.circuit.due import Path
from deltic.circuit.nodes import Node, NodeKind
from deltic.circuit.operator import HOME, Context, Delta
from deltic.circuit.operators.arrange import check_sums
from deltic.circuit.operators.feedback import Feedback, Import
from deltic.circuit.operators.inspect import InspectOperator
from deltic.circuit.operators.loop import Loop, find_loop
from deltic.circuit.operators.recursion import RecursiveScope, find_recursion
from deltic.circuit.overflow import overflow_within
from deltic.circuit.scopes import ScopeContext, divergence
from deltic.errors import Divergence, WeightOverflow
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.rows import Rows

ITERATION_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Child:
    """A scope of `nodes`, whose node `export` is the output.

    limit: the number of iterations; a relation that still changes in the next one is assumed to diverge. Nodes have their global ids,
    which identify their state within the tick.
    """

    nodes: tuple[Node, ...] = field(compare=False)
    export: int
    limit: int = field(default=ITERATION_LIMIT, compare=False)
    computing: tuple[Node, ...] = field(init=False, repr=False)
    """The nodes other than inspect, which define the scope."""
    feedback: tuple[Node, ...] = field(init=False, compare=False, repr=False)
    loop: Loop | RecursiveScope | None = field(init=False, compare=False, repr=False)
    """The scope as a kernel runs it, if no hooks observe its clock; None if only operators can."""
    nothing: tuple[Rows, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "computing", tuple(n for n in self.nodes if not isinstance(n.operator, InspectOperator)))
        object.__setattr__(self, "feedback", tuple(n for n in self.nodes if isinstance(n.operator, Feedback)))
        object.__setattr__(self, "loop", find_loop(self.nodes, self.export) or find_recursion(self.nodes, self.export))
        object.__setattr__(self, "nothing", tuple(Rows.empty(n.shape.layout.width, n.shape.weights) for n in self.nodes))

    @property
    def name(self) -> str:
        return "child"

    @property
    def eager(self) -> bool:
        return True

    @property
    def path(self) -> Path:
        """The global id of the child node."""
        return self.nodes[0].path[:-1]

    @property
    def owned(self) -> tuple[str, ...]:
        """The arrangements of its nodes and of its inner scopes."""
        own = [n.owns for n in self.nodes if n.owns is not None]
        return (*own, *(name for n in self.nodes if isinstance(n.operator, Child) for name in n.operator.owned))

    @property
    def spread(self) -> bool:
        """Whether every shard runs its own part; otherwise the home shard runs the whole."""
        return self.nodes[self.export].partition != ()

    def within(self, parent: Path) -> Child:
        """The same scope with the global ids of its nodes below `parent`."""
        nodes = []
        for node in self.nodes:
            path = (*parent, node.id)
            operator = node.operator.within(path) if isinstance(node.operator, Child) else node.operator
            nodes.append(replace(node, path=path, operator=operator))
        return replace(self, nodes=tuple(nodes))

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        if not (context.shard == HOME or self.spread) or not (context.backfill or any([delta.length for delta in inputs])):
            return self.nothing[self.export]
        return self.run(inputs, context, Clock((context.tick.epoch,)))

    def run(self, inputs: Sequence[Delta], context: Context, clock: Clock) -> Delta:
        """A step of a child of the root. Raises Divergence; then the tick fails."""
        fresh = context.tick.fresh
        assert fresh is None or len(fresh & {*self.owned}) in (0, len(self.owned)), "a scope is backfilled as a whole or not at all"
        if self.loop is not None and not clock.hooks and self.loop.applies(context):
            try:
                return self.loop.run(inputs, self.limit, context)
            except WeightOverflow as error:
                raise overflow_within(self._relations(), (), (), context.strings) from error
        scopes = ScopeContext.of(context, clock)
        self._share(inputs, scopes)
        output = self.iterate(inputs, scopes)
        assert scopes.due.empty
        self._append(scopes, context)
        return output

    def _share(self, inputs: Sequence[Delta], scopes: ScopeContext) -> None:
        """Opens the traces of the imported arrangements, with the rows appended to them in this tick."""
        for node in self.nodes:
            if isinstance(node.operator, Import) and node.operator.arrangement is not None:
                trace = scopes.trace(node.operator.arrangement, node.shape.layout.width, node.shape.weights, 0)
                delta = inputs[node.operator.position]
                if len(delta):
                    assert isinstance(delta, Batch)
                    trace.append(delta, ())

    def _append(self, scopes: ScopeContext, context: Context) -> None:
        """Appends the rows that the nodes have added, one batch for each arrangement."""
        for name in self.owned:
            if name in scopes.traces and scopes.traces[name].added.batches:
                batch = scopes.traces[name].added.scan(Counters())
                check_sums(batch, name, context)
                context.append(name, batch)

    def iterate(self, inputs: Sequence[Delta], scopes: ScopeContext) -> Delta:
        """Runs to the fixed point at the clock's time, and returns the sum of the exported changes."""
        clock, time, depth = scopes.clock, scopes.time, len(scopes.clock.time)
        delayed: dict[int, Delta] = {}
        exported: list[Rows] = []
        growth: dict[int, list[int]] = {n.id: [] for n in self.feedback}
        starts = any(map(len, inputs)) or (scopes.backfill and scopes.first)
        iteration = 0 if starts else scopes.due.next(self.path, time, -1)
        while iteration is not None:
            scopes.check_needed()
            with clock.evaluation(iteration, depth):
                values = self._evaluate(inputs if iteration == 0 else None, delayed, scopes)
            if len(values[self.export]):
                exported.append(values[self.export])
            delayed = {}
            for node in self.feedback:
                assert isinstance(node.operator, Feedback)
                delta = self._settled(node.operator.source, values, scopes)
                growth[node.id].append(len(delta))
                if len(delta):
                    delayed[node.id] = delta
            if delayed and iteration >= self.limit:
                raise self._diverged(delayed, growth, scopes)
            iteration = iteration + 1 if delayed else scopes.due.next(self.path, time, iteration)
        return consolidate(Rows.concat(exported)) if exported else self.nothing[self.export]

    def _evaluate(self, imported: Sequence[Delta] | None, delayed: dict[int, Delta], scopes: ScopeContext) -> list[Delta]:
        """The value of each node in one iteration."""
        values: list[Delta] = []
        time, filling = scopes.time, scopes.backfill and scopes.first
        for node in self.nodes:
            match node.kind:
                case NodeKind.IMPORT:
                    values.append(self.nothing[node.id] if imported is None else node.operator.step(imported, scopes))
                case NodeKind.FEEDBACK:
                    values.append(delayed.get(node.id, self.nothing[node.id]))
                case NodeKind.CHILD:
                    assert isinstance(node.operator, Child)
                    node_inputs = [values[i] for i in node.inputs]
                    awake = filling or any(map(len, node_inputs)) or scopes.due.next(node.path, time, -1) is not None
                    values.append(node.operator.iterate(node_inputs, scopes) if awake else self.nothing[node.id])
                case _:
                    node_inputs = [values[i] for i in node.inputs]
                    awake = any(map(len, node_inputs)) or scopes.due.has(node.path, time) or (filling and node.operator.eager)
                    values.append(self._step(node, node_inputs, scopes) if awake else self.nothing[node.id])
        return values

    def _step(self, node: Node, inputs: Sequence[Delta], scopes: ScopeContext) -> Delta:
        """Steps one node, and counts under its global id."""
        scopes.path = node.path
        counters = scopes.counters = scopes.inner.setdefault(node.name, Counters())
        start = perf_counter()
        try:
            output = node.operator.step(inputs, scopes)
        except WeightOverflow as error:
            sources = [self.nodes[i] for i in node.inputs] or [node]
            raise overflow_within(self._relations(), sources, inputs, scopes.strings) from error
        counters.seconds += perf_counter() - start
        counters.rows_in += sum(map(len, inputs))
        counters.rows_out += len(output)
        return output

    def _settled(self, node: int, values: Sequence[Delta], scopes: ScopeContext) -> Batch:
        """The value of the node, consolidated."""
        try:
            return consolidate(values[node])
        except WeightOverflow as error:
            raise overflow_within(self._relations(), [self.nodes[node]], [values[node]], scopes.strings) from error

    def _relations(self) -> list[Feedback]:
        """The recursive relations that have a name."""
        return [n.operator for n in self.feedback if isinstance(n.operator, Feedback) and n.operator.relation]

    def _diverged(self, delayed: dict[int, Delta], growth: dict[int, list[int]], scopes: ScopeContext) -> Divergence:
        """The error for the first relation that still changes."""
        node = next(n for n in self.feedback if n.id in delayed)
        assert isinstance(node.operator, Feedback)
        return divergence(node, self.limit, growth[node.id], delayed[node.id], scopes)
