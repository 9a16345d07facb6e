"""Feedback over ticks: what a body computes in a tick is read in the next one. A cycle of the program, but not of the dataflow.

For each relation the state has its content, for views that are defined later, and its last change, which is the change of what is read.
"""

from __future__ import annotations

from deltic.circuit.nodes import ArrangementSpec, Shape
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.over_ticks import KeepChange, PreviousTick
from deltic.lowering.streams import Streams
from deltic.plan.nodes import TickRecursion


class FeedbackRelations:
    """The relations of one feedback. seed: the identity of their state."""

    def __init__(self, streams: Streams, seed: str, plan: TickRecursion) -> None:
        self._streams, self._seed = streams, seed
        self._shapes = {name: Shape(body.schema) for name, body in plan.relations}
        self.names = self._shapes.keys()
        self._places = {name: place for place, name in enumerate(self._shapes)}

    def before(self, name: str) -> int:
        """The relation as of the previous tick."""
        content, change = self._state(name)
        shape, builder = self._shapes[name], self._streams.builder
        operator = PreviousTick(content, change, shape.layout.width)
        return builder.add(operator, (), shape, self._partition(name), reads=(content, change))

    def connect(self, name: str, body: int) -> int:
        """The relation as of this tick. body: its body in this tick."""
        content, change = self._state(name)
        shape, streams, builder = self._shapes[name], self._streams, self._streams.builder
        placed = streams.exchange(body, self._partition(name))
        node = builder.add(Arrange(content), (placed,), shape, self._partition(name), owns=content)
        builder.specify(ArrangementSpec(content, shape, builder.nodes[node].level, len(shape.schema)))
        feeding = builder.add(KeepChange(change, shape.layout.width), (node,), shape, self._partition(name), owns=change)
        builder.specify(ArrangementSpec(change, shape, builder.nodes[feeding].level, len(shape.schema)))
        return feeding

    def _state(self, name: str) -> tuple[str, str]:
        """The arrangements of the relation's content and of its last change."""
        place = self._places[name]
        return self._streams.builder.name("content", self._seed, place), self._streams.builder.name("change", self._seed, place)

    def _partition(self, name: str) -> tuple[int, ...]:
        """Equal rows are on one shard, so that the state can be resharded."""
        return tuple(range(self._shapes[name].layout.width))
