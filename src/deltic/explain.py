"""Descriptions of a program: its sources and sinks, the plan of each view, and the dataflow that maintains it.

As text or JSON; the dataflow also as a Mermaid flowchart or a Graphviz digraph, with scopes as clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from deltic.circuit.copies import copies
from deltic.circuit.cube import Replicate
from deltic.circuit.nodes import Dataflow, Node
from deltic.circuit.operators.chain import ARROW
from deltic.circuit.operators.child import Child
from deltic.circuit.operators.feedback import Feedback, Import
from deltic.circuit.operators.join import JoinOperator
from deltic.circuit.operators.linear import Exchange
from deltic.circuit.operators.nested_join import NestedJoin
from deltic.circuit.operators.nested_range_join import NestedRangeJoin
from deltic.circuit.operators.range_join import RangeJoin
from deltic.circuit.operators.semijoin import SemiJoin
from deltic.circuit.operators.table import StreamInput, TableInput
from deltic.circuit.operators.top_k import TopKOperator
from deltic.circuit.operators.watermark import WatermarkOperator
from deltic.circuit.programs.program import program_of
from deltic.connectors.connector import SinkSpec, SourceSpec
from deltic.drawing import Vertex, graphviz, mermaid
from deltic.lowering.show_bounds import StateBound, state_bounds
from deltic.lowering.show_rules import JoinPicture, short, word_names
from deltic.lowering.show_rules import pictures as joins
from deltic.optimizer.form_multiway_joins import binary_cycles
from deltic.optimizer.keyless_joins import one_sided_joins
from deltic.plan.nodes import Plan
from deltic.plan.show import show, show_node, show_terms
from deltic.plan.walk import nodes
from deltic.plan.window_nodes import Window
from deltic.runtimes import TickResult
from deltic.stacks import roomy

LINEAR = "linear"
CONSTANT = 1
"""The number of words of the key of rows without a key, a constant; the order of a window follows it as more words."""
CLASSES = {
    "map": LINEAR,
    "filter": LINEAR,
    "explode": LINEAR,
    "flat_map": LINEAR,
    "expand": LINEAR,
    "generate": LINEAR,
    "temporal_filter": LINEAR,
    "plus": LINEAR,
    "place": LINEAR,
    "order": LINEAR,
    "limbs": LINEAR,
    "exchange": LINEAR,
    "replicate": LINEAR,
    "constant": "source",
    "source": "source",
    "trace_append": "integral",
    "join_trace": "bilinear",
    "range_join": "bilinear",
    "range_rows": "linear",
    "interval_rows": "linear",
    "multiway_join": "multilinear",
    "negate": LINEAR,
    "import": LINEAR,
    "delay": LINEAR,
    "integrate": LINEAR,
    "fold_sums": LINEAR,
    "delta0": LINEAR,
    "current": LINEAR,
    "feedback_over_ticks": LINEAR,
    "stamp": LINEAR,
    "open_windows": LINEAR,
    "closed_windows": LINEAR,
    "feedback": "delay by one iteration",
    "child": "fixed point",
}


@dataclass(frozen=True, slots=True)
class OperatorPicture:
    """One node: id, operator, class, key, inputs, level and partition, state, and the work of the last tick. stream: it keeps no rows."""

    id: str
    operator: str
    kind: str
    key: str
    inputs: tuple[str, ...]
    level: int
    partition: str
    columns: tuple[str, ...]
    weights: int
    state: str | None
    reads: tuple[str, ...]
    state_rows: int
    state_bytes: int
    views: tuple[str, ...]
    rows_in: int
    rows_out: int
    rows_touched: int
    batches_read: int
    seconds: float
    stream: bool

    def line(self) -> str:
        head = f"{'  ' * self.id.count('.')}{self.id:>3} {self.operator}"
        facts = [self.kind]
        if self.key:
            facts.append(f"key ({self.key})")
        if self.inputs:
            facts.append(f"from {', '.join(self.inputs)}")
        facts.append(self.partition)
        if self.weights > 1:
            facts.append(f"{self.weights} weights")
        if self.stream:
            facts.append("stream")
        if self.state is not None:
            facts.append(f"state {self.state}: {self.state_rows:,} rows, {self.state_bytes:,} bytes")
        facts += [f"reads {name}" for name in self.reads if name != self.state]
        if len(self.views) > 1:
            facts.append(f"shared by {', '.join(self.views)}")
        return f"{head:<22} [{', '.join(self.columns)}] {'; '.join(facts)}"

    def vertex(self) -> Vertex:
        """Its vertex in a drawing: the operator, its key, and its state."""
        facts = [self.operator, *([f"by {self.key}"] if self.key else []), *([f"state {self.state}"] if self.state else [])]
        feedback = self.operator == "feedback"
        return Vertex(self.id, ", ".join(facts), () if feedback else self.inputs, self.inputs if feedback else ())


@dataclass(frozen=True, slots=True)
class CopyPicture:
    """An arrangement that holds rows of a table. columns: in its sort order. readers: the number of operators that read it."""

    table: str
    arrangement: str
    columns: tuple[str, ...]
    readers: int
    rows: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.arrangement} ({', '.join(self.columns)}): {self.rows:,} rows, {self.bytes:,} bytes, read by {self.readers}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The result of `explain`: text by `str()`, or `.json()`, `.mermaid()` or `.graphviz()`.

    joins: the multiway joins. copies: the arrangements of the whole program that hold rows of the tables that the views read. sources: by
    table. sinks: name → (view, sink) for the sinks that read the views. bounds: of the state of each operator, if a stream is read.
    programs: those of the levels, if they are asked for.
    """

    plans: Mapping[str, str]
    operators: tuple[OperatorPicture, ...]
    joins: tuple[JoinPicture, ...]
    copies: tuple[CopyPicture, ...]
    shards: int
    levels: int
    exchanges: int
    notes: tuple[str, ...]
    sources: Mapping[str, SourceSpec]
    sinks: Mapping[str, tuple[str, SinkSpec]]
    bounds: tuple[StateBound, ...] = ()
    programs: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"source {table}: {source.describe()}" for table, source in self.sources.items()]
        lines += [f"sink {name}: {view} to {sink.describe()}" for name, (view, sink) in self.sinks.items()]
        lines += [""] if lines else []
        for view, plan in self.plans.items():
            lines += [f"view {view}", *(f"  {line}" for line in plan.splitlines()), ""]
        lines.append(f"circuit: {len(self.operators)} operators in {self.levels} levels, {self.exchanges} exchanges, {self.shards} shards")
        level = -1
        for operator in self.operators:
            if operator.level != level:
                level = operator.level
                lines.append(f"  level {level}")
            lines.append(f"    {operator.line()}")
        lines += [line for join in self.joins for line in join.lines()]
        for table in dict.fromkeys(copy.table for copy in self.copies):
            held = [copy for copy in self.copies if copy.table == table]
            lines += [f"rows of {table} are held in {len(held)} arrangements", *(f"  {copy}" for copy in held)] if len(held) > 1 else []
        lines += map(str, self.bounds)
        lines += [f"note: {note}" for note in self.notes]
        for number, program in enumerate(self.programs):
            lines += ["", f"program of level {number}", *(f"  {line}" for line in program.splitlines())]
        return "\n".join(lines)

    def work(self) -> str:
        """What the operators did in the last tick: a table with a line for each that had rows."""
        busy = [o for o in self.operators if o.rows_in or o.rows_out or o.rows_touched]
        names = [f"{o.id:>3} {o.operator}" for o in busy]
        width = max(map(len, ("last tick", *names)))
        lines = [f"{'last tick':{width}} {'rows in':>10} {'rows out':>10} {'touched':>10} {'ms':>9}"]
        for name, o in zip(names, busy, strict=True):
            lines.append(f"{name:{width}} {o.rows_in:>10,} {o.rows_out:>10,} {o.rows_touched:>10,} {1000 * o.seconds:>9.3f}")
        return "\n".join(lines)

    def mermaid(self) -> str:
        """The circuit as a Mermaid flowchart; scopes are subgraphs."""
        return mermaid([operator.vertex() for operator in self.operators])

    def graphviz(self) -> str:
        """The dataflow as a Graphviz digraph; scopes are clusters."""
        return graphviz([operator.vertex() for operator in self.operators])

    def json(self) -> dict[str, Any]:
        """The same as JSON values."""
        fields = OperatorPicture.__slots__
        operators = [{f: getattr(o, f) for f in fields} for o in self.operators]
        return {
            "plans": dict(self.plans),
            "operators": operators,
            "joins": [asdict(join) for join in self.joins],
            "copies": [asdict(copy) for copy in self.copies],
            "shards": self.shards,
            "levels": self.levels,
            "exchanges": self.exchanges,
            "notes": list(self.notes),
            "bounds": [asdict(bound) for bound in self.bounds],
            **({"programs": list(self.programs)} if self.programs else {}),
            "sources": {table: source.facts() for table, source in self.sources.items()},
            "sinks": {name: {"view": view, **sink.facts()} for name, (view, sink) in self.sinks.items()},
        }


