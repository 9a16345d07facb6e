"""The incremental join of relations by shared variables: one delta rule for each occurrence of a relation, each run by generic join.

Rule j starts from the change of occurrence j. It reads the occurrences before j with this tick's change and those after j without it, so
each combination of changes is counted by exactly one rule. The join keeps the relations, in the column orders that the rules read, and no
results, whole or partial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from deltic.dbsp.weights import summed
from deltic.errors import CircuitError, DataError
from deltic.wcoj.extender import ZSetPrefixExtender
from deltic.wcoj.index import Arrangement, Atom, Deltas, IncrementalIndex, Variable
from deltic.wcoj.trie import Prefix, Trie, ZSetTrie


@dataclass(slots=True)
class JoinWork:
    """The work of a join. proposed: extensions proposed by relations. looked_up: extensions looked up in other relations."""

    proposed: int = 0
    looked_up: int = 0


def generic_join(levels: Sequence[Sequence[ZSetPrefixExtender]], work: JoinWork) -> Trie:
    """The trie of all bindings, variable by variable. levels: for each variable the relations that have it. work is updated.

    For each prefix the relation with the fewest extensions proposes, and the others intersect, so a step costs the minimum. A binding's
    weight is the product of the weights of its rows, each multiplied in at the relation's last variable.
    """

    def extensions(prefix: Prefix, weight: int) -> ZSetTrie:
        fewest, *others = sorted(levels[len(prefix)], key=lambda relation: relation.count(prefix))
        extended = fewest.propose(prefix)
        work.proposed += len(extended)
        for other in others:
            work.looked_up += len(extended)
            extended = other.intersect(prefix, extended)
        return extended.times(weight)

    result: Trie = extensions((), 1)
    for _ in levels[1:]:
        result = result.extended(extensions, ())
    return result


@dataclass(frozen=True, slots=True)
class GenericJoinRule:
    """The delta rule of one occurrence. indices: of all occurrences, read in `order`, which begins with the occurrence's own variables."""

    occurrence: int
    order: tuple[Variable, ...]
    indices: tuple[IncrementalIndex, ...]

    def levels(self) -> list[list[ZSetPrefixExtender]]:
        """For each variable of the order, the versions of the relations that have it."""
        indices = list(enumerate(self.indices))
        return [[self._version(i) for i, index in indices if index.participates_in_level(level)] for level in range(len(self.order))]

    def _version(self, occurrence: int) -> ZSetPrefixExtender:
        index = self.indices[occurrence]
        if occurrence == self.occurrence:
            return index.delta
        return index.updated if occurrence < self.occurrence else index.accumulated


class IncrementalGenericJoin:
    """The inner join of atoms by their shared variables; weights multiply. None is a value like any other.

    A tick costs at most the worst-case change of its output, up to log factors; memory is linear in the relations.

        >>> x, y, z = Variable("x"), Variable("y"), Variable("z")
        >>> triangles = IncrementalGenericJoin([Atom("g", (x, y)), Atom("g", (x, z)), Atom("g", (y, z))])
        >>> triangles.join({"g": [((1, 2), 1), ((1, 3), 1), ((2, 3), 1), ((3, 4), 1)]})
        {(1, 2, 3): 1}
        >>> triangles.join({"g": [((1, 2), -1), ((1, 4), 1)]})
        {(1, 2, 3): -1, (1, 3, 4): 1}
    """

    def __init__(self, atoms: Sequence[Atom], order: Sequence[Variable] | None = None) -> None:
        """order: of the variables in result rows, and the tie-breaker in rules; by default their first occurrences in the atoms.

        Raises CircuitError if there is no atom, or if the order is not a permutation of the atoms' variables.
        """
        self.atoms = tuple(atoms)
        variables = tuple(dict.fromkeys(chain.from_iterable(atom.variables for atom in self.atoms)))
        self.order = variables if order is None else tuple(order)
        if not variables or sorted(v.name for v in self.order) != sorted(v.name for v in variables):
            names = ", ".join(variable.name for variable in variables)
            raise CircuitError(
                "the order is not a permutation of the atoms' variables", expected=f"each of ({names}) once, and at least one atom"
            )
        self.arrangements: dict[tuple[str, tuple[int, ...]], Arrangement] = {}
        self.rules = tuple(self._rule(occurrence) for occurrence in range(len(self.atoms)))
        self.work = JoinWork()

    def join(self, deltas: Deltas) -> ZSetTrie:
        """The change of the join in a tick with these changes of relations: rows over `order` with weights. Sets `work`.

        Raises DataError for an unknown relation or a row of another width, and WeightOverflow; the tick then has no effect.
        """
        unknown = sorted(set(deltas) - {atom.relation for atom in self.atoms})
        if unknown:
            raise DataError(f"the join has no relation {unknown[0]}", expected=", ".join(sorted({atom.relation for atom in self.atoms})))
        self.work = JoinWork()
        for arrangement in self.arrangements.values():
            arrangement.receive_delta(deltas)
        changes = summed(chain.from_iterable(map(self._change, self.rules)), "join")
        for arrangement in self.arrangements.values():
            arrangement.commit()
        return ZSetTrie(changes)

    def _change(self, rule: GenericJoinRule) -> list[tuple[Prefix, int]]:
        positions = [rule.order.index(variable) for variable in self.order]
        return [(tuple(row[position] for position in positions), weight) for row, weight in generic_join(rule.levels(), self.work).rows()]

    def _rule(self, occurrence: int) -> GenericJoinRule:
        order = rule_order(self.atoms, occurrence, self.order)
        return GenericJoinRule(
            occurrence, order, tuple(IncrementalIndex(atom, order, self._arrangement(atom, order)) for atom in self.atoms)
        )

    def _arrangement(self, atom: Atom, order: Sequence[Variable]) -> Arrangement:
        columns = atom.columns(order)
        return self.arrangements.setdefault((atom.relation, columns), Arrangement(atom.relation, columns))


def rule_order(atoms: Sequence[Atom], occurrence: int, order: Sequence[Variable]) -> tuple[Variable, ...]:
    """The variables as the occurrence's rule binds them: its own, then repeatedly the one that most relations narrow; ties as in `order`.

    A relation narrows a variable if it has it together with a bound one.

    >>> w, x, y, z = (Variable(name) for name in "wxyz")
    >>> path = [Atom("r", (w, x)), Atom("s", (x, y)), Atom("t", (y, z))]
    >>> [variable.name for variable in rule_order(path, 2, (w, x, y, z))]
    ['y', 'z', 'x', 'w']
    """
    bound = [variable for variable in order if variable in atoms[occurrence].variables]
    rest = [variable for variable in order if variable not in bound]
    while rest:
        best = max(rest, key=lambda variable: sum(variable in atom.variables and not {*bound}.isdisjoint(atom.variables) for atom in atoms))
        bound.append(best)
        rest.remove(best)
    return tuple(bound)
