"""Puts circuits together, node by node, so that equal nodes on equal inputs are one node."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from deltic.circuit.nodes import ArrangementSpec, Circuit, Level, Node, NodeKind, Port, Shape
from deltic.circuit.operator import Operator
from deltic.circuit.operators.child import Child
from deltic.circuit.operators.linear import Exchange
from deltic.circuit.operators.table import TableInput
from deltic.schema import BIGINT, Field, Schema

OPERATION = Schema((Field("_op", BIGINT, False), Field("_ordinal", BIGINT, False)))
"""What stands behind a table's own columns in the changes that are asked of it."""


class CircuitBuilder:
    """Mutable while a program is lowered; `finish` gives the frozen circuit."""

    depth = 0
    """How many scopes lie around its nodes."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.arrangements: dict[str, ArrangementSpec] = {}
        self.depths: dict[str, int] = {}
        """In how many scopes each arrangement lies."""
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
    ) -> int:
        """The id of the node; the one that is there already if an equal one is.

        meaning: its fingerprint, where that must not depend on how its inputs are spread over the shards.
        """
        mark = meaning or self.digest(operator, *(self.nodes[i].fingerprint for i in inputs))
        if mark in self._known:
            return self._known[mark]
        path = (len(self.nodes),)
        inner: tuple[str, ...] = ()
        if isinstance(operator, Child):
            operator, inner = operator.within(path), operator.owned
        level = max((self.nodes[i].level for i in inputs), default=0) + isinstance(operator, Exchange)
        self.nodes.append(Node(path, kind, operator, inputs, shape, partition, level, mark, owns, tuple(reads), inner))
        self._known[mark] = path[0]
        if owns is not None:
            self.depths[owns] = self.depth
        return path[0]

    def digest(self, *parts: object) -> str:
        """A hash of frozen data that is the same in every process."""
        return hashlib.sha256(repr([canonical(part) for part in parts]).encode()).hexdigest()[:32]

    def name(self, role: str, *parts: object) -> str:
        """An arrangement's id, from all that determines its content."""
        return f"{role}-{self.digest(*parts)}"

    def fingerprint(self, node: int) -> str:
        return self.nodes[node].fingerprint

    def specify(self, spec: ArrangementSpec) -> None:
        self.arrangements.setdefault(spec.id, spec)

    def finish(self, nodes: tuple[Node, ...] | None = None) -> Circuit:
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
        return Circuit(nodes, tuple(levels), whole, self._specified(nodes), dict(self.tables), dict(self.views), _routes(nodes))

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
    """What crosses levels: asked changes to their table, exchanged streams, and streams that a later level reads again."""
    ports: dict[str, Port] = {}
    for node in nodes:
        if isinstance(node.operator, TableInput):
            table = node.operator.table
            shape = Shape(Schema(table.schema.fields + OPERATION.fields))
            ports[f"table:{table.name}"] = Port(f"table:{table.name}", node.id, shape, -1, node.level)
        for i in node.inputs:
            source = nodes[i]
            if isinstance(node.operator, Exchange):
                ports[f"x{node.id}"] = Port(f"x{node.id}", node.id, node.shape, source.level, node.level)
            elif source.level < node.level:
                name = f"f{i}.{node.level}"
                ports[name] = Port(name, i, source.shape, source.level, node.level)
    return list(ports.values())


def canonical(value: object) -> object:
    """Frozen data as nested tuples of text, without what takes no part in equality (spans, derived fields)."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return (type(value).__name__, *(canonical(getattr(value, f.name)) for f in dataclasses.fields(value) if f.compare))
    if isinstance(value, tuple | list):
        return tuple(canonical(v) for v in value)
    return repr(value)
