"""Steps of stream_aggregate whose accumulators have Sets and Maps: these are changed in place, and nothing is copied.

A step is an expression over (accumulator, value, weight). What it reads of a Set or Map, by `contains`, `get` and `size`, is looked up in
the elements that the state has (deltic.expr.accumulators), and what insert_imm and remove_imm make of one is a list of changes. These are
applied at the end of the step. What is read of a changed Set or Map is read after its changes, which are then undone. Other functions take
the whole Set or Map, and cost its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from deltic.expr.accumulators import ABSENT, Collection, ElementMap, ElementPart, ElementSource, Held, Result, collection
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Call, Case, Column, Expr, Lambda, Value, children
from deltic.expr.nodes import Literal as Constant
from deltic.frontends.datalog.maps import with_entry, without_entry
from deltic.frontends.datalog.sets import with_element, without_element
from deltic.plan.columns import map_children

ACCUMULATOR, VALUE, WEIGHT = 0, 1, 2
BASE: Final = 3
"""The columns of a step; the next ones are its reads."""
REBUILT: Final = "make_struct"


# what a step makes of a Set or Map


@dataclass(frozen=True, slots=True)
class Same:
    """The accumulator's."""

    part: int


@dataclass(frozen=True, slots=True)
class Put:
    """`base` with an element, or with a value under a key. value: None of a Set."""

    base: Update
    element: Expr
    value: Expr | None


@dataclass(frozen=True, slots=True)
class Without:
    """`base` without an element or key."""

    base: Update
    element: Expr


@dataclass(frozen=True, slots=True)
class Chosen:
    """The update of the first branch whose condition holds."""

    branches: tuple[tuple[Expr, Update], ...]
    otherwise: Update


@dataclass(frozen=True, slots=True)
class Replaced:
    """A value in place of the accumulator's. It is no base of other updates."""

    part: int
    value: Expr


Update: TypeAlias = Same | Put | Without | Chosen | Replaced


@dataclass(frozen=True, slots=True)
class ElementRead:
    """What a step reads of a Set or Map after an update of it. element: of `contains` and `get`. part: None of the whole accumulator."""

    function: Literal["size", "contains", "get", "whole"]
    part: int | None
    update: Update | None = None
    element: Expr | None = None


# what a step returns


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The accumulator."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """No accumulator."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A value of each column."""

    columns: tuple[Expr | Update, ...]


@dataclass(frozen=True, slots=True)
class Branched:
    """The outcome of the first branch whose condition holds."""

    branches: tuple[tuple[Expr, Outcome], ...]
    otherwise: Outcome


@dataclass(frozen=True, slots=True)
class Computed:
    """A whole accumulator by an expression. drops: an Option of it."""

    value: Expr
    drops: bool


Outcome: TypeAlias = Unchanged | Dropped | Rebuilt | Branched | Computed


class LambdaReads(Exception):
    """A lambda in the step reads a Set or Map of the accumulator: it is not known how often."""


@dataclass(frozen=True, slots=True)
class AccumulatorLayout:
    """The columns of an accumulator. parts: by column, the Set or Map. alone: the accumulator is one value, not a struct."""

    parts: tuple[ElementPart | None, ...]
    alone: bool

    @property
    def elements(self) -> tuple[ElementPart, ...]:
        return tuple(part for part in self.parts if part is not None)

    def column(self, expr: Expr) -> int | None:
        """The column of the accumulator that the expression is."""
        if self.alone:
            return 0 if _is_accumulator(expr) else None
        if isinstance(expr, Call) and expr.function == "field" and _is_accumulator(expr.arguments[0]):
            index = expr.arguments[1]
            assert isinstance(index, Constant) and isinstance(index.value, int)
            return index.value
        return None


def _is_accumulator(expr: Expr) -> bool:
    return isinstance(expr, Column) and expr.index == ACCUMULATOR


