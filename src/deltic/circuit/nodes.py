"""Dataflows as data: nodes with ids, scopes, levels, and the ports between levels.

A dataflow is a scope of nodes in topological order. Edges are the ids of the nodes that they connect; a stream is not an object, but the
value of its producer at the current time. Every node has a local id (its index in its scope) and a global id (the path of local ids from
the root). Everything here is frozen and picklable. The state of a node is named by an arrangement id, a Merkle hash of everything that
determines its content, so that a changed program finds the state that did not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TypeVar

from deltic.circuit.operator import Operator
from deltic.expr.nodes import UserFunction
from deltic.schema import Schema
from deltic.trace.encoding import Layout
from deltic.trace.rows import Rows

T = TypeVar("T")


class NodeKind(Enum):
    """The role of a node in its scope. Comments give the number of inputs and outputs."""

    OPERATOR = "operator"  # n, 1
    CHILD = "child"  # 0, n: a scope run to its fixed point in each step of its parent
    FEEDBACK = "feedback"  # 1, 1: its input of the previous iteration
    IMPORT = "import"  # 1, 1: a parent's stream, whole at iteration 0 and empty afterwards
    SOURCE = "source"  # 0, 1
    SINK = "sink"  # n, 0


@dataclass(frozen=True, slots=True)
class Shape:
    """The rows on an edge: words of `schema`, with `weights` weights each (more than one for a ring of sums)."""

    schema: Schema
    weights: int = 1
    layout: Layout = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", Layout.of(self.schema))

    @property
    def kinds(self) -> tuple[object, ...]:
        """The shape without the names of its columns."""
        return (self.weights, *((field.type, field.nullable) for field in self.schema))


class _Remembering:
    """Base of classes that compute what follows from their fields when it is first read. It is not pickled."""

    __slots__ = ("_dependencies", "_functions", "_instruction", "_instructions", "_name", "_shared")
    _functions: tuple[UserFunction, ...]


@dataclass(frozen=True, slots=True)
class Node(_Remembering):
    """A node of a dataflow.

    inputs: local ids. partition: the word columns whose hash determines a row's shard; () is the home shard, None any shard.
    level: the number of exchanges before it. fingerprint: a hash of its whole computation, exchanges included. content: a hash of the
    relation whose change it computes, on whichever shards. owns: the arrangement that it appends to. reads: the arrangements whose old
    version it reads. inner: the arrangements that the nodes of a child append to. stream: its value is the content of a stream in the
    current tick, not a change. ephemeral: so is what it appends.
    """

    path: tuple[int, ...]
    kind: NodeKind
    operator: Operator
    inputs: tuple[int, ...]
    shape: Shape
    partition: tuple[int, ...] | None
    level: int
    fingerprint: str
    content: str
    owns: str | None = None
    reads: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    stream: bool = False
    ephemeral: bool = False
    label: str = field(default="", compare=False)
    id: int = field(init=False, compare=False, repr=False)
    owned: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """The arrangements that its step appends to."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.path[-1])
        object.__setattr__(self, "owned", self.inner if self.owns is None else (self.owns, *self.inner))

    @property
    def instruction(self) -> Instruction:
        """What the stage function needs of it."""
        return remembered(self, "_instruction", lambda: Instruction.of(self))

    def moved(self, path: tuple[int, ...], operator: Operator, inputs: tuple[int, ...]) -> Node:
        """The node with another id. operator: the same, or for a child the same with the ids in it."""
        node = replace(self, path=path, operator=operator, inputs=inputs)
        if hasattr(self, "_functions"):
            object.__setattr__(node, "_functions", self._functions)
        return node

    @property
    def name(self) -> str:
        """The global id as text: '3', or '3.1' inside child 3."""
        return remembered(self, "_name", lambda: ".".join(map(str, self.path)))


def remembered(owner: _Remembering, slot: str, compute: Callable[[], T]) -> T:
    """The value of a slot, computed when it is first read."""
    try:
        value: T = getattr(owner, slot)
    except AttributeError:
        value = compute()
        object.__setattr__(owner, slot, value)
    return value


class Shaped:
    """Base of classes with a shape."""

    __slots__ = ()
    shape: Shape

    @property
    def columns(self) -> int:
        """The number of words of a row."""
        return self.shape.layout.width

    @property
    def weights(self) -> int:
        return self.shape.weights

    @property
    def strings(self) -> tuple[int, ...]:
        """The positions of the words that are string ids."""
        return self.shape.layout.strings


