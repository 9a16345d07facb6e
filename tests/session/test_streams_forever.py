"""Many transactions over streams leave state, files and memory where they were."""

from __future__ import annotations

import datetime
import gc
import resource
from datetime import UTC, timedelta
from pathlib import Path

import pytest

import deltic
from deltic import Session

SCRIPT = """
    CREATE STREAM readings (at TIMESTAMP LATENESS INTERVAL 1 MINUTE, sensor BIGINT, v BIGINT);
    CREATE TABLE sensors (id BIGINT PRIMARY KEY, name STRING);
    CREATE MATERIALIZED VIEW named AS SELECT name, v FROM readings JOIN sensors ON sensor = id;
    CREATE MATERIALIZED VIEW now AS SELECT sensor, max(v) AS top FROM current(readings) GROUP BY sensor;
    CREATE MATERIALIZED VIEW minutes AS
        SELECT date_trunc('minute', at) AS minute, sensor, max(v) AS top, count(*) AS n FROM readings GROUP BY 1, 2 EMIT ON WINDOW CLOSE;
"""
START = datetime.datetime(2026, 1, 1, tzinfo=UTC)


def opened(folder: Path) -> Session:
    circuit = deltic.Circuit(deltic.Program(SCRIPT))
    readings = circuit.input("readings").index_with("sensor")
    circuit.output("tops", readings.stream_aggregate(lambda top, rows: max([top or 0, *(row.v for row, _ in rows)]), schema={"top": int}))
    session = Session(state=folder)
    session.program(deltic.Program(SCRIPT, circuit))
    return session


def tick(session: Session, number: int) -> None:
    moment = START + timedelta(seconds=number)
    session.apply({"readings": [{"at": moment, "sensor": number % 11, "v": number, "_weight": 1}]})


@pytest.mark.slow
def test_transactions_leave_nothing_behind(tmp_path: Path) -> None:
    """At 600 and at 2,400 transactions: the most rows, files and bytes of the last 200, and the peak of memory."""
    figures: list[dict[str, int]] = []
    with opened(tmp_path) as session:
        session.apply({"sensors": [{"id": number, "name": f"s{number}", "_op": "insert"} for number in range(11)]})
        for until in (600, 2_400):
            most = {"rows": 0, "files": 0, "bytes": 0}
            for number in range(0 if until == 600 else 600, until):
                tick(session, number)
                if number > until - 200 and number % 25 == 0:
                    sizes = [path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()]
                    rows = sum(rows for rows, _ in session._runtime.statistics().values())
                    held = {"rows": rows, "files": len(sizes), "bytes": sum(sizes)}
                    most = {name: max(value, held[name]) for name, value in most.items()}
            gc.collect()
            figures.append({**most, "memory_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss})
            assert len(session.view("tops").rows()) == 11
    early, late = figures
    assert late["rows"] <= 1.5 * early["rows"] and late["files"] <= 1.5 * early["files"] and late["bytes"] <= 1.5 * early["bytes"], figures
    assert late["memory_kb"] <= early["memory_kb"] + 50_000, figures
