"""Pathway: the view of join_aggregate, kept up to date (see pathway_feed)."""

from __future__ import annotations

from typing import Any

import pathway as pw

from benchmarks.checks import Change
from benchmarks.peers import pathway_feed
from benchmarks.peers.pathway_feed import Tick, rows_of

ORDER, CUSTOMER = range(2)


class Rows(pw.Schema):
    """An order (id, customer, amount), a customer (id, region) or a tick's mark."""

    kind: int = pw.column_definition(primary_key=True)
    key: int = pw.column_definition(primary_key=True)
    first: int
    second: int


class Incremental(pathway_feed.Incremental):
    def __init__(self) -> None:
        super().__init__(Rows, ["region", "orders", "amount"], self._spend)

    @staticmethod
    def _spend(rows: Any) -> Any:
        orders, customers = rows.filter(pw.this.kind == ORDER), rows.filter(pw.this.kind == CUSTOMER)
        joined = orders.join(customers, orders.first == customers.key).select(region=customers.first, amount=orders.second)
        return joined.groupby(pw.this.region).reduce(pw.this.region, orders=pw.reducers.count(), amount=pw.reducers.sum(pw.this.amount))

    def prepare(self, orders: Change, customers: Change) -> Tick:
        (old_orders, new_orders), (old_customers, new_customers) = rows_of(ORDER, orders, 4), rows_of(CUSTOMER, customers, 4)
        return old_orders + old_customers, new_orders + new_customers


def engine() -> Incremental:
    return Incremental()
