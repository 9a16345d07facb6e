"""Fusion: a linear operator with a single linear reader is merged with it into one pass, also after a join. Unused nodes are dropped.

Arrangements are named before fusion, so a state does not depend on it. Scopes are not fused, so that loops are recognized in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from deltic.circuit.nodes import Node, NodeKind
from deltic.circuit.operators.chain import Chain, Step
from deltic.circuit.operators.child import Child
from deltic.circuit.operators.flat_map import FlatMapOperator
from deltic.circuit.operators.generate import GenerateOperator
from deltic.circuit.operators.join import JoinOperator
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.temporal_filter import TemporalFilterOperator


class Fusion:
    """Fuses the growing sequence of a program's nodes, and makes only the nodes that the last call has not made.

    made: the number of nodes that the last call made.
    """

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[Node | None, tuple[Node, ...]]] = {}
        self._now: dict[Hashable, tuple[Node | None, tuple[Node, ...]]] = {}
        self.made = 0

    def fused(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The nodes of a lowered program, fused, without unused nodes, renumbered."""
        self._last, self._now, self.made = self._now, {}, 0
        nodes = _live(nodes)
        readers = Counter(i for node in nodes for i in node.inputs)
        result: dict[int, Node] = {}
        merged: set[int] = set()
        for node in nodes:
            inner = result[node.inputs[0]] if len(node.inputs) == 1 else None
            both = self._both(inner, node) if inner is not None and readers[inner.id] == 1 else None
            if both is not None and inner is not None:
                merged.add(inner.id)
            result[node.id] = node if both is None else both
        return tuple(self._renumbered([node for node in result.values() if node.id not in merged]))

    def _both(self, inner: Node, outer: Node) -> Node | None:
        return self._once((id(inner), id(outer)), (inner, outer), lambda: _fused(inner, outer))

    def _renumbered(self, nodes: list[Node]) -> Iterator[Node]:
        places = {node.id: place for place, node in enumerate(nodes)}
        for node in nodes:
            path, inputs = (places[node.id],), tuple(places[i] for i in node.inputs)
            yield self._once((id(node), path, inputs), (node,), partial(_moved, node, path, inputs)) or node

    def _once(self, key: Hashable, parts: tuple[Node, ...], make: Callable[[], Node | None]) -> Node | None:
        """The result of `make`, or that of the last call. The parts are held with it, so that no other node has their ids."""
        if (entry := self._last.get(key)) is None:
            entry = make(), parts
            self.made += 1
        self._now[key] = entry
        return entry[0]


def _live(nodes: Sequence[Node]) -> list[Node]:
    """The nodes with state, the sinks, and all nodes that these depend on."""
    needed: set[int] = set()
    owners = {name: node.id for node in nodes for name in node.owned}
    for node in reversed(nodes):
        if node.id in needed or node.owned or node.kind is NodeKind.SINK:
            needed.update((node.id, *node.inputs, *(owners[name] for name in node.reads)))
    return [node for node in nodes if node.id in needed]


def _fused(inner: Node, outer: Node) -> Node | None:
    """Both as one node; None if they cannot be fused."""
    steps, weights = _steps(inner), outer.shape.weights
    if steps is None or not isinstance(outer.operator, Map | FlatMapOperator | TemporalFilterOperator):
        return None
    if isinstance(outer.operator, TemporalFilterOperator):
        chain = Chain(steps, outer.operator, weights) if steps else None
    elif outer.operator.fallible and (isinstance(inner.operator, JoinOperator) or any(_cancels(step) for step in steps)):
        return None
    else:
        chain = Chain((*steps, outer.operator), weights=weights)
    if chain is None:
        return None
    operator = replace(inner.operator, chain=chain) if isinstance(inner.operator, JoinOperator) else chain
    return replace(outer, operator=operator, inputs=inner.inputs, reads=(*inner.reads, *outer.reads))


def _steps(node: Node) -> tuple[Step, ...] | None:
    """The steps of a linear operator on each row; None for other operators."""
    match node.operator:
        case JoinOperator(chain=None):
            return ()
        case JoinOperator(chain=Chain(last=None) as chain):
            return chain.steps
        case Chain(last=None) as chain:
            return chain.steps
        case Map(measures=()) | FlatMapOperator() | GenerateOperator():
            return (node.operator,)
        case _:
            return None


def _cancels(step: Step) -> bool:
    """Whether its results of different rows may cancel, so that expressions that can fail must not see them."""
    return step.weighted if isinstance(step, GenerateOperator) else isinstance(step, FlatMapOperator) and not step.returned


def _moved(node: Node, path: tuple[int], inputs: tuple[int, ...]) -> Node:
    operator = node.operator.within(path) if isinstance(node.operator, Child) else node.operator
    return node.moved(path, operator, inputs)
