"""Errors for weights that exceed 64 bits, with the row and the table, view or recursion. Runs only after an overflow, so it may be slow."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from deltic.circuit.nodes import Dataflow, Node
from deltic.circuit.operator import Delta
from deltic.circuit.operators.feedback import Feedback
from deltic.circuit.operators.table import TableInput
from deltic.circuit.unread import unread_strings
from deltic.errors import Span, WeightOverflow
from deltic.expr.failures import shown
from deltic.trace.encoding import Layout, decode
from deltic.trace.strings import StringTable
from deltic.types import frozen_list

LARGEST = 2**63 - 1
COPIES = "keep fewer copies of a row, or smaller weights"


def overflow_outside(circuit: Dataflow, node: Node, inputs: Sequence[Delta], strings: StringTable) -> WeightOverflow:
    """The error of a node outside recursions: names its table, or the views that depend on it."""
    sources = [circuit.nodes[i] for i in node.inputs] or [node]
    if isinstance(node.operator, TableInput):
        table = node.operator.table
        unread = frozenset(table.schema[i].name for i in unread_strings(circuit).get(table.name, ()))
        return _overflow(f"table {table.name}", sources, inputs, strings, COPIES, unread)
    views = sorted(circuit.dependents()[node.id])
    return _overflow(f"view {views[0]}" if len(views) == 1 else f"the views {', '.join(views)}", sources, inputs, strings, COPIES)


def overflow_within(
    relations: Sequence[Feedback], sources: Sequence[Node], inputs: Sequence[Delta], strings: StringTable
) -> WeightOverflow:
    """The error of a node of a recursion. relations: those of its relations that have a name. sources: the nodes of the inputs."""
    named = f"the recursive relation {', '.join(one.relation for one in relations)}" if relations else "a recursion"
    where = f"{named}, whose rows multiply in each iteration"
    remedy = "UNION instead of UNION ALL, or distinct() in a circuit, keeps a row once, in however many ways it is derived"
    span = next((one.span for one in relations if one.span is not None), None)
    return _overflow(where, sources, inputs, strings, remedy, span=span)


def _overflow(
    where: str,
    sources: Sequence[Node],
    inputs: Sequence[Delta],
    strings: StringTable,
    remedy: str,
    unread: AbstractSet[str] = frozenset(),
    span: Span | None = None,
) -> WeightOverflow:
    """With the input row of the greatest weight. unread: columns whose strings may have been left out."""
    heaviest: tuple[int, Node, Delta, int] | None = None
    for source, delta in zip(sources, inputs, strict=True):
        for weight in delta.weights:
            for i, w in enumerate(weight.tolist()):
                if heaviest is None or abs(w) > heaviest[0]:
                    heaviest = (abs(w), source, delta, i)
    row = "" if heaviest is None else f", {_row(*heaviest[1:], strings, unread)}"
    return WeightOverflow(f"weight overflow in {where}{row}", span=span, expected=f"weights and sums within ±{LARGEST}", remedy=remedy)


def _row(source: Node, delta: Delta, i: int, strings: StringTable, unread: AbstractSet[str]) -> str:
    """Row i: 'row (id=3, name='x')' of a table, 'values (3, x)' of other nodes, whose columns may have no name that the user gave.

    Strings that have been left out are not shown.
    """
    schema = source.shape.schema
    words = [tuple(c[i : i + 1] for c in delta.columns[s]) for s in Layout.of(schema).slices]
    cells = [frozen_list(decode(w, f, strings))[0] for w, f in zip(words, schema, strict=True)]
    if not isinstance(source.operator, TableInput):
        return f"values {shown(cells)}"
    shown_cells = ((f.name, cell) for f, cell in zip(schema, cells, strict=True) if cell is not None or f.name not in unread)
    named = (f"{name}={'NULL' if cell is None else repr(cell)}" for name, cell in shown_cells)
    return f"row ({', '.join(named)})"