@roomy
def explain(
    plans: Mapping[str, Plan],
    circuit: Dataflow,
    statistics: Mapping[str, tuple[int, int]],
    last: TickResult | None,
    shards: int,
    *,
    sources: Mapping[str, SourceSpec],
    sinks: Mapping[str, tuple[str, SinkSpec]],
    programs: bool = False,
) -> Explanation:
    """The explanation of the views of `plans` in `circuit`.

    statistics: arrangement → (rows, bytes). sources: those of all tables, by lower-case name. sinks: all, each with its view.
    programs: whether to list the programs of the levels, as far as the views need them.
    """
    users = circuit.dependents()
    shown = [n for n in circuit.nodes if not users[n.id].isdisjoint(plans)]
    shown.sort(key=lambda n: (n.level, n.id))
    drawn = _Drawn(circuit, statistics, last)
    pictures = tuple(p for n in shown for p in drawn.pictures(n, circuit.nodes, (), tuple(sorted(users[n.id]))))
    exchanges = sum(isinstance(n.operator, Exchange) for n in shown)
    levels = 1 + max((n.level for n in shown), default=-1)
    tables = [n.operator.table.name for n in shown if isinstance(n.operator, TableInput)]
    return Explanation(
        {v: show(p) for v, p in plans.items()},
        pictures,
        tuple(joins(shown, circuit.nodes, circuit, statistics)),
        tuple(_copies(tables, circuit, statistics)),
        shards,
        levels,
        exchanges,
        (*_notes(shown), *_one_sided(plans), *(_undivided(plans) if shards > 1 else ()), *_cycles(plans)),
        {table: sources[table.lower()] for table in tables if table.lower() in sources},
        {name: (view, sink) for name, (view, sink) in sinks.items() if view in plans},
        tuple(state_bounds(circuit.nodes, shown)) if any(isinstance(n.operator, StreamInput | WatermarkOperator) for n in shown) else (),
        tuple(_listings(circuit, shards, {n.id for n in shown})) if programs else (),
    )


