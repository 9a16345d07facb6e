"""Errors for weights that exceed 64 bits, with the row and the operator. Runs only after an overflow, so it may be slow."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.circuit.nodes import Node
from deltic.circuit.operator import Delta
from deltic.errors import WeightOverflow
from deltic.trace.encoding import Layout, decode
from deltic.trace.strings import StringTable
from deltic.types import frozen_list

LARGEST = 2**63 - 1


def named_overflow(
    node: Node, sources: Sequence[Node], inputs: Sequence[Delta], strings: StringTable, relations: Sequence[str] = ()
) -> WeightOverflow:
    """The error, naming the operator and its input row with the greatest weight. sources: the nodes of the inputs.

    relations: the recursive relations that the operator belongs to; they are named instead of it.
    """
    where, remedy = f"weight overflow in operator {node.name} ({node.operator.name})", "keep fewer copies of a row, or smaller weights"
    if relations:
        where = f"weight overflow in the recursive relation {', '.join(relations)}, whose rows multiply in each iteration"
        remedy = "UNION instead of UNION ALL keeps a row once, in however many ways it is derived"
    heaviest: tuple[int, Node, Delta, int] | None = None
    for source, delta in zip(sources, inputs, strict=True):
        for weight in delta.weights:
            for i, w in enumerate(weight.tolist()):
                if heaviest is None or abs(w) > heaviest[0]:
                    heaviest = (abs(w), source, delta, i)
    if heaviest is not None:
        where += f", row ({_shown(*heaviest[1:], strings)})"
    return WeightOverflow(where, expected=f"weights and sums within ±{LARGEST}", remedy=remedy)


def _shown(source: Node, delta: Delta, i: int, strings: StringTable) -> str:
    """'id=3, name='x'' for row i."""
    schema = source.shape.schema
    words = [tuple(c[i : i + 1] for c in delta.columns[s]) for s in Layout.of(schema).slices]
    cells = [frozen_list(decode(w, f, strings))[0] for w, f in zip(words, schema, strict=True)]
    return ", ".join(f"{f.name}={'NULL' if cell is None else repr(cell)}" for f, cell in zip(schema, cells, strict=True))
