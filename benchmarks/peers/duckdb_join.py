"""DuckDB: tables kept up to date from Arrow, the view's query run again after every tick."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.checks import Change
from benchmarks.engine import Answer, arrow

Tick = tuple[pa.Table, pa.Table]

SCHEMA = """
    CREATE TABLE orders (id BIGINT, customer BIGINT NOT NULL, amount BIGINT NOT NULL);
    CREATE TABLE customers (id BIGINT, region BIGINT NOT NULL);
"""
APPLY = """
    DELETE FROM orders WHERE id IN (SELECT id FROM order_changes WHERE _weight < 0);
    INSERT INTO orders SELECT id, customer, amount FROM order_changes WHERE _weight > 0;
    DELETE FROM customers WHERE id IN (SELECT id FROM customer_changes WHERE _weight < 0);
    INSERT INTO customers SELECT id, region FROM customer_changes WHERE _weight > 0;
"""
SPEND = """
    SELECT c.region, count(*) AS orders, sum(o.amount)::BIGINT AS amount
    FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region
"""


class Recompute:
    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute(SCHEMA)

    def prepare(self, orders: Change, customers: Change) -> Tick:
        return arrow(orders, ["id", "customer", "amount"]), arrow(customers, ["id", "region"])

    def tick(self, prepared: Tick) -> pa.Table:
        self.connection.register("order_changes", prepared[0])
        self.connection.register("customer_changes", prepared[1])
        self.connection.execute(f"BEGIN; {APPLY} COMMIT;")
        return self.connection.sql(SPEND).to_arrow_table()

    def answer(self, read: pa.Table) -> Answer:
        return Answer([np.asarray(column) for column in read.columns], None)


def engine() -> Recompute:
    return Recompute()
