"""Builds dataflows node by node; equal operators on equal inputs become one node."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from deltic.circuit.nodes import ArrangementSpec, Dataflow, Level, Node, NodeKind, Port, Shape
from deltic.circuit.operator import Operator
from deltic.circuit.operators.accumulate import AccumulateOperator
from deltic.circuit.operators.aggregate import AggregateOperator
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.child import Child
from deltic.circuit.operators.fold_groups import FoldSums
from deltic.circuit.operators.inspect import InspectOperator
from deltic.circuit.operators.linear import Exchange
from deltic.circuit.operators.nested_arrange import NestedArrange
from deltic.circuit.operators.over_ticks import OverTicksOperator
from deltic.circuit.operators.reduce import ReduceOperator
from deltic.circuit.operators.table import StreamInput, TableInput
from deltic.circuit.operators.watermark import WatermarkOperator
from deltic.circuit.pending import PendingRows
from deltic.schema import Field, TableSchema, Type
from deltic.stacks import unbounded
from deltic.types import OMITTED

K = TypeVar("K")
V = TypeVar("V")

NAMED = (TableSchema, ReduceOperator, AccumulateOperator, InspectOperator)
"""Classes in whose ids the names of columns count."""

STATE_NAMES = {"PrefixFilter": "Filter", "RuleAtom": "Atom", "SumSource": "Source"}
"""Class name → the name that ids of states use. A class that is renamed is listed here, so that existing states keep their ids."""

ARRANGEMENT = re.compile("(?<![a-z_0-9])[a-z_0-9]++-[0-9a-f]{32}")
"""Matches the id of an arrangement."""


class Growth(NamedTuple):
    """What was added to a builder: nodes, identities, and arrangements by what is known of them."""

    nodes: range
    identities: list[str]
    arrangements: list[str]
    contents: list[str]


class BuilderSize(NamedTuple):
    """The numbers of nodes, identities, arrangements and contents of a builder."""

    nodes: int
    identities: int
    arrangements: int
    contents: int


class CircuitBuilder:
    """Mutable while a program is lowered; `finish` returns the frozen dataflow."""

    depth = 0
    """The number of scopes around its nodes."""

    def __init__(self, *, several: bool = True) -> None:
        self.several = several
        """Whether the dataflow may run on several shards."""
        self.nodes: list[Node] = []
        self.arrangements: dict[str, ArrangementSpec] = {}
        self.depths: dict[str, int] = {}
        """The number of scopes around each arrangement."""
        self.contents: dict[str, str] = {}
        """For each arrangement the content of the node that owns it."""
        self.tables: dict[str, str] = {}
        self.views: dict[str, str] = {}
        self._ids: dict[str, int] = {}

    def add(
        self,
        operator: Operator,
        inputs: tuple[int, ...],
        shape: Shape,
        partition: tuple[int, ...] | None,
        *,
        kind: NodeKind = NodeKind.OPERATOR,
        owns: str | None = None,
        reads: Iterable[str] = (),
        relation: str | None = None,
        content: str | None = None,
        stands_for: str | None = None,
    ) -> int:
        """The id of the node: a new one, or that of an equal node added before.

        relation: its fingerprint and content, if these must not depend on how its inputs are spread over the shards. content: its content
        alone, if the operator has details that do not belong to it, such as which of two arrangements it reads. It has precedence.
        stands_for: the fingerprint of a node whose rows these are, if what reads them has the state of its readers.
        """
        text = canonical(operator)
        identity = owns or relation or self.digest(text, *(self.nodes[i].fingerprint for i in inputs))
        if identity in self._ids:
            return self._ids[identity]
        content = content or relation or self._content(operator, text, inputs, owns)
        path = (len(self.nodes),)
        inner: tuple[str, ...] = ()
        if isinstance(operator, Child):
            operator, inner = operator.within(path), operator.owned
        fingerprint = stands_for or identity
        level = max((self.nodes[i].level for i in inputs), default=0) + isinstance(operator, Exchange)
        streams = _streams(operator, any(self.nodes[i].stream for i in inputs))
        self.nodes.append(
            Node(path, kind, operator, inputs, shape, partition, level, fingerprint, content, owns, tuple(reads), inner, *streams)
        )
        self._ids[identity] = path[0]
        if owns is not None:
            self.depths[owns], self.contents[owns] = self.depth, content
        return path[0]

    def content_of_source(self, operator: TableInput) -> str:
        """The content of the node that `operator` would be."""
        return self._content(operator, canonical(operator), (), operator.arrangement)

    def _content(self, operator: Operator, text: str, inputs: tuple[int, ...], owns: str | None) -> str:
        """The identity of the relation whose change a node's stream carries, regardless of shards and of the names of columns."""
        contents = [self.nodes[i].content for i in inputs]
        if isinstance(operator, Exchange | Arrange | NestedArrange):
            return contents[0]

        def content_of(name: re.Match[str]) -> str:
            return "" if name.group() == owns else self.contents.get(name.group(), name.group())

        return self.digest(ARRANGEMENT.sub(content_of, text), *contents)

    def digest(self, *parts: object) -> str:
        """A hash of frozen data that is the same in every process."""
        return hashlib.sha256(f"[{', '.join(map(canonical, parts))}]".encode()).hexdigest()[:32]

    def name(self, role: str, *parts: object) -> str:
        """An arrangement's id: a hash of everything that determines its content."""
        return f"{role}-{self.digest(*parts)}"

    def placed(self, node: int, partition: tuple[int, ...] | None) -> str:
        """The identity of the node's stream as state, its rows spread over the shards by `partition`; None: on any shard."""
        return self.digest(self.nodes[node].content, partition)

    def fingerprint(self, node: int) -> str:
        """The identity of the node's stream as state, its rows where the node leaves them."""
        producer = self.nodes[node]
        anywhere = producer.partition is None and self.several
        return self.digest(producer.content, producer.fingerprint) if anywhere else self.placed(node, producer.partition)

    def specify(self, spec: ArrangementSpec) -> None:
        self.arrangements.setdefault(spec.id, spec)

    def size(self) -> BuilderSize:
        """How far it has grown."""
        return BuilderSize(len(self.nodes), len(self._ids), len(self.arrangements), len(self.contents))

    def since(self, size: BuilderSize) -> Growth:
        """What was added since it had this size. O(that)."""
        now = self.size()
        identities = last_of(self._ids, now.identities - size.identities)
        arrangements = last_of(self.arrangements, now.arrangements - size.arrangements)
        contents = last_of(self.contents, now.contents - size.contents)
        return Growth(range(size.nodes, now.nodes), identities, arrangements, contents)

    def remove(self, growth: Growth) -> None:
        """Removes nodes that no other reads. Their ids stay taken, by nodes without state, which fusion drops."""
        for i in growth.nodes:
            self.nodes[i] = replace(self.nodes[i], kind=NodeKind.OPERATOR, owns=None, inner=(), reads=())
        for identity in growth.identities:
            del self._ids[identity]
        for name in growth.arrangements:
            del self.arrangements[name]
        for name in growth.contents:
            del self.contents[name], self.depths[name]

    def finish(self, nodes: tuple[Node, ...] | None = None) -> Dataflow:
        """The dataflow of the nodes added so far, or of equivalent ones, as after fusion. Does not change the builder."""
        nodes = tuple(self.nodes) if nodes is None else nodes
        ports = _ports(nodes)
        levels = []
        by_level: list[list[Node]] = [[] for _ in range(max((n.level for n in nodes), default=0) + 1)]
        for node in nodes:
            if not isinstance(node.operator, Exchange):
                by_level[node.level].append(node)
        for index, members in enumerate(by_level):
            own = tuple(members)
            owned = tuple(name for n in own for name in n.owned)
            reads = tuple(dict.fromkeys((*owned, *(name for n in own for name in n.reads))))
            arrives = tuple(p for p in ports if p.target_level == index)
            leaves = tuple(p for p in ports if p.source_level == index)
            levels.append(Level(index, own, arrives, leaves, owned, reads))
        whole = _whole(nodes, tuple(p for p in ports if p.source_level < 0))
        arrangements = self._specified(nodes)
        rests = not any(spec.ephemeral for spec in arrangements.values()) and not any(map(_acts_alone, nodes))
        return Dataflow(nodes, tuple(levels), whole, arrangements, dict(self.tables), dict(self.views), _routes(nodes), rests)

    def _specified(self, nodes: Sequence[Node]) -> dict[str, ArrangementSpec]:
        """The arrangements, each at the level of the node that owns it, and partitioned like it unless the spec has a partition."""
        owners = {name: node for node in nodes for name in node.owned}
        specified = {}
        for name, spec in self.arrangements.items():
            partition = owners[name].partition if spec.partition is None else spec.partition
            specified[name] = replace(spec, level=owners[name].level, partition=partition, ephemeral=owners[name].ephemeral)
        return specified


