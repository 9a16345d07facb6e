"""Z-sets and indexed Z-sets as tries: a path is a row, and the weight is at its end.

A `ZSetTrie` is the last level, keys with weights; an `IndexedZSetTrie` has a trie under each key. Always: no weight is 0, no branch is
empty, every weight fits 64 bits. All methods but `absorb` leave the trie unchanged.

    >>> geo = trie([(("Germany", "Berlin"), 1), (("Germany", "Munich"), -1), (("USA", "NYC"), 2)])
    >>> geo
    {'Germany': {'Berlin': 1, 'Munich': -1}, 'USA': {'NYC': 2}}
    >>> geo.as_zset_view()
    {'Germany': 1, 'USA': 1}
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from deltic.dbsp.weights import checked, summed
from deltic.dbsp.zset import order
from deltic.errors import DataError
from deltic.purity import pure

Key = Any
"""Any value with a hash."""
Row = tuple[Key, ...]
Prefix = tuple[Key, ...]
"""The first keys of a path."""
Under = TypeVar("Under")


class TrieNode(ABC, Generic[Under]):
    """A trie: the keys of its first level, and under each a weight or a trie. depth: the number of levels, the length of a path."""

    def __init__(self, under: dict[Key, Under], depth: int) -> None:
        self.under, self.depth = under, depth

    @abstractmethod
    def rows(self) -> Iterator[tuple[Row, int]]:
        """Each path with its weight, unordered."""

    @abstractmethod
    def weight(self, key: Key) -> int:
        """A key's weight in `as_zset_view`, 0 if it is absent. O(1)."""

    @abstractmethod
    def get_by_prefix(self, prefix: Prefix) -> Trie:
        """The trie under the prefix, which may be empty. O(length of the prefix). Raises DataError unless paths are longer than it."""

    @abstractmethod
    def as_zset_view(self) -> ZSetTrie:
        """The keys of the first level: with their weights if it is the last, else with weight 1."""

    @abstractmethod
    def extended(self, function: Callable[[Prefix, int], ZSetTrie], prefix: Prefix) -> IndexedZSetTrie:
        """extend_leaves without the purity check, for a trie under `prefix`."""

    @abstractmethod
    def absorb(self, row: Row, weight: int) -> None:
        """Adds a weight to a path in place; only the trie's owner may call it. O(length of the row). The sum must fit 64 bits."""

    def extend_leaves(self, function: Callable[[Prefix, int], ZSetTrie]) -> IndexedZSetTrie:
        """Adds a level: under each path, the Z-set that the function returns for the path and its weight. Empty branches are removed.

        The function must be pure and must account for the weight. Raises ImpureFunction.

        >>> trie([(("Germany", "Berlin"), 2)]).extend_leaves(lambda path, weight: ZSetTrie({path[1][0]: 3 * weight}))
        {'Germany': {'Berlin': {'B': 6}}}
        """
        return self.extended(pure(function), ())

    def items(self) -> list[tuple[Key, Under]]:
        """The first level's (key, weight or trie) pairs, in order. O(n log n)."""
        return sorted(self.under.items(), key=lambda item: order(item[0]))

    def __iter__(self) -> Iterator[Key]:
        return iter(self.under)

    def __len__(self) -> int:
        return len(self.under)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrieNode) and (self.depth, self.under) == (other.depth, other.under)

    def __hash__(self) -> int:
        raise TypeError("tries are mutable and not hashable")

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key!r}: {below!r}" for key, below in self.items()) + "}"


Trie = TrieNode[Any]


