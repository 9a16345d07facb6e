"""The views measured on Spark, each as a script for Deltic and a query for Spark, and how a benchmark runs one in a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import harness, join_aggregate, patterns, workloads
from benchmarks.harness import Figures


@dataclass(frozen=True)
class View:
    """`tables` has every table's columns; `recomputed` is the query over all rows so far, `all_` and the table's name, with `_weight`."""

    tables: Mapping[str, Sequence[str]]
    script: str
    name: str
    columns: Sequence[str]
    recomputed: str


VIEWS = {
    "spend": View(
        {"orders": join_aggregate.ORDER_COLUMNS, "customers": join_aggregate.CUSTOMER_COLUMNS},
        join_aggregate.SCRIPT,
        "spend",
        ["region", "orders", "amount"],
        """
            SELECT c.region, CAST(sum(o._weight * c._weight) AS BIGINT) AS orders,
                CAST(sum(o.amount * o._weight * c._weight) AS BIGINT) AS amount
            FROM all_orders o JOIN all_customers c ON o.customer = c.id
            GROUP BY c.region HAVING sum(o._weight * c._weight) <> 0
        """,
    ),
    "triangles": View(
        {"edges": patterns.COLUMNS},
        f"{patterns.TABLE}; CREATE MATERIALIZED VIEW found AS {patterns.PATTERNS['triangles'].sql()}",
        "found",
        ["n"],
        """
            SELECT CAST(sum(xy._weight * yz._weight * xz._weight) AS BIGINT) AS n
            FROM all_edges xy JOIN all_edges yz ON xy.dst = yz.src JOIN all_edges xz ON xy.src = xz.src AND yz.dst = xz.dst
        """,
    ),
}


def write(
    folder: Path,
    view: str,
    feeds: Mapping[str, workloads.Feed],
    changes: Sequence[int],
    recomputed: Sequence[bool],
    expected: Sequence[int],
) -> None:
    """The feed of every table; for the load and every tick its size, whether Spark recomputes then, and the view's checksum after it."""
    for name, feed in feeds.items():
        workloads.write(feed, folder / f"{name}.bin")
    script = {"view": view, "changes": [0, *changes], "recomputed": [False, *recomputed], "expected": expected}
    (folder / "ticks.json").write_text(json.dumps(script))


def measure(folder: Path, timeout_s: float) -> dict[int, Figures]:
    """Runs the feed of `write` in a process of its own: a case for each size of ticks. Exits if there is no answer."""
    answer = harness.run([sys.executable, "-m", "benchmarks.spark_case", str(folder)], timeout_s)
    if "absent" in answer:
        sys.exit(f"on Spark: {answer['absent']}")
    return {int(changes): _case(answer, case) for changes, case in answer["cases"].items()}


def _case(answer: Figures, case: Figures) -> Figures:
    """One case with the benchmark's keys; all engines share the processes, hence the peak."""
    shared = {"peak_mb": answer["peak_mb"]}
    peers = {
        "spark_bare": {"load_s": None} | case["spark_bare"] | shared,
        "spark": {"load_s": answer["recompute_load_s"]} | case["spark"] | shared,
    }
    params = {name: case[name] for name in ("jobs_per_tick", "exchanges", "exchanged_bytes")} | {"jvm_mb": answer["jvm_mb"]}
    correct: Figures = {"correct": answer["correct"] and case["deltic"]["correct"]}
    return {"load_s": answer["load_s"], **case["deltic"], **correct, **shared, "params": params, "peers": peers}


def progress(name: str, case: Figures) -> None:
    """A line with the figures of a case and of its peers."""
    bare, recompute = (case["peers"][peer]["tick_ms"]["median"] for peer in ("spark_bare", "spark"))
    harness.progress(f"{harness.describe(name, case)}; bare {bare:.1f} ms, recompute {recompute:.1f} ms")
