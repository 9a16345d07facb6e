"""ARRAYs on one row: what is in them, sets of their elements, their order, and arrays made of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from typing import Any, Final

from deltic.expr.failures import invalid
from deltic.expr.nodes import Call, Value, lookup_key
from deltic.expr.rows.collated_text import key_for
from deltic.expr.rows.elements import MOST_ELEMENTS
from deltic.expr.rows.ordering import equal, normalized, order

Elements = tuple[Value, ...]
_UNKNOWN: Final = None


def contains(call: Call, elements: Elements, value: Value) -> bool | None:
    """NULL if the value is not there and an element is NULL."""
    if any(one is not None and equal(one, value) for one in elements):
        return True
    return _UNKNOWN if None in elements else False


def position(call: Call, elements: Elements, value: Value) -> int:
    """From 1; 0 if the value is not there."""
    return next((i for i, one in enumerate(elements, 1) if one is not None and equal(one, value)), 0)


def remove(call: Call, elements: Elements, value: Value) -> Elements:
    key = _key(call)
    removed = key(value)
    return tuple(one for one in elements if one is None or not equal(key(one), removed))


def compact(call: Call, elements: Elements) -> Elements:
    return tuple(one for one in elements if one is not None)


def distinct(call: Call, elements: Elements) -> Elements:
    """In the order of their first place, with 0.0 for -0.0; NULL is an element too."""
    return tuple(_by_key(call, elements).values())


def union(call: Call, left: Elements, right: Elements) -> Elements:
    return distinct(call, left + right)


def intersect(call: Call, left: Elements, right: Elements) -> Elements:
    there = _by_key(call, right)
    return tuple(value for key, value in _by_key(call, left).items() if key in there)


def without(call: Call, left: Elements, right: Elements) -> Elements:
    there = _by_key(call, right)
    return tuple(value for key, value in _by_key(call, left).items() if key not in there)


def overlap(call: Call, left: Elements, right: Elements) -> bool | None:
    """NULL if no element is in both, neither is empty, and an element is NULL."""
    if (_by_key(call, left).keys() & _by_key(call, right).keys()) - {None}:
        return True
    return _UNKNOWN if left and right and None in (*left, *right) else False


def _key(call: Call) -> Callable[[Value], Value]:
    """What is compared in place of an element of the first argument."""
    return key_for(call.arguments[0].type.parts[0].type)


def _by_key(call: Call, elements: Iterable[Value]) -> dict[Value, Value]:
    distinct: dict[Value, Value] = {}
    key = _key(call)
    for one in elements:
        value = normalized(one)
        distinct.setdefault(lookup_key(key(value)), value)
    return distinct


def best(better: Callable[[int], bool]) -> Callable[[Call, Elements], Value]:
    """The first of the best elements that are not NULL."""

    def rows(call: Call, elements: Elements) -> Value:
        chosen: Value = None
        key = _key(call)
        for one in elements:
            if one is not None and (chosen is None or better(order(key(one), key(chosen)))):
                chosen = one
        return chosen

    return rows


def sort(call: Call, elements: Elements, ascending: bool) -> Elements:
    """NULLs are the least: first if ascending, else last. Stable."""
    present = in_order(compact(call, elements), _key(call), reverse=not ascending)
    nulls = (None,) * (len(elements) - len(present))
    return (*nulls, *present) if ascending else (*present, *nulls)


def in_order(present: Elements, key: Callable[[Value], Value], *, reverse: bool = False) -> list[Value]:
    """Elements that are not NULL, sorted by their keys; stable."""
    sortable = cmp_to_key(order)
    return sorted(present, key=lambda one: sortable(key(one)), reverse=reverse)


def append(call: Call, elements: Elements | None, value: Value) -> Elements | None:
    return None if elements is None else (*elements, value)


def prepend(call: Call, elements: Elements | None, value: Value) -> Elements | None:
    return None if elements is None else (value, *elements)


def insert(call: Call, elements: Elements | None, place: int | None, value: Value) -> Elements | None:
    """At a place from 1, or from -1 backwards; past an end the array is filled with NULLs."""
    if elements is None or place is None:
        return None
    if place == 0:
        raise invalid("the index of array_insert is 0; elements are counted from 1", call.span)
    checked_length(call, max(abs(place), len(elements) + 1))
    if place > 0:
        filled = elements + (None,) * (place - 1 - len(elements))
        return (*filled[: place - 1], value, *filled[place - 1 :])
    index = len(elements) + place + 1
    return (*elements[:index], value, *elements[index:]) if index >= 0 else (value, *(None,) * -index, *elements)


def repeat(call: Call, value: Value, count: int | None) -> Elements | None:
    return None if count is None else (value,) * checked_length(call, max(0, count))


def checked_length(call: Call, length: int) -> int:
    if length > MOST_ELEMENTS:
        raise invalid(f"{call.function} would make an ARRAY of {length:,} elements, more than {MOST_ELEMENTS:,}", call.span)
    return length


def concatenated(call: Call, *parts: Elements) -> Elements:
    return tuple(one for part in parts for one in part)


def flatten(call: Call, parts: tuple[Elements | None, ...]) -> Elements | None:
    """NULL if one of the arrays is."""
    return None if None in parts else tuple(one for part in parts if part is not None for one in part)


def slice_of(call: Call, elements: Elements, start: int, length: int) -> Elements:
    """From a place from 1, or from -1 backwards."""
    if start == 0:
        raise invalid("the start of slice is 0; elements are counted from 1", call.span)
    if length < 0:
        raise invalid(f"the length of slice is {length}, less than 0", call.span)
    first = start - 1 if start > 0 else len(elements) + start
    return elements[first : first + length] if first >= 0 else ()


def zipped(call: Call, *arrays: Elements) -> tuple[Elements, ...]:
    """STRUCTs of the elements at each place; NULL where an array is shorter."""
    longest = max(map(len, arrays), default=0)
    return tuple(tuple(array[i] if i < len(array) else None for array in arrays) for i in range(longest))


def joined(call: Call, elements: Sequence[Any], delimiter: str, null: str | None = None) -> str:
    """NULLs are left out, or replaced."""
    return delimiter.join(text for one in elements if (text := null if one is None else one) is not None)
