"""Spread scopes: the position, in the stream of each node, of the words that determine a row's shard.

If all steps of a recursion pass some columns on unchanged, it consists of independent recursions, one for each value of these columns, and
each shard runs those of its values. The base rows of the relation are sent to their shards; the relations that the steps join are on every
shard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltic.circuit.nodes import Node
from deltic.circuit.operators.feedback import Feedback, Import
from deltic.circuit.operators.interval_rows import IntervalRows, RangeRows
from deltic.circuit.operators.linear import Plus
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.nested_arrange import NestedArrange
from deltic.circuit.operators.nested_join import NestedJoin
from deltic.circuit.operators.nested_range_join import NestedRangeJoin
from deltic.circuit.operators.nested_reweigh import NestedReweigh
from deltic.trace.encoding import Layout

Places = tuple[frozenset[int], ...]
"""For each word its positions; there may be several."""


def spread(nodes: Sequence[Node], partition: tuple[int, ...]) -> list[Node]:
    """The nodes of a scope of one relation with their partitions. partition: that of the relation.

    Imports that are on every shard have the partition None. The steps must pass the words on.
    """
    placed: list[Places | None] = []
    for node in nodes:
        placed.append(_places(node, placed, tuple(frozenset({word}) for word in partition)))
    for node in nodes:
        if isinstance(node.operator, Feedback):
            places = placed[node.operator.source]
            assert places is not None and all(word in of for word, of in zip(partition, places, strict=True)), "a step moves the words"
    partitions = (None if places is None else tuple(map(min, places)) for places in placed)
    return [replace(node, partition=words) for node, words in zip(nodes, partitions, strict=True)]


def _places(node: Node, placed: Sequence[Places | None], start: Places) -> Places | None:
    inputs = [placed[i] for i in node.inputs]
    match node.operator:
        case Import(arrangement=None) | Feedback():
            return start
        case Import():
            return None
        case Map():
            return _moved(node.operator, inputs[0])
        case RangeRows() | IntervalRows():
            return tuple(frozenset(to for to, word in enumerate(node.operator.moves) if word in of) for of in _known(inputs[0]))
        case NestedJoin() | NestedRangeJoin():
            return _joined(node.operator, inputs)
        case Plus():
            return tuple(frozenset.intersection(*of) for of in zip(*(_known(places) for places in inputs), strict=True))
        case NestedArrange() | NestedReweigh():
            return inputs[0]
        case _:
            raise AssertionError(f"{node.operator.name} cannot be in a spread scope")


def _moved(operator: Map, inputs: Places | None) -> Places:
    """The places after a map, for the columns that it copies; a nullable column has the same words after its flag."""
    places: dict[int, set[int]] = {}
    for move, target in zip(operator.moves, Layout.of(operator.target).slices, strict=True):
        if move is not None:
            for back in range(1, min(move.stop - move.start, target.stop - target.start) + 1):
                places.setdefault(move.stop - back, set()).add(target.stop - back)
    return tuple(frozenset(to for word in of for to in places.get(word, ())) for of in _known(inputs))


def _joined(operator: NestedJoin | NestedRangeJoin, inputs: Sequence[Places | None]) -> Places:
    """The places after a join of a side that is spread with one that is on every shard, or, as in a semi-join by a condition, of rows with
    those of them that match: both are spread, and the words are part of the key."""
    spread = [places for places in inputs if places is not None]
    assert len(spread) == 1 or _shares(operator, *spread), "rows of a match are on two shards"
    output = [(inputs[side], word) for side, word in operator.flat.output]
    return tuple(
        frozenset(to for to, (places, word) in enumerate(output) if places is not None and word in places[i]) for i in range(len(spread[0]))
    )


def _shares(operator: NestedJoin | NestedRangeJoin, left: Places, right: Places) -> bool:
    """Whether the sides are joined by these words."""
    keys = operator.flat.keys if isinstance(operator, NestedJoin) else ()
    equal = [*enumerate(keys[1])] if keys else [(word, word) for word in range(operator.flat.key)]
    return all(any(a in of_left and b in of_right for a, b in equal) for of_left, of_right in zip(left, right, strict=True))


def _known(places: Places | None) -> Places:
    assert places is not None, "a relation on every shard may only be joined"
    return places
