"""A join with an aggregate on top: `python -m benchmarks.join_aggregate [--ticks N] [--orders N] [--quick] [--no-peers] [--no-growth]`.

1M orders and 100k customers are loaded; the view is region → count and sum of amounts; 100 ticks of 1,000 changes follow, then ticks
of one changed order (params.one_change_ms), then ticks given as upserts and deletions (params.upsert_ms). Cases: ticks of 10 to 100,000
changes, beside differential; ten times as many orders, and these with two shards and one thread or two. `growth` is the median tick with
ten times as many orders divided by that with the orders themselves; `load_speedup` is how many times faster two threads load than one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

import deltic
from benchmarks import harness, workloads
from benchmarks.checks import Change
from benchmarks.drive import save
from benchmarks.engine import CHANGE, SINGLE, UPSERT, Answer, arrow
from benchmarks.harness import Figures
from benchmarks.peers import rust
from deltic import kernels

ORDERS, CUSTOMERS, TICKS, CHANGES = 1_000_000, 100_000, 100, 1_000
SINGLES = UPSERTS = 50
GROWTH, GROWTH_TICKS = 10, 40
SIZES = {10: 100, 100: 100, 10_000: 40, 100_000: 10}
"""Ticks by how many changes each has."""
TIMEOUT_S = 600.0
ORDER_COLUMNS, CUSTOMER_COLUMNS = ["id", "customer", "amount"], ["id", "region"]
SCRIPT = """
    CREATE TABLE orders (id BIGINT, customer BIGINT NOT NULL, amount BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE TABLE customers (id BIGINT, region BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW spend AS
        SELECT c.region, count(*) AS orders, sum(o.amount) AS amount
        FROM orders o JOIN customers c ON o.customer = c.id
        GROUP BY c.region
"""
Tick = dict[str, pa.Table]


class Embedded:
    """Deltic in this process, through its public API."""

    def __init__(self, shards: int = 1, threads: int | None = None) -> None:
        kernels.warm_up()
        self.session = deltic.Session(shards=shards, threads=threads)
        self.session.sql(SCRIPT)

    def prepare(self, orders: Change, customers: Change) -> Tick:
        return _without_empty({"orders": arrow(orders, ORDER_COLUMNS), "customers": arrow(customers, CUSTOMER_COLUMNS)})

    def prepare_upserts(self, orders: Change, customers: Change) -> Tick:
        return _without_empty({"orders": upserts(orders, ORDER_COLUMNS), "customers": upserts(customers, CUSTOMER_COLUMNS)})

    def tick(self, prepared: Tick) -> pa.Table:
        self.session.apply(prepared)
        return self.session.view("spend").changes()

    def answer(self, read: pa.Table) -> Answer:
        columns = [np.asarray(read[name].combine_chunks()).astype(np.int64) for name in ("region", "orders", "amount", "_weight")]
        return Answer(columns[:-1], columns[-1])


def upserts(change: Change, names: Sequence[str]) -> pa.Table:
    """The same change with `_op`: upserts of the new rows, deletions of the rows whose key has no new one."""
    weight, key, *_ = change
    new = weight > 0
    kept = new | ~np.isin(key, key[new])
    operation = np.where(new[kept], "upsert", "delete")
    return pa.table([*(column[kept] for column in change[1:]), pa.array(operation.tolist(), pa.string())], names=[*names, "_op"])


def _without_empty(tick: Tick) -> Tick:
    return {name: table for name, table in tick.items() if table.num_rows}


def engine(shards: int = 1, threads: int | None = None) -> Embedded:
    return Embedded(shards, threads)


def write_feed(folder: Path, orders: int, customers: int, ticks: int) -> None:
    """The load, `ticks` ticks of changes, then those of one change, then those to be given as upserts."""
    fed_orders, fed_customers = workloads.join_aggregate(orders, customers, ticks + UPSERTS, CHANGES)
    fed_orders, fed_customers = workloads.single_changes(fed_orders, fed_customers, after=ticks, ticks=SINGLES)
    save(folder, fed_orders, fed_customers, [CHANGE] * (ticks + 1) + [SINGLE] * SINGLES + [UPSERT] * UPSERTS)


def measure_peers(folder: Path) -> dict[str, Figures]:
    """Every peer over the feed in `folder`, one after another, each in a process of its own."""
    peers = {}
    for name, workload in (("differential", "join_aggregate"), ("differential_pushed", "join_aggregate_pushed")):
        peers[name] = rust.join_aggregate(workload, folder, TIMEOUT_S)
        harness.progress(harness.describe(name, peers[name]))
    for name in ("numba", "numpy", "duckdb", "pathway", "kuzu"):
        peers[name] = harness.drive(f"benchmarks.peers.{name}_join", folder, TIMEOUT_S)
        harness.progress(harness.describe(name, peers[name]))
    elsewhere = {"absent": "compared in benchmarks.spark_tick"}
    return peers | {"spark": elsewhere, "spark_bare": elsewhere}


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as folder:
        harness.progress(f"{options.orders:,} orders, {options.ticks} ticks of {CHANGES:,} changes")
        write_feed(Path(folder), options.orders, options.customers, options.ticks)
        own = harness.drive("benchmarks.join_aggregate", Path(folder), TIMEOUT_S)
        harness.progress(harness.describe("deltic", own))
        peers = measure_peers(Path(folder)) if options.peers else {}
    cases = measure_sizes(options)
    grown = measure_growth(options) if options.growth else {}
    kinds = own.pop("by_kind", {})
    params = {"orders": options.orders, "customers": options.customers, "ticks": options.ticks, "changes": CHANGES}
    params |= {"one_change_ms": kinds.get(SINGLE), "upsert_ms": kinds.get(UPSERT)}
    params["peers_one_change_ms"] = {name: peer.pop("by_kind")[SINGLE] for name, peer in peers.items() if "by_kind" in peer}
    result = {"benchmark": "join_aggregate", "engine": "deltic", "params": params, **own, "peers": peers, "growth": None}
    if grown and all("tick_ms" in case for case in (own, *grown.values())):
        whole, one, two = grown.values()
        result["growth"] = round(whole["tick_ms"]["median"] / own["tick_ms"]["median"], 3)
        result["load_speedup"] = round(one["load_s"] / two["load_s"], 3)
    result["cases"] = cases | grown
    harness.emit(result)


def measure_sizes(options: argparse.Namespace) -> dict[str, Figures]:
    """A case for each size of ticks, beside differential."""
    cases: dict[str, Figures] = {}
    for changes, ticks in SIZES.items():
        with tempfile.TemporaryDirectory(prefix="deltic-bench-") as folder:
            orders, customers = workloads.join_aggregate(options.orders, options.customers, min(options.ticks, ticks), changes)
            save(Path(folder), orders, customers, [CHANGE] * (min(options.ticks, ticks) + 1))
            case = _driven(Path(folder), f"{changes:,} changes")
            if options.peers:
                case["peers"] = {"differential": rust.join_aggregate("join_aggregate", Path(folder), TIMEOUT_S)}
                harness.progress(harness.describe("differential", case["peers"]["differential"]))
                case["peers"]["differential"].pop("by_kind", None)
        cases[f"{changes:,} changes"] = case
    return cases


def measure_growth(options: argparse.Namespace) -> dict[str, Figures]:
    """Ten times as many orders, and as many customers: in one shard, and in two with one thread and with two."""
    cases: dict[str, Figures] = {}
    name = f"{GROWTH * options.orders:,} orders"
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as folder:
        write_feed(Path(folder), GROWTH * options.orders, options.customers, min(options.ticks, GROWTH_TICKS))
        cases[name] = _driven(Path(folder), name)
    orders, customers = workloads.join_aggregate(GROWTH * options.orders, options.customers, 1, CHANGES)
    for threads in (1, 2):
        sharded = f"{name}, two shards, threads={threads}"
        with tempfile.TemporaryDirectory(prefix="deltic-bench-") as folder:
            save(Path(folder), orders, customers, [CHANGE, CHANGE], shards=2, threads=threads)
            cases[sharded] = _driven(Path(folder), sharded)
    return cases


def _driven(folder: Path, name: str) -> Figures:
    """Deltic over the feed in `folder`, for a case of this name."""
    figures = harness.drive("benchmarks.join_aggregate", folder, TIMEOUT_S)
    figures.pop("by_kind", None)
    harness.progress(harness.describe(f"deltic, {name}", figures))
    return figures


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.join_aggregate", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--orders", type=int, default=ORDERS)
    parser.add_argument("--customers", type=int, default=CUSTOMERS)
    parser.add_argument("--ticks", type=int, default=TICKS)
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="measure the peers too")
    parser.add_argument("--growth", action=argparse.BooleanOptionalAction, default=True, help="measure ten times as many orders too")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows and of the ticks, without growth")
    options = parser.parse_args()
    if options.quick:
        options.growth = False
        for name in ("orders", "customers", "ticks"):
            setattr(options, name, getattr(options, name) // 10)
    return options


if __name__ == "__main__":
    main()
