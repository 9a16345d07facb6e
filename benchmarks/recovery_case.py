"""One step of benchmarks.recovery in a process of its own: `python -m benchmarks.recovery_case STEP STATE ROWS [NUMBER]`; a line of JSON.

build: a state of ROWS orders. open: opens it with NUMBER shards and runs one tick. feed: NUMBER ticks, and what was written.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import deltic
from benchmarks import harness
from deltic.kernels import warm_up

SCRIPT = """
CREATE TABLE orders (
    id BIGINT NOT NULL, customer BIGINT NOT NULL, amount BIGINT NOT NULL, status STRING NOT NULL, placed TIMESTAMP NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE customers (customer BIGINT NOT NULL, region BIGINT NOT NULL, PRIMARY KEY (customer));
CREATE MATERIALIZED VIEW spend AS
SELECT c.region, COUNT(*) AS orders, SUM(o.amount) AS amount
FROM orders o JOIN customers c ON c.customer = o.customer
GROUP BY c.region;
"""
CUSTOMERS, REGIONS = 100_000, 50
LOADED_AT_ONCE = 500_000
CHANGES = 1_000
STATUSES = np.array(["new", "paid", "sent", "back"], object)


def orders(ids: np.ndarray, seed: int) -> pa.Table:
    """Orders with these ids; a function of both."""
    random = np.random.default_rng(seed)
    n = len(ids)
    placed = 1_600_000_000_000_000 + ids * 1_000_000
    columns = {
        "id": pa.array(ids),
        "customer": pa.array(random.integers(0, CUSTOMERS, n)),
        "amount": pa.array(random.integers(1, 1001, n)),
        "status": pa.array(STATUSES[random.integers(0, len(STATUSES), n)], pa.string()),
        "placed": pa.array(placed).cast(pa.timestamp("us", tz="UTC")),
    }
    return pa.table(columns)


def change(rows: int, tick: int, new: int = CHANGES // 2) -> pa.Table:
    """So many new orders, and new content for old ones, as upserts."""
    random = np.random.default_rng([7, tick])
    ids = rows + new * tick + np.arange(new)
    old = random.choice(rows, CHANGES - new, replace=False)
    frame = orders(np.concatenate([ids, old]), 10**6 + tick)
    return frame.append_column("_op", pa.array(["upsert"] * frame.num_rows))


def build(state: str, rows: int) -> harness.Figures:
    """Loads the state; `rows_bytes` is the size of the tables' and the view's rows as Arrow."""
    start = time.perf_counter()
    regions = pa.table({"customer": np.arange(CUSTOMERS), "region": np.arange(CUSTOMERS) % REGIONS})
    size = regions.nbytes
    with deltic.Session(state=state) as session:
        session.sql(SCRIPT)
        with session.transaction() as tick:
            tick.insert("customers", regions)
        for first in range(0, rows, LOADED_AT_ONCE):
            frame = orders(np.arange(first, min(first + LOADED_AT_ONCE, rows)), first)
            size += frame.nbytes
            with session.transaction() as tick:
                tick.insert("orders", frame)
        size += session.view("spend").to_arrow().nbytes
    return {"load_s": round(time.perf_counter() - start, 2), "rows_bytes": size, "state_bytes": _size(state)}


def open_(state: str, rows: int, shards: int) -> harness.Figures:
    """Seconds to open the state with so many shards, and to run the first tick; the kernels are warm, the state is not."""
    warm_up()
    frame = change(rows, 0, new=0)
    start = time.perf_counter()
    session = deltic.Session(state=state, shards=shards)
    session.sql(SCRIPT)
    opened = time.perf_counter()
    session.apply({"orders": frame})
    ticked = time.perf_counter()
    counted = int(np.sum(session.view("spend").to_arrow().column("orders").to_numpy()))
    session.close()
    return {"open_s": opened - start, "first_tick_s": ticked - opened, "correct": counted == rows}


def feed(state: str, rows: int, ticks: int) -> harness.Figures:
    """Ticks of 1,000 changes: bytes written for each byte of change, and milliseconds."""
    warm_up()
    milliseconds, changed, before = [], 0, _written()
    with deltic.Session(state=state) as session:
        session.sql(SCRIPT)
        for tick in range(ticks):
            frame = change(rows, tick)
            changed += frame.drop_columns(["_op"]).nbytes
            start = time.perf_counter()
            session.apply({"orders": frame})
            milliseconds.append(1e3 * (time.perf_counter() - start))
        total = int(np.sum(session.view("spend").to_arrow().column("orders").to_numpy()))
    written = _written() - before
    return {
        "tick_ms": harness.summary(milliseconds),
        "written_per_byte": round(written / changed, 2),
        "written_bytes": written,
        "changed_bytes": changed,
        "peak_mb": round(harness.process_peak_mb(), 1),
        "correct": total == rows + ticks * CHANGES // 2,
    }


def _size(state: str) -> int:
    return sum(path.stat().st_size for path in Path(state).rglob("*") if path.is_file())


def _written() -> int:
    """Bytes that this process has written so far; its own output is small in comparison."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("wchar:")).split()[1])


def main(step: str, state: str, rows: str, number: str = "0") -> None:
    if step == "build":
        answer = build(state, int(rows))
    elif step == "open":
        answer = open_(state, int(rows), int(number))
    else:
        answer = feed(state, int(rows), int(number))
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
