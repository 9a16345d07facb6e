"""Puts circuits together, node by node, so that equal nodes on equal inputs are one node."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from deltic.circuit.nodes import ArrangementSpec, Dataflow, Level, Node, NodeKind, Port, Shape
from deltic.circuit.operator import Operator
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.child import Child
from deltic.circuit.operators.inspect import InspectOperator
from deltic.circuit.operators.linear import Exchange
from deltic.circuit.operators.nested_arrange import NestedArrange
from deltic.circuit.operators.reduce import ReduceOperator
from deltic.circuit.operators.table import TableInput
from deltic.circuit.pending import PendingRows
from deltic.schema import Field, TableSchema

NAMED = (TableSchema, ReduceOperator, InspectOperator)
"""In these the names of columns count."""

STATE_NAMES = {"PrefixFilter": "Filter", "RuleAtom": "Atom", "SumSource": "Source"}
"""Classes that count in the ids of states under another name than their own; a class that is renamed is added, so that ids stay."""

ARRANGEMENT = re.compile("[a-z_0-9]+-[0-9a-f]{32}")
"""What arrangements are called."""


class CircuitBuilder:
    """Mutable while a program is lowered; `finish` gives the frozen circuit."""

    depth = 0
    """How many scopes lie around its nodes."""

    def __init__(self, *, several: bool = True) -> None:
        self.several = several
        """Whether the circuit may run on several shards."""
        self.nodes: list[Node] = []
        self.arrangements: dict[str, ArrangementSpec] = {}
        self.depths: dict[str, int] = {}
        """In how many scopes each arrangement lies."""
        self.contents: dict[str, str] = {}
        """What each arrangement is of: the content of the node that owns it."""
        self.tables: dict[str, str] = {}
        self.views: dict[str, str] = {}
        self._known: dict[str, int] = {}

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
        meaning: str | None = None,
        content: str | None = None,
    ) -> int:
        """The id of the node; the one that is there already if an equal one is.

        meaning: its fingerprint and content, where these must not depend on how its inputs are spread over the shards. content: by itself,
        where the operator says more than that, such as which of two arrangements it reads.
        """
        text = repr(canonical(operator))
        mark = owns or meaning or self.digest(text, *(self.nodes[i].fingerprint for i in inputs))
        if mark in self._known:
            return self._known[mark]
        content = meaning or content or self._content(operator, text, inputs, owns)
        path = (len(self.nodes),)
        inner: tuple[str, ...] = ()
        if isinstance(operator, Child):
            operator, inner = operator.within(path), operator.owned
        level = max((self.nodes[i].level for i in inputs), default=0) + isinstance(operator, Exchange)
        self.nodes.append(Node(path, kind, operator, inputs, shape, partition, level, mark, content, owns, tuple(reads), inner))
        self._known[mark] = path[0]
        if owns is not None:
            self.depths[owns], self.contents[owns] = self.depth, content
        return path[0]

    def _content(self, operator: Operator, text: str, inputs: tuple[int, ...], owns: str | None) -> str:
        """What relation a node's stream is a change of, wherever its rows lie and whatever its columns are called."""
        contents = [self.nodes[i].content for i in inputs]
        if isinstance(operator, Exchange | Arrange | NestedArrange):
            return contents[0]

        def of(name: re.Match[str]) -> str:
            return "" if name.group() == owns else self.contents.get(name.group(), name.group())

        return self.digest(ARRANGEMENT.sub(of, text), *contents)

    def digest(self, *parts: object) -> str:
        """A hash of frozen data that is the same in every process."""
        return hashlib.sha256(repr([canonical(part) for part in parts]).encode()).hexdigest()[:32]

    def name(self, role: str, *parts: object) -> str:
        """An arrangement's id, from all that determines its content."""
        return f"{role}-{self.digest(*parts)}"

    def placed(self, node: int, partition: tuple[int, ...] | None) -> str:
        """What names the state of the node's stream, its rows on the shards that `partition` says; None: on any shard."""
        return self.digest(self.nodes[node].content, partition)

    def fingerprint(self, node: int) -> str:
        """What names the state of the node's stream, its rows where they lie: on any shard, that is where they have come to lie."""
        made = self.nodes[node]
        anywhere = made.partition is None and self.several
        return self.digest(made.content, made.fingerprint) if anywhere else self.placed(node, made.partition)

    def specify(self, spec: ArrangementSpec) -> None:
        self.arrangements.setdefault(spec.id, spec)

    def finish(self, nodes: tuple[Node, ...] | None = None) -> Dataflow:
        """The circuit of the nodes, or of as many as do the same; nothing of the builder changes."""
        nodes = tuple(self.nodes) if nodes is None else nodes
        ports = _ports(nodes)
        levels = []
        for index in range(max((n.level for n in nodes), default=0) + 1):
            here = tuple(n for n in nodes if n.level == index and not isinstance(n.operator, Exchange))
            owned = tuple(name for n in here for name in n.owned)
            reads = tuple(dict.fromkeys((*owned, *(name for n in here for name in n.reads))))
            arrives = tuple(p for p in ports if p.target_level == index)
            leaves = tuple(p for p in ports if p.source_level == index)
            levels.append(Level(index, here, arrives, leaves, owned, reads))
        whole = _whole(nodes, tuple(p for p in ports if p.source_level < 0))
        return Dataflow(nodes, tuple(levels), whole, self._specified(nodes), dict(self.tables), dict(self.views), _routes(nodes))

    def _specified(self, nodes: Sequence[Node]) -> dict[str, ArrangementSpec]:
        """The arrangements, each at the level of the node that owns it, and partitioned as that is unless the spec says how."""
        owners = {name: node for node in nodes for name in node.owned}
        found = {}
        for name, spec in self.arrangements.items():
            partition = owners[name].partition if spec.partition is None else spec.partition
            found[name] = replace(spec, level=owners[name].level, partition=partition)
        return found