def last_of(added: dict[K, V], number: int) -> list[K]:
    """The keys that were added last. O(number)."""
    return list(islice(reversed(added), number))


def _acts_alone(node: Node) -> bool:
    """Whether the node may have a change in a tick without rows. A table, and an aggregate without keys, are eager for backfills."""
    return node.operator.eager and not isinstance(node.operator, TableInput | AggregateOperator)


def _streams(operator: Operator, reads_stream: bool) -> tuple[bool, bool]:
    """(whether a node is a stream, whether what it appends is gone after the tick)."""
    if isinstance(operator, OverTicksOperator):
        return reads_stream and operator.function in ("delay", "batched"), False
    if isinstance(operator, WatermarkOperator):
        return operator.closed, False
    if isinstance(operator, AccumulateOperator | FoldSums):
        return False, False
    is_stream = reads_stream or isinstance(operator, StreamInput)
    return is_stream, is_stream


def _whole(all_nodes: Sequence[Node], pending: tuple[Port, ...]) -> Level:
    """All nodes as one level without exchanges: readers of an exchange read its input. pending: the ports of the tables."""
    producers: dict[int, int] = {}
    nodes = []
    for node in all_nodes:
        inputs = tuple(producers[i] for i in node.inputs)
        producers[node.id] = inputs[0] if isinstance(node.operator, Exchange) else node.id
        if not isinstance(node.operator, Exchange):
            nodes.append(node if node.inputs == inputs and node.level == 0 else replace(node, inputs=inputs, level=0))
    owned = tuple(name for n in nodes for name in n.owned)
    return Level(0, tuple(nodes), pending, (), owned, owned)


