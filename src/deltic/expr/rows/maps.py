"""MAPs on one row: tuples of (key, value) pairs, of which no two have one key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from deltic.expr.failures import invalid
from deltic.expr.nodes import Call, Value, lookup_key
from deltic.expr.rows.collated_text import key_for
from deltic.expr.rows.ordering import equal, normalized, order_key
from deltic.types import Type

Entries = tuple[tuple[Any, Any], ...]


def of_entries(call: Call, entries: Iterable[tuple[Any, Any]]) -> Entries:
    """Raises EvaluationError for a NULL key, and for a key that comes twice."""
    seen: set[Value] = set()
    pairs = tuple(entries)
    compared = key_for(call.type.parts[0].type)
    for key, _ in pairs:
        if key is None:
            raise invalid("the key of a MAP is NULL", call.span)
        if (identity := lookup_key(normalized(compared(key)))) in seen:
            raise invalid(f"the key {key!r} comes twice in a MAP", call.span)
        seen.add(identity)
    return pairs


def has_key(call: Call, keys: tuple[Value, ...], key: Value) -> bool:
    compared = key_for(call.arguments[1].type)
    sought = compared(key)
    return any(equal(compared(one), sought) for one in keys)


def concatenated(call: Call, *maps: Entries) -> Entries:
    return of_entries(call, ((_put(key), item) for one in maps for key, item in one))


def from_arrays(call: Call, keys: tuple[Value, ...], values: tuple[Value, ...]) -> Entries:
    if len(keys) != len(values):
        raise invalid(f"{len(keys)} keys and {len(values)} values do not make a MAP", call.span)
    return of_entries(call, zip(keys, values, strict=True))


def from_entries(call: Call, entries: tuple[tuple[Any, Any] | None, ...]) -> Entries | None:
    """NULL if one of the entries is."""
    if None in entries:
        return None
    return of_entries(call, ((_put(entry[0]), entry[1]) for entry in entries if entry is not None))


def _put(key: Any) -> Any:
    """As Spark puts a key into a MAP entry by entry: 0.0 for -0.0, but not within a nested key."""
    return normalized(key) if isinstance(key, float) else key


def sorted_maps(value: Any, type: Type) -> Any:
    """The value with the entries of each MAP in it sorted by key."""
    if value is None or not type.has_map:
        return value
    if type.name == "STRUCT":
        return tuple(sorted_maps(item, part.type) for item, part in zip(value, type.parts, strict=True))
    if type.name == "ARRAY":
        return tuple(sorted_maps(item, type.parts[0].type) for item in value)
    entries = ((key, sorted_maps(item, type.parts[1].type)) for key, item in value)
    return tuple(sorted(entries, key=lambda entry: order_key(entry[0])))


def joined_entries(left: Sequence[tuple[Any, Any]], right: Sequence[tuple[Any, Any]], keys: Type) -> list[tuple[Any, Any, Any]]:
    """(key, value in the left MAP, value in the right MAP), NULL where it is not there: the keys of the left one, then the others.

    keys: their type.
    """
    compared = key_for(keys)
    merged = {lookup_key(normalized(compared(key))): [_put(key), item, None] for key, item in left}
    for key, item in right:
        merged.setdefault(lookup_key(normalized(compared(key))), [_put(key), None, None])[2] = item
    return [(key, a, b) for key, a, b in merged.values()]
