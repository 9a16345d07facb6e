"""The circuit of a session as its users may look at it: nodes with their kinds, ids, inputs, scopes, clocks and places. Read-only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from deltic.circuit.nodes import Dataflow, Node, NodeKind
from deltic.circuit.operators.child import Child
from deltic.schema import Schema


@dataclass(frozen=True, slots=True)
class CircuitNode:
    """One node. A circuit numbers its nodes again when views are defined or dropped; within a definition ids stay.

    kind: of its scope it is "source" (no inputs), "sink" (no readers), "import" (a stream of the scope around), "feedback" (what a relation
    was in the iteration before), "child" (a scope, run to its fixed point in each step of its parent), or "operator".
    operator: its standard name. id: its number in its scope. global_id: the ids from the root to it, as "3.1". inputs: global ids.
    scope: the global id of the child that it is in, "" at the root. clock: what a step is: at the root an epoch, in a scope an iteration.
    place: "home", one shard; "shards", spread by a hash of columns; or "any", where its inputs are. columns: of its output.
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
    """All nodes, each scope's in topological order, a scope's after the child that it is."""
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
