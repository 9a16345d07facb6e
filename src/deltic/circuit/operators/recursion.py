"""A scope of joins and distinct relations, run as one kernel call: any number of recursive relations, joined with each other.

The kernel keeps the same state as the operators would, to the row and the iteration, so either can resume from the state of the other.
`recursive_program.py` finds the program that a scope is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltic.circuit.nodes import Node
from deltic.circuit.operator import Delta
from deltic.circuit.operators.loop import kernel_may_run
from deltic.circuit.operators.recursive_program import find_program
from deltic.circuit.scopes import Nest, divergence
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.recursion import Recursed, RecursiveProgram, Versions, recurse
from deltic.trace.rows import Rows


@dataclass(frozen=True, slots=True)
class RecursiveScope:
    """The program; the feedback nodes of its recursive collections, in their order; the node that is exported, and one that joins.

    depths: the scope of each arrangement that it reads or appends to (0 or 1). widths: the words of its rows, iterations included.
    """

    program: RecursiveProgram
    feedback: tuple[Node, ...]
    exported: Node
    joins: Node
    depths: dict[str, int]
    widths: dict[str, int]

    def applies(self, nest: Nest) -> bool:
        """Whether the kernel may run; see `kernel_may_run`."""
        return kernel_may_run(self.depths, nest)

    def run(self, inputs: Sequence[Delta], limit: int, nest: Nest) -> Delta:
        """The sum of the changes of all iterations."""
        traces = {name: nest.trace(name, self.widths[name], 1, depth) for name, depth in self.depths.items()}
        for trace in traces.values():
            trace.past.expect(())
        spines = {name: Versions(trace.past, trace.past if trace.depth else trace.now) for name, trace in traces.items()}
        rows = nest.inner.setdefault(self.exported.name, Counters())
        joins = nest.inner.setdefault(self.joins.name, Counters())
        result = recurse(self.program, inputs, spines, limit, rows, joins)
        if result.diverged:
            raise self._diverged(result, limit, nest)
        for relation, derived in zip(self.program.relations, result.derivations, strict=True):
            if relation.derivations is not None and len(derived):
                traces[relation.derivations].append_timed(consolidate(derived))
        for collection, added in zip(self.program.collections, result.added, strict=True):
            if collection.arrangement is not None and len(added):
                traces[collection.arrangement].append_timed(consolidate(added))
        return consolidate(result.sums)

    def _diverged(self, result: Recursed, limit: int, nest: Nest) -> Exception:
        """The error for the first relation that still changes."""
        number = next(n for n, rows in enumerate(result.growth[-1]) if rows)
        change: Rows = consolidate(result.newest(number))
        return divergence(self.feedback[number], limit, result.growth[:, number].tolist(), change, nest)


def find_recursion(nodes: Sequence[Node], export: int) -> RecursiveScope | None:
    """The scope as a program; None if it does something that programs cannot."""
    parts = find_program(nodes, export)
    if parts is None:
        return None
    program, feedback, joins, arrangements = parts
    depths = {name: depth for name, (_, depth) in arrangements.items()}
    widths = {name: words + depth for name, (words, depth) in arrangements.items()}
    return RecursiveScope(program, feedback, nodes[export], joins, depths, widths)