def _whole(all_nodes: Sequence[Node], asked: tuple[Port, ...]) -> Level:
    """All nodes as one level, each exchange left out: what reads it reads what it exchanges."""
    behind: dict[int, int] = {}
    nodes = []
    for node in all_nodes:
        inputs = tuple(behind[i] for i in node.inputs)
        behind[node.id] = inputs[0] if isinstance(node.operator, Exchange) else node.id
        if not isinstance(node.operator, Exchange):
            nodes.append(replace(node, inputs=inputs, level=0))
    owned = tuple(name for n in nodes for name in n.owned)
    return Level(0, tuple(nodes), asked, (), owned, owned)


def _routes(nodes: Sequence[Node]) -> dict[str, tuple[int, ...]]:
    tables = [n.operator for n in nodes if isinstance(n.operator, TableInput)]
    return {t.table.name: t.order[: t.key] or t.order for t in tables}


def _ports(nodes: Sequence[Node]) -> list[Port]:
    """What crosses levels: pending rows to their table, exchanged streams, and streams that a later level reads again."""
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


def canonical(value: object, *, named: bool = False) -> object:
    """Frozen data as nested tuples of text, without what takes no part in equality (spans, derived fields).

    named: whether the names of columns count, as they do for tables and for functions that see them. A class counts by its name in
    STATE_NAMES, or by its own name without "Operator".
    """
    if isinstance(value, Field) and not named:
        return ("Field", canonical(value.type), value.nullable)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = named or isinstance(value, NAMED)
        parts = (canonical(getattr(value, f.name), named=named) for f in dataclasses.fields(value) if f.compare)
        name = type(value).__name__
        return (STATE_NAMES.get(name, name.removesuffix("Operator")), *parts)
    if isinstance(value, tuple | list):
        return tuple(canonical(v, named=named) for v in value)
    return repr(value)
