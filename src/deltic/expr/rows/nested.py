"""Nested values on one row: an ARRAY is a tuple, a STRUCT the tuple of its fields' values, a MAP a tuple of pairs."""

from __future__ import annotations

from typing import Any

from deltic.expr.failures import invalid
from deltic.expr.nodes import Call, Value
from deltic.expr.rows.casts import cast_value
from deltic.expr.rows.collated_text import key_for
from deltic.expr.rows.ordering import equal


def make_map(call: Call, *parts: Value) -> tuple[tuple[Value, Value], ...]:
    """Of keys and values in turn. Raises EvaluationError for a NULL key, and for a key that comes twice."""
    keys = parts[::2]
    if None in keys:
        raise invalid("the key of a MAP is NULL", call.span)
    compared = [*map(key_for(call.type.parts[0].type), keys)]
    for i, key in enumerate(compared):
        if any(equal(key, other) for other in compared[:i]):
            raise invalid(f"the key {keys[i]!r} comes twice in a MAP", call.span)
    return tuple(zip(parts[::2], parts[1::2], strict=True))


def value_under(call: Call, value: tuple[tuple[Value, Value], ...], key: Value) -> Value:
    """The value of a MAP; NULL if the key is not there.

    The keys are compared as of the sought one's type, and of several that become equal the first is found, as in Spark.
    """
    given, type = call.arguments[0].type.parts[0].type, call.arguments[1].type
    compared = key_for(type)
    sought = compared(key)
    if given != type:
        value = tuple((cast_value(one, given, type, call.span), item) for one, item in value)
    return next((item for one, item in value if equal(compared(one), sought)), None)


def field(call: Call, value: tuple[Any, ...], index: int) -> Value:
    """The field of a STRUCT, or of each STRUCT of an ARRAY."""
    if call.arguments[0].type.name == "STRUCT":
        part: Value = value[index]
        return part
    return tuple(None if part is None else part[index] for part in value)


def size(call: Call, value: tuple[Any, ...]) -> int:
    return len(value)


def place_from_0(call: Call, index: int, length: int) -> int:
    """The position of a[index]. Raises EvaluationError if there is none."""
    if not 0 <= index < length:
        raise invalid(f"the index {index} is not in an ARRAY of {length} elements; try_element_at counts from 1 and gives NULL", call.span)
    return index


def place_from_1(call: Call, index: int, length: int) -> int:
    """The position of element_at(a, index): from 1, or from -1 backwards. Raises EvaluationError if there is none."""
    place = place_or_null(call, index, length)
    if place is None:
        raise invalid(f"the index {index} is not in an ARRAY of {length} elements; try_element_at gives NULL there", call.span)
    return place


def place_or_null(call: Call, index: int, length: int) -> int | None:
    """As `place_from_1`, None if there is none. Raises EvaluationError for 0."""
    if index == 0:
        raise invalid("the index of element_at is 0; elements are counted from 1", call.span)
    place = index - 1 if index > 0 else length + index
    return place if 0 <= place < length else None
