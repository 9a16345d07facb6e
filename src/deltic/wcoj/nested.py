"""Generic join as an operator of nested circuits, at times (epoch, iteration, …).

The time of an update is an additional column of its row with its own variable, so a binding has one time per relation. It is due at the
join of these times, and queued until then. Old and new versions differ by order of arrival; matching compares no times. A prefix is
present if any update at any time has it, even if its weights cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from deltic.dbsp.nested import TimedJoin
from deltic.dbsp.zset import ZSet as Changes
from deltic.dbsp.zset import past
from deltic.trace.time import Time, join
from deltic.wcoj.index import Atom, Variable
from deltic.wcoj.join import IncrementalGenericJoin
from deltic.wcoj.trie import trie


class GenericJoin(TimedJoin):
    """The change of the join of atoms at the current time: rows over `order`, the variables by first occurrence in the atoms.

    Its inputs are the changes of `relations`, in that order.

        >>> from deltic.dbsp.circuit import ReferenceCircuit
        >>> x, y, z = Variable("x"), Variable("y"), Variable("z")
        >>> circuit = ReferenceCircuit()
        >>> triangles = GenericJoin([Atom("g", (x, y)), Atom("g", (x, z)), Atom("g", (y, z))])
        >>> result = circuit.sink("result", circuit.operator(triangles, circuit.source("g")))
        >>> circuit.step(g=Changes.of([((1, 2), None, 1), ((1, 3), None, 1), ((2, 3), None, 1)]))
        >>> result.value
        ZSet([((1, 2, 3), None, 1)])
    """

    def __init__(self, atoms: Sequence[Atom]) -> None:
        super().__init__("generic_join")
        self.relations = tuple(dict.fromkeys(atom.relation for atom in atoms))
        self.order = tuple(dict.fromkeys(variable for atom in atoms for variable in atom.variables))
        times = [Variable(f"the time of {number}") for number in range(len(atoms))]
        timed = [Atom(atom.relation, (*atom.terms, time)) for atom, time in zip(atoms, times, strict=True)]
        self.timed = IncrementalGenericJoin(timed, [*self.order, *times])

    def evaluate(self, now: Time, *inputs: Any) -> Changes:
        deltas = {
            name: [((*row, now), weight) for (row, _), weight in delta.weights.items()]
            for name, delta in zip(self.relations, inputs, strict=True)
        }
        width = len(self.order)
        bindings = self.timed.join(deltas).items()
        return self.leaving(now, Changes.sum((((row[:width], reduce(join, row[width:])), weight) for row, weight in bindings), self.name))

    def end_epoch(self) -> None:
        for arrangement in self.timed.arrangements.values():
            rows = arrangement.accumulated.rows()
            arrangement.accumulated = trie((((*row, past(time)), weight) for (*row, time), weight in rows), len(arrangement.columns))
