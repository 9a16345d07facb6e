"""A scope of joins and distinct relations, run as one kernel call: any number of recursive relations, joined with each other.

The kernel keeps the same state as the operators would, to the row and the iteration, so either can resume from the state of the other.
`recursive_program.py` finds the program that a scope is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltic.circuit.nodes import Node
from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.feedback import Import
from deltic.circuit.operators.loop import append, prepared_for_kernel
from deltic.circuit.operators.recursive_program import find_program
from deltic.circuit.scopes import divergence
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.recursion import Recursed, RecursiveProgram, Versions, recurse
from deltic.trace.rows import Rows


@dataclass(frozen=True, slots=True)
class RecursiveScope:
    """The program; the feedback nodes of its recursive collections, in their order; the node that is exported, and one that joins.

    depths: the scope of each arrangement that it reads or appends to (0 or 1). widths: the words of its rows, iterations included.
    imported: of those of the parent, the input that has the change.
    """

    program: RecursiveProgram
    feedback: tuple[Node, ...]
    exported: Node
    joins: Node
    depths: dict[str, int]
    widths: dict[str, int]
    imported: dict[str, int]

    def applies(self, context: Context) -> bool:
        """Whether the kernel may run; see `prepared_for_kernel`."""
        return prepared_for_kernel(self.depths, context)

    def run(self, inputs: Sequence[Delta], limit: int, context: Context) -> Delta:
        """The sum of the changes of all iterations."""
        spines = {name: self._versions(name, inputs, context) for name in self.depths}
        rows = context.inner.setdefault(self.exported.name, Counters())
        joins = context.inner.setdefault(self.joins.name, Counters())
        result = recurse(self.program, inputs, spines, limit, rows, joins)
        if result.diverged:
            raise self._diverged(result, limit, context)
        for relation, derived in zip(self.program.relations, result.derivations, strict=True):
            if relation.derivations is not None and len(derived):
                append(relation.derivations, consolidate(derived), context)
        for collection, added in zip(self.program.collections, result.added, strict=True):
            if collection.arrangement is not None and len(added):
                append(collection.arrangement, consolidate(added), context)
        return consolidate(result.sums)

    def _versions(self, name: str, inputs: Sequence[Delta], context: Context) -> Versions:
        old = context.old(name, self.widths[name], 1)
        position = self.imported.get(name)
        if position is None or not len(inputs[position]):
            return Versions(old, old)
        change = inputs[position]
        assert isinstance(change, Batch)
        return Versions(old, old.with_batch(change))

    def _diverged(self, result: Recursed, limit: int, context: Context) -> Exception:
        """The error for the first relation that still changes."""
        number = next(n for n, rows in enumerate(result.growth[-1]) if rows)
        change: Rows = consolidate(result.newest(number))
        return divergence(self.feedback[number], limit, result.growth[:, number].tolist(), change, context)


def find_recursion(nodes: Sequence[Node], export: int) -> RecursiveScope | None:
    """The scope as a program; None if it does something that programs cannot."""
    parts = find_program(nodes, export)
    if parts is None:
        return None
    program, feedback, joins, arrangements = parts
    depths = {name: depth for name, (_, depth) in arrangements.items()}
    widths = {name: words + depth for name, (words, depth) in arrangements.items()}
    imports = [node.operator for node in nodes if isinstance(node.operator, Import)]
    imported = {operator.arrangement: operator.position for operator in imports if operator.arrangement is not None}
    return RecursiveScope(program, feedback, nodes[export], joins, depths, widths, imported)
