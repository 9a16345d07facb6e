"""Nexmark over events of integers, beside the dbsp crate: `python -m benchmarks.nexmark_integers [--queries q4 q5 q7 q8] [--quick]`.

A tick is one second of event time, 10,000 events; it ends when the changes of the view have been read. Deltic and the program in
peers/dbsp, which has one worker, take turns, and each has the least CPU time of its rounds: load, which both parse before, is not in it.
`ratio` is dbsp's time over Deltic's. Both final views are compared with what DuckDB computes from all events.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

import deltic
from benchmarks import harness, workloads
from benchmarks.harness import Figures
from benchmarks.peers import rust
from deltic import kernels

EVENTS, QUICK_EVENTS, ROUNDS = 1_000_000, 40_000, 3
TICK_MS: Final = 1_000
TIMEOUT_S: Final = 600.0
Rows = list[tuple[int, ...]]
Tick = dict[str, pa.Table]
COLUMNS: Final = {
    "person": ("id", "state", "time"),
    "auction": ("id", "seller", "category", "time", "expires"),
    "bid": ("auction", "bidder", "price", "time"),
}
READ: Final = {"q4": ("auction", "bid"), "q5": ("bid",), "q7": ("bid",), "q8": ("person", "auction")}
DELTIC: Final = {
    "q4": """
        SELECT category, count(*) AS n, sum(price) AS total, 0 AS nothing FROM (
            SELECT a.id, a.category, max(b.price) AS price FROM auction a JOIN bid b ON a.id = b.auction
            WHERE b.time BETWEEN a.time AND a.expires GROUP BY a.id, a.category
        ) GROUP BY category""",
    "q5": """
        SELECT start, n, auction, 0 AS nothing FROM (
            SELECT *, row_number() OVER (PARTITION BY start ORDER BY n DESC, auction DESC) AS place FROM (
                SELECT last - before AS start, auction, count(*) AS n
                FROM (SELECT time DIV 2000 * 2000 AS last, auction FROM integrate(bid))
                LATERAL VIEW explode(array(0, 2000, 4000, 6000, 8000)) AS before GROUP BY 1, 2
            )
        ) WHERE place = 1""",
    "q7": """
        SELECT start, price, auction, bidder FROM (
            SELECT *, row_number() OVER (PARTITION BY start ORDER BY price DESC, auction DESC, bidder DESC) AS place
            FROM (SELECT time DIV 10000 * 10000 AS start, price, auction, bidder FROM integrate(bid))
        ) WHERE place = 1""",
    "q8": """
        SELECT DISTINCT p.id, p.time DIV 10000 * 10000 AS start, 0 AS nothing, 0 AS neither
        FROM person p JOIN auction a ON p.id = a.seller AND p.time DIV 10000 = a.time DIV 10000""",
}
STREAMS: Final = ("q5", "q7")
"""Over streams, of which no rows are kept; the others read tables."""
DUCKDB: Final = {
    "q4": """
        SELECT category, count(*), sum(price), 0 FROM (
            SELECT a.id, a.category, max(b.price) AS price FROM auction a JOIN bid b ON a.id = b.auction
            WHERE b.time BETWEEN a.time AND a.expires GROUP BY ALL
        ) GROUP BY ALL""",
    "q5": """
        SELECT start, max((n, auction))[1], max((n, auction))[2], 0 FROM (
            SELECT time // 2000 * 2000 - before AS start, auction, count(*) AS n
            FROM bid, (SELECT unnest([0, 2000, 4000, 6000, 8000]) AS before) GROUP BY ALL
        ) GROUP BY ALL""",
    "q7": """
        SELECT start, (best)[1], (best)[2], (best)[3] FROM (
            SELECT time // 10000 * 10000 AS start, max((price, auction, bidder)) AS best FROM bid GROUP BY ALL
        )""",
    "q8": """
        SELECT DISTINCT p.id, p.time // 10000 * 10000, 0, 0
        FROM person p JOIN auction a ON p.id = a.seller AND p.time // 10000 = a.time // 10000""",
}


def events(count: int) -> dict[str, np.ndarray]:
    """The events by table, as `workloads.nexmark` makes them."""
    return workloads.nexmark(count)


