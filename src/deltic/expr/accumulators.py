"""Sets and maps of accumulators, whose elements are stored as rows.

A function of users gets a set or map that looks elements up where they are stored and collects what the function changes. An accumulator of
a million elements then costs what is looked up and changed. Nothing is changed in place: the changes are part of the function's result,
so that a tick that fails leaves none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping, MutableSet, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol

from deltic.errors import EvaluationError
from deltic.expr.nodes import PythonFunction, UserFunction, Value
from deltic.expr.python import call_function, checked_value, result_columns, value_in, weighted_rows
from deltic.expr.rows.ordering import total_key
from deltic.purity import shown
from deltic.schema import BIGINT, BOOLEAN, Field, Schema, Type

NAN: Final = float("nan")
LIMIT: Final = 1 << 63


class Missing(Enum):
    """What an element that is not there has in place of a value."""

    ABSENT = 0


ABSENT: Final = Missing.ABSENT
Held = Value | Missing
"""The value of a map's key, TRUE for an element of a set, or ABSENT."""
Changes = Mapping[Hashable, tuple[Value, Held]]
"""By `element_key`: the element, and what it has after the call."""
Result = tuple[tuple[Value, ...], tuple[Changes, ...]]
"""What a call returns: the columns that are not sets or maps, and the changes of these."""


@dataclass(frozen=True, slots=True)
class ElementPart:
    """A set or map of an accumulator. name: its column. element: of its elements, or keys. value: of a map's values."""

    name: str
    element: Field
    value: Field | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.element,) if self.value is None else (self.element, self.value)


class ElementSource(Protocol):
    """The elements of a set or map before the call."""

    @property
    def size(self) -> int: ...

    def find(self, elements: Sequence[Value]) -> Sequence[Held]:
        """What each element has."""
        ...

    def all(self) -> Iterable[tuple[Value, Held]]:
        """All elements. O(size)."""
        ...


def element_key(value: Value) -> Hashable:
    """Equal iff two elements of a type are the same."""
    return repr(value) if isinstance(value, tuple) or value != value else value


def element_of_type(given: Any, type: Type) -> Value:
    """The value as an element: of the type's class, 0.0 for -0.0; None if it is none of the type, or NULL."""
    if type is BIGINT and given.__class__ is int and -LIMIT <= given < LIMIT:
        return int(given)  # what most elements are
    value = None if given is None else value_in(type, given)
    return _normal(value) if type.has_zeros or isinstance(value, tuple) else value


