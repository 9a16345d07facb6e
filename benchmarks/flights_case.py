"""Replays the flights demo in this process, embedded, and prints what it took as JSON: `PYTHON benchmarks/flights_case.py [CHANGES]`.

Of Deltic it uses the session and the demo alone, so that the Python of an environment with an older version can run it.
"""

from __future__ import annotations

import json
import sys
import time

import deltic
from deltic.examples.flights.compare import compare
from deltic.examples.flights.data import read
from deltic.examples.flights.feed import build
from deltic.examples.flights.reference import without_spark
from deltic.examples.flights.script import NAME, QUERIES, TEXT

EVERY_S = 12 * 3_600


def main(limit: int | None) -> None:
    feed = build(read())
    cpu_s, touched, changes = list[float](), 0, 0
    with deltic.Session() as session:
        session.sql(TEXT, name=NAME)
        for tick in feed.ticks(EVERY_S):
            before = time.process_time()
            session.apply(tick.changes)
            cpu_s.append(time.process_time() - before)
            assert session.last_tick is not None
            touched += sum(counters.touched for counters in session.last_tick.counters.values())
            changes, until_s = changes + tick.size, tick.until_s
            if limit is not None and changes >= limit:
                break
        views = {name: session.view(name).to_arrow() for name in QUERIES}
    tables = feed.tables(until_s)
    _, right = without_spark(tables)
    differing = [name for name, view in views.items() if compare(name, view, right[name], tables["flights"].num_rows).differing]
    seconds = sum(cpu_s[1:])  # the first one compiles kernels, if these are not kept
    print(json.dumps({"cpu_s": seconds, "ticks": len(cpu_s), "changes": changes, "touched": touched, "correct": not differing}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
