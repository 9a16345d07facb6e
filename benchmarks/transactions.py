"""Transactions of one row over a stream, without end: state, files and memory stay where they were after the first of them.

Part of `python -m benchmarks.streams`: the case `transactions` with a state folder, `transactions_in_memory` without one. The views join
the stream with a table, read it as a relation of the tick, close windows of it, join it with another stream on bounds of their times, and
fold it into accumulators.
"""

from __future__ import annotations

import datetime
import gc
import time
from collections.abc import Mapping
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any, Final

import deltic
from benchmarks import harness

SCRIPT: Final = """
    CREATE STREAM readings (at TIMESTAMP LATENESS INTERVAL 1 MINUTE, sensor BIGINT, v BIGINT);
    CREATE STREAM alarms (at TIMESTAMP LATENESS INTERVAL 10 SECONDS, sensor BIGINT);
    CREATE TABLE sensors (id BIGINT PRIMARY KEY, name STRING);
    CREATE MATERIALIZED VIEW named AS SELECT name, v FROM readings JOIN sensors ON sensor = id;
    CREATE MATERIALIZED VIEW now AS SELECT sensor, max(v) AS top FROM current(readings) GROUP BY sensor;
    CREATE MATERIALIZED VIEW minutes AS
        SELECT date_trunc('minute', at) AS minute, sensor, max(v) AS top, count(*) AS n FROM readings GROUP BY 1, 2 EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW alarmed AS
        SELECT r.v FROM readings r JOIN alarms a ON r.sensor = a.sensor AND a.at BETWEEN r.at AND r.at + INTERVAL 20 SECONDS;
"""
SENSORS: Final = 11
START: Final = datetime.datetime(2026, 1, 1, tzinfo=UTC)
SAMPLED, EVERY = 200, 25
"""The last transactions before a mark, of which one in so many is measured: what is merged later counts with its most."""


def opened(folder: Path | None) -> deltic.Session:
    """A session with the views."""
    circuit = deltic.Circuit(deltic.Program(SCRIPT))
    readings = circuit.input("readings").index_with("sensor")
    circuit.output("tops", readings.stream_aggregate(lambda top, rows: max([top or 0, *(row.v for row, _ in rows)]), schema={"top": int}))
    session = deltic.Session(state=folder)
    session.program(deltic.Program(SCRIPT, circuit))
    return session


def tick(session: deltic.Session, number: int) -> None:
    """One transaction."""
    row = {"at": START + timedelta(seconds=number), "sensor": number % SENSORS, "_weight": 1}
    session.apply({"alarms": [row]} if number % 7 == 0 else {"readings": [{**row, "v": number % 1_000}]})


def held(session: deltic.Session, folder: Path | None) -> dict[str, int]:
    """State rows, and the files of the state with their bytes."""
    sizes = [] if folder is None else [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    rows = sum(rows for rows, _ in session._runtime.statistics().values())
    return {"state_rows": rows, "files": len(sizes), "bytes": sum(sizes)}


def run(marks: tuple[int, ...], folder: Path | None) -> dict[str, Any]:
    """The figures after so many transactions: the most of the last 200, and the peak of memory. correct: the accumulators."""
    after: dict[str, Mapping[str, float]] = {}
    with opened(folder) as session:
        session.apply({"sensors": [{"id": number, "name": f"s{number}", "_op": "insert"} for number in range(SENSORS)]})
        start, done, most = time.perf_counter(), 0, dict[str, int]()
        for mark in marks:
            for number in range(done, mark):
                tick(session, number)
                if number >= mark - SAMPLED and number % EVERY == 0:
                    most = {name: max(value, most.get(name, 0)) for name, value in held(session, folder).items()}
            gc.collect()
            done, after[str(mark)], most = mark, {**most, "peak_mb": round(harness.process_peak_mb(), 1)}, {}
            harness.progress(f"{mark:,} transactions: {after[str(mark)]}")
        seconds = time.perf_counter() - start
        tops = {row["sensor"]: row["top"] for row in session.view("tops").rows()}
    expected = {sensor: max((n % 1_000 for n in range(sensor, marks[-1], SENSORS) if n % 7), default=0) for sensor in range(SENSORS)}
    return {"transactions_per_s": round(marks[-1] / seconds), "after": after, "correct": tops == expected}
