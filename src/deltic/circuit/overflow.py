"""Which row and operator it was, when a weight has left 64 bits. Only run once that has happened, so it may be slow."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.circuit.nodes import Node
from deltic.circuit.operator import Delta
from deltic.errors import WeightOverflow
from deltic.trace.encoding import Layout, decode
from deltic.trace.strings import StringTable

LARGEST = 2**63 - 1


def named_overflow(error: WeightOverflow, node: Node, inputs: Sequence[Delta], strings: StringTable) -> WeightOverflow:
    """The error, with the operator and, of the rows whose weights came to it, the one with the greatest."""
    where = f"weight overflow in operator {node.name} ({node.operator.name})"
    schema = node.shape.schema
    layout = Layout.of(schema)
    heaviest: tuple[int, Delta, int] | None = None
    for delta in inputs:
        for weight in delta.weights:
            for i, w in enumerate(weight.tolist()):
                if heaviest is None or abs(w) > heaviest[0]:
                    heaviest = (abs(w), delta, i)
    if heaviest is not None and len(heaviest[1].columns) >= layout.width:
        _, delta, i = heaviest
        cells = [
            decode([c[i : i + 1] for c in delta.columns[s]], f, strings)[0].as_py() for f, s in zip(schema, layout.slices, strict=True)
        ]
        where += f", row ({', '.join(f'{f.name}={value!r}' for f, value in zip(schema, cells, strict=True))})"
    return WeightOverflow(where, expected=f"weights and sums within ±{LARGEST}", remedy="keep fewer copies of a row, or smaller weights")
