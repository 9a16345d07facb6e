"""The view of join_aggregate on Spark local[2]: `python -m benchmarks.spark_tick [--orders N …] [--quick]`.

States of 1M and 10M orders, ticks of 10, 1,000 and 100,000 changes. Peers: `jobs`, the same where every tick is a Spark job (by default the
driver computes small ones); `views` and `views_as_jobs`, both with nine more views over the tables; `spark_bare`, a job with as many
exchanges of as many bytes between Python stages that do nothing; and `spark`, the query over cached tables. `over` has the median tick over
each peer's, and `views_over_one` that of ten views over that of one.

The figures at the top are those of the first state and 1,000 changes, `growth` is the last state's median tick at 1,000 changes over the
first's, all others stand in `cases`. `peak_mb` is the PSS of all Python processes (they also hold the feed and the peers), the JVM's is
separate, in `params`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import checks, harness, spark_views, workloads
from benchmarks.harness import Figures

STATES = [1_000_000, 10_000_000]
CUSTOMERS = 100_000
CHANGES = 1_000
TICKS = {10: 30, CHANGES: 40, 100_000: 10}
RECOMPUTED = 5
TIMEOUT_S = 1800.0


def write_feed(folder: Path, orders: int, ticks: dict[int, int]) -> None:
    """The load and the ticks of every size, which of them Spark recomputes, and the view's checksum after each."""
    sizes = [changes for changes, count in ticks.items() for _ in range(count)]
    recomputed = [number >= count - RECOMPUTED for count in ticks.values() for number in range(count)]
    fed_orders, fed_customers = workloads.join_aggregate(orders, CUSTOMERS, changes=sizes)
    expected = [checks.Accumulated().replace(view) for view in checks.spend(fed_orders, fed_customers)]
    spark_views.write(
        folder,
        "spend",
        {"orders": fed_orders, "customers": fed_customers},
        sizes,
        recomputed,
        expected,
        ["deltic", "jobs", "views", "views_as_jobs"],
    )


def measure(orders: int, ticks: dict[int, int]) -> Figures:
    """One state size in a process of its own; its cases are named by state and changes."""
    harness.progress(f"{orders:,} orders, ticks of {', '.join(f'{changes:,}' for changes in ticks)} changes")
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as folder:
        write_feed(Path(folder), orders, ticks)
        cases = spark_views.measure(Path(folder), TIMEOUT_S)
    return {_name(orders, changes): case for changes, case in cases.items()}


def _name(orders: int, changes: int) -> str:
    return f"{orders:,} orders, {changes:,} changes"


def report(cases: dict[str, Figures], states: Sequence[int]) -> Figures:
    """The JSON object; the first state at 1,000 changes is its face."""
    face, last = cases[_name(states[0], CHANGES)], cases[_name(states[-1], CHANGES)]
    params = {"orders": states[0], "customers": CUSTOMERS, "changes": CHANGES, "master": "local[2]"} | face["params"]
    growth = round(last["tick_ms"]["median"] / face["tick_ms"]["median"], 3) if len(states) > 1 else None
    return {"benchmark": "spark_tick", "engine": "deltic", **face, "params": params, "growth": growth, "cases": cases}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_tick", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--orders", type=int, nargs="+", default=STATES, help="the states' sizes")
    parser.add_argument("--quick", action="store_true", help="one state of a tenth, few ticks, none of 100,000 changes")
    options = parser.parse_args()
    states, ticks = (options.orders, TICKS) if not options.quick else ([options.orders[0] // 10], {10: 10, CHANGES: 10})
    cases: dict[str, Figures] = {}
    for orders in states:
        cases |= measure(orders, ticks)
    for name, case in cases.items():
        spark_views.progress(name, case)
    harness.emit(report(cases, states))


if __name__ == "__main__":
    main()
