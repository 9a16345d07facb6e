"""A view over a struct and an array: `python -m benchmarks.nested [--rows N] [--ticks N] [--changes N] [--quick]`.

1M rows with a STRUCT and an ARRAY column are loaded; the view unnests the array, filters by a field of the struct, and groups by element.
Ticks of one changed row follow, then ticks of 1,000. The peer is DuckDB, which computes the query again after each change; its answers
are compared with the view's. The two take turns by sizes of change, not by ticks: each would find the other's data in the caches.
`ratio` is the median of DuckDB's times over that of the ticks, `cpu_ratio` that of their processor times, since DuckDB computes on all
processors.
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

ROWS, TICKS, CHANGES = 1_000_000, 21, 1_000
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

    def answer(self) -> pa.Table:
        return self.database.sql(QUERY).to_arrow_table()


def measured(session: deltic.Session, peer: Peer, changes: list[pa.Table]) -> dict[str, Any]:
    """Ticks of upserts; the answer after each is compared with the peer's."""
    own, theirs = harness.Stopwatch(), harness.Stopwatch()
    answers = []
    for changed in changes:
        own.run(_upsert, session, changed)
        answers.append({tuple(row.values()) for row in session.view("v").rows()})
    right = True
    for changed, answer in zip(changes, answers, strict=True):
        peer.apply(changed)
        table = theirs.run(peer.answer)
        right = right and answer == set(zip(*(column.to_pylist() for column in table.columns), strict=True))
    tick, cpu, recompute, peer_cpu = map(statistics.median, (own.wall_ms, own.cpu_ms, theirs.wall_ms, theirs.cpu_ms))
    figures = {
        "tick_ms": round(tick, 3),
        "recompute_ms": round(recompute, 3),
        "ratio": round(recompute / tick, 1),
        "cpu_ms": round(cpu, 3),
        "recompute_cpu_ms": round(peer_cpu, 3),
        "cpu_ratio": round(peer_cpu / cpu, 1),
    }
    harness.progress(f"{len(changes[0]):,} changes: {figures}")
    return {**figures, "correct": right}


def _upsert(session: deltic.Session, rows: pa.Table) -> None:
    with session.transaction() as tx:
        tx.upsert("t", rows)


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
    cases = {}
    for n in (1, options.changes):
        changes = [rows_of(rng.choice(options.rows, n, replace=False), rng) for _ in range(options.ticks)]
        cases[f"{n} changes"] = measured(session, peer, changes)
    params = {"rows": options.rows, "ticks": options.ticks, "load_s": round(load, 2)}
    correct = all(case["correct"] for case in cases.values())
    harness.emit({"benchmark": "nested", "engine": "deltic", "params": params, "cases": cases, "correct": correct})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nested", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--ticks", type=int, default=TICKS)
    parser.add_argument("--changes", type=int, default=CHANGES)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows and of the ticks")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.ticks = options.rows // 10, max(3, options.ticks // 10)
    return options


if __name__ == "__main__":
    main()
