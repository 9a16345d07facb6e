"""The circuit of a session, for its users to read: nodes with their kinds, ids, inputs, scopes, clocks and places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from deltic.circuit.nodes import Dataflow, Node, NodeKind
from deltic.circuit.operators.child import Child
from deltic.schema import Schema


@dataclass(frozen=True, slots=True)
class CircuitNode:
    """One node. Nodes are numbered again when views are defined or dropped; between definitions ids stay.

    kind: "source" (no inputs), "sink" (no readers), "import" (a stream of the enclosing scope), "feedback" (a relation in the previous
    iteration), "child" (a scope, run to its fixed point in each step of its parent), or "operator".
    operator: its standard name. id: its number in its scope. global_id: the ids from the root to it, such as "3.1". inputs: global ids.
    scope: the global id of the child that contains it, "" at the root. clock: whether a step is an epoch (at the root) or an iteration.
    place: "home", one shard; "shards", by a hash of columns; or "any", where its inputs are. columns: of its output.
    """

    kind: Literal["source", "sink", "import", "feedback", "child", "operator"]
    operator: str
    id: int
    global_id: str
    inputs: tuple[str, ...]
    scope: str
    clock: Literal["epoch", "iteration"]
    place: Literal["home", "shards", "any"]
    columns: Schema


def circuit_nodes(circuit: Dataflow) -> tuple[CircuitNode, ...]:
    """All nodes, in topological order within each scope; the nodes of a scope follow its child node."""
    return tuple(_nodes(circuit.nodes))


def _nodes(peers: Sequence[Node]) -> Iterator[CircuitNode]:
    for node in peers:
        yield _shown(node, peers)
        if isinstance(node.operator, Child):
            yield from _nodes(node.operator.nodes)


def _shown(node: Node, peers: Sequence[Node]) -> CircuitNode:
    scope = ".".join(map(str, node.path[:-1]))
    return CircuitNode(
        node.kind.value,
        node.operator.name,
        node.id,
        node.name,
        () if node.kind is NodeKind.IMPORT else tuple(peers[i].name for i in node.inputs),
        scope,
        "iteration" if scope else "epoch",
        "any" if node.partition is None else "shards" if node.partition else "home",
        node.shape.schema,
    )
