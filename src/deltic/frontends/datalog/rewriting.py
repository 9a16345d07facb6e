"""Finding and replacing parts of the tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from deltic.errors import Span
from deltic.frontends.datalog.tree import parts_of

T = TypeVar("T")


def parts_of_kind(node: object, kind: type[T], holds: Callable[[T], bool] = lambda part: True) -> list[T]:
    """The parts of a class, the node included, that satisfy a condition, in the order of the text."""
    return [part for part in parts_of(node) if isinstance(part, kind) and holds(part)]


def replaced(node: T, by: Mapping[Any, Any]) -> T:
    """The node with each part that is a key of `by` replaced, and their parts not looked at."""
    result: T = mapped(node, lambda part: by.get(part) if is_dataclass(part) and not isinstance(part, Span) else None)
    return result


def mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """The node with each part for which `change` returns something replaced by it."""
    new = change(node)
    if new is not None:
        return new
    if isinstance(node, tuple):
        return tuple(mapped(part, change) for part in node)
    if not is_dataclass(node) or isinstance(node, Span | type):
        return node
    changes = {}
    for one in fields(node):
        old = getattr(node, one.name)
        part = mapped(old, change) if isinstance(old, tuple) or is_dataclass(old) else old
        if part is not old:
            changes[one.name] = part
    return replace(node, **changes) if changes else node