class StepReader:
    """Takes a step apart. reads: what it reads of Sets and Maps, which its expressions have as columns from BASE on."""

    def __init__(self, layout: AccumulatorLayout) -> None:
        self.layout = layout
        self.reads: list[ElementRead] = []

    def outcome(self, expr: Expr, *, drops: bool) -> Outcome:
        """What the step returns. drops: it is an Option of the accumulator. Raises LambdaReads."""
        if isinstance(expr, Case):
            branches = tuple((self.expression(condition), self.outcome(value, drops=drops)) for condition, value in expr.branches)
            return Branched(branches, self.outcome(expr.otherwise, drops=drops))
        if drops:
            tag = expr.arguments[0] if isinstance(expr, Call) and expr.function == REBUILT else None
            if not isinstance(expr, Call) or not isinstance(tag, Constant):
                return Computed(self.expression(expr), True)
            return Dropped() if tag.value == "None" else self.outcome(expr.arguments[1], drops=False)
        if self.layout.alone:
            return Rebuilt((self._updated(expr, 0),))
        if _is_accumulator(expr):
            return Unchanged()
        if not isinstance(expr, Call) or expr.function != REBUILT:
            return Computed(self.expression(expr), False)
        pairs = zip(self.layout.parts, expr.arguments, strict=True)
        return Rebuilt(
            tuple(self.expression(one) if part is None else self._updated(one, column) for column, (part, one) in enumerate(pairs))
        )

    def _updated(self, expr: Expr, column: int) -> Update:
        """The expression as an update of the Set or Map of a column."""
        if isinstance(expr, Case):
            branches = tuple((self.expression(condition), self._updated(value, column)) for condition, value in expr.branches)
            return Chosen(branches, self._updated(expr.otherwise, column))
        update = self._update(expr)
        return update if update is not None and _part_of(update) == column else Replaced(column, self.expression(expr))

    def expression(self, expr: Expr) -> Expr:
        """The expression over the columns of the step and of its reads."""
        if isinstance(expr, Lambda):
            if self._touches(expr.body):
                raise LambdaReads
            return expr
        read = self._read(expr)
        if read is not None:
            self.reads.append(read)
            return Column(BASE + len(self.reads) - 1, expr.type, expr.nullable)
        return expr if self.layout.column(expr) is not None else map_children(expr, self.expression)

    def _touches(self, expr: Expr) -> bool:
        """Whether it reads a Set or Map, or the whole accumulator."""
        column = self.layout.column(expr)
        if column is not None:
            return self.layout.parts[column] is not None
        return _is_accumulator(expr) or any(map(self._touches, children(expr)))

    def _read(self, expr: Expr) -> ElementRead | None:
        if isinstance(expr, Call) and expr.function in ("size", "array_contains", "map_contains_key", "try_element_at"):
            holder = expr.arguments[0]
            if expr.function == "map_contains_key":  # of the keys
                assert isinstance(holder, Call)
                holder = holder.arguments[0]
            update = self._update(holder)
            if update is not None:
                function: Any = {"size": "size", "try_element_at": "get"}.get(expr.function, "contains")
                element = None if function == "size" else self.expression(expr.arguments[1])
                return ElementRead(function, _part_of(update), update, element)
        update = self._update(expr)
        if update is not None:
            return ElementRead("whole", _part_of(update), update)
        return ElementRead("whole", None) if _is_accumulator(expr) else None

    def _update(self, expr: Expr) -> Update | None:
        """The expression as an update of one of the accumulator's Sets or Maps; None if it is something else."""
        column = self.layout.column(expr)
        if column is not None:
            return None if self.layout.parts[column] is None else Same(column)
        if isinstance(expr, Case):
            return self._chosen(expr)
        for matched in (_put_into_map, _put_into_set, _taken_from_map, _taken_from_set):
            operands = matched(expr)
            base = None if operands is None else self._update(operands[0])
            if operands is not None and base is not None:
                rest = tuple(map(self.expression, operands[1:]))
                if matched in (_taken_from_map, _taken_from_set):
                    return Without(base, rest[0])
                return Put(base, rest[0], rest[1] if len(rest) > 1 else None)
        return None

    def _chosen(self, expr: Case) -> Update | None:
        """Only where all branches are updates of one Set or Map. Reads of branches before one that is not are left out."""
        before = len(self.reads)
        updates = [self._update(value) for value in (*(value for _, value in expr.branches), expr.otherwise)]
        whole = [one for one in updates if one is not None]
        if len(whole) < len(updates) or len({_part_of(one) for one in whole}) > 1:
            del self.reads[before:]
            return None
        conditions = [self.expression(condition) for condition, _ in expr.branches]
        return Chosen(tuple(zip(conditions, whole, strict=False)), whole[-1])


