"""What generic join asks of a relation: how it would extend a prefix by the next variable.

A prefix has the values of the variables bound so far, in the order of the join. The relation's own weight enters once, with the last of its
variables; before that it answers with sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from deltic.dbsp.weights import checked
from deltic.wcoj.trie import Key, Prefix, Trie, ZSetTrie


class ZSetPrefixExtender(Protocol):
    """A relation of which the next variable is a column."""

    def count(self, prefix: Prefix) -> int:
        """At least as many as it would propose. O(1)."""

    def propose(self, prefix: Prefix) -> ZSetTrie:
        """The values that the next variable can have: once each, or with the relation's weights if it is the last of its variables."""

    def intersect(self, prefix: Prefix, extensions: ZSetTrie) -> ZSetTrie:
        """Those of the extensions that it would propose, weights multiplied. Costs the extensions, not what it would propose."""


@dataclass(frozen=True, slots=True)
class VariableLevel:
    """A variable of a relation: the position in the join's order at which it is bound, and how many columns are it."""

    position: int
    columns: int = 1


@dataclass(frozen=True, slots=True)
class TrieExtender:
    """A relation as the sum of tries of the same rows' order: its constants first, then its variables as the join binds them.

    Of an old version and a change it is the new version, without one being made. Where a row is in one and gone in the other, inner
    levels still have its keys: they may say too much, the last level decides.

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
        nodes, _ = self._at(prefix)
        return sum(len(node) for node in nodes)

    def propose(self, prefix: Prefix) -> ZSetTrie:
        nodes, columns = self._at(prefix)
        return ZSetTrie({key: _weight(nodes, key, columns) for node in nodes for key in node})

    def intersect(self, prefix: Prefix, extensions: ZSetTrie) -> ZSetTrie:
        nodes, columns = self._at(prefix)
        return extensions.equi_join(ZSetTrie({key: _weight(nodes, key, columns) for key in extensions}))

    def _at(self, prefix: Prefix) -> tuple[list[Trie], int]:
        """Where the prefix leads in each version, and how many columns the next variable has."""
        bound = [level for level in self.levels if level.position < len(prefix)]
        path = (*self.constants, *(prefix[level.position] for level in bound for _ in range(level.columns)))
        return [version.get_by_prefix(path) for version in self.versions], self.levels[len(bound)].columns


def _weight(nodes: Sequence[Trie], key: Key, columns: int) -> int:
    """The key's weight as a value of the next `columns` columns: the sum of the versions' at the last level, else whether any has it."""
    found = [node.get_by_prefix((key,) * (columns - 1)) for node in nodes]
    weights = [node.weight(key) for node in found]
    return checked(sum(weights), key, "z⁻¹ + Δ") if found[0].depth == 1 else int(any(weights))
