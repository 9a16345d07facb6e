"""The same join by counting, proposing and validating, as a circuit of `dbsp`'s operators: the naive form, for comparison.

For each variable and prefix, every relation that has the variable counts its extensions, the one with the fewest proposes them, and the
others validate. Each step is an incremental operator that keeps its input, so memory is linear in the work done so far, whereas delta
rules keep only the relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from deltic.dbsp.circuit import ReferenceCircuit
from deltic.dbsp.nested import ReferenceJoin
from deltic.dbsp.nodes import OperatorNode, ReferenceStream
from deltic.dbsp.operators import Group
from deltic.dbsp.zset import Row
from deltic.dbsp.zset import ZSet as Changes
from deltic.wcoj.index import Atom, Deltas, Variable
from deltic.wcoj.trie import ZSetTrie

START = "the empty prefix"


class NaiveJoin:
    """The inner join of atoms by their shared variables, as IncrementalGenericJoin's: rows over `order`, weights multiplied."""

    def __init__(self, atoms: Sequence[Atom], order: Sequence[Variable] | None = None) -> None:
        self.order = tuple(dict.fromkeys(variable for atom in atoms for variable in atom.variables) if order is None else order)
        self.circuit = ReferenceCircuit()
        sources = {name: self.circuit.source(name) for name in dict.fromkeys(atom.relation for atom in atoms)}
        relations = [_Relation(atom, self.order, sources[atom.relation]) for atom in atoms]
        prefixes = self.circuit.source(START)
        for level in range(len(self.order)):
            prefixes = _extended(prefixes, level, [relation for relation in relations if level in relation.levels])
        self.result = self.circuit.sink("result", reduce(lambda rows, relation: relation.weighed(rows), relations, prefixes))

    def join(self, deltas: Deltas) -> ZSetTrie:
        """The change of the join in a tick with these changes of relations. O(kept rows)."""
        first = Changes.of([((), None, 1)] if self.circuit.epoch == 0 else [])
        changes = {name: Changes.of((row, None, weight) for row, weight in rows) for name, rows in deltas.items()}
        self.circuit.step(**{START: first}, **changes)
        return ZSetTrie.of((row, weight) for row, _, weight in self.result.value.triples())

    @property
    def kept(self) -> int:
        """The number of rows that the circuit's joins keep."""
        joins = (
            node.operator for node in self.circuit.nodes if isinstance(node, OperatorNode) and isinstance(node.operator, ReferenceJoin)
        )
        return sum(len(join.left) + len(join.right) for join in joins)


class _Relation:
    """An atom's rows as values of its variables, in the join's order. levels: the positions of these in the order."""

    def __init__(self, atom: Atom, order: Sequence[Variable], rows: ReferenceStream) -> None:
        variables = [variable for variable in order if variable in atom.variables]
        self.levels = [order.index(variable) for variable in variables]
        first = {variable: atom.terms.index(variable) for variable in variables}
        terms = [*enumerate(atom.terms)]
        fits = rows.filter(
            lambda row: all(row[column] == (row[first[term]] if isinstance(term, Variable) else term) for column, term in terms)
        )
        self.rows = fits.map(lambda row: tuple(row[first[variable]] for variable in variables))
        self.present = _each_once(self.rows)

    def extensions(self, level: int) -> ReferenceStream:
        """(values before the level, value at it), each once."""
        width = self.levels.index(level)
        return _each_once(self.present.map(lambda row: (row[:width], row[width])))

    def key(self, row: Any, level: int) -> Any:
        """The relation's values in a prefix of the variables before the level."""
        return tuple(row[own] for own in self.levels if own < level)

    def weighed(self, bindings: ReferenceStream) -> ReferenceStream:
        """The bindings with the relation's weights multiplied in."""
        keyed = bindings.index_with(lambda row: self.key(row, len(row)))
        return keyed.join(self.rows.index_with(lambda row: row), lambda key, binding, row: binding)


def _extended(prefixes: ReferenceStream, level: int, relations: Sequence[_Relation]) -> ReferenceStream:
    extensions = [relation.extensions(level) for relation in relations]
    counted = [_counted(prefixes, level, i, relation, extensions[i]) for i, relation in enumerate(relations)]
    winners = reduce(ReferenceStream.plus, counted).index_with(lambda row: row[0]).aggregate(_fewest)
    return reduce(ReferenceStream.plus, (_proposed(winners, level, i, relations, extensions) for i in range(len(relations))))


def _fewest(counted: Group) -> Row:
    """The index of the relation with the fewest extensions, the first of several."""
    rows: Iterable[Any] = counted
    _, winner = min((count, index) for _, (count, index) in rows)
    return int(winner)


def _counted(prefixes: ReferenceStream, level: int, index: int, relation: _Relation, extensions: ReferenceStream) -> ReferenceStream:
    """(prefix, (number of extensions of the relation, its index))."""
    counts = extensions.index_with(lambda row: row[0]).aggregate(len)
    keyed = prefixes.index_with(lambda row: relation.key(row, level))
    return keyed.join(counts.index_with(lambda row: row[0]), lambda key, prefix, count: (prefix, (count[1], index)))


def _proposed(
    winners: ReferenceStream, level: int, proposer: int, relations: Sequence[_Relation], extensions: Sequence[ReferenceStream]
) -> ReferenceStream:
    """Where the relation `proposer` has the fewest extensions: those that all others have too."""
    prefixes = winners.filter(lambda row: row[1] == proposer).map(lambda row: row[0])
    keyed = prefixes.index_with(lambda row: relations[proposer].key(row, level))
    bindings = keyed.join(extensions[proposer].index_with(lambda row: row[0]), lambda key, prefix, row: (*prefix, row[1]))
    for other, relation in enumerate(relations):
        if other != proposer:
            bindings = _validated(bindings, level, relation, extensions[other])
    return bindings


def _validated(bindings: ReferenceStream, level: int, relation: _Relation, extensions: ReferenceStream) -> ReferenceStream:
    keyed = bindings.index_with(lambda row: (relation.key(row, level), row[level]))
    return keyed.join(extensions.index_with(lambda row: row), lambda key, prefix, row: prefix)


def _each_once(rows: ReferenceStream) -> ReferenceStream:
    """The rows of nonzero weight, with weight 1."""
    return rows.index_with(lambda row: row).aggregate(lambda group: None).map(lambda pair: pair[0])
