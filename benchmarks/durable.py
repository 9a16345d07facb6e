"""Commits of a durable session: `python -m benchmarks.durable [--quick] [--folder FOLDER]`.

One-row inserts into a table with a primary key and an aggregate over it, each a transaction that is durable when the call returns, on one
thread and on eight: with a commit log, with manifests alone, and the same inserts into SQLite (WAL, synchronous=FULL, without the
aggregate). Then ticks of 1,000 rows, with a commit log and in memory. The engines take turns, since the disk's speed varies; `sync_us` is
what one write of 512 bytes and a sync of its data costs on the same disk. All include folding and closing. The collector leaves alone what
the process holds before the inserts, as docs/performance.md says of processes that only tick.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any, Final

import deltic
from benchmarks import harness
from benchmarks.harness import Figures
from deltic.session.collector import set_aside

SCRIPT: Final = """
    CREATE TABLE accounts (id BIGINT NOT NULL, owner BIGINT NOT NULL, amount BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW totals AS SELECT owner, sum(amount) AS total, count(*) AS n FROM accounts GROUP BY owner;
"""
OWNERS: Final = 1_000
COMMITS: Final = 4_000
"""Of each engine, in each turn; with manifests alone a twentieth."""
TURNS: Final = 3
TICKS, ROWS = 200, 1_000
THREADS: Final = (1, 8)

Insert = Callable[[int], None]


def in_threads(threads: int, commits: int, inserter: Callable[[], Insert]) -> float:
    """The seconds that `threads` threads take for so many inserts."""

    def work(first: int) -> None:
        insert = inserter()
        for id in range(first, commits, threads):
            insert(id)

    workers = [Thread(target=work, args=(number,)) for number in range(threads)]
    with set_aside():
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return time.perf_counter() - start


def deltic_commits(folder: Path, threads: int, commits: int, *, log: bool) -> tuple[float, bool]:
    """(commits per second, whether another session finds all rows)."""
    session = deltic.Session(state=folder, commit_log=log)
    session.sql(SCRIPT)

    def insert(id: int) -> None:
        session.apply({"accounts": [{"_op": "insert", "id": id, "owner": id % OWNERS, "amount": id}]})

    seconds = in_threads(threads, commits, lambda: insert)
    start = time.perf_counter()
    session.close()
    seconds += time.perf_counter() - start
    with deltic.open(folder) as state:
        rows = state.view("totals").to_arrow()
    found = (sum(rows.column("n").to_pylist()), sum(rows.column("total").to_pylist()))
    return commits / seconds, found == (commits, commits * (commits - 1) // 2)


def sqlite_commits(folder: Path, threads: int, commits: int) -> tuple[float, bool]:
    """The same inserts, each a transaction; a connection for each thread."""
    folder.mkdir()

    def connected() -> sqlite3.Connection:
        connection = sqlite3.connect(folder / "accounts.db", timeout=60.0, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    first = connected()
    first.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, amount INTEGER NOT NULL)")

    def inserter() -> Insert:
        connection = connected()

        def insert(id: int) -> None:
            connection.execute("INSERT INTO accounts VALUES (?, ?, ?)", (id, id % OWNERS, id))

        return insert

    seconds = in_threads(threads, commits, inserter)
    found = first.execute("SELECT count(*), sum(amount) FROM accounts").fetchone()
    first.close()
    return commits / seconds, found == (commits, commits * (commits - 1) // 2)


def ticks(folder: Path | None, count: int) -> list[float]:
    """Milliseconds of each tick of 1,000 rows."""
    session = deltic.Session(state=folder, commit_log=folder is not None)
    session.sql(SCRIPT)
    times = []
    for tick in range(count):
        rows = [{"_op": "insert", "id": tick * ROWS + i, "owner": (tick * 7 + i) % OWNERS, "amount": i} for i in range(ROWS)]
        start = time.perf_counter()
        session.apply({"accounts": rows})
        times.append(1e3 * (time.perf_counter() - start))
    session.close()
    return times


def sync_us(folder: Path) -> float:
    """The median of a write of 512 bytes within a file and a sync of its data."""
    descriptor = os.open(folder / "sync", os.O_CREAT | os.O_RDWR, 0o644)
    os.pwrite(descriptor, bytes(1 << 17), 0)
    os.fsync(descriptor)
    times = []
    for number in range(256):
        start = time.perf_counter()
        os.pwrite(descriptor, b"x" * 512, 512 * number)
        os.fdatasync(descriptor)
        times.append(1e6 * (time.perf_counter() - start))
    os.close(descriptor)
    return statistics.median(times)


def one_row(root: Path, threads: int, commits: int, turns: int) -> Figures:
    """Commits per second of each engine, medians of the turns."""
    engines: dict[str, Callable[[Path], tuple[float, bool]]] = {
        "deltic": lambda folder: deltic_commits(folder, threads, commits, log=True),
        "sqlite": lambda folder: sqlite_commits(folder, threads, commits),
        "manifests": lambda folder: deltic_commits(folder, threads, commits // 20, log=False),
    }
    answers: dict[str, list[tuple[float, bool]]] = {name: [] for name in engines}
    for turn in range(turns):
        for name, engine in engines.items():
            answers[name].append(engine(root / f"{name}{threads}-{turn}"))
    figures: Figures = {name: round(statistics.median(rate for rate, _ in of)) for name, of in answers.items()}
    figures["over_sqlite"] = round(figures["deltic"] / figures["sqlite"], 3)
    figures["correct"] = all(correct for of in answers.values() for _, correct in of)
    harness.progress(f"{threads} threads, commits per second: {figures}")
    return figures


def thousand_rows(root: Path, count: int, turns: int) -> Figures:
    """Ticks of 1,000 rows in milliseconds."""
    durable, memory = list[float](), list[float]()
    for turn in range(turns):
        memory += ticks(None, count)[10:]
        durable += ticks(root / f"ticks{turn}", count)[10:]
    figures: Figures = {"memory_ms": harness.summary(memory), "durable_ms": harness.summary(durable)}
    figures["over_memory"] = round(statistics.median(durable) / statistics.median(memory), 3)
    figures["mean_over_memory"] = round(statistics.mean(durable) / statistics.mean(memory), 3)
    harness.progress(f"ticks of 1,000 rows: {figures}")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durable", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of the commits, one turn")
    parser.add_argument("--folder", type=Path, help="where the states are made: on the disk to be measured")
    options = parser.parse_args()
    commits, turns, count = (COMMITS // 10, 1, TICKS // 5) if options.quick else (COMMITS, TURNS, TICKS)
    with tempfile.TemporaryDirectory(prefix="deltic-durable-", dir=options.folder) as name:
        root = Path(name)
        cases: dict[str, Any] = {f"{threads} threads": one_row(root, threads, commits, turns) for threads in THREADS}
        ticked = thousand_rows(root, count, turns)
        sync = round(sync_us(root))
    correct = all(case["correct"] for case in cases.values())
    params = {"commits": commits, "turns": turns, "ticks": count}
    result = {"benchmark": "durable", "engine": "deltic", "params": params, **cases}
    harness.emit({**result, "ticks": ticked, "sync_us": sync, "correct": correct})


if __name__ == "__main__":
    main()