@dataclass(frozen=True, slots=True)
class ArrangementSpec(Shaped):
    """The state of one node: a spine of rows of `shape`, sorted by their words.

    key: the number of leading fields that readers look up by. view, table: the view or table whose content it is.
    order: for views and tables, the position of each stored field in the user's schema.
    partition: the stored words whose hash determines a row's shard; () is the home shard, None any shard. replicated: every shard has all
    rows. ephemeral: of a stream; what a tick appends is gone after the tick, except that a view's change is kept like others.
    """

    id: str
    shape: Shape
    level: int
    key: int
    view: str | None = None
    table: str | None = None
    order: tuple[int, ...] = ()
    partition: tuple[int, ...] | None = None
    replicated: bool = False
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Port(Shaped):
    """Rows sent from node `node` at level `source_level` (-1: from outside) to `target_level`."""

    name: str
    node: int
    shape: Shape
    source_level: int
    target_level: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """The parts of a node that the stage function needs in every tick. source: its input is the pending rows of a table.

    keeps: the arrangement of its own whose rows outlive the tick.
    """

    id: int
    name: str
    operator: Operator
    inputs: tuple[int, ...]
    eager: bool
    source: bool
    nothing: Rows
    stream: bool
    keeps: str | None

    @classmethod
    def of(cls, node: Node) -> Instruction:
        nothing = Rows.empty(node.shape.layout.width, node.shape.weights)
        source = node.kind is NodeKind.SOURCE and not node.inputs
        keeps = None if node.ephemeral else node.owns
        return cls(node.id, node.name, node.operator, node.inputs, node.operator.eager, source, nothing, node.stream, keeps)

    def idle_in_backfill(self, fresh: frozenset[str], needed: frozenset[int]) -> bool:
        """Whether a backfill of `fresh`, which needs the nodes `needed`, leaves it out.

        A stream has no rows then; but one that keeps rows, such as those of open windows of a table, must be filled with them.
        """
        return self.id not in needed or (self.stream and self.keeps not in fresh)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Level(_Remembering):
    """The nodes between two exchanges, run by one task on one shard."""

    index: int
    nodes: tuple[Node, ...]
    arrives: tuple[Port, ...]
    leaves: tuple[Port, ...]
    owned: tuple[str, ...]
    reads: tuple[str, ...]

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        return remembered(self, "_instructions", lambda: tuple(node.instruction for node in self.nodes))

    @property
    def shared(self) -> frozenset[int]:
        """Local ids of the nodes that several nodes read."""
        return remembered(self, "_shared", self._read_by_several)

    @property
    def dependencies(self) -> tuple[frozenset[int], ...]:
        """For each node the positions of those in the level that it reads."""
        return remembered(self, "_dependencies", self._read_positions)

    def _read_by_several(self) -> frozenset[int]:
        readers = Counter(i for node in self.nodes for i in node.inputs)
        return frozenset(i for i, count in readers.items() if count > 1)

    def _read_positions(self) -> tuple[frozenset[int], ...]:
        numbers = {node.id: number for number, node in enumerate(self.nodes)}
        return tuple(frozenset(numbers[i] for i in node.inputs if i in numbers) for node in self.nodes)


@dataclass(frozen=True)
class Dataflow:
    """A whole program. tables, views: name → arrangement.

    whole: all levels as one without exchanges, for a single shard. routes: for each table the word columns, in the user's order, whose
    hash determines a row's shard. rests: a tick without rows, which is no backfill, changes nothing: no operator follows time or ticks.
    """

    nodes: tuple[Node, ...]
    levels: tuple[Level, ...]
    whole: Level
    arrangements: Mapping[str, ArrangementSpec]
    tables: Mapping[str, str]
    views: Mapping[str, str]
    routes: Mapping[str, tuple[int, ...]]
    rests: bool = True

    @cached_property
    def ephemeral(self) -> frozenset[str]:
        """The arrangements of streams."""
        return frozenset(name for name, spec in self.arrangements.items() if spec.ephemeral)

    @classmethod
    def empty(cls) -> Dataflow:
        """The program without tables and views."""
        return cls((), (), Level(0, (), (), (), (), ()), {}, {}, {}, {})

    def upstream(self, arrangements: frozenset[str]) -> frozenset[int]:
        """Local ids of the nodes that own one of `arrangements`, and of all nodes that these depend on."""
        needed: set[int] = set()
        owners = {name: node.id for node in self.nodes for name in node.owned}
        for node in reversed(self.nodes):
            if node.id in needed or not arrangements.isdisjoint(node.owned):
                needed.add(node.id)
                needed.update(node.inputs)
                needed.update(owners[name] for name in node.reads)
        return frozenset(needed)

    def dependents(self) -> list[set[str]]:
        """For each node the views that depend on it. O(nodes, and all that is listed)."""
        shown: dict[str, list[str]] = {}
        for view, arrangement in self.views.items():
            shown.setdefault(arrangement, []).append(view)
        owners = {name: node.id for node in self.nodes for name in node.owned}
        dependents: list[set[str]] = [set() for _ in self.nodes]
        for node in reversed(self.nodes):
            own = dependents[node.id]
            own.update(view for name in node.owned for view in shown.get(name, ()))
            for i in {*node.inputs, *(owners[name] for name in node.reads)} - {node.id}:
                dependents[i] |= own
        return dependents
