"""The queries of Nexmark over a growing stream of events: `python -m benchmarks.nexmark [--all | --queries q0 …] [--events N] [--quick]`.

Each of q0 to q22 is one view in a session of its own, all in one process. Events come in ticks of 10,000; a tick ends when the changes of
the view have been read. Figures are events per second of CPU and of wall, the time of ticks, and `growth`: the median CPU of the last
quarter of the ticks over that of the second quarter. The answer is compared with that of a view which is defined over all events.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

import deltic
from benchmarks import harness
from benchmarks.harness import Figures
from benchmarks.nexmark_events import Events
from benchmarks.queries import tables, texts
from deltic import kernels

EVENTS, TICK = 1_000_000, 10_000
QUICK_EVENTS, QUICK_TICK = 4_000, 500
REACH = 200_000
"""Events per second of CPU."""


def measure(name: str, events: int, tick: int) -> Figures:
    """A query's figures."""
    source = Events()
    cpu_s, wall_ms = [], []
    with deltic.Session() as session:
        _define(session, name, source)
        for first in range(0, events, tick):
            changes = source.tables(first, tick)
            wall, cpu = time.perf_counter(), time.process_time()
            _insert(session, changes)
            session.view("answer").changes()
            cpu_s.append(time.process_time() - cpu)
            wall_ms.append((time.perf_counter() - wall) * 1000)
        answer = _sorted(session.view("answer").to_arrow())
    quarter = max(1, len(cpu_s) // 4)
    growth = statistics.median(cpu_s[-quarter:]) / statistics.median(cpu_s[quarter : 2 * quarter] or cpu_s)
    return {
        "events_per_cpu_s": round(events / sum(cpu_s)),
        "events_per_s": round(events / (sum(wall_ms) / 1000)),
        "tick_ms": harness.summary(wall_ms),
        "growth": round(growth, 3),
        "rows": answer.num_rows,
        "correct": answer.equals(_at_once(name, events, tick, source)),
    }


def _define(session: deltic.Session, name: str, source: Events) -> None:
    session.sql(tables("nexmark") + f"CREATE MATERIALIZED VIEW answer AS {texts('nexmark')[name]}")
    _insert(session, {"side_input": source.side_input()})


def _insert(session: deltic.Session, changes: Mapping[str, pa.Table]) -> None:
    with session.transaction() as tx:
        for name, rows in changes.items():
            tx.insert(name, rows)


def _at_once(name: str, events: int, tick: int, source: Events) -> pa.Table:
    """The answer of a view that is defined when all events are there."""
    with deltic.Session() as session:
        session.sql(tables("nexmark"))
        _insert(session, {"side_input": source.side_input(), **_all(source, events, tick)})
        session.sql(f"CREATE MATERIALIZED VIEW answer AS {texts('nexmark')[name]}")
        return _sorted(session.view("answer").to_arrow())


def _all(source: Events, events: int, tick: int) -> dict[str, pa.Table]:
    """The same events as those of the ticks."""
    parts = [source.tables(first, tick) for first in range(0, events, tick)]
    return {table: pa.concat_tables([part[table] for part in parts]) for table in parts[0]}


def _sorted(answer: pa.Table) -> pa.Table:
    return answer.sort_by([(name, "ascending") for name in answer.column_names]).combine_chunks()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nexmark", description=(__doc__ or "").splitlines()[0])
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--all", action="store_true", help="all queries, which is the default")
    chosen.add_argument("--queries", nargs="+", choices=list(texts("nexmark")))
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_EVENTS:,} events in ticks of {QUICK_TICK}")
    options = parser.parse_args(arguments)
    events, tick = (QUICK_EVENTS, QUICK_TICK) if options.quick else (options.events, TICK)
    kernels.warm_up()
    cases: dict[str, Any] = {}
    for name in options.queries or texts("nexmark"):
        cases[name] = measure(name, events, tick)
        harness.progress(f"{name}: {cases[name]['events_per_cpu_s']:,} events per CPU second, growth {cases[name]['growth']}")
    slowest = min(case["events_per_cpu_s"] for case in cases.values())
    harness.emit(
        {
            "benchmark": "nexmark",
            "engine": "deltic",
            "correct": all(case["correct"] for case in cases.values()),
            "events_per_cpu_s": slowest,
            "below": sorted(name for name, case in cases.items() if case["events_per_cpu_s"] < REACH),
            "growth": max(case["growth"] for case in cases.values()),
            "params": {"events": events, "tick": tick},
            "cases": cases,
        }
    )


if __name__ == "__main__":
    main()
