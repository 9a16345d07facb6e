"""Scopes in scopes: a child circuit that runs to its fixed point within one step of its parent, with imports and feedback.

Within a step, iteration 0 sees the imported changes; feedback gives in iteration i + 1 what it was given in iteration i, and its
apparent cycle is none in the schedule, since it is read before it is written. The scope stops when no feedback holds anything for the
next iteration and nothing in it, scopes in it included, is due at a later one; the clock jumps over iterations in which nothing is.
The child's output is the sum over the iterations of this step.
A scope has its nodes on the home shard, or, where its relations can be spread, on every shard: each runs its part to its own fixed point.
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
from deltic.circuit.overflow import named_overflow
from deltic.circuit.scopes import Nest, divergence
from deltic.errors import Divergence, WeightOverflow
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.rows import Rows

ITERATION_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Child:
    """A scope of `nodes`, whose node `export` is the output.

    limit: iterations that may change something; a relation that still changes in the next one is held to diverge.
    Nodes have their global ids, so that state of the tick is told apart by them.
    """

    nodes: tuple[Node, ...] = field(compare=False)
    export: int
    limit: int = field(default=ITERATION_LIMIT, compare=False)
    computing: tuple[Node, ...] = field(init=False, repr=False)
    """The nodes that are no inspect: what the scope is."""
    feedback: tuple[Node, ...] = field(init=False, compare=False, repr=False)
    loop: Loop | None = field(init=False, compare=False, repr=False)
    nothing: tuple[Rows, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "computing", tuple(n for n in self.nodes if not isinstance(n.operator, InspectOperator)))
        object.__setattr__(self, "feedback", tuple(n for n in self.nodes if isinstance(n.operator, Feedback)))
        object.__setattr__(self, "loop", find_loop(self.nodes, self.export))
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
        """The arrangements of its nodes, and of scopes in it."""
        own = [n.owns for n in self.nodes if n.owns is not None]
        return (*own, *(name for n in self.nodes if isinstance(n.operator, Child) for name in n.operator.owned))

    @property
    def spread(self) -> bool:
        """Whether every shard runs its own part, and not the home shard the whole."""
        return self.nodes[self.export].partition != ()

    def within(self, parent: Path) -> Child:
        """The same scope, its nodes' global ids below `parent`."""
        nodes = []
        for node in self.nodes:
            path = (*parent, node.id)
            operator = node.operator.within(path) if isinstance(node.operator, Child) else node.operator
            nodes.append(replace(node, path=path, operator=operator))
        return replace(self, nodes=tuple(nodes))

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        if not (self.spread or context.shard == HOME) or not (context.backfill or any(map(len, inputs))):
            return self.nothing[self.export]
        return self.run(inputs, context, Clock((context.tick.epoch,)))

    def run(self, inputs: Sequence[Delta], context: Context, clock: Clock) -> Delta:
        """A step of a child of the root. Raises Divergence; then nothing of it counts."""
        fresh = context.tick.fresh
        assert fresh is None or len(fresh & {*self.owned}) in (0, len(self.owned)), "a scope is filled as a whole or not at all"
        nest = Nest.of(context, clock)
        self._share(inputs, nest)
        output = self.iterate(inputs, nest)
        assert nest.due.empty
        self._append(nest, context)
        return output

    def _share(self, inputs: Sequence[Delta], nest: Nest) -> None:
        """Makes the arrangements of the root known, with what has been appended to them."""
        for node in self.nodes:
            if isinstance(node.operator, Import) and node.operator.arrangement is not None:
                trace = nest.trace(node.operator.arrangement, node.shape.layout.width, node.shape.weights, 0)
                delta = inputs[node.operator.position]
                if len(delta):
                    assert isinstance(delta, Batch)
                    trace.append(delta, ())

    def _append(self, nest: Nest, context: Context) -> None:
        """Gives what the nodes have appended to the tick: for each arrangement one batch."""
        for name in self.owned:
            if name in nest.traces and nest.traces[name].added.batches:
                batch = nest.traces[name].added.scan(Counters())
                check_sums(batch, name, context)
                context.append(name, batch)

    def iterate(self, inputs: Sequence[Delta], nest: Nest) -> Delta:
        """Runs to the fixed point at the clock's time, and gives the sum of what is exported."""
        if self.loop is not None and self.loop.applies(nest):
            return self.loop.run(inputs, self.limit, nest)
        clock, time, depth = nest.clock, nest.time, len(nest.clock.time)
        held: dict[int, Delta] = {}
        exported: list[Rows] = []
        growth: dict[int, list[int]] = {n.id: [] for n in self.feedback}
        given = any(map(len, inputs)) or (nest.backfill and nest.first)
        iteration = 0 if given else nest.due.next(self.path, time, -1)
        while iteration is not None:
            with clock.evaluation(iteration, depth):
                values = self._evaluate(inputs if iteration == 0 else None, held, nest)
            if len(values[self.export]):
                exported.append(values[self.export])
            held = {}
            for node in self.feedback:
                assert isinstance(node.operator, Feedback)
                delta = self._settled(node.operator.source, values, nest)
                growth[node.id].append(len(delta))
                if len(delta):
                    held[node.id] = delta
            if held and iteration >= self.limit:
                raise self._diverged(held, growth, nest)
            iteration = iteration + 1 if held else nest.due.next(self.path, time, iteration)
        return consolidate(Rows.concat(exported)) if exported else self.nothing[self.export]

    def _evaluate(self, imported: Sequence[Delta] | None, held: dict[int, Delta], nest: Nest) -> list[Delta]:
        """One iteration: the value of each node."""
        values: list[Delta] = []
        time, filling = nest.time, nest.backfill and nest.first
        for node in self.nodes:
            match node.kind:
                case NodeKind.IMPORT:
                    values.append(self.nothing[node.id] if imported is None else node.operator.step(imported, nest))
                case NodeKind.FEEDBACK:
                    values.append(held.get(node.id, self.nothing[node.id]))
                case NodeKind.CHILD:
                    assert isinstance(node.operator, Child)
                    given = [values[i] for i in node.inputs]
                    awake = filling or any(map(len, given)) or nest.due.next(node.path, time, -1) is not None
                    values.append(node.operator.iterate(given, nest) if awake else self.nothing[node.id])
                case _:
                    given = [values[i] for i in node.inputs]
                    awake = any(map(len, given)) or nest.due.has(node.path, time) or (filling and node.operator.eager)
                    values.append(self._step(node, given, nest) if awake else self.nothing[node.id])
        return values

    def _step(self, node: Node, given: Sequence[Delta], nest: Nest) -> Delta:
        """One step of one node, counted under its global id."""
        nest.path = node.path
        counters = nest.counters = nest.inner.setdefault(node.name, Counters())
        start = perf_counter()
        try:
            output = node.operator.step(given, nest)
        except WeightOverflow as error:
            sources = [self.nodes[i] for i in node.inputs] or [node]
            raise named_overflow(node, sources, given, nest.strings, self._relations()) from error
        counters.seconds += perf_counter() - start
        counters.rows_in += sum(map(len, given))
        counters.rows_out += len(output)
        return output

    def _settled(self, at: int, values: Sequence[Delta], nest: Nest) -> Batch:
        """The value of node `at`, consolidated."""
        try:
            return consolidate(values[at])
        except WeightOverflow as error:
            raise named_overflow(self.nodes[at], [self.nodes[at]], [values[at]], nest.strings, self._relations()) from error

    def _relations(self) -> list[str]:
        """What the recursive relations are called, as far as they have names."""
        return [n.operator.relation for n in self.feedback if isinstance(n.operator, Feedback) and n.operator.relation]

    def _diverged(self, held: dict[int, Delta], growth: dict[int, list[int]], nest: Nest) -> Divergence:
        """The error, for the first relation that still changes."""
        node = next(n for n in self.feedback if n.id in held)
        assert isinstance(node.operator, Feedback)
        return divergence(node, self.limit, growth[node.id], held[node.id], nest)
