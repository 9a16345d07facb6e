"""Accumulators with sets and maps, each element of which is a row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from deltic.expr.accumulators import ABSENT, Changes, ElementPart, ElementsInMemory, accumulated_elements
from deltic.expr.nodes import Value
from deltic.plan.node import computed
from deltic.plan.nodes import Accumulate
from deltic.schema import Field, Schema


@dataclass(frozen=True, slots=True, eq=False)
class AccumulateElements(Accumulate):
    """One of the relations of accumulators with sets or maps: the keys and the columns that are not, or the keys and elements of a part.

    Its function is called as deltic.expr.accumulators says. returned: the columns that are not sets or maps. part: the position of the
    relation's set or map; None for the columns.
    """

    parts: tuple[ElementPart, ...]
    part: int | None

    @computed
    def schema(self) -> Schema:
        keys = (Field(name, e.type, e.nullable) for name, e in self.keys)
        return Schema((*keys, *(self.returned if self.part is None else self.parts[self.part].fields)))


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One of the oracle. keys: its key's values. values: of the columns that are not sets or maps. parts: the elements of these."""

    keys: tuple[Value, ...]
    values: tuple[Value, ...]
    parts: tuple[Changes, ...]

    def rows(self, plan: AccumulateElements) -> Iterable[tuple[Value, ...]]:
        """Those of the plan's relation."""
        if plan.part is None:
            return [(*self.keys, *self.values)]
        width = len(plan.parts[plan.part].fields)
        return [(*self.keys, *(element, held)[:width]) for element, held in self.parts[plan.part].values() if held is not ABSENT]


Accumulators = Mapping[Hashable, Accumulator]


def after_tick(
    plan: AccumulateElements, before: Accumulators, groups: Mapping[Hashable, tuple[tuple[Value, ...], list[tuple[tuple[Value, ...], int]]]]
) -> Accumulators:
    """The accumulators by key after a tick. groups: for each key of the tick's rows, its values and the (row, weight) pairs."""
    held = dict(before)
    for key, (keys, pairs) in groups.items():
        old = held.pop(key, None)
        parts: tuple[Changes, ...] = tuple({} for _ in plan.parts) if old is None else old.parts
        sources = [ElementsInMemory(entries) for entries in parts]
        result = accumulated_elements(plan.function, plan.returned, None if old is None else old.values, sources, pairs)
        if result is not None:
            values, changes = result
            held[key] = Accumulator(keys, values, tuple(_changed(*pair) for pair in zip(parts, changes, strict=True)))
    return held


def _changed(entries: Changes, changes: Changes) -> Changes:
    return {key: entry for key, entry in {**entries, **changes}.items() if entry[1] is not ABSENT}