def _part_of(update: Update) -> int:
    """The column that is updated."""
    match update:
        case Same() | Replaced():
            return update.part
        case Put() | Without():
            return _part_of(update.base)
        case Chosen():
            return _part_of(update.otherwise)


def _put_into_map(expr: Expr) -> tuple[Expr, ...] | None:
    """(the Map, the key, the value) of an insertion."""
    match expr:
        case Call("map_concat", (Call("map_filter", (base, _)), Call("map", (key, value)))) if with_entry(base, key, value) == expr:
            return base, key, value
    return None


def _taken_from_map(expr: Expr) -> tuple[Expr, ...] | None:
    match expr:
        case Call("map_filter", (base, Lambda(_, Call("not_equal", (_, key))))) if without_entry(base, key) == expr:
            return base, key
    return None


def _put_into_set(expr: Expr) -> tuple[Expr, ...] | None:
    match expr:
        case Call("sort_array", (Call("array_union", (base, Call("array", (element,)))), _)) if with_element(base, element) == expr:
            return base, element
    return None


def _taken_from_set(expr: Expr) -> tuple[Expr, ...] | None:
    match expr:
        case Call("array_remove", (base, element)) if without_element(base, element) == expr:
            return base, element
    return None


# evaluation


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
        return (*step.plain, *map(len, sets)), tuple(one.changes() for one in sets)


class _Step:
    """One accumulator in a tick. plain: the columns that are not Sets or Maps, in order; None if there is no accumulator."""

    def __init__(self, fold: ElementFold, sets: Sequence[Collection], plain: Sequence[Value] | None) -> None:
        self.fold, self.plain = fold, plain
        places = iter(sets)
        self.sets = [None if part is None else next(places) for part in fold.layout.parts]

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
                    [(held, *self._operations(one, row)) for one, held in pairs if held is not None],  # type: ignore[arg-type]
                )

    def _change(self, plain: Sequence[Value], changes: Iterable[tuple[Collection, bool, Sequence[Operation]]]) -> None:
        """All values are computed before any Set or Map changes."""
        self.plain = plain
        for held, cleared, operations in changes:
            if cleared:
                held.clear()
            _apply(held, operations)

    def _drop(self) -> None:
        self.plain = None
        for one in self.sets:
            if one is not None:
                one.clear()

    def _assign(self, columns: Sequence[Any]) -> None:
        """Another accumulator."""
        pairs = list(zip(columns, self.sets, strict=True))
        plain = [value for value, held in pairs if held is None]
        self._change(plain, [(held, True, _entries(held, value)) for value, held in pairs if held is not None])

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
            case Chosen():
                return self._operations(_chosen(update, row), row)
            case Replaced():
                held = self.sets[update.part]
                assert held is not None
                return True, _entries(held, evaluate(update.value, row))

    def _read(self, index: int, row: Row) -> Value:
        read = self.fold.reads[index]
        if read.part is None:
            columns = tuple(_whole(held) if held is not None else None for held in self.sets)
            plain = row[ACCUMULATOR]
            return tuple(value if held is None else whole for value, held, whole in zip(plain, self.sets, columns, strict=True))
        held = self.sets[read.part]
        assert held is not None and read.update is not None
        element = None if read.element is None else evaluate(read.element, row)
        _, operations = self._operations(read.update, row)
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
                    return _whole(held)


def _chosen(choice: Any, row: Row) -> Any:
    """The branch of a Branched or Chosen."""
    return next((value for condition, value in choice.branches if evaluate(condition, row) is True), choice.otherwise)


def _entries(held: Collection, value: Any) -> list[Operation]:
    """The elements of a Set or Map as operations on `held`."""
    return list(value) if isinstance(held, ElementMap) else [(element, True) for element in value]


def _whole(held: Collection) -> Value:
    return tuple(held.items()) if isinstance(held, ElementMap) else tuple(held)


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
