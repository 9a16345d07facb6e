"""What bounds the state of each operator, for explanations: tables, open windows, one tick, or nothing.

The rows of a relation are bounded by what it reads; sums over all ticks, accumulators and feedbacks may grow with every tick.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deltic.circuit.nodes import Node
from deltic.circuit.operators.accumulate import AccumulateOperator
from deltic.circuit.operators.fold_groups import FoldSums
from deltic.circuit.operators.over_ticks import KeepChange, OverTicksOperator, PreviousTick
from deltic.circuit.operators.table import StreamInput, TableInput
from deltic.circuit.operators.watermark import WatermarkOperator

_TICK = "one tick of "
_EVERY_TICK = "what every tick adds from "
ONE_TICK = "the rows of one tick"
LAST_CHANGE = "the change of one tick"


@dataclass(frozen=True, slots=True)
class StateBound:
    """The bound of an operator's state. grows: it has none. by: what bounds it, or what it grows with."""

    operator: str
    name: str
    grows: bool
    by: tuple[str, ...]

    def __str__(self) -> str:
        return f"state of {self.operator} {self.name} {'grows with' if self.grows else 'is bounded by'} {', '.join(self.by)}"


Sources = frozenset[tuple[bool, str]]
"""(whether it grows, what it is)."""


def state_bounds(nodes: Sequence[Node], shown: Sequence[Node]) -> Iterator[StateBound]:
    """Those of the operators with state among `shown`. nodes: all of the circuit, by their ids. O(nodes)."""
    by_node = _sources(nodes)
    for node in shown:
        if node.owns is None or node.ephemeral:
            continue
        sources = _kept(node) or by_node[node.id]
        grows = any(growing for growing, _ in sources)
        yield StateBound(node.name, node.operator.name, grows, tuple(sorted(what for growing, what in sources if growing == grows)))


def _sources(nodes: Sequence[Node]) -> list[Sources]:
    """For each node, what bounds its content."""
    sources: list[Sources] = []
    for node in nodes:
        sources.append(_source(node, sources))
    return sources


def _source(node: Node, sources: Sequence[Sources]) -> Sources:
    operator = node.operator
    below = frozenset[tuple[bool, str]]().union(*(sources[i] for i in node.inputs))
    match operator:
        case StreamInput():
            return frozenset({(False, f"one tick of stream {operator.table.name}")})
        case TableInput():
            return frozenset({(False, f"table {operator.table.name}")})
        case WatermarkOperator(phase="joinable"):
            return frozenset({(False, f"the rows of {_named(below)} that later rows of {operator.table.name} can join")})
        case WatermarkOperator():
            return frozenset({(False, f"one tick of closed windows of {operator.table.name}")}) if operator.closed else _open(operator)
        case OverTicksOperator(function="integrate"):
            return frozenset({(True, f"{_EVERY_TICK}{_named(below)}")})
        case FoldSums(keyed=False):
            return frozenset({(False, f"one group of {_named(below)}")})
        case AccumulateOperator() | FoldSums():
            return frozenset({(True, f"every new key of {_named(below)}")})
        case PreviousTick():
            return frozenset({(True, "what every tick feeds back, unless the feedback drops it")})
        case _:
            return below or frozenset({(False, "constants")})


def _kept(node: Node) -> Sources:
    """What bounds the state where that is not the content."""
    match node.operator:
        case WatermarkOperator(phase="open" | "closed"):
            return _open(node.operator)
        case OverTicksOperator(function="delay") if not node.stream:
            return frozenset({(False, LAST_CHANGE)})
        case OverTicksOperator(function="batched"):
            return frozenset({(False, f"the rows that wait for an epoch that is a multiple of {node.operator.size}")})
        case OverTicksOperator(function="current" | "delay"):
            return frozenset({(False, ONE_TICK)})
        case KeepChange():
            return frozenset({(False, LAST_CHANGE)})
        case _:
            return frozenset()


def _open(operator: WatermarkOperator) -> Sources:
    return frozenset({(False, f"the rows of open windows of {operator.table.name}")})


def _named(sources: Sources) -> str:
    """The streams, or else all sources."""
    names = [what for _, what in sources]
    ticks, sums = ([what.removeprefix(start) for what in names if what.startswith(start)] for start in (_TICK, _EVERY_TICK))
    return " and ".join(sorted(ticks or sums or names)) or "a stream"
