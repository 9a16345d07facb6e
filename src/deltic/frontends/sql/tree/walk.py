"""Traversal of syntax trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from typing import Any

from deltic.stacks import unbounded


def parts(node: object) -> Iterator[object]:
    """The direct child nodes."""
    kind: Any = type(node)
    waiting = [getattr(node, name) for name in _field_names(kind)]
    for value in waiting:
        if isinstance(value, tuple):
            waiting.extend(value)
        elif is_node(value):
            yield value


def is_node(value: object) -> bool:
    """Whether the value is a node of a tree; definitions to which a node refers are not."""
    kind: Any = type(value)
    return _is_of_tree(kind)


@cache
def _is_of_tree(kind: Any) -> bool:
    return str(kind.__module__).startswith(__package__)


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def walk(node: object, enters: Callable[[object], bool] = lambda _: True) -> Iterator[object]:
    """The node and its descendants; skips the descendants of nodes for which `enters` is False."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        if enters(one):
            waiting.extend(parts(one))


@unbounded
def without_places(node: object) -> object:
    """A value that is equal for nodes of equal text, in any place."""
    kind: Any = type(node)
    if isinstance(node, tuple):
        return tuple(map(without_places, node))
    if is_node(node):
        return kind, tuple(without_places(getattr(node, name)) for name in _field_names(kind) if name != "span")
    return node