def _normal(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(map(_normal, value))
    if isinstance(value, float):
        return 0.0 if value == 0.0 else NAN if value != value else value
    return value


class _Elements:
    """The elements of a set or map in one call: those before it, looked up as they are needed, and the changes."""

    __slots__ = ("_grown", "_new", "_old", "_part", "_source", "_uncounted", "_user", "_whole")

    def __init__(self, part: ElementPart, source: ElementSource, user: str) -> None:
        self._part, self._source, self._user = part, source, user
        self._old: dict[Hashable, tuple[Value, Held]] = {}
        self._new: dict[Hashable, tuple[Value, Held]] = {}
        self._whole = not source.size
        """Whether all elements before the call are known."""
        self._grown = 0
        self._uncounted: dict[Hashable, Value] = {}
        """Changed elements that `_grown` does not count yet, since it is not known whether they were there."""

    def changes(self) -> Changes:
        return self._new

    def clear(self) -> None:
        """Removes all elements. O(size)."""
        for element, _ in self._entries():
            self._put(element, ABSENT)

    def __len__(self) -> int:
        if self._uncounted:
            for key, held in zip(self._uncounted, self._look_up(self._uncounted), strict=True):
                self._grown += (self._new[key][1] is not ABSENT) - (held is not ABSENT)
            self._uncounted = {}
        return self._source.size + self._grown

    def _get(self, given: Any) -> Held:
        element = self._element(given)
        key = element_key(element)
        if key in self._new:
            return self._new[key][1]
        return self._look_up({key: element})[0]

    def _put(self, given: Any, held: Held) -> None:
        element = self._element(given)
        key = element_key(element)
        before = self._new[key][1] if key in self._new else self._old[key][1] if key in self._old else ABSENT
        if key not in self._new and key not in self._old and not self._whole:
            self._uncounted[key] = element
        elif key not in self._uncounted:
            self._grown += (held is not ABSENT) - (before is not ABSENT)
        self._new[key] = (element, held)

    def _look_up(self, elements: Mapping[Hashable, Value]) -> list[Held]:
        """What the elements had before the call."""
        if not self._whole:
            unknown = {key: element for key, element in elements.items() if key not in self._old}
            for (key, element), held in zip(unknown.items(), self._source.find([*unknown.values()]), strict=True):
                self._old[key] = (element, held)
        return [self._old[key][1] if key in self._old else ABSENT for key in elements]

    def _entries(self) -> list[tuple[Value, Held]]:
        """All elements, in order. O(size)."""
        if not self._whole:
            self._old = {element_key(element): (element, held) for element, held in self._source.all()}
            self._whole = True
        entries = [entry for entry in {**self._old, **self._new}.values() if entry[1] is not ABSENT]
        return sorted(entries, key=lambda entry: total_key(entry[0]))

    def _element(self, given: Any) -> Value:
        element = element_of_type(given, self._part.element.type)
        if element is None:
            raise self._misfit("an element" if self._part.value is None else "a key", given, f"{self._part.element.type.sql} NOT NULL")
        return element

    def _misfit(self, role: str, given: Any, expected: str) -> EvaluationError:
        return EvaluationError(f"the function {self._user} has {shown(given)} as {role} of {self._part.name}", expected=expected)


class ElementSet(_Elements, MutableSet[Any]):
    """A set of an accumulator. Iteration is in order, and costs O(size), as clear() and pop() do; other methods cost what they touch."""

    __slots__ = ()

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        """What &, | and - return."""
        return set(it)

    def __contains__(self, element: object) -> bool:
        return self._get(element) is not ABSENT

    def __iter__(self) -> Iterator[Any]:
        return iter([element for element, _ in self._entries()])

    def add(self, value: Any) -> None:
        self._put(value, True)

    def discard(self, value: Any) -> None:
        self._put(value, ABSENT)

    def update(self, *others: Iterable[Any]) -> None:
        """Adds all elements of the others."""
        for other in others:
            for element in other:
                self.add(element)

    def pop(self) -> Any:
        """Removes and returns the least element."""
        entries = self._entries()
        if not entries:
            raise KeyError(self._part.name)
        self._put(entries[0][0], ABSENT)
        return entries[0][0]

    def __repr__(self) -> str:
        return f"<the set {self._part.name} of an accumulator>"


class ElementMap(_Elements, MutableMapping[Any, Any]):
    """A map of an accumulator. Iteration is by key, in order, and costs O(size), as clear() does; other methods cost what they touch."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        held = self._get(key)
        if held is ABSENT:
            raise KeyError(key)
        return held

    def __contains__(self, key: object) -> bool:
        return self._get(key) is not ABSENT

    def __setitem__(self, key: Any, value: Any) -> None:
        field = self._part.value
        assert field is not None
        fitted = None if value is None else value_in(field.type, value)
        if fitted is None and not (value is None and field.nullable):
            raise self._misfit("a value", value, field.type.sql + ("" if field.nullable else " NOT NULL"))
        self._put(key, fitted)

    def __delitem__(self, key: Any) -> None:
        if key not in self:
            raise KeyError(key)
        self._put(key, ABSENT)

    def __iter__(self) -> Iterator[Any]:
        return iter([key for key, _ in self._entries()])

    def __repr__(self) -> str:
        return f"<the map {self._part.name} of an accumulator>"


Collection = ElementSet | ElementMap


def collection(part: ElementPart, source: ElementSource, user: str) -> Collection:
    """The set or map in one call of the function with the name `user`."""
    return (ElementSet if part.value is None else ElementMap)(part, source, user)


@dataclass(frozen=True, slots=True)
class ElementsInMemory:
    """A source in memory: elements by their keys."""

    entries: Changes

    @property
    def size(self) -> int:
        return len(self.entries)

    def find(self, elements: Sequence[Value]) -> list[Held]:
        keys = [element_key(element) for element in elements]
        return [self.entries[key][1] if key in self.entries else ABSENT for key in keys]

    def all(self) -> Iterable[tuple[Value, Held]]:
        return self.entries.values()


def accumulated_elements(
    function: UserFunction,
    plain: Schema,
    before: tuple[Value, ...] | None,
    sources: Sequence[ElementSource],
    group: Iterable[tuple[tuple[Value, ...], int]],
) -> Result | None:
    """The accumulator after a tick's (row, weight) pairs of a key; None if the function drops it. Raises EvaluationError.

    before: its columns of `plain` before the tick, if there is one. sources: of its sets and maps.
    """
    columns = result_columns(function, plain)
    result = call_function(PythonFunction(function, (), 0, BOOLEAN, True), [before, tuple(sources), weighted_rows(function, group)])
    if result is None:
        return None
    values, changes = result
    return tuple(checked_value(column, value) for column, value in zip(columns, values, strict=True)), changes
