"""A view over a struct and an array: `python -m benchmarks.nested [--rows N] [--blocks N] [--ticks N] [--changes N] [--quick]`.

1M rows with a STRUCT and an ARRAY column are loaded; the view unnests the array, filters by a field of the struct, and groups by element.
Blocks of ticks follow: first ticks of one changed row, then ticks of 1,000. After each block DuckDB gets the same changes and computes the
query again, and its answer is compared with the view's. For each size of change the figures are medians:

- `tick_ms`: of the ticks of a block after its first, which is what a tick takes where ticks follow one another;
- `first_tick_ms`: of the first ticks of the blocks. DuckDB has read its whole table just before, so the caches of the processor hold no
  memory of the engine; so does a tick that comes seldom, beside other work;
- `recompute_ms`: of DuckDB's query; `ratio` and `first_ratio` are its multiples of the two.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import deltic
from benchmarks import harness
from deltic import kernels

ROWS, BLOCKS, TICKS, CHANGES = 1_000_000, 11, 10, 1_000
SCRIPT = """
    CREATE TABLE t (id BIGINT, s STRUCT<a: INT, b: STRING>, xs ARRAY<INT>, PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW v AS
        SELECT x, count(*) AS n, sum(s.a) AS total FROM t LATERAL VIEW explode(xs) AS x WHERE s.a < 25 GROUP BY x
"""
QUERY = "SELECT x, count(*) AS n, sum(s.a) AS total FROM (SELECT s, unnest(xs) AS x FROM t WHERE s.a < 25) GROUP BY x"


def rows_of(ids: np.ndarray[Any, Any], rng: np.random.Generator) -> pa.Table:
    """Rows of these ids: `a` in 0 to 49, one of 1,000 texts, and one to five elements in 0 to 999."""
    counts = rng.integers(1, 6, len(ids))
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    xs = pa.ListArray.from_arrays(offsets, pa.array(rng.integers(0, 1000, counts.sum()).astype(np.int32)))
    a = pa.array(rng.integers(0, 50, len(ids)).astype(np.int32))
    b = pa.array([f"text {n}" for n in rng.integers(0, 1000, len(ids)).tolist()])
    return pa.table({"id": pa.array(ids), "s": pa.StructArray.from_arrays([a, b], ["a", "b"]), "xs": xs})


class Peer:
    """DuckDB with the same table."""

    def __init__(self, rows: pa.Table) -> None:
        self.database = duckdb.connect()
        self.database.register("given", rows)
        self.database.execute("CREATE TABLE t AS SELECT * FROM given")

    def apply(self, rows: pa.Table) -> None:
        self.database.register("changed", rows)
        self.database.execute("DELETE FROM t WHERE id IN (SELECT id FROM changed)")
        self.database.execute("INSERT INTO t SELECT * FROM changed")

    def answer(self) -> tuple[float, set[tuple[int, ...]]]:
        """How long the query took, in seconds, and its rows."""
        start = time.perf_counter()
        table = self.database.sql(QUERY).to_arrow_table()
        return time.perf_counter() - start, set(zip(*(column.to_pylist() for column in table.columns), strict=True))


def measured(session: deltic.Session, peer: Peer, rows: int, shape: tuple[int, int, int], rng: np.random.Generator) -> dict[str, Any]:
    """Blocks of ticks of upserts, with the peer's answer after each block. shape: (blocks, ticks of each, changes of each)."""
    blocks, ticks, changes = shape
    first: list[float] = []
    later: list[float] = []
    recomputes: list[float] = []
    correct = True
    for _ in range(blocks):
        block = [rows_of(rng.choice(rows, changes, replace=False), rng) for _ in range(ticks)]
        times = [_tick(session, changed) for changed in block]
        first.append(times[0])
        later += times[1:]
        for changed in block:
            peer.apply(changed)
        took, answer = peer.answer()
        recomputes.append(took)
        correct = correct and answer == {tuple(row.values()) for row in session.view("v").rows()}
    tick, cold, recompute = map(statistics.median, (later, first, recomputes))
    named = {"tick_ms": tick, "first_tick_ms": cold, "recompute_ms": recompute}
    figures = {name: round(1e3 * seconds, 3) for name, seconds in named.items()}
    ratios = {"ratio": round(recompute / tick, 1), "first_ratio": round(recompute / cold, 1)}
    harness.progress(f"{changes:,} changes: {figures | ratios}")
    return {**figures, **ratios, "correct": correct}


def _tick(session: deltic.Session, changed: pa.Table) -> float:
    """How long a tick of upserts takes, in seconds."""
    start = time.perf_counter()
    with session.transaction() as tx:
        tx.upsert("t", changed)
    return time.perf_counter() - start


def main() -> None:
    options = _options()
    rng = np.random.default_rng(7)
    rows = rows_of(np.arange(options.rows), rng)
    kernels.warm_up()
    session, peer = deltic.Session(), Peer(rows)
    session.sql(SCRIPT)
    start = time.perf_counter()
    with session.transaction() as tx:
        tx.insert("t", rows)
    load = time.perf_counter() - start
    harness.progress(f"{options.rows:,} rows loaded in {load:.1f} s")
    sizes = (1, options.changes)
    cases = {f"{n} changes": measured(session, peer, options.rows, (options.blocks, options.ticks, n), rng) for n in sizes}
    params = {"rows": options.rows, "blocks": options.blocks, "ticks": options.ticks, "load_s": round(load, 2)}
    correct = all(case["correct"] for case in cases.values())
    harness.emit({"benchmark": "nested", "engine": "deltic", "params": params, "cases": cases, "correct": correct})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nested", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    parser.add_argument("--ticks", type=int, default=TICKS, help="of each block, at least two")
    parser.add_argument("--changes", type=int, default=CHANGES)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, and three blocks")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.blocks = options.rows // 10, 3
    if options.ticks < 2:
        parser.error("--ticks must be at least two: the first tick of a block is measured apart")
    return options


if __name__ == "__main__":
    main()
