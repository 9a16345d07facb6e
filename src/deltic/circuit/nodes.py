"""Circuits as data: nodes with ids, scopes, levels, and what crosses from one level to the next.

A circuit is a scope of nodes in topological order. Edges are the ids of the nodes that they connect; a stream is never an
object of its own, it is the cell that holds its producer's value at the current time. Every node has a local id (its index
in its scope) and a global id (the path of local ids from the root). Everything here is frozen and picklable; the state that
a node owns is named by its arrangement id, a Merkle hash of all that determines its content, so that a changed program finds
the state that did not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache

from deltic.circuit.operator import Operator
from deltic.schema import Schema
from deltic.trace.encoding import Layout
from deltic.trace.rows import Rows


class NodeKind(Enum):
    """What a node is to its scope (inputs, outputs)."""

    OPERATOR = "operator"  # n, 1
    CHILD = "child"  # 0, n: a scope run to its fixed point in each step of its parent
    FEEDBACK = "feedback"  # 1, 1: what it got in the previous iteration
    IMPORT = "import"  # 1, 1: a parent's stream, whole at iteration 0 and empty afterwards
    SOURCE = "source"  # 0, 1
    SINK = "sink"  # n, 0


@dataclass(frozen=True, slots=True)
class Shape:
    """What flows along an edge: rows of `schema` as words, with `weights` weights a row (more than one: a ring of sums)."""

    schema: Schema
    weights: int = 1
    layout: Layout = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", Layout.of(self.schema))

    @property
    def kinds(self) -> tuple[object, ...]:
        """The shape without the names of its columns."""
        return (self.weights, *((field.type, field.nullable) for field in self.schema))


@dataclass(frozen=True, slots=True)
class Node:
    """One vertex.

    inputs: local ids. partition: the word columns whose hash gives a row's shard; () is the home shard, None any shard.
    level: how many exchanges lie before it. fingerprint: of all that it is computed by, moves between shards included.
    content: of the relation whose change it gives, on whichever shards. owns: the arrangement that it appends to.
    reads: arrangements whose old version it reads.
    inner: of a child, the arrangements that nodes in it append to.
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
    label: str = field(default="", compare=False)

    @property
    def id(self) -> int:
        return self.path[-1]

    @property
    def owned(self) -> tuple[str, ...]:
        """The arrangements that a step of it appends to."""
        return self.inner if self.owns is None else (self.owns, *self.inner)

    @property
    def name(self) -> str:
        """The global id as text: '3', or '3.1' inside child 3."""
        return ".".join(map(str, self.path))


class Shaped:
    """What has a shape."""

    __slots__ = ()
    shape: Shape

    @property
    def columns(self) -> int:
        """Words of a row."""
        return self.shape.layout.width

    @property
    def weights(self) -> int:
        return self.shape.weights

    @property
    def strings(self) -> tuple[int, ...]:
        """The words that are string ids."""
        return self.shape.layout.strings


@dataclass(frozen=True, slots=True)
class ArrangementSpec(Shaped):
    """State of one node: a spine of rows of `shape`, sorted by their words.

    key: how many leading fields readers look up by. view: the view whose content it is. table: the table whose content it is.
    order: for views and tables, the position in the user's schema of each stored field.
    partition: the stored words whose hash gives a row's shard; () is the home shard, None any shard. replicated: every shard has all rows.
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


@dataclass(frozen=True, slots=True)
class Port(Shaped):
    """Rows that cross from the node `node` at level `source_level` (-1: from outside) to `target_level`."""

    name: str
    node: int
    shape: Shape
    source_level: int
    target_level: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """A node as the stage function needs it, in every tick. source: its input is the pending rows of a table."""

    id: int
    name: str
    operator: Operator
    inputs: tuple[int, ...]
    eager: bool
    source: bool
    nothing: Rows

    @classmethod
    def of(cls, node: Node) -> Instruction:
        nothing = _no_rows(node.shape.layout.width, node.shape.weights)
        source = node.kind is NodeKind.SOURCE and not node.inputs
        return cls(node.id, node.name, node.operator, node.inputs, node.operator.eager, source, nothing)


@cache
def _no_rows(columns: int, weights: int) -> Rows:
    return Rows.empty(columns, weights)


@dataclass(frozen=True, slots=True)
class Level:
    """The nodes between two exchanges: what one task runs on one shard."""

    index: int
    nodes: tuple[Node, ...]
    arrives: tuple[Port, ...]
    leaves: tuple[Port, ...]
    owned: tuple[str, ...]
    reads: tuple[str, ...]
    instructions: tuple[Instruction, ...] = field(init=False, compare=False, repr=False)
    shared: frozenset[int] = field(init=False, compare=False, repr=False)
    """The inputs of several nodes."""

    def __post_init__(self) -> None:
        readers = Counter(i for node in self.nodes for i in node.inputs)
        object.__setattr__(self, "instructions", tuple(map(Instruction.of, self.nodes)))
        object.__setattr__(self, "shared", frozenset(i for i, count in readers.items() if count > 1))


@dataclass(frozen=True)
class Dataflow:
    """A whole program. `tables` maps a table to its arrangement, `views` a view to its.

    whole: all levels as one, for a single shard, where an exchange has nothing to do. routes: for each table the word columns, in the
    user's order, whose hash says on which shard a row lives.
    """

    nodes: tuple[Node, ...]
    levels: tuple[Level, ...]
    whole: Level
    arrangements: Mapping[str, ArrangementSpec]
    tables: Mapping[str, str]
    views: Mapping[str, str]
    routes: Mapping[str, tuple[int, ...]]

    @classmethod
    def empty(cls) -> Dataflow:
        """A program of nothing."""
        return cls((), (), Level(0, (), (), (), (), ()), {}, {}, {}, {})

    def upstream(self, arrangements: frozenset[str]) -> frozenset[int]:
        """Local ids of the nodes that own one of `arrangements`, or that such a node depends on."""
        wanted: set[int] = set()
        owners = {name: node.id for node in self.nodes for name in node.owned}
        for node in reversed(self.nodes):
            if node.id in wanted or not arrangements.isdisjoint(node.owned):
                wanted.add(node.id)
                wanted.update(node.inputs)
                wanted.update(owners[name] for name in node.reads)
        return frozenset(wanted)
