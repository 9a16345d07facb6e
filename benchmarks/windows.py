"""Window functions under changes: `python -m benchmarks.windows [--rows N] [--ticks N] [--changes N] [--cases …] [--quick] [--no-peers]`.

Readings of sensors, in the order of their time, are loaded; a rolling sum over 7 days, a rank and a lag are views of their own, over one
partition of all rows (`… of one`), and over 100,000 (`… of many`). Ticks of one change follow, then ticks of 1,000: readings that come,
and recent ones that are corrected or deleted, since a change alters the frames and ranks after it. CPU seconds are of the process, beside
wall clock. The peer is DuckDB, which computes the query again after a few of the ticks; all rows are compared at the end of each size.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

import deltic
from benchmarks import harness
from deltic import kernels

ROWS, PARTITIONS, TICKS, CHANGES, ASKED = 1_000_000, 100_000, 50, 1_000, 3
RECENT: Final = 2_000
"""How many of the last readings that are there can be corrected or deleted."""
EPOCH_US: Final = 1_700_000_000_000_000
DAY_US: Final = 86_400_000_000
FUNCTIONS: Final = {
    "rolling": "sum(v) OVER ({} ORDER BY ts RANGE BETWEEN INTERVAL 7 DAYS PRECEDING AND CURRENT ROW)",
    "rank": "rank() OVER ({} ORDER BY ts)",
    "lag": "lag(v) OVER ({} ORDER BY ts, id)",
}
PARTITION: Final = {"one": "", "many": "PARTITION BY k"}
CASES: Final = tuple(f"{function} of {partitions}" for function in FUNCTIONS for partitions in PARTITION)
TABLE: Final = "CREATE TABLE t (id BIGINT, k BIGINT NOT NULL, ts TIMESTAMP NOT NULL, v BIGINT NOT NULL, PRIMARY KEY (id))"
Columns = dict[str, np.ndarray[Any, Any]]


def query(case: str) -> str:
    """The case's query, in Spark's SQL and in DuckDB's."""
    function, _, partitions = case.split()
    return f"SELECT id, {FUNCTIONS[function].format(PARTITION[partitions])} AS r FROM t"


