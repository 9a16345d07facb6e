"""Traversal of syntax trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar, cast

from deltic.stacks import unbounded

Node = TypeVar("Node")


def parts(node: object) -> list[object]:
    """The direct child nodes."""
    kind: Any = type(node)
    waiting = [getattr(node, name) for name in _field_names(kind)]
    found: list[object] = []
    for value in waiting:
        kind = type(value)
        if _is_of_tree(kind):
            found.append(value)
        elif isinstance(value, tuple):
            waiting.extend(value)
    return found


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


def walk(node: object, enters: Callable[[object], bool] | None = None) -> Iterator[object]:
    """The node and its descendants; skips the descendants of nodes for which `enters` is False."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        if enters is None or enters(one):
            waiting.extend(parts(one))


@unbounded
def rewritten(node: Node, change: Callable[[Any], Any], enters: Callable[[object], bool] = lambda _: True) -> Node:
    """The tree in which `change` has replaced nodes: it returns the same node to go on to its parts. Nodes that are not entered stay."""
    if isinstance(node, tuple):
        items = tuple(rewritten(item, change, enters) for item in node)
        return node if all(new is old for new, old in zip(items, node, strict=True)) else cast("Node", items)
    if not is_node(node) or not enters(node):
        return node
    one: Any = node
    if (new := change(one)) is not one:
        return cast("Node", new)
    changed = {}
    kind: Any = type(one)
    for name in _field_names(kind):
        old = getattr(node, name)
        if (new := rewritten(old, change, enters)) is not old:
            changed[name] = new
    return replace(one, **changed) if changed else node


@unbounded
def without_places(node: object) -> object:
    """A value that is equal for nodes of equal text, in any place."""
    kind: Any = type(node)
    if isinstance(node, tuple):
        return tuple(map(without_places, node))
    if is_node(node):
        return kind, tuple(without_places(getattr(node, name)) for name in _field_names(kind) if name != "span")
    return node