class ZSetTrie(TrieNode[int]):
    """Keys with their weights: a trie of one level. Costs are linear unless said otherwise."""

    def __init__(self, weights: Mapping[Any, int] | None = None) -> None:
        super().__init__({key: weight for key, weight in (weights or {}).items() if weight}, 1)

    @classmethod
    def of(cls, entries: Iterable[tuple[Key, int]], operator: str = "zset") -> ZSetTrie:
        """The keys, with the weights of equal ones added. Raises WeightOverflow, which names `operator`."""
        return cls(summed(entries, operator))

    def rows(self) -> Iterator[tuple[Row, int]]:
        return (((key,), weight) for key, weight in self.under.items())

    def weight(self, key: Key) -> int:
        return self.under.get(key, 0)

    def get_by_prefix(self, prefix: Prefix) -> Trie:
        if prefix:
            raise DataError(f"the prefix {prefix!r} is longer than the paths", expected="fewer keys than a path has")
        return self

    def as_zset_view(self) -> ZSetTrie:
        return self

    def extended(self, function: Callable[[Prefix, int], ZSetTrie], prefix: Prefix) -> IndexedZSetTrie:
        return IndexedZSetTrie({key: function((*prefix, key), weight) for key, weight in self.under.items()}, 2)

    def plus(self, other: ZSetTrie) -> ZSetTrie:
        """The sum of the weights of each key. Raises WeightOverflow."""
        return ZSetTrie.of([*self.under.items(), *other.under.items()], "plus")

    def times(self, factor: int) -> ZSetTrie:
        """Every weight multiplied. Raises WeightOverflow."""
        return ZSetTrie({key: checked(weight * factor, key, "times") for key, weight in self.under.items()})

    def equi_join(self, other: ZSetTrie) -> ZSetTrie:
        """The keys of both, weights multiplied. O(len(self)), independent of the other. Raises WeightOverflow.

        >>> ZSetTrie({"a": 2, "b": 1}).equi_join(ZSetTrie({"a": -3, "c": 1}))
        {'a': -6}
        """
        return ZSetTrie({key: checked(weight * other.weight(key), key, "equi_join") for key, weight in self.under.items()})

    def absorb(self, row: Row, weight: int) -> None:
        (key,) = row
        self.under[key] = self.weight(key) + weight
        if not self.under[key]:
            del self.under[key]


class IndexedZSetTrie(TrieNode[Trie]):
    """A trie under each key, all of `depth` - 1 levels."""

    def __init__(self, branches: Mapping[Any, Trie], depth: int) -> None:
        assert depth > 1 and all(branch.depth == depth - 1 for branch in branches.values()), "paths differ in length"
        super().__init__({key: branch for key, branch in branches.items() if len(branch)}, depth)

    def rows(self) -> Iterator[tuple[Row, int]]:
        return (((key, *row), weight) for key, branch in self.under.items() for row, weight in branch.rows())

    def weight(self, key: Key) -> int:
        return 1 if key in self.under else 0

    def get_by_prefix(self, prefix: Prefix) -> Trie:
        if not prefix:
            return self
        branch = self.under.get(prefix[0])
        return (empty(self.depth - 1) if branch is None else branch).get_by_prefix(prefix[1:])

    def as_zset_view(self) -> ZSetTrie:
        return ZSetTrie(dict.fromkeys(self.under, 1))

    def extended(self, function: Callable[[Prefix, int], ZSetTrie], prefix: Prefix) -> IndexedZSetTrie:
        return IndexedZSetTrie({key: branch.extended(function, (*prefix, key)) for key, branch in self.under.items()}, self.depth + 1)

    def absorb(self, row: Row, weight: int) -> None:
        branch = self.under.setdefault(row[0], empty(self.depth - 1))
        branch.absorb(row[1:], weight)
        if not len(branch):
            del self.under[row[0]]


def empty(depth: int) -> Trie:
    """An empty trie of `depth` levels."""
    return ZSetTrie() if depth == 1 else IndexedZSetTrie({}, depth)


def trie(rows: Iterable[tuple[Row, int]], depth: int | None = None) -> Trie:
    """The trie of weighted rows; weights of equal rows are added. depth: columns of a row, required if rows may be empty. O(rows · depth).

    >>> trie([((1, 2), 1), ((1, 3), 5), ((1, 2), -1)])
    {1: {3: 5}}
    """
    weights = summed(rows, "trie")
    result = empty(depth if depth is not None else len(next(iter(weights))))
    for row, weight in weights.items():
        result.absorb(row, weight)
    return result
