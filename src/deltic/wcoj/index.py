"""Relations that change: what stands in a query, the tries that are kept of it, and its two versions within a tick.

An `Arrangement` is a relation's rows as one trie, in an order of columns; all who read that order share it. An `IncrementalIndex` is a
place in a query that reads one. A tick is receive_delta, then reads, then commit, which is idempotent and cannot fail.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from deltic.dbsp.weights import checked
from deltic.errors import CircuitError, DataError
from deltic.wcoj.extender import TrieExtender, VariableLevel, ZSetPrefixExtender
from deltic.wcoj.trie import Key, Row, Trie, empty, trie

Deltas = Mapping[str, Collection[tuple[Row, int]]]
"""The changes of relations by their names: rows with weights. What is not named does not change."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A name for whatever value stands in a place; wherever it stands it is the same value."""

    name: str


@dataclass(frozen=True, slots=True)
class Atom:
    """One occurrence of a relation in a query: for each of its columns a variable, or a constant that it must equal."""

    relation: str
    terms: tuple[Variable | Key, ...]

    def __post_init__(self) -> None:
        if not self.variables:
            raise CircuitError(f"{self.relation}{self.terms!r} has no variable", expected="at least one")

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Each once, in the order of columns."""
        return tuple(dict.fromkeys(term for term in self.terms if isinstance(term, Variable)))

    def columns(self, order: Sequence[Variable]) -> tuple[int, ...]:
        """The order of columns that its trie has: constants, then the variables by their place in `order`.

        >>> x, y = Variable("x"), Variable("y")
        >>> Atom("eav", (x, "to", y)).columns((y, x))
        (1, 2, 0)
        """
        places = range(len(self.terms))
        first = [place for place in places if not isinstance(self.terms[place], Variable)]
        return (*first, *(place for variable in order for place in places if self.terms[place] == variable))


class Arrangement:
    """A relation as a trie of its rows in an order of columns: as it was, and the change of this tick."""

    def __init__(self, relation: str, columns: tuple[int, ...]) -> None:
        self.relation, self.columns = relation, columns
        self.accumulated, self.delta = empty(len(columns)), empty(len(columns))

    def receive_delta(self, deltas: Deltas) -> None:
        """Takes the change of its relation, in place of one that was not committed. O(change).

        Raises DataError for a row of another number of columns, WeightOverflow if a weight would leave 64 bits.
        """
        rows = deltas.get(self.relation, ())
        for row, _ in rows:
            if len(row) != len(self.columns):
                raise DataError(f"the row {row!r} of {self.relation} has {len(row)} columns", expected=f"{len(self.columns)} columns")
        delta = trie(((tuple(row[column] for column in self.columns), weight) for row, weight in rows), len(self.columns))
        for row, weight in delta.rows():
            checked(self.accumulated.get_by_prefix(row[:-1]).weight(row[-1]) + weight, row, self.relation)
        self.delta = delta

    def commit(self) -> None:
        """Makes the change part of what was. O(change)."""
        for row, weight in self.delta.rows():
            self.accumulated.absorb(row, weight)
        self.delta = empty(len(self.columns))


class IncrementalIndex:
    """An atom read in an order of the query's variables, at its old version, its change, and its new version."""

    def __init__(self, atom: Atom, order: Sequence[Variable], arrangement: Arrangement | None = None) -> None:
        """arrangement: that of the atom's relation and columns if another index has one already."""
        self.atom = atom
        self.arrangement = arrangement or Arrangement(atom.relation, atom.columns(order))
        self.levels = tuple(
            VariableLevel(at, atom.terms.count(variable)) for at, variable in enumerate(order) if variable in atom.variables
        )
        self._constants = tuple(term for term in atom.terms if not isinstance(term, Variable))

    def participates_in_level(self, level: int) -> bool:
        """Whether the variable at that position of the order is one of its own."""
        return any(mine.position == level for mine in self.levels)

    def receive_delta(self, deltas: Deltas) -> None:
        """Takes this tick's change."""
        self.arrangement.receive_delta(deltas)

    def commit(self) -> None:
        """Makes this tick's change part of the accumulated state, after the join."""
        self.arrangement.commit()

    @property
    def delta(self) -> ZSetPrefixExtender:
        """This tick's change."""
        return self._extender(self.arrangement.delta)

    @property
    def accumulated(self) -> ZSetPrefixExtender:
        """z⁻¹: all changes before this tick's."""
        return self._extender(self.arrangement.accumulated)

    @property
    def updated(self) -> ZSetPrefixExtender:
        """z⁻¹ + Δ: this tick's change as well."""
        return self._extender(self.arrangement.accumulated, self.arrangement.delta)

    def _extender(self, *versions: Trie) -> ZSetPrefixExtender:
        return TrieExtender(versions, self._constants, self.levels)
