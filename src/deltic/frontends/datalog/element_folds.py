"""Folds of streams whose accumulators have Sets, Maps and Vecs: these are changed in place, and nothing is copied.

What a step reads is looked up in the elements that the state has (deltic.expr.accumulators) as it is evaluated. Its changes are
applied at the end of the step. What is read of a changed Set or Map is read after its changes, which are then undone. A Vec is a Map of its
elements by their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from deltic.expr.accumulators import ABSENT, Collection, ElementMap, ElementSource, Held, Result, collection
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Value
from deltic.frontends.datalog.element_steps import (
    ACCUMULATOR,
    BASE,
    AccumulatorLayout,
    Appended,
    Branched,
    Chosen,
    Computed,
    Dropped,
    ElementRead,
    Outcome,
    Put,
    Rebuilt,
    Replaced,
    Same,
    Unchanged,
    United,
    Update,
    Without,
    part_of,
)

Operation: TypeAlias = tuple[Value, Held]
"""An element or key, and what it has after the operation; ABSENT if it is removed."""


class Row(tuple[Value, ...]):
    """The columns of a step, and its reads: these are looked up when an expression evaluates them."""

    read: Callable[[int, Row], Value]

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(index) if index < BASE else self.read(index - BASE, self)


@dataclass(frozen=True, slots=True)
class ElementFold:
    """The function of an accumulator with Sets and Maps, for deltic.plan.accumulators.AccumulateElements.

    It returns the other columns, then the sizes of the Sets and Maps. begin: the first accumulator, a value of each column.
    """

    layout: AccumulatorLayout
    reads: tuple[ElementRead, ...]
    outcome: Outcome
    begin: tuple[Value, ...]

    def __call__(
        self, before: tuple[Value, ...] | None, sources: Sequence[ElementSource], group: Iterable[tuple[Any, int]]
    ) -> Result | None:
        name = "stream_aggregate"
        sets = [collection(part, source, name) for part, source in zip(self.layout.elements, sources, strict=True)]
        step = _Step(self, sets, None if before is None else before[: len(before) - len(sets)])
        for row, weight in group:
            step.run(row[0], weight)
        if step.plain is None:
            return None
        return (*step.plain, *step.sizes()), tuple(one.changes() for one in sets)


class _Step:
    """One accumulator in a tick. plain: the columns that are not Sets or Maps, in order; None if there is no accumulator."""

    def __init__(self, fold: ElementFold, sets: Sequence[Collection], plain: Sequence[Value] | None) -> None:
        self.fold, self.plain = fold, plain
        places = iter(sets)
        self.sets = [None if part is None else next(places) for part in fold.layout.parts]
        self._lengths = {column: len(held) for column in fold.layout.vectors if (held := self.sets[column]) is not None}

    def sizes(self) -> list[int]:
        """Of the Sets, Maps and Vecs."""
        return [self._lengths[column] if column in self._lengths else len(held) for column, held in self._held()]

    def _held(self) -> list[tuple[int, Collection]]:
        return [(column, held) for column, held in enumerate(self.sets) if held is not None]

    def run(self, value: Value, weight: int) -> None:
        """One step."""
        if self.plain is None:
            self._assign(self.fold.begin)
        row = Row((self._struct(), value, weight))
        row.read = self._read
        self._take(self.fold.outcome, row)

    def _struct(self) -> Value:
        """The accumulator, with None for Sets and Maps."""
        assert self.plain is not None
        plain = iter(self.plain)
        columns = tuple(None if one is not None else next(plain) for one in self.sets)
        return columns[0] if self.fold.layout.alone else columns

    def _take(self, outcome: Outcome, row: Row) -> None:
        match outcome:
            case Unchanged():
                pass
            case Dropped():
                self._drop()
            case Branched():
                self._take(_chosen(outcome, row), row)
            case Computed():
                value: Any = evaluate(outcome.value, row)
                if outcome.drops and value[0] == "None":
                    self._drop()
                else:
                    value = value[1] if outcome.drops else value
                    self._assign((value,) if self.fold.layout.alone else value)
            case Rebuilt():
                pairs = list(zip(outcome.columns, self.sets, strict=True))
                self._change(
                    [evaluate(one, row) for one, held in pairs if held is None],  # type: ignore[arg-type]
                    [(i, *self._operations(one, row)) for i, (one, held) in enumerate(pairs) if held is not None],  # type: ignore[arg-type]
                )

    def _change(self, plain: Sequence[Value], changes: Iterable[tuple[int, bool, Sequence[Operation]]]) -> None:
        """All values are computed before any Set or Map changes."""
        self.plain = plain
        for column, cleared, operations in changes:
            held = self.sets[column]
            assert held is not None
            if cleared:
                held.clear()
            _apply(held, operations)
            if column in self._lengths:
                self._lengths[column] = len(operations) + (0 if cleared else self._lengths[column])

    def _drop(self) -> None:
        self.plain = None
        for column, held in self._held():
            held.clear()
            self._lengths |= {column: 0} if column in self._lengths else {}

    def _assign(self, columns: Sequence[Any]) -> None:
        """Another accumulator."""
        plain = [value for value, held in zip(columns, self.sets, strict=True) if held is None]
        self._change(plain, [(column, True, self._entries(column, columns[column])) for column, _ in self._held()])

    def _entries(self, column: int, value: Any) -> list[Operation]:
        """A Set, Map or Vec as operations on an empty one."""
        if column in self._lengths:
            return list(enumerate(value))
        return list(value) if isinstance(self.sets[column], ElementMap) else [(element, True) for element in value]

    def _operations(self, update: Update, row: Row) -> tuple[bool, list[Operation]]:
        """(whether all elements are removed first, the operations)."""
        match update:
            case Same():
                return False, []
            case Put():
                cleared, operations = self._operations(update.base, row)
                element = evaluate(update.element, row)
                return cleared, [*operations, (element, True if update.value is None else evaluate(update.value, row))]
            case Without():
                cleared, operations = self._operations(update.base, row)
                return cleared, [*operations, (evaluate(update.element, row), ABSENT)]
            case United():
                cleared, operations = self._operations(update.base, row)
                return cleared, [*operations, *self._entries(part_of(update), evaluate(update.other, row))]
            case Appended():
                cleared, operations = self._operations(update.base, row)
                position = len(operations) + (0 if cleared else self._lengths[part_of(update)])
                return cleared, [*operations, (position, evaluate(update.element, row))]
            case Chosen():
                return self._operations(_chosen(update, row), row)
            case Replaced():
                return True, self._entries(update.part, evaluate(update.value, row))

    def _read(self, index: int, row: Row) -> Value:
        read = self.fold.reads[index]
        if read.part is None:
            plain = row[ACCUMULATOR]
            return tuple(
                value if held is None else self._whole(i, held) for i, (value, held) in enumerate(zip(plain, self.sets, strict=True))
            )
        held = self.sets[read.part]
        assert held is not None and read.update is not None
        element = None if read.element is None else evaluate(read.element, row)
        _, operations = self._operations(read.update, row)
        if read.function == "size" and read.part in self._lengths:
            return self._lengths[read.part] + len(operations)
        with _changed(held, operations):
            match read.function:
                case "size":
                    return len(held)
                case "contains":
                    return element in held
                case "get":
                    assert isinstance(held, ElementMap)
                    value: Value = held.get(element)
                    return value
                case "whole":
                    return self._whole(read.part, held)

    def _whole(self, column: int, held: Collection) -> Value:
        if not isinstance(held, ElementMap):
            return tuple(held)
        return tuple(held.values() if column in self._lengths else held.items())


def _chosen(choice: Any, row: Row) -> Any:
    """The branch of a Branched or Chosen."""
    return next((value for condition, value in choice.branches if evaluate(condition, row) is True), choice.otherwise)


def _apply(held: Collection, operations: Iterable[Operation]) -> None:
    for element, value in operations:
        if not isinstance(held, ElementMap):
            held.discard(element) if value is ABSENT else held.add(element)
        elif value is ABSENT:
            held.pop(element, None)
        else:
            held[element] = value


@contextmanager
def _changed(held: Collection, operations: Sequence[Operation]) -> Iterator[None]:
    """The Set or Map after the operations, which are undone at the end."""
    undo: list[Operation] = []
    for element, value in operations:
        before: Held = held.get(element, ABSENT) if isinstance(held, ElementMap) else True if element in held else ABSENT
        undo.append((element, before))
        _apply(held, [(element, value)])
    yield
    _apply(held, reversed(undo))