def _listings(circuit: Dataflow, shards: int, shown: set[int]) -> Iterator[str]:
    """The programs of the levels: of one for the whole circuit, if there is one shard."""
    for level in (circuit.whole,) if shards == 1 else circuit.levels:
        yield program_of(level).listing(shown)


def _copies(tables: Sequence[str], circuit: Dataflow, statistics: Mapping[str, tuple[int, int]]) -> Iterator[CopyPicture]:
    """The arrangements of the whole program that hold rows of the tables."""
    readers = Counter(name for node in circuit.nodes for name in {*node.reads} - {node.owns})
    for copy in copies(circuit):
        if copy.table in tables:
            size = statistics.get(copy.arrangement, (0, 0))
            yield CopyPicture(copy.table, short(copy.arrangement), copy.columns, readers[copy.arrangement], *size)


class _Drawn(NamedTuple):
    """What pictures of operators are drawn from: a dataflow, the (rows, bytes) of its arrangements, and its last tick."""

    circuit: Dataflow
    statistics: Mapping[str, tuple[int, int]]
    last: TickResult | None

    def pictures(self, node: Node, peers: Sequence[Node], around: Sequence[str], views: tuple[str, ...]) -> Iterator[OperatorPicture]:
        """The node, followed by the nodes of its scope if it is a child. peers: the nodes of its own scope. around: its inputs."""
        yield self._picture(node, peers, around, views)
        if isinstance(node.operator, Child):
            imported = [peers[i].name for i in node.inputs]
            for inner in node.operator.nodes:
                yield from self.pictures(replace(inner, level=node.level), node.operator.nodes, imported, views)

    def _picture(self, node: Node, peers: Sequence[Node], around: Sequence[str], views: tuple[str, ...]) -> OperatorPicture:
        rows, size = self.statistics.get(node.owns or "", (0, 0))
        work = None if self.last is None else self.last.counters.get(node.name)
        return OperatorPicture(
            node.name,
            node.operator.name,
            CLASSES.get(node.operator.name.partition(ARROW)[0], "non-linear"),
            _key(node, peers, self.circuit),
            _inputs(node, peers, around),
            node.level,
            _partition(node, _replicated(node, self.circuit)),
            node.shape.schema.names,
            node.shape.weights,
            short(node.owns) if node.owns and not node.ephemeral else None,
            tuple(short(name) for name in node.reads if name not in self.circuit.ephemeral),
            rows,
            size,
            views,
            work.rows_in if work else 0,
            work.rows_out if work else 0,
            work.touched if work else 0,
            work.batches if work else 0,
            work.seconds if work else 0.0,
            node.ephemeral,
        )


