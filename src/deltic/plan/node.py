"""The base of plan nodes: equality in constant time, and properties that are computed once for each node.

A plan is a DAG: a view that is read twice occurs in it once, and its tree may be exponentially large. So equal nodes share a representative
in the process (hash consing, Ershov 1958), to which nodes are compared; a representative lives as long as one of its nodes. Fields that
equality ignores (places in the text, the names of columns in expressions) belong to each node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import fields
from functools import cache, wraps
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload
from weakref import WeakValueDictionary

from deltic.reentrant import free_after_fork
from deltic.stacks import unbounded

N = TypeVar("N", bound="PlanNode")
P = ParamSpec("P")
T = TypeVar("T")

_representatives: WeakValueDictionary[Hashable, PlanNode] = WeakValueDictionary()
_lock = free_after_fork(RLock())


class PlanNode:
    """Base of the frozen dataclasses of plans, which have eq=False because equality is defined here."""

    __slots__ = ("__weakref__", "_computed", "_other")
    _other: PlanNode | None
    """The representative; None if that is the node itself."""
    _computed: dict[Hashable, Any]

    @property
    def representative(self) -> PlanNode:
        """The representative of all nodes that are equal to this one. O(1) after the first call."""
        try:
            return self._other or self
        except AttributeError:
            return _represented(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlanNode):
            return NotImplemented
        return self is other or (type(self) is type(other) and self.representative is other.representative)

    def __hash__(self) -> int:
        return object.__hash__(self.representative)

    def once(self, name: Hashable, compute: Callable[[], T]) -> T:
        """The result of `compute`, called on the first request for `name`."""
        results = self.results
        if name not in results:
            results[name] = _result(compute)
        return cast(T, results[name])

    @property
    def results(self) -> dict[Any, Any]:
        """What `once` has computed, by name."""
        try:
            return self._computed
        except AttributeError:
            object.__setattr__(self, "_computed", {})
            return self._computed


@unbounded
def _result(compute: Callable[[], T]) -> T:
    return compute()


def _represented(node: PlanNode) -> PlanNode:
    """The node's representative, after those of its inputs. Not recursive, since hashing holds the lock."""
    waiting = [node]
    while waiting:
        kind: Any = type(waiting[-1])
        values = [(getattr(waiting[-1], name), has_nodes) for name, has_nodes in _compared(kind)]
        if inner := [part for part in _nodes_in([value for value, has_nodes in values if has_nodes]) if not hasattr(part, "_other")]:
            waiting += inner
            continue
        key = (kind, *(_key(value) if has_nodes else value for value, has_nodes in values))
        with _lock:
            first = _representatives.setdefault(key, waiting[-1])
        last = waiting.pop()
        object.__setattr__(last, "_other", None if first is last else first)
    return first


def _key(value: object) -> object:
    """The value with the identity of the representative in the place of each node, which lives as long as a node that has it in its key.

    A key that had the node would keep it, and with it what was computed from it: often a node above it, which has the key.
    """
    if isinstance(value, PlanNode):
        return id(value.representative)
    if isinstance(value, tuple) and any(True for _ in _nodes_in(value)):
        return tuple(map(_key, value))
    return value


def _nodes_in(values: Iterable[object]) -> Iterator[PlanNode]:
    """The nodes in tuples nested in the values."""
    for value in values:
        if isinstance(value, PlanNode):
            yield value
        elif isinstance(value, tuple):
            yield from _nodes_in(value)


@cache
def _compared(kind: Any) -> tuple[tuple[str, bool], ...]:
    """The names of the fields that equality compares, and whether nodes are in them."""
    return tuple((field.name, "Plan" in str(field.type)) for field in fields(kind) if field.compare)


class computed(Generic[N, T]):
    """A property that is computed once for each node."""

    def __init__(self, compute: Callable[[N], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, node: None, owner: type[N]) -> computed[N, T]: ...
    @overload
    def __get__(self, node: N, owner: type[N]) -> T: ...
    def __get__(self, node: N | None, owner: type[N]) -> computed[N, T] | T:
        if node is None:
            return self
        results = getattr(node, "_computed", None)  # not by `once`, since every rule reads the schemas of all nodes
        return results[self._compute] if results and self._compute in results else node.once(self._compute, lambda: self._compute(node))


def once_per_node(function: Callable[P, T]) -> Callable[P, T]:
    """A function of a node and further hashable positional arguments that runs once for each, so that a plan is walked as a DAG."""

    compute = unbounded(function)

    @wraps(function)
    def once(*args: P.args, **options: P.kwargs) -> T:
        node = args[0]
        assert isinstance(node, PlanNode) and not options
        results, name = getattr(node, "_computed", None), (function, *args[1:])
        if results is None:
            results = node.results
        if name not in results:
            results[name] = compute(*args, **options)
        return results[name]  # type: ignore[no-any-return]

    return once
