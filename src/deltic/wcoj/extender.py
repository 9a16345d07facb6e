"""The interface of a relation to generic join: how it extends a prefix by the next variable.

A prefix has the values of the variables bound so far, in the join's order. The relation's weight enters once, with the last of its
variables; for earlier variables all weights are 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from deltic.dbsp.weights import checked
from deltic.wcoj.trie import Key, Prefix, Trie, ZSetTrie


class ZSetPrefixExtender(Protocol):
    """A relation that has the next variable as a column."""

    def count(self, prefix: Prefix) -> int:
        """An upper bound on the number of proposed values. O(1)."""

    def propose(self, prefix: Prefix) -> ZSetTrie:
        """The possible values of the next variable: with weight 1, or the relation's weights if it is the last of its variables."""

    def intersect(self, prefix: Prefix, extensions: ZSetTrie) -> ZSetTrie:
        """The extensions that it would also propose, weights multiplied. O(extensions), independent of the number of proposals."""


@dataclass(frozen=True, slots=True)
class VariableLevel:
    """A variable of a relation: its position in the join's order, and the number of columns it stands in."""

    position: int
    columns: int = 1


@dataclass(frozen=True, slots=True)
class TrieExtender:
    """A relation as the sum of tries with one column order: constants first, then variables as the join binds them.

    The sum of an old version and a change is the new version, which is not materialized. If a row is in one and cancelled by the other,
    inner levels still have its keys: they may propose too much, and the last level decides.

    >>> from deltic.wcoj.trie import trie
    >>> old, change = trie([((1, 2), 1), ((1, 3), 1)]), trie([((1, 2), -1), ((1, 4), 5)])
    >>> new = TrieExtender((old, change), (), (VariableLevel(0), VariableLevel(1)))
    >>> new.propose(()), new.count((1,)), new.propose((1,))
    ({1: 1}, 4, {3: 1, 4: 5})
    >>> new.intersect((1,), ZSetTrie({2: 1, 4: 2}))
    {4: 10}
    """

    versions: tuple[Trie, ...]
    constants: Prefix
    levels: tuple[VariableLevel, ...]

    def count(self, prefix: Prefix) -> int:
        nodes, _ = self._nodes_at(prefix)
        return sum(len(node) for node in nodes)

    def propose(self, prefix: Prefix) -> ZSetTrie:
        nodes, columns = self._nodes_at(prefix)
        return ZSetTrie({key: _weight(nodes, key, columns) for node in nodes for key in node})

    def intersect(self, prefix: Prefix, extensions: ZSetTrie) -> ZSetTrie:
        nodes, columns = self._nodes_at(prefix)
        return extensions.equi_join(ZSetTrie({key: _weight(nodes, key, columns) for key in extensions}))

    def _nodes_at(self, prefix: Prefix) -> tuple[list[Trie], int]:
        """(the node under the prefix in each version, the number of columns of the next variable)."""
        bound = [level for level in self.levels if level.position < len(prefix)]
        path = (*self.constants, *(prefix[level.position] for level in bound for _ in range(level.columns)))
        return [version.get_by_prefix(path) for version in self.versions], self.levels[len(bound)].columns


def _weight(nodes: Sequence[Trie], key: Key, columns: int) -> int:
    """The weight of `key` in the next `columns` columns: the sum over versions at the last level, else 1 if any version has it."""
    inner = [node.get_by_prefix((key,) * (columns - 1)) for node in nodes]
    weights = [node.weight(key) for node in inner]
    return checked(sum(weights), key, "z⁻¹ + Δ") if inner[0].depth == 1 else int(any(weights))
