"""Scopes that are spread: where the words that say a row's shard stand in the stream of each node.

A recursion whose steps all pass some columns on as they are is many recursions that do not meet, one for each value of these columns. So
each shard runs those of its values. What the relation starts from comes to the shard of its row; what the steps join is on every shard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltic.circuit.nodes import Node
from deltic.circuit.operators.feedback import Feedback, Import
from deltic.circuit.operators.linear import Plus
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.nested_arrange import NestedArrange
from deltic.circuit.operators.nested_join import NestedJoin
from deltic.circuit.operators.nested_reweigh import NestedReweigh
from deltic.trace.encoding import Layout

Places = tuple[frozenset[int], ...]
"""For each of the words, where it stands; it may do so several times."""


def spread(nodes: Sequence[Node], partition: tuple[int, ...]) -> list[Node]:
    """The nodes of a scope of one relation with their partitions, where that relation's is `partition`.

    None is the partition of an import that is on every shard. The steps must pass the words on.
    """
    found: list[Places | None] = []
    for node in nodes:
        found.append(_places(node, found, tuple(frozenset({word}) for word in partition)))
    for node in nodes:
        if isinstance(node.operator, Feedback):
            places = found[node.operator.source]
            assert places is not None and all(word in at for word, at in zip(partition, places, strict=True)), "a step moves the words"
    where = (None if places is None else tuple(map(min, places)) for places in found)
    return [replace(node, partition=words) for node, words in zip(nodes, where, strict=True)]


def _places(node: Node, found: Sequence[Places | None], start: Places) -> Places | None:
    given = [found[i] for i in node.inputs]
    match node.operator:
        case Import(arrangement=None) | Feedback():
            return start
        case Import():
            return None
        case Map():
            return _moved(node.operator, given[0])
        case NestedJoin():
            return _joined(node.operator, given)
        case Plus():
            return tuple(frozenset.intersection(*at) for at in zip(*(_there(places) for places in given), strict=True))
        case NestedArrange() | NestedReweigh():
            return given[0]
        case _:
            raise AssertionError(f"{node.operator.name} has no place in a scope that is spread")


def _moved(operator: Map, given: Places | None) -> Places:
    """Columns that are copied; one that may be NULL has the same words behind one that says so."""
    places: dict[int, set[int]] = {}
    for move, target in zip(operator.moves, Layout.of(operator.target).slices, strict=True):
        if move is not None:
            for back in range(1, min(move.stop - move.start, target.stop - target.start) + 1):
                places.setdefault(move.stop - back, set()).add(target.stop - back)
    return tuple(frozenset(to for word in at for to in places.get(word, ())) for at in _there(given))


def _joined(operator: NestedJoin, given: Sequence[Places | None]) -> Places:
    """One side is spread, the other one is on every shard."""
    (side,) = (i for i, places in enumerate(given) if places is not None)
    output = operator.flat.output
    return tuple(frozenset(to for to, (of, word) in enumerate(output) if of == side and word in at) for at in _there(given[side]))


def _there(places: Places | None) -> Places:
    assert places is not None, "what is on every shard is only joined"
    return places