def ticks(feeds: Mapping[str, np.ndarray]) -> list[Tick]:
    """The events of each second."""
    cut: list[Tick] = []
    last = max(int(feed[-1, COLUMNS[name].index("time")]) for name, feed in feeds.items()) // TICK_MS
    for number in range(last + 1):
        cut.append({})
        for name, feed in feeds.items():
            times = feed[:, COLUMNS[name].index("time")]
            rows = feed[np.searchsorted(times, number * TICK_MS) : np.searchsorted(times, (number + 1) * TICK_MS)]
            cut[-1][name] = pa.table([np.ascontiguousarray(column) for column in rows.T], names=list(COLUMNS[name]))
    return cut


def run_deltic(query: str, feed: Sequence[Tick]) -> tuple[float, Rows]:
    """(seconds of CPU time, the final view)."""
    kind = "STREAM" if query in STREAMS else "TABLE"
    with deltic.Session() as session:
        for name, columns in COLUMNS.items():
            session.sql(f"CREATE {kind} {name} ({', '.join(f'{column} BIGINT NOT NULL' for column in columns)})")
        session.sql(f"CREATE MATERIALIZED VIEW answer AS {DELTIC[query]}")
        before = time.process_time()
        for tick in feed:
            with session.transaction() as changes:
                for name in READ[query]:
                    changes.insert(name, tick[name])
            session.view("answer").changes()
        seconds = time.process_time() - before
        return seconds, _rows(session.view("answer").to_arrow())


def run_dbsp(query: str, folder: Path) -> tuple[float, Rows] | str:
    """The same of the crate dbsp, or the reason why it cannot run. folder: the feeds."""
    program = rust.build("dbsp", "dbsp-nexmark")
    if isinstance(program, str):
        return program
    output = folder / "view"
    answer = harness.run(["env", f"DELTIC_FEEDS={folder}", f"OUT={output}", str(program), query, "1"], TIMEOUT_S)
    if "absent" in answer:
        return str(answer["absent"])
    view = np.loadtxt(output, np.int64, ndmin=2)
    assert (view[:, -1] == 1).all()
    return float(answer["cpu_s"]), sorted(map(tuple, view[:, :-1].tolist()))


def expected(query: str, feeds: Mapping[str, np.ndarray]) -> Rows:
    """What DuckDB computes from all events."""
    with duckdb.connect() as database:
        for name, feed in feeds.items():
            database.register(name, pa.table([np.ascontiguousarray(column) for column in feed.T], names=list(COLUMNS[name])))
        return sorted(tuple(map(int, row)) for row in database.sql(DUCKDB[query]).fetchall())


def _rows(view: pa.Table) -> Rows:
    return sorted(zip(*(column.to_pylist() for column in view.columns), strict=True))


def measure(query: str, feeds: Mapping[str, np.ndarray], folder: Path, rounds: int) -> Figures:
    """A query's figures."""
    feed, right = ticks(feeds), expected(query, feeds)
    own, other, correct = list[float](), list[float](), True
    peer: Figures = {}
    for _ in range(rounds):
        seconds, view = run_deltic(query, feed)
        own.append(seconds)
        correct = correct and view == right
        answer = run_dbsp(query, folder) if "absent" not in peer else peer["absent"]
        if isinstance(answer, str):
            peer = {"absent": answer}
            continue
        other.append(answer[0])
        peer = {"cpu_s": min(other), "correct": peer.get("correct", True) and answer[1] == right}
    ratio = round(min(other) / min(own), 3) if other else None
    count = sum(len(table) for table in feeds.values())
    return {
        "cpu_s": round(min(own), 4),
        "events_per_cpu_s": round(count / min(own)),
        "ratio": ratio,
        "correct": correct,
        "peers": {"dbsp": peer},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nexmark_integers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--queries", nargs="+", choices=list(DELTIC), default=list(DELTIC))
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_EVENTS:,} events, one round")
    options = parser.parse_args(arguments)
    count, rounds = (QUICK_EVENTS, 1) if options.quick else (options.events, options.rounds)
    kernels.warm_up()
    feeds = events(count)
    cases: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as made:
        for name, feed in feeds.items():
            workloads.write(feed, Path(made) / f"nexmark_{name}.bin")
        for query in options.queries:
            cases[query] = case = measure(query, feeds, Path(made), rounds)
            harness.progress(f"{query}: {case['events_per_cpu_s']:,} events per CPU second, dbsp's time over Deltic's {case['ratio']}")
    correct = all(case["correct"] for case in cases.values())
    harness.emit({"benchmark": "nexmark_integers", "engine": "deltic", "correct": correct, "params": {"events": count}, "cases": cases})


if __name__ == "__main__":
    main()
