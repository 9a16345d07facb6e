"""Two hundred views over three tables: `python -m benchmarks.many_views [--views N] [--orders N] [--ticks N] [--quick]`.

Orders, customers and products; the views are of ten kinds: filters, DISTINCT, EXISTS, aggregates by a key, over joins of two and of three
tables, and over a LEFT JOIN, each with other constants. Ticks of 10 changes and of 1,000: inserts, updates and deletes of orders, and a few
customers and products that change. At the end DuckDB computes every view again, and the answers are compared. `views_changed` is how
many views the median tick changes, `rows_touched_per_change` what the counters of all operators say.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

import deltic
from benchmarks import harness
from benchmarks.harness import Figures
from deltic import kernels

VIEWS, ORDERS, TICKS = 200, 100_000, 40
CHANGES: Final = (10, 1_000)
CUSTOMERS: Final = 0.1
"""Customers for each order."""
PRODUCTS: Final = 1_000
WARM_UP: Final = 3
TABLES: Final = """
    CREATE TABLE customers (id BIGINT NOT NULL, region BIGINT NOT NULL, segment BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE TABLE products (id BIGINT NOT NULL, category BIGINT NOT NULL, price BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE TABLE orders (id BIGINT NOT NULL, customer BIGINT NOT NULL, product BIGINT NOT NULL, quantity BIGINT NOT NULL,
                         amount BIGINT NOT NULL, PRIMARY KEY (id));
"""
COLUMNS: Final = {
    "customers": ("region", "segment"),
    "products": ("category", "price"),
    "orders": ("customer", "product", "quantity", "amount"),
}
"""Besides the id."""
RANGES: Final = {
    "region": (0, 20),
    "segment": (0, 5),
    "category": (0, 30),
    "price": (1, 500),
    "product": (0, PRODUCTS),
    "quantity": (1, 21),
    "amount": (0, 10_000),
}
OF_CUSTOMERS: Final = "orders o JOIN customers c ON o.customer = c.id"
OF_PRODUCTS: Final = "orders o JOIN products p ON o.product = p.id"
KINDS: Final = (
    "SELECT id, customer, amount FROM orders WHERE amount BETWEEN {k} * 400 AND {k} * 400 + 40",
    "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders WHERE product % 20 = {k} GROUP BY customer",
    "SELECT product, min(amount) AS least, max(amount) AS most FROM orders WHERE quantity = {k} + 1 GROUP BY product",
    "SELECT DISTINCT customer FROM orders WHERE quantity = {k} + 1",
    "SELECT quantity, sum(CASE WHEN amount < {k} * 500 THEN amount ELSE 0 END) AS small, count(*) AS n FROM orders GROUP BY quantity",
    f"SELECT c.region, count(*) AS n, sum(o.amount) AS total FROM {OF_CUSTOMERS} WHERE o.quantity > {{k}} GROUP BY c.region",
    f"SELECT p.category, sum(o.amount * o.quantity) AS total FROM {OF_PRODUCTS} WHERE o.amount < {{k}} * 500 GROUP BY p.category",
    f"SELECT c.segment, p.category, sum(o.quantity) AS sold FROM {OF_CUSTOMERS} JOIN products p ON o.product = p.id "
    "WHERE c.region = {k} GROUP BY c.segment, p.category",
    "SELECT c.id, c.segment FROM customers c WHERE EXISTS "
    "(SELECT 1 FROM orders o WHERE o.customer = c.id AND o.quantity = {k} + 1 AND o.amount > 9000)",
    "SELECT p.category, count(o.id) AS n FROM products p LEFT JOIN orders o ON o.product = p.id AND o.quantity = {k} + 1 "
    "GROUP BY p.category",
)
Ids = np.ndarray[Any, Any]
Change = list[tuple[str, str, pa.Table]]
"""(insert, update or delete, table, rows; those to delete have the id alone)."""


def queries(views: int) -> dict[str, str]:
    """By the name of a view."""
    return {f"v{number}": KINDS[number % len(KINDS)].format(k=number // len(KINDS)) for number in range(views)}


class Shop:
    """The rows of the three tables, and random changes of them."""

    def __init__(self, orders: int, rng: np.random.Generator) -> None:
        self._rng, self._customers, self._next = rng, max(1, int(CUSTOMERS * orders)), orders
        self._live: Ids = np.arange(orders)
        loaded = {"customers": np.arange(self._customers), "products": np.arange(PRODUCTS), "orders": self._live}
        self.loaded: Change = [("insert", table, self._rows(table, ids)) for table, ids in loaded.items()]

    def _rows(self, table: str, ids: Ids) -> pa.Table:
        """Rows with these ids."""
        ranges = {"customer": (0, self._customers), **RANGES}
        columns = {name: self._rng.integers(*ranges[name], len(ids)) for name in COLUMNS[table]}
        return pa.table({"id": ids, **columns})

    def change(self, count: int) -> Change:
        """A tick: half inserts, a quarter updates, a quarter deletes of orders; of 100 changes, one is of a customer, one of a product."""
        added, others = count - count // 2, count // 100
        touched = self._rng.choice(self._live, count - added - 2 * others, replace=False)
        deleted, updated = touched[: count // 4], touched[count // 4 :]
        new = np.arange(self._next, self._next + added)
        self._next += added
        self._live = np.append(np.setdiff1d(self._live, deleted), new)
        change: Change = [
            ("insert", "orders", self._rows("orders", new)),
            ("update", "orders", self._rows("orders", updated)),
            ("delete", "orders", pa.table({"id": deleted})),
        ]
        if others:
            for table, most in (("customers", self._customers), ("products", PRODUCTS)):
                change.append(("update", table, self._rows(table, self._rng.choice(most, others, replace=False))))
        return change


def applied(session: deltic.Session, change: Change) -> None:
    """One tick."""
    with session.transaction() as tx:
        for op, table, rows in change:
            getattr(tx, op)(table, rows)


class Peer:
    """DuckDB with the same tables."""

    def __init__(self) -> None:
        self.database = duckdb.connect()
        for table, names in COLUMNS.items():
            columns = ", ".join(f"{name} BIGINT" for name in names)
            self.database.execute(f"CREATE TABLE {table} (id BIGINT, {columns})")

    def apply(self, change: Change) -> None:
        for op, table, rows in change:
            self.database.register("given", rows)
            self.database.execute(f"DELETE FROM {table} WHERE id IN (SELECT id FROM given)")
            if op != "delete":
                self.database.execute(f"INSERT INTO {table} SELECT * FROM given")

    def answer(self, query: str) -> list[tuple[Any, ...]]:
        return sorted(self.database.execute(query).fetchall())


def session_over(shop: Shop, views: int) -> tuple[deltic.Session, Peer, Figures]:
    """A session whose views are filled, and the peer."""
    session, peer = deltic.Session(), Peer()
    start = time.perf_counter()
    session.sql(TABLES + "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in queries(views).items()))
    defined = time.perf_counter()
    applied(session, shop.loaded)
    loaded = time.perf_counter()
    peer.apply(shop.loaded)
    return session, peer, {"define_s": round(defined - start, 2), "load_s": round(loaded - defined, 2)}


def measured(session: deltic.Session, peer: Peer, shop: Shop, changes: int, ticks: int) -> Figures:
    """Ticks of so many changes."""
    watch, changed, touched = harness.Stopwatch(), list[int](), list[int]()
    for number in range(WARM_UP + ticks):
        change = shop.change(changes)
        if number == WARM_UP:
            watch = harness.Stopwatch()
        watch.run(applied, session, change)
        tick = session.last_tick
        assert tick is not None
        changed.append(len(tick.changes))
        touched.append(sum(counters.touched for counters in tick.counters.values()))
        peer.apply(change)
    figures: Figures = {
        "tick_ms": harness.summary(watch.wall_ms),
        "cpu_ms": harness.summary(watch.cpu_ms),
        "views_changed": statistics.median(changed),
        "rows_touched_per_change": round(statistics.median(touched) / changes, 1),
    }
    harness.progress(f"{changes:,} changes: {figures}")
    return figures


def agrees(session: deltic.Session, peer: Peer, views: int) -> bool:
    """Whether each view is what the peer computes."""
    wrong = [
        name for name, query in queries(views).items() if sorted(tuple(r.values()) for r in session.view(name).rows()) != peer.answer(query)
    ]
    if wrong:
        harness.progress(f"WRONG: {', '.join(wrong)}")
    return not wrong


def run(views: int, orders: int, ticks: int) -> Figures:
    """All figures."""
    shop = Shop(orders, np.random.default_rng(11))
    kernels.warm_up()
    session, peer, filled = session_over(shop, views)
    harness.progress(f"{views} views over {orders:,} orders: {filled}")
    cases = {}
    for changes in CHANGES:
        figures = measured(session, peer, shop, changes, ticks)
        cases[f"{changes} changes"] = {**figures, "correct": agrees(session, peer, views)}
    params = {"views": views, "orders": orders, "ticks": ticks}
    peak = round(harness.process_peak_mb(), 1)
    return {"params": params, **filled, "peak_mb": peak, "cases": cases, "correct": all(case["correct"] for case in cases.values())}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_views", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--views", type=int, default=VIEWS)
    parser.add_argument("--orders", type=int, default=ORDERS)
    parser.add_argument("--ticks", type=int, default=TICKS)
    parser.add_argument("--quick", action="store_true", help="a tenth of the orders and of the ticks")
    options = parser.parse_args()
    if options.quick:
        options.orders, options.ticks = options.orders // 10, max(3, options.ticks // 10)
    harness.emit({"benchmark": "many_views", "engine": "deltic", **run(options.views, options.orders, options.ticks)})


if __name__ == "__main__":
    main()