def _routes(nodes: Sequence[Node]) -> dict[str, tuple[int, ...]]:
    tables = [n.operator for n in nodes if isinstance(n.operator, TableInput)]
    return {t.table.name: t.order[: t.key] or t.order for t in tables}


def _ports(nodes: Sequence[Node]) -> list[Port]:
    """The ports between levels: pending rows to their tables, exchanged streams, and streams that later levels read too."""
    ports: dict[str, Port] = {}
    for node in nodes:
        if isinstance(node.operator, TableInput):
            table = node.operator.table
            shape = Shape(PendingRows.schema(table.schema))
            ports[f"table:{table.name}"] = Port(f"table:{table.name}", node.id, shape, -1, node.level)
        for i in node.inputs:
            source = nodes[i]
            if isinstance(node.operator, Exchange):
                ports[f"x{node.id}"] = Port(f"x{node.id}", node.id, node.shape, source.level, node.level)
            elif source.level < node.level:
                name = f"f{i}.{node.level}"
                ports[name] = Port(name, i, source.shape, source.level, node.level)
    return list(ports.values())


_PLAIN: Final = frozenset((str, int, bool, float, bytes, type(None)))


def canonical(value: object, *, named: bool = False) -> str:
    """Frozen data as the repr of nested tuples of text, without fields that equality ignores (spans, derived fields).

    named: whether the names of columns count, as they do for tables and for functions that see them. A class is represented by its name in
    STATE_NAMES, or by its own name without "Operator". The text is built without the tuples: a view of 10,000 terms is hashed repeatedly.
    """
    if type(value) in _PLAIN:
        return repr(repr(value))
    if isinstance(value, tuple | list):
        return _nested([canonical(part, named=named) for part in value])
    if isinstance(value, Type):
        return _canonical_type(value)
    if isinstance(value, Field) and not named:
        return f"('Field', {_canonical_type(value.type)}, {value.nullable})"
    return _canonical_fields(value, named)


@unbounded
def _canonical_fields(value: object, named: bool) -> str:
    kind: Any = type(value)
    form = _canonical_form(kind)
    if form is None:
        return repr(repr(value))
    name, compared, optional, names_count = form
    present = [field for field, default in optional if getattr(value, field) != default] if optional else ()
    return _nested([name, *[canonical(getattr(value, field), named=named or names_count) for field in (*compared, *present)]])


def _nested(parts: Sequence[str]) -> str:
    """The repr of a tuple, of its parts' reprs."""
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


@cache
def _canonical_form(kind: type) -> tuple[str, tuple[str, ...], tuple[tuple[str, object], ...], bool] | None:
    """(the repr of its name in ids, its compared fields, those of OMITTED with their defaults, whether names of columns in it count).

    None if the class is not a dataclass.
    """
    if not dataclasses.is_dataclass(kind):
        return None
    fields = [field for field in dataclasses.fields(kind) if field.compare]
    compared = tuple(field.name for field in fields if OMITTED not in field.metadata)
    optional = tuple((field.name, field.default) for field in fields if OMITTED in field.metadata)
    name = str(kind.__name__)
    return repr(STATE_NAMES.get(name, name.removesuffix("Operator"))), compared, optional, issubclass(kind, NAMED)


@cache
def _canonical_type(type: Type) -> str:
    return _canonical_fields(type, False)