class Feed:
    """The readings, and ticks of changes. A reading comes every 20 minutes in one partition, of each sensor in turn."""

    def __init__(self, rows: int, seed: int = 5) -> None:
        self._rng, self.rows, self.next = np.random.default_rng(seed), rows, rows
        self.gone: set[int] = set()

    def readings(self, ids: np.ndarray[Any, Any]) -> pa.Table:
        """Those with these ids; two of three have a time of their own."""
        times = EPOCH_US + (ids - ids % 3 // 2) * (20 * 60_000_000)
        columns: Columns = {"id": ids, "k": ids % max(1, self.rows * PARTITIONS // ROWS), "v": self._rng.integers(0, 1_000, len(ids))}
        return pa.table({**columns, "ts": times.astype("M8[us]")}).select(["id", "k", "ts", "v"])

    def tick(self, changes: int) -> tuple[pa.Table, list[int]]:
        """(rows to upsert, ids to delete): of three changes one is a new reading, one a correction, one a deletion."""
        kinds = self._rng.integers(0, 3, changes)
        recent = np.setdiff1d(np.arange(max(0, self.next - RECENT - len(self.gone)), self.next), list(self.gone))[-RECENT:]
        chosen = self._rng.choice(recent, int((kinds > 0).sum()), replace=False)
        new = np.arange(self.next, self.next + int((kinds == 0).sum()))
        corrected, deleted = chosen[: int((kinds == 1).sum())], chosen[int((kinds == 1).sum()) :]
        self.next += len(new)
        self.gone |= set(deleted.tolist())
        return self.readings(np.concatenate([corrected, new])), deleted.tolist()


class Peer:
    """DuckDB with the same table."""

    def __init__(self, rows: pa.Table) -> None:
        self.database = duckdb.connect()
        self.database.register("given", rows)
        self.database.execute("CREATE TABLE t AS SELECT * FROM given")

    def apply(self, upserts: pa.Table, deleted: Sequence[int]) -> None:
        gone = pa.table({"id": pa.array([*upserts["id"].to_pylist(), *deleted], pa.int64())})
        for name, table in (("given", upserts), ("gone", gone)):
            self.database.register(name, table)
        self.database.execute("DELETE FROM t WHERE id IN (SELECT id FROM gone)")
        self.database.execute("INSERT INTO t SELECT * FROM given")

    def answer(self, case: str) -> tuple[float, pa.Table]:
        """How long the query took, in seconds, and its rows."""
        start = time.perf_counter()
        table = self.database.sql(query(case)).to_arrow_table()
        return time.perf_counter() - start, table


def is_right(session: deltic.Session, answer: pa.Table) -> bool:
    """Whether the view has the peer's rows."""
    schema = pa.schema([("id", pa.int64()), ("r", pa.int64())])
    own, theirs = (table.select(["id", "r"]).cast(schema).sort_by("id") for table in (session.view("w").to_arrow(), answer))
    return bool(own.combine_chunks().equals(theirs.combine_chunks()))


def ticks(session: deltic.Session, feed: Feed, peer: Peer | None, case: str, changes: int, number: int) -> Iterator[tuple[float, float]]:
    """(wall clock, CPU) of each tick, in seconds."""
    for _ in range(number):
        upserts, deleted = feed.tick(changes)
        start, cpu = time.perf_counter(), time.process_time()
        with session.transaction() as tx:
            tx.upsert("t", upserts)
            tx.delete("t", pa.table({"id": pa.array(deleted, pa.int64())}))
        yield time.perf_counter() - start, time.process_time() - cpu
        if peer is not None:
            peer.apply(upserts, deleted)


def measured(case: str, rows: int, number: int, changes: Sequence[int], with_peer: bool) -> dict[str, Any]:
    """The figures of a case."""
    feed = Feed(rows)
    first = feed.readings(np.arange(rows))
    peer = Peer(first) if with_peer else None
    with deltic.Session() as session:
        session.sql(f"{TABLE}; CREATE MATERIALIZED VIEW w AS {query(case)}")
        start = time.perf_counter()
        with session.transaction() as tx:
            tx.insert("t", first)
        figures: dict[str, Any] = {"load_s": round(time.perf_counter() - start, 2), "correct": True}
        for size in changes:
            spent = list(ticks(session, feed, peer, case, size, number))
            own: dict[str, Any] = {
                "tick_ms": harness.summary([1e3 * wall for wall, _ in spent]),
                "cpu_ms": harness.summary([1e3 * cpu for _, cpu in spent]),
            }
            if peer is not None:
                answers = [peer.answer(case) for _ in range(ASKED)]
                recompute = 1e3 * statistics.median(took for took, _ in answers)
                own |= {"recompute_ms": round(recompute, 2), "ratio": round(recompute / own["tick_ms"]["median"], 1)}
                figures["correct"] = figures["correct"] and is_right(session, answers[0][1])
            figures[f"{size} changes"] = own
            harness.progress(f"{case}, {size:,} changes: {own}")
    figures["peak_mb"] = round(harness.process_peak_mb(), 1)
    return figures


def main() -> None:
    options = _options()
    kernels.warm_up()
    cases = {case: measured(case, options.rows, options.ticks, (1, options.changes), options.peers) for case in options.cases}
    params = {"rows": options.rows, "partitions": options.rows * PARTITIONS // ROWS, "ticks": options.ticks}
    correct = all(case["correct"] for case in cases.values())
    harness.emit({"benchmark": "windows", "engine": "deltic", "params": params, "cases": cases, "correct": correct})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.windows", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--ticks", type=int, default=TICKS)
    parser.add_argument("--changes", type=int, default=CHANGES)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="compute the queries again in DuckDB")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows and of the ticks")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.ticks = options.rows // 10, max(3, options.ticks // 10)
    return options


if __name__ == "__main__":
    main()
