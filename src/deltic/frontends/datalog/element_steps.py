"""Steps of stream_aggregate, taken apart: what they read of the accumulator's Sets, Maps and Vecs, and how they change them.

A step is an expression over (accumulator, value, weight). What it reads of a Set or Map, by `contains`, `get` and `size`, is a read; what
insert_imm and the like make of one an update. Other functions read the whole Set or Map. element_folds evaluates them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from deltic.expr.accumulators import ElementPart
from deltic.expr.nodes import Call, Case, Column, Expr, Lambda, children
from deltic.expr.nodes import Literal as Constant
from deltic.frontends.datalog.maps import with_entry, without_entry
from deltic.frontends.datalog.sets import union, with_element, without_element
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
class United:
    """`base` with the elements of another Set."""

    base: Update
    other: Expr


@dataclass(frozen=True, slots=True)
class Appended:
    """A Vec with one more element at its end."""

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


Update: TypeAlias = Same | Put | Without | United | Appended | Chosen | Replaced


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
    """The columns of an accumulator. parts: by column, the Set, Map or Vec. alone: the accumulator is one value, not a struct.

    vectors: the columns that are Vecs.
    """

    parts: tuple[ElementPart | None, ...]
    alone: bool
    vectors: frozenset[int]

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
    """Takes a step apart. reads: what it reads of Sets and Maps, which its expressions have as columns from BASE on.

    copies: whether a whole Set or Map becomes another one.
    """

    def __init__(self, layout: AccumulatorLayout) -> None:
        self.layout = layout
        self.copies = False
        self.reads: list[ElementRead] = []

    def outcome(self, expr: Expr, *, drops: bool) -> Outcome:
        """What the step returns. drops: it is an Option of the accumulator. Raises LambdaReads."""
        if isinstance(expr, Case):
            branches = tuple((self.expression(condition), self.outcome(value, drops=drops)) for condition, value in expr.branches)
            return Branched(branches, self.outcome(expr.otherwise, drops=drops))
        if drops:
            tag = expr.arguments[0] if isinstance(expr, Call) and expr.function == REBUILT else None
            if not isinstance(expr, Call) or not isinstance(tag, Constant):
                return Computed(self._whole(expr), True)
            return Dropped() if tag.value == "None" else self.outcome(expr.arguments[1], drops=False)
        if self.layout.alone:
            return Rebuilt((self._updated(expr, 0),))
        if _is_accumulator(expr):
            return Unchanged()
        if not isinstance(expr, Call) or expr.function != REBUILT:
            return Computed(self._whole(expr), False)
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
        return update if update is not None and part_of(update) == column else Replaced(column, self._whole(expr))

    def _whole(self, expr: Expr) -> Expr:
        """An expression whose value replaces a Set or Map, or the accumulator."""
        before = len(self.reads)
        result = self.expression(expr)
        self.copies = self.copies or any(one.function == "whole" for one in self.reads[before:])
        return result

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
            if update is not None and (expr.function == "size" or part_of(update) not in self.layout.vectors):
                function: Any = {"size": "size", "try_element_at": "get"}.get(expr.function, "contains")
                element = None if function == "size" else self.expression(expr.arguments[1])
                return ElementRead(function, part_of(update), update, element)
        update = self._update(expr)
        if update is not None:
            return ElementRead("whole", part_of(update), update)
        return ElementRead("whole", None) if _is_accumulator(expr) else None

    def _update(self, expr: Expr) -> Update | None:
        """The expression as an update of one of the accumulator's Sets or Maps; None if it is something else."""
        column = self.layout.column(expr)
        if column is not None:
            return None if self.layout.parts[column] is None else Same(column)
        if isinstance(expr, Case):
            return self._chosen(expr)
        for matched, of_vectors, made in _UPDATES:
            operands = matched(expr)
            base = None if operands is None else self._update(operands[0])
            if operands is not None and base is not None and (part_of(base) in self.layout.vectors) is of_vectors:
                return made(base, *map(self.expression, operands[1:]))
        return None

    def _chosen(self, expr: Case) -> Update | None:
        """Only where all branches are updates of one Set or Map. Reads of branches before one that is not are left out."""
        before = len(self.reads)
        updates = [self._update(value) for value in (*(value for _, value in expr.branches), expr.otherwise)]
        whole = [one for one in updates if one is not None]
        if len(whole) < len(updates) or len({part_of(one) for one in whole}) > 1:
            del self.reads[before:]
            return None
        conditions = [self.expression(condition) for condition, _ in expr.branches]
        return Chosen(tuple(zip(conditions, whole, strict=False)), whole[-1])


def part_of(update: Update) -> int:
    """The column that is updated."""
    match update:
        case Same() | Replaced():
            return update.part
        case Put() | Without() | United() | Appended():
            return part_of(update.base)
        case Chosen():
            return part_of(update.otherwise)


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


def _united(expr: Expr) -> tuple[Expr, ...] | None:
    match expr:
        case Call("sort_array", (Call("array_union", (base, other)), _)) if union(base, other) == expr:
            return base, other
    return None


def _pushed(expr: Expr) -> tuple[Expr, ...] | None:
    match expr:
        case Call("array_append", (base, element)):
            return base, element
    return None


def _put(base: Update, element: Expr, value: Expr | None = None) -> Update:
    return Put(base, element, value)


_UPDATES: Final[tuple[tuple[Callable[[Expr], tuple[Expr, ...] | None], bool, Callable[..., Update]], ...]] = (
    (_put_into_map, False, _put),
    (_put_into_set, False, _put),
    (_united, False, United),
    (_taken_from_map, False, Without),
    (_taken_from_set, False, Without),
    (_pushed, True, Appended),
)
"""What recognises the expression of an update, whether it is one of a Vec, and what it is."""
