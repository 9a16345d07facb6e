"""Changing relations: atoms of a query, the tries that store relations, and their two versions within a tick.

An `Arrangement` is a relation as a trie in one column order, shared by all readers of that order. An `IncrementalIndex` is the reading of
an arrangement by one atom. A tick is receive_delta, then reads, then commit, which is idempotent and cannot fail.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from deltic.dbsp.weights import checked
from deltic.errors import CircuitError, DataError
from deltic.wcoj.extender import TrieExtender, VariableLevel, ZSetPrefixExtender
from deltic.wcoj.trie import Key, Row, Trie, empty, trie

Deltas = Mapping[str, Collection[tuple[Row, int]]]
"""By relation: its changed rows with weights. Other relations do not change."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a query; all its occurrences have one value."""

    name: str


@dataclass(frozen=True, slots=True)
class Atom:
    """One occurrence of a relation in a query: for each column a variable, or a constant that it must equal."""

    relation: str
    terms: tuple[Variable | Key, ...]

    def __post_init__(self) -> None:
        if not self.variables:
            raise CircuitError(f"{self.relation}{self.terms!r} has no variable", expected="at least one")

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The distinct variables, in column order."""
        return tuple(dict.fromkeys(term for term in self.terms if isinstance(term, Variable)))

    def columns(self, order: Sequence[Variable]) -> tuple[int, ...]:
        """The column order of its trie: constants, then the variables by their positions in `order`.

        >>> x, y = Variable("x"), Variable("y")
        >>> Atom("eav", (x, "to", y)).columns((y, x))
        (1, 2, 0)
        """
        columns = range(len(self.terms))
        constants = [column for column in columns if not isinstance(self.terms[column], Variable)]
        return (*constants, *(column for variable in order for column in columns if self.terms[column] == variable))


class Arrangement:
    """A relation as a trie in one column order: its accumulated state, and the change of this tick."""

    def __init__(self, relation: str, columns: tuple[int, ...]) -> None:
        self.relation, self.columns = relation, columns
        self.accumulated, self.delta = empty(len(columns)), empty(len(columns))

    def receive_delta(self, deltas: Deltas) -> None:
        """Sets the change of its relation, replacing an uncommitted one. O(change).

        Raises DataError for a row with another number of columns, WeightOverflow if a weight would exceed 64 bits.
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
        """Adds the change to the accumulated state. O(change)."""
        for row, weight in self.delta.rows():
            self.accumulated.absorb(row, weight)
        self.delta = empty(len(self.columns))


class IncrementalIndex:
    """An atom read in an order of the query's variables: its old version, its change, and its new version."""

    def __init__(self, atom: Atom, order: Sequence[Variable], arrangement: Arrangement | None = None) -> None:
        """arrangement: an existing one of the atom's relation and columns to share."""
        self.atom = atom
        self.arrangement = arrangement or Arrangement(atom.relation, atom.columns(order))
        self.levels = tuple(
            VariableLevel(position, atom.terms.count(variable)) for position, variable in enumerate(order) if variable in atom.variables
        )
        self._constants = tuple(term for term in atom.terms if not isinstance(term, Variable))

    def participates_in_level(self, level: int) -> bool:
        """Whether the atom has the variable at this position of the order."""
        return any(own.position == level for own in self.levels)

    def receive_delta(self, deltas: Deltas) -> None:
        """Sets this tick's change."""
        self.arrangement.receive_delta(deltas)

    def commit(self) -> None:
        """Adds this tick's change to the accumulated state, after the join."""
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
        """z⁻¹ + Δ: all changes including this tick's."""
        return self._extender(self.arrangement.accumulated, self.arrangement.delta)

    def _extender(self, *versions: Trie) -> ZSetPrefixExtender:
        return TrieExtender(versions, self._constants, self.levels)
