"""The three values that streams carry: Z-sets, indexed Z-sets and traces, each timed or not.

An entry is a row with its time. Times are tuples of integers under the product order, or None. Always: values are immutable, no weight is
0, every weight fits 64 bits, and entries are iterated in the order of element (or key and value), then time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Generic, Self, TypeVar

from deltic.dbsp.weights import summed
from deltic.errors import CircuitError
from deltic.trace.time import Time

Row = Hashable
Pair = tuple[Row, Row]
EntryTime = Time | None
E = TypeVar("E", bound=Hashable)

PAST: Final = -1
"""The root coordinate that stands for every epoch before the current one."""


def as_time(time: int | Time | None) -> EntryTime:
    """The time as a tuple; the root time n becomes (n,)."""
    return (time,) if isinstance(time, int) else time


def past(time: EntryTime) -> EntryTime:
    """The time after the end of its epoch: PAST and the iterations."""
    return None if time is None else (PAST, *time[1:])


def order(value: object) -> tuple[object, ...]:
    """A sort key for any values: None, then booleans and numbers, then strings, then tuples by their parts, then others by type and repr.

    >>> sorted(["b", None, (1, "a"), 2, "a"], key=order)
    [None, 2, 'a', 'b', (1, 'a')]
    """
    match value:
        case None:
            return (0,)
        case bool() | int() | float():
            return (1, value)
        case str():
            return (2, value)
        case tuple():
            return (3, tuple(order(part) for part in value))
        case _:
            return (4, type(value).__name__, repr(value))


@dataclass(frozen=True)
class WeightedEntries(Generic[E]):
    """Entries with their weights."""

    weights: Mapping[E, int] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def sum(cls, entries: Iterable[tuple[E, int]], operator: str = "zset") -> Self:
        """The entries with the weights of equal ones added. Raises WeightOverflow, which names
        `operator`; CircuitError for an invalid row or weight.
        """
        return cls(MappingProxyType(summed(entries, operator)))

    def items(self) -> Iterator[tuple[E, int]]:
        """The entries with their weights, in order. O(n log n)."""
        return iter(sorted(self.weights.items(), key=lambda item: order(item[0])))

    def __iter__(self) -> Iterator[E]:
        return (entry for entry, _ in self.items())

    def __len__(self) -> int:
        return len(self.weights)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, WeightedEntries) and dict(self.weights) == dict(other.weights)

    def __hash__(self) -> int:
        return hash((type(self), frozenset(self.weights.items())))


class ZSet(WeightedEntries[tuple[Row, EntryTime]]):
    """Entries (element, time)."""

    @classmethod
    def of(cls, triples: Iterable[tuple[Row, int | Time | None, int]]) -> Self:
        """From (element, time, weight).

        >>> ZSet.of([("a", 0, 1), ("b", None, 2), ("a", 0, -1)])
        ZSet([('b', None, 2)])
        """
        return cls.sum(((element, as_time(time)), weight) for element, time, weight in triples)

    def triples(self) -> list[tuple[Row, EntryTime, int]]:
        return [(element, time, weight) for (element, time), weight in self.items()]

    def untimed(self, operator: str = "untimed") -> ZSet:
        """The sum over all times, untimed."""
        return ZSet.sum((((element, None), weight) for (element, _), weight in self.weights.items()), operator)

    def __repr__(self) -> str:
        return f"ZSet({self.triples()!r})"


class IndexedZSet(WeightedEntries[tuple[Pair, EntryTime]]):
    """Entries ((key, value), time)."""

    @classmethod
    def of(cls, triples: Iterable[tuple[Pair, int | Time | None, int]]) -> Self:
        """From ((key, value), time, weight)."""
        return cls.sum(((pair, as_time(time)), weight) for pair, time, weight in triples)

    def triples(self) -> list[tuple[Pair, EntryTime, int]]:
        return [(pair, time, weight) for (pair, time), weight in self.items()]

    def groups(self) -> dict[Row, dict[Row, int]]:
        """By key, in order: its values with their nonzero weights over all times."""
        groups: dict[Row, dict[Row, int]] = {}
        for (key, value), weight in summed((((k, v), w) for ((k, v), _), w in self.items()), "groups").items():
            groups.setdefault(key, {})[value] = weight
        return groups

    def untimed(self, operator: str = "untimed") -> IndexedZSet:
        """The sum over all times, untimed."""
        return IndexedZSet.sum((((pair, None), weight) for (pair, _), weight in self.weights.items()), operator)

    def __repr__(self) -> str:
        return f"IndexedZSet({self.triples()!r})"


class ZSetTrace(WeightedEntries[tuple[Row, Row, EntryTime]]):
    """The sum of many deltas: entries (key, value, time). An element of a Z-set is a key with value ()."""

    @classmethod
    def of(cls, rows: Iterable[tuple[Row, Row, int | Time | None, int]]) -> Self:
        """From (key, value, time, weight)."""
        return cls.sum(((key, value, as_time(time)), weight) for key, value, time, weight in rows)

    def rows(self) -> list[tuple[Row, Row, EntryTime, int]]:
        return [(key, value, time, weight) for (key, value, time), weight in self.items()]

    def past(self) -> ZSetTrace:
        """The trace after the end of the epoch: the weights of a row at an iteration are added over all epochs."""
        return ZSetTrace.sum((((key, value, past(time)), weight) for (key, value, time), weight in self.weights.items()), "past")

    def times(self, key: Row) -> dict[EntryTime, int]:
        """The key's weights by time, over all its values."""
        return summed(((time, weight) for (other, _, time), weight in self.weights.items() if other == key), "times")

    def __repr__(self) -> str:
        return f"ZSetTrace({self.rows()!r})"


def check_kind(operator: str, value: object, *kinds: type) -> None:
    """Raises CircuitError unless the value is of one of these kinds."""
    if not isinstance(value, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        remedy = MAKES.get(kinds[0]) if len(kinds) == 1 else None
        raise CircuitError(f"invalid input {value!r} of {operator}", expected=expected, remedy=remedy)


MAKES: Final = {IndexedZSet: "use index_with to index elements by a key", ZSetTrace: "use trace_append to build a ZSetTrace"}
"""How to create values of these kinds."""
