"""A hand-built circuit with three levels, for the tests of runtimes: orders joined with customers, sharded by region.

orders(customer, id, amount) is a multiset, customers(id, region) has a primary key; the view has (region, id, amount).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from deltic.circuit.builder import CircuitBuilder
from deltic.circuit.nodes import ArrangementSpec, Dataflow, NodeKind, Shape
from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.join import JoinOperator
from deltic.circuit.operators.linear import Exchange
from deltic.circuit.operators.table import TableInput
from deltic.circuit.pending import PendingRows
from deltic.schema import BIGINT, STRING, Field, Op, Schema, TableSchema
from deltic.trace.batch import Batch
from deltic.trace.encoding import decode_table, encode_table
from deltic.trace.strings import StringTable

ORDERS = TableSchema("orders", Schema((Field("customer", BIGINT, False), Field("id", BIGINT, False), Field("amount", BIGINT, False))))
CUSTOMERS = TableSchema("customers", Schema((Field("id", BIGINT, False), Field("region", STRING, True))), (0,))
SPEND = Schema((Field("region", STRING, True), Field("id", BIGINT, False), Field("amount", BIGINT, False)))


@dataclass(frozen=True)
class FailOnce:
    """Passes its input on, but on the first input it creates the file `flag` and then raises, or kills its process."""

    flag: str
    how: Literal["raise", "kill"]
    name: str = "fail_once"
    eager: bool = False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        try:
            os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return inputs[0]
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError("a task that fails once")


def spend_circuit(view: str = "spend", *, failing: FailOnce | None = None, level: int = 0) -> Dataflow:
    """failing: an operator put into the stream of orders at `level` 0 or 1, or into the view's at 2."""
    builder = CircuitBuilder()
    orders, customers = _table(builder, ORDERS, (0, 1, 2), 0), _table(builder, CUSTOMERS, (0, 1), 1)
    if failing and level == 0:
        orders = builder.add(failing, (orders,), Shape(ORDERS.schema), (0, 1, 2))
    routed = builder.add(Exchange((0,)), (orders,), Shape(ORDERS.schema), (0,))
    if failing and level == 1:
        routed = builder.add(failing, (routed,), Shape(ORDERS.schema), (0,))
    left = _arranged(builder, "orders-by-customer", routed, ORDERS.schema)
    right = _arranged(builder, "customers-by-id", customers, CUSTOMERS.schema)
    names = ("orders-by-customer", "customers-by-id")
    join = JoinOperator(*names, 1, ((3, 1), (2, 1)), ((1, 1), (0, 1), (0, 2)))
    joined = builder.add(join, (left, right), Shape(SPEND), None, reads=names)
    home = builder.add(Exchange((0,)), (joined,), Shape(SPEND), (0,))
    if failing and level == 2:
        home = builder.add(failing, (home,), Shape(SPEND), (0,))
    _arranged(builder, f"view-{view}", home, SPEND, view)
    builder.views[view] = f"view-{view}"
    return builder.finish()


def _table(builder: CircuitBuilder, table: TableSchema, order: tuple[int, ...], key: int) -> int:
    name = f"table-{table.name}"
    builder.specify(ArrangementSpec(name, Shape(table.schema), 0, key or len(order), table=table.name, order=order))
    builder.tables[table.name] = name
    route = order[:key] or order
    return builder.add(TableInput(table, name, order, key), (), Shape(table.schema), route, kind=NodeKind.SOURCE, owns=name)


def _arranged(builder: CircuitBuilder, name: str, stream: int, schema: Schema, view: str | None = None) -> int:
    level = builder.nodes[stream].level
    order = tuple(range(len(schema))) if view else ()
    builder.specify(ArrangementSpec(name, Shape(schema), level, 1, view=view, order=order))
    return builder.add(Arrange(name), (stream,), Shape(schema), (0,), owns=name)


def pending(
    table: TableSchema, rows: Sequence[tuple[object, ...]], strings: StringTable, op: Op = Op.INSERT, start: int = 0
) -> PendingRows:
    """Changes as input of a runtime. With WEIGHT the last value of a row is its weight."""
    weights = np.array([r[-1] for r in rows] if op is Op.WEIGHT else [1] * len(rows), np.int64)
    columns = zip(*(r[: len(table.schema)] for r in rows), strict=True)
    frame = pa.table([pa.array(c, f.type.arrow) for c, f in zip(columns, table.schema, strict=True)], names=list(table.schema.names))
    words = encode_table(frame, table.schema, strings)
    return PendingRows.of(words, np.full(len(rows), op, np.int64), np.arange(start, start + len(rows)), weights)


def shown(batch: Batch, strings: StringTable, schema: Schema = SPEND) -> dict[tuple[object, ...], int]:
    """A batch's rows with their weights."""
    rows = decode_table(batch.columns, schema, strings).to_pylist()
    return {tuple(row.values()): int(weight) for row, weight in zip(rows, batch.weights[0], strict=True)}
