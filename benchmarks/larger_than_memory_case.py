"""The steps of benchmarks.larger_than_memory, each in a process of its own: `… build FOLDER ROWS CHUNK` and `… ticks FOLDER ROWS TICKS`."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import deltic
from benchmarks import harness
from benchmarks.harness import Figures

SCRIPT: Final = """
    CREATE TABLE readings (id BIGINT NOT NULL, station BIGINT NOT NULL, value BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW totals AS SELECT station, count(*) AS n, sum(value) AS total FROM readings GROUP BY station;
"""
STATIONS: Final = 1_000
CHANGES: Final = 1_000
WARM_UP: Final = 5
Words = np.ndarray[Any, Any]


def value_of(ids: Words) -> Words:
    """The value with which a reading is loaded."""
    return ids * 7919 % 1009


def frame(ids: Words, values: Words, op: str) -> pa.Table:
    return pa.table({"id": ids, "station": ids % STATIONS, "value": values, "_op": np.full(len(ids), op)})


def build(folder: Path, rows: int, chunk: int) -> Figures:
    """Loads the rows in ticks of `chunk`."""
    start = time.perf_counter()
    with deltic.Session(state=folder, retain=1) as session:
        session.sql(SCRIPT)
        for first in range(0, rows, chunk):
            ids = np.arange(first, min(first + chunk, rows))
            session.apply({"readings": frame(ids, value_of(ids), "insert")})
    seconds = time.perf_counter() - start
    size = sum(path.stat().st_size for path in (folder / "data").iterdir())
    return {"load_s": round(seconds, 2), "state_mb": round(size / 1e6, 1), "peak_rss_mb": round(harness.process_peak_mb(), 1)}


def expected_totals(rows: int) -> tuple[Words, Words]:
    """By station, the number of the rows that are loaded, and the sum of their values."""
    counts, totals = np.zeros(STATIONS, np.int64), np.zeros(STATIONS, np.int64)
    for first in range(0, rows, 1 << 20):
        ids = np.arange(first, min(first + (1 << 20), rows))
        counts += np.bincount(ids % STATIONS, minlength=STATIONS)
        np.add.at(totals, ids % STATIONS, value_of(ids))
    return counts, totals


def ticks(folder: Path, rows: int, count: int) -> Figures:
    """Ticks that update readings anywhere; the totals after them are compared with an independent computation."""
    rng, (counts, totals) = np.random.default_rng(5), expected_totals(rows)
    now: dict[int, int] = {}
    start = time.perf_counter()
    with deltic.Session(state=folder, retain=1) as session:
        session.sql(SCRIPT)
        opened = time.perf_counter() - start
        watch = harness.Stopwatch()
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        for number in range(WARM_UP + count):
            if number == WARM_UP:
                watch, faults = harness.Stopwatch(), resource.getrusage(resource.RUSAGE_SELF).ru_majflt
            ids, values = rng.choice(rows, min(CHANGES, rows // 2), replace=False), rng.integers(0, 1009, min(CHANGES, rows // 2))
            watch.run(session.apply, {"readings": frame(ids, values, "update")})
            for id, value in zip(ids.tolist(), values.tolist(), strict=True):
                totals[id % STATIONS] += value - now.get(id, id * 7919 % 1009)
                now[id] = value
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - faults
        expected = {(i, n, total) for i, (n, total) in enumerate(zip(counts.tolist(), totals.tolist(), strict=True)) if n}
        correct = {tuple(row.values()) for row in session.view("totals").rows()} == expected
    figures: Figures = {"open_s": round(opened, 2), "tick_ms": harness.summary(watch.wall_ms), "cpu_ms": harness.summary(watch.cpu_ms)}
    return {
        **figures,
        "major_faults_per_tick": round(faults / count, 1),
        "peak_rss_mb": round(harness.process_peak_mb(), 1),
        "correct": correct,
    }


def main() -> None:
    step, folder, rows, number = sys.argv[1:]
    run = {"build": build, "ticks": ticks}[step]
    print(json.dumps(run(Path(folder), int(rows), int(number))))


if __name__ == "__main__":
    main()
