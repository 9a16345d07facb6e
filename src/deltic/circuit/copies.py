"""The arrangements that hold the rows of each table: its own, and those in the orders of joins and views. Streams are held nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltic.circuit.nodes import Dataflow, Node
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.chain import Chain
from deltic.circuit.operators.linear import Exchange
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.table import TableInput
from deltic.expr.nodes import Column


@dataclass(frozen=True, slots=True)
class Copy:
    """An arrangement of the rows of a table. columns: those that it holds, in its sort order."""

    arrangement: str
    table: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table} ({', '.join(self.columns)})"


def copies(circuit: Dataflow) -> tuple[Copy, ...]:
    """All copies in the program. Arrangements of computed or aggregated rows do not count."""
    rows_of: dict[int, tuple[str, tuple[str, ...]]] = {}
    result = []
    for node in circuit.nodes:
        if (rows := _rows(node, [rows_of.get(i) for i in node.inputs])) is not None:
            rows_of[node.id] = rows
            if node.owns is not None:
                result.append(Copy(node.owns, *rows))
    return tuple(result)


def _rows(node: Node, inputs: Sequence[tuple[str, tuple[str, ...]] | None]) -> tuple[str, tuple[str, ...]] | None:
    """The table and columns of the rows that a node passes on; None if it computes others."""
    operator = node.operator
    if node.ephemeral:
        return None
    if isinstance(operator, TableInput):
        return operator.table.name, node.shape.schema.names
    source = inputs[0] if inputs else None
    if source is None or isinstance(operator, Arrange | Exchange):
        return source if isinstance(operator, Arrange | Exchange) else None
    steps = operator.steps if isinstance(operator, Chain) and operator.last is None else (operator,)
    table, columns = source
    for step in steps:
        if not isinstance(step, Map) or step.measures or not all(isinstance(expr, Column) for expr in step.columns):
            return None
        columns = tuple(columns[expr.index] for expr in step.columns if isinstance(expr, Column))
    return table, columns
