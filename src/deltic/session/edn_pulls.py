"""The trees of a query's pulls, from the view of the rows that they are made of: as of the last commit, and as of the one before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from deltic.connectors.frames import WEIGHT
from deltic.frontends.edn.bind_query import QueryPull
from deltic.frontends.edn.pulled import ReadEntity, SlotValues, Tree, tree
from deltic.session.contents import Contents
from deltic.session.view import View

_Place: TypeAlias = tuple[int, int]
"""A level and an entity on it."""
_Weights: TypeAlias = "Counter[tuple[int, Any]]"
"""The weights of the (slot, value) of an entity."""


@dataclass(frozen=True, slots=True)
class PullTrees:
    """The trees of one pull."""

    pull: QueryPull
    contents: Contents

    def whole(self) -> ReadEntity:
        """Reads what is stored, all of it at once. O(rows of the view)."""
        places: dict[_Place, _Weights] = {}
        for row in self._view.rows() if self.pull.has_rows else ():
            places.setdefault((row["level"], row["e"]), Counter())[self._value(row)] += 1
        values = {place: _values(weights) for place, weights in places.items()}
        return lambda level, entity: values.get((level, entity), {})

    def tree(self, root: int, read: ReadEntity) -> Tree | None:
        """The tree of an entity."""
        return tree(self.pull.levels, root, read)

    def last_change(self) -> PullChange:
        """What the last tick has changed."""
        changed: dict[_Place, _Weights] = {}
        for row in self._view.changes().to_pylist() if self.pull.has_rows else ():
            changed.setdefault((row["level"], row["e"]), Counter())[self._value(row)] += row[WEIGHT]
        return PullChange(self, changed)

    def weights(self, place: _Place) -> _Weights:
        """What is stored of an entity."""
        rows = self._view.lookup(place, by=["level", "e"]) if self.pull.has_rows else ()
        return Counter(map(self._value, rows))

    def referring(self, level: int, slot: int, entity: int) -> Iterator[int]:
        """The entities of a level that have this entity in a slot."""
        yield from (row["e"] for row in self._view.lookup((level, slot, entity), by=["level", "slot", "long"]))

    @property
    def _view(self) -> View:
        return View(self.contents, self.pull.name, None)

    def _value(self, row: Mapping[str, Any]) -> tuple[int, Any]:
        slot = self.pull.levels[row["level"]].slots[row["slot"]]
        return slot.number, row[slot.column]


@dataclass(frozen=True, slots=True)
class PullChange:
    """What a tick has changed of the rows of a pull."""

    trees: PullTrees
    changed: Mapping[_Place, _Weights]

    def now(self, level: int, entity: int) -> SlotValues:
        """What an entity has after the tick."""
        return _values(self.trees.weights((level, entity)))

    def before(self, level: int, entity: int) -> SlotValues:
        """What it had before the tick."""
        weights = self.trees.weights((level, entity))
        weights.subtract(self.changed.get((level, entity), Counter()))
        return _values(weights)

    def roots(self) -> set[int]:
        """The entities whose trees may have changed: those above what has changed. O(what is above · log of the view)."""
        levels = self.trees.pull.levels
        edges: dict[tuple[int, int, Any], list[_Place]] = {}
        """What the tick has changed, by (level, slot, value)."""
        for place, weights in self.changed.items():
            for slot, value in weights:
                edges.setdefault((place[0], slot, value), []).append(place)
        waiting, visited = list(self.changed), set(self.changed)
        while waiting:
            level, entity = waiting.pop()
            for above, slot in ((one.number, slot.number) for one in levels for slot in one.slots if slot.level == level):
                stored = ((above, one) for one in self.trees.referring(above, slot, entity))
                for place in (*stored, *edges.get((above, slot, entity), ())):
                    if place not in visited:
                        visited.add(place)
                        waiting.append(place)
        return {entity for level, entity in visited if level == 0}


def _values(weights: _Weights) -> SlotValues:
    values: dict[int, list[Any]] = {}
    for slot, value in sorted(one for one, weight in weights.items() if weight > 0):
        values.setdefault(slot, []).append(value)
    return values
