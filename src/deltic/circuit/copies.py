"""Which arrangements hold the rows of a table, in which order: its own, and those by which joins and views have them otherwise."""

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
    """An arrangement of rows of a table. columns: those that it has, in the order by which it is sorted."""

    arrangement: str
    table: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table} ({', '.join(self.columns)})"


def copies(circuit: Dataflow) -> tuple[Copy, ...]:
    """All of them, over the whole program. What is computed of rows, or summed up, is no copy."""
    held: dict[int, tuple[str, tuple[str, ...]]] = {}
    found = []
    for node in circuit.nodes:
        if (rows := _rows(node, [held.get(i) for i in node.inputs])) is not None:
            held[node.id] = rows
            if node.owns is not None:
                found.append(Copy(node.owns, *rows))
    return tuple(found)


def _rows(node: Node, inputs: Sequence[tuple[str, tuple[str, ...]] | None]) -> tuple[str, tuple[str, ...]] | None:
    """The table and the columns of the rows that a node passes on; None where it passes on something else."""
    operator = node.operator
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
