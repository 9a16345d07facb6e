"""Trees of pulls, from the rows of their levels."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeAlias

from deltic.expr.nodes import Value
from deltic.frontends.edn.pull import ID, PullLevel, PullSlot

SlotValues: TypeAlias = Mapping[int, Sequence[Value]]
"""The stored values of an entity by the number of the slot, ascending."""
ReadEntity: TypeAlias = Callable[[int, int], SlotValues]
"""(level, entity) → its values."""
Tree: TypeAlias = dict[str, Any]
_Step: TypeAlias = "Generator[_Step, Any, Any]"


def tree(levels: Sequence[PullLevel], root: int, read: ReadEntity) -> Tree | None:
    """The tree of an entity; None if it shows nothing. O(size of the tree) reads."""
    maker = _TreeMaker(levels, read)
    stack: list[_Step] = [maker.entity(0, root)]
    result: Any = None
    while stack:  # not by recursion: a tree may be deeper than the stack of Python
        try:
            stack.append(stack[-1].send(result))
            result = None
        except StopIteration as done:
            stack.pop()
            result = done.value
    made: Tree | None = result
    return made


def same(left: Any, right: Any) -> bool:
    """Whether two trees, or rows with trees, are one: 1, 1.0 and True are three values."""
    pending = [(left, right)]
    while pending:
        one, other = pending.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, dict):
            if one.keys() != other.keys():
                return False
            pending += [(value, other[key]) for key, value in one.items()]
        elif isinstance(one, list | tuple):
            if len(one) != len(other):
                return False
            pending += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


class _TreeMaker:
    """The parts of one tree, as generators that yield the parts whose result they require."""

    def __init__(self, levels: Sequence[PullLevel], read: ReadEntity) -> None:
        self.levels, self.read = levels, read
        self._on_path: set[int] = set()
        """The entities that slots which end cycles have led to."""
        self._remaining: dict[tuple[int, int], int] = {}
        """How often a limited slot may still be followed, by its level and number."""

    def entity(self, level: int, entity: int) -> _Step:
        """What an entity shows on a level."""
        pattern = self.levels[level]
        shown: Tree = {} if pattern.id_key is None else {pattern.id_key: entity}
        values = self.read(level, entity)
        for slot in pattern.slots:
            stored = values.get(slot.number, ())
            if not stored:
                if slot.default is not None:
                    shown[slot.key] = slot.default_value()
                continue
            parts: list[Any] = []
            for value in stored:
                if len(parts) == (1 if slot.is_single else slot.limit):
                    break
                part = slot.shown(value) if slot.level is None else (yield self._follow(level, slot, value))
                if part is not None:
                    parts.append(part)
                elif slot.is_single:
                    break
            if parts:
                shown[slot.key] = parts[0] if slot.is_single else parts
        return shown or None

    def _follow(self, level: int, slot: PullSlot, entity: Any) -> _Step:
        """What an entity shows that a slot refers to."""
        assert slot.level is not None
        if not slot.ends_cycles:
            return (yield self.entity(slot.level, entity))
        if entity in self._on_path:
            return {ID: entity}
        place = (level, slot.number)
        before = self._remaining.get(place, slot.depth)
        if before is not None:
            if before == 0:
                return None
            self._remaining[place] = before - 1
        self._on_path.add(entity)
        result = yield self.entity(slot.level, entity)
        self._on_path.discard(entity)
        if before is not None:
            self._remaining[place] = before
        return result