def _inputs(node: Node, peers: Sequence[Node], around: Sequence[str]) -> tuple[str, ...]:
    """The ids of the nodes that it reads: for a feedback its source, for an import a node outside its scope, for a child its export."""
    match node.operator:
        case Feedback():
            return (peers[node.operator.source].name,)
        case Import():
            return (around[node.operator.position],)
        case Child():
            return (node.operator.nodes[node.operator.export].name,)
    return tuple(peers[i].name for i in node.inputs)


def _key(node: Node, peers: Sequence[Node], circuit: Dataflow) -> str:
    operator = node.operator.flat if isinstance(node.operator, NestedJoin | NestedRangeJoin) else node.operator
    if isinstance(operator, JoinOperator | SemiJoin | RangeJoin):
        return ", ".join(dict.fromkeys(word_names(peers[node.inputs[0]].shape)[: operator.key]))
    if isinstance(operator, Exchange) and operator.key is not None:
        return ", ".join(word_names(node.shape)[w] for w in operator.key)
    if node.owns in circuit.arrangements:
        spec = circuit.arrangements[node.owns or ""]
        return ", ".join(spec.shape.schema.names[: spec.key])
    return ""


def _replicated(node: Node, circuit: Dataflow) -> bool:
    """Whether every shard has all rows of the node."""
    if isinstance(node.operator, Exchange):
        return node.operator.key is None
    arrangement = node.operator.arrangement if isinstance(node.operator, Import) else node.owns
    spec = circuit.arrangements.get(arrangement or "")
    return spec is not None and spec.replicated


def _partition(node: Node, replicated: bool) -> str:
    if isinstance(node.operator, Replicate):
        return "by cube"
    if node.partition is None:
        return "every shard" if replicated else "any shard"
    if not node.partition:
        return "home shard"
    words = word_names(node.shape)
    return f"by hash ({', '.join(dict.fromkeys(words[w] for w in node.partition))})"


def _notes(shown: Sequence[Node]) -> list[str]:
    """The operators whose work is not bounded by the change, and why."""
    notes = []
    for node in shown:
        if isinstance(node.operator, JoinOperator | SemiJoin) and node.partition == () and node.operator.key == CONSTANT:
            cost = "each change is joined with every row of the other side"
            if isinstance(node.operator, SemiJoin):
                cost = "the first and the last row of the right side change the result for every row of the left"
            notes.append(f"operator {node.name} has no equality key: {cost}, all on the home shard")
        if isinstance(node.operator, TopKOperator):
            notes.append(f"operator {node.name}: a change within the first {node.operator.limit} rows reads up to that many rows")
    return notes


def _undivided(plans: Mapping[str, Plan]) -> Iterator[str]:
    """The windows whose rows are all on one of several shards, since they are one partition."""
    for view, plan in plans.items():
        for window in nodes(plan):
            if isinstance(window, Window) and not window.keys:
                order = f" by {show_terms(window.order)}" if window.order else ""
                yield f"view {view}: a window{order} has no PARTITION BY, so the home shard keeps all its rows"


def _one_sided(plans: Mapping[str, Plan]) -> Iterator[str]:
    """The joins without an equality that test conditions on all rows that one comparison finds."""
    for view, plan in plans.items():
        for join in one_sided_joins(plan):
            yield f"view {view}: {show_node(join)}: one comparison looks rows up; the other conditions are tested on all that satisfy it"


def _cycles(plans: Mapping[str, Plan]) -> Iterator[str]:
    """The cyclic joins that stay binary, and why."""
    for view, plan in plans.items():
        yield from (f"view {view}: joins that form a cycle stay binary: {reason}" for reason in binary_cycles(plan))
