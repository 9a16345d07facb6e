"""The trees of a query's pulls, from the view of the rows that they are made of: as of the last commit, and as of the one before."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeAlias

import pyarrow as pa

from deltic.connectors.frames import WEIGHT
from deltic.frontends.edn.bind_query import QueryPull
from deltic.frontends.edn.pulled import ReadEntity, SlotValues, Tree, tree
from deltic.session.contents import Contents
from deltic.session.view import View, rows_with

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
        places = self._by_place(_columns(self._view.to_arrow())) if self.pull.has_rows else {}
        values = {place: _values(weights) for place, weights in places.items()}
        return lambda level, entity: values.get((level, entity), {})

    def tree(self, root: int, read: ReadEntity) -> Tree | None:
        """The tree of an entity."""
        return tree(self.pull.levels, root, read)

    def last_change(self) -> PullChange:
        """What the last tick has changed."""
        return PullChange(self, self._by_place(_columns(self._view.changes())) if self.pull.has_rows else {})

    def weights(self, places: Collection[_Place]) -> dict[_Place, _Weights]:
        """What is stored of entities, of those that have anything."""
        return self._by_place(rows_with(self._view, ["level", "e"], places)) if self.pull.has_rows else {}

    def referring(self, references: Collection[tuple[int, int, int]]) -> dict[tuple[int, int, int], list[_Place]]:
        """By (level, slot, entity), the places that refer to it there."""
        places: dict[tuple[int, int, int], list[_Place]] = {}
        if not references:
            return places
        rows = rows_with(self._view, ["level", "slot", "long"], references)
        for level, entity, slot, value in zip(*(rows[name] for name in ("level", "e", "slot", "long")), strict=True):
            places.setdefault((level, slot, value), []).append((level, entity))
        return places

    @property
    def _view(self) -> View:
        return View(self.contents, self.pull.name, None)

    def _by_place(self, columns: Mapping[str, list[Any]]) -> dict[_Place, _Weights]:
        """columns: of rows, each with its weight if they are changes."""
        weights = columns.get(WEIGHT) or itertools.repeat(1)
        slots = [[(slot.number, columns[slot.column]) for slot in level.slots] for level in self.pull.levels]
        places: dict[_Place, _Weights] = {}
        for row, (level, entity, slot, weight) in enumerate(zip(columns["level"], columns["e"], columns["slot"], weights, strict=False)):
            number, values = slots[level][slot]
            places.setdefault((level, entity), Counter())[number, values[row]] += weight
        return places


@dataclass(frozen=True, slots=True)
class PullChange:
    """What a tick has changed of the rows of a pull. stored: what entities have after it, those that have been read."""

    trees: PullTrees
    changed: Mapping[_Place, _Weights]
    stored: dict[_Place, _Weights] = field(default_factory=dict)

    def now(self, level: int, entity: int) -> SlotValues:
        """What an entity has after the tick."""
        return _values(self._weights((level, entity)))

    def before(self, level: int, entity: int) -> SlotValues:
        """What it had before the tick."""
        weights = self._weights((level, entity)).copy()
        weights.subtract(self.changed.get((level, entity), Counter()))
        return _values(weights)

    def _weights(self, place: _Place) -> _Weights:
        if place not in self.stored:
            self._fetch((place,))
        return self.stored[place]

    def _fetch(self, places: Collection[_Place]) -> None:
        self.stored.update({place: Counter() for place in places} | self.trees.weights(places))

    def fetch(self, roots: Collection[int]) -> None:
        """Reads the trees of entities as they are now and were before, each level of all of them at once."""
        levels = self.trees.pull.levels
        most = [sum(slot.depth or 0 for slot in level.slots) for level in levels]
        counts: dict[_Place, int] = {}
        """How often limited slots of the level have been followed on the way to a place, at least."""
        waiting = {(0, root): 0 for root in roots}
        while waiting:
            self._fetch([place for place in waiting if place not in self.stored])
            counts |= waiting
            following: dict[_Place, int] = {}
            for place, count in waiting.items():
                for number, value in (*self.stored[place], *self.changed.get(place, ())):
                    slot = levels[place[0]].slots[number]
                    if slot.level is None:
                        continue
                    after = 0 if slot.level != place[0] else count + (slot.depth is not None)
                    below = (slot.level, value)
                    if after <= most[slot.level] and after < min(following.get(below, inf), counts.get(below, inf)):
                        following[below] = after
            waiting = following

    def roots(self) -> set[int]:
        """The entities whose trees may have changed: those above what has changed. O(what is above · log of the view)."""
        above: dict[int, list[tuple[int, int]]] = {}
        """By level, the slots of levels that lead to it."""
        for level in self.trees.pull.levels:
            for slot in level.slots:
                if slot.level is not None:
                    above.setdefault(slot.level, []).append((level.number, slot.number))
        edges: dict[tuple[int, int, Any], list[_Place]] = {}
        """What the tick has changed, by (level, slot, value)."""
        for place, weights in self.changed.items():
            for number, value in weights:
                edges.setdefault((place[0], number, value), []).append(place)
        waiting, visited = list(self.changed), set(self.changed)
        while waiting:
            references = {(*slot, entity): None for level, entity in waiting for slot in above.get(level, ())}
            stored = self.trees.referring(references)
            waiting = []
            for reference in references:
                for place in (*stored.get(reference, ()), *edges.get(reference, ())):
                    if place not in visited:
                        visited.add(place)
                        waiting.append(place)
        return {entity for level, entity in visited if level == 0}


def _columns(rows: pa.Table) -> dict[str, list[Any]]:
    return {name: rows[name].to_pylist() for name in rows.column_names}


def _values(weights: _Weights) -> SlotValues:
    values: dict[int, list[Any]] = {}
    for slot, value in sorted(one for one, weight in weights.items() if weight > 0):
        values.setdefault(slot, []).append(value)
    return values
