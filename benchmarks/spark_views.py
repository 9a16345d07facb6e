"""The views measured on Spark, each as a script for Deltic and a query for Spark, and how a benchmark runs one in a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import harness, join_aggregate, patterns, workloads
from benchmarks.harness import Figures


@dataclass(frozen=True)
class View:
    """`tables` has every table's columns; `recomputed` is the query over all rows so far, `all_` and the table's name, with `_weight`;
    `more` are queries of further views over the tables."""

    tables: Mapping[str, Sequence[str]]
    script: str
    name: str
    columns: Sequence[str]
    recomputed: str
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_views(self) -> str:
        """The script with the further views, too."""
        return ";\n".join([self.script, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in self.more.items())])


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
        {
            "customer_spend": "SELECT customer, count(*) AS n, sum(amount) AS amount FROM orders GROUP BY customer",
            "extremes": "SELECT c.region, min(o.amount) AS least, max(o.amount) AS most "
            "FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region",
            "large_orders": "SELECT c.region, count(*) AS n FROM orders o JOIN customers c ON o.customer = c.id "
            "WHERE o.amount > 900 GROUP BY c.region",
            "buyers": "SELECT c.region, count(DISTINCT o.customer) AS n "
            "FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region",
            "quiet_customers": "SELECT id, region FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)",
            "strange_orders": "SELECT id, amount FROM orders o WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer)",
            "best": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 10",
            "amounts": "SELECT amount % 100 AS rest, count(*) AS n, sum(amount) AS amount FROM orders GROUP BY amount % 100",
            "regions": "SELECT region, count(*) AS n FROM customers GROUP BY region HAVING count(*) > 5",
        },
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
    engines: Sequence[str],
) -> None:
    """The feed of every table; for the load and every tick its size, whether Spark recomputes then, and the view's checksum after it.

    engines: those of spark_case.py; the first one is the benchmark's.
    """
    for name, feed in feeds.items():
        workloads.write(feed, folder / f"{name}.bin")
    script = {"view": view, "changes": [0, *changes], "recomputed": [False, *recomputed], "expected": expected, "engines": engines}
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
    first, *others = case["engines"].items()
    peers = {name: {"load_s": answer["load_s"][name], **figures, **shared} for name, figures in others}
    peers["spark_bare"] = {"load_s": None} | case["spark_bare"] | shared
    peers["spark"] = {"load_s": answer["recompute_load_s"]} | case["spark"] | shared
    params = {name: case[name] for name in ("jobs_per_tick", "exchanges", "exchanged_bytes")} | {"jvm_mb": answer["jvm_mb"]}
    name, figures = first
    over = {peer: round(_median(figures) / _median(of), 3) for peer, of in peers.items()}
    own: Figures = {"load_s": answer["load_s"][name], **figures, "correct": answer["correct"] and figures["correct"]}
    one = {"views": figures, "views_as_jobs": peers.get("jobs")}
    views = {many: round(_median(peers[many]) / _median(alone), 3) for many, alone in one.items() if many in peers and alone}
    return {**own, **shared, "over": over, "views_over_one": views, "params": params, "peers": peers}


def _median(figures: Figures) -> float:
    median: float = figures["tick_ms"]["median"]
    return median


def progress(name: str, case: Figures) -> None:
    """A line with the figures of a case and of its peers."""
    peers = ", ".join(f"{peer} {_median(figures):.1f} ms" for peer, figures in case["peers"].items())
    harness.progress(f"{harness.describe(name, case)}; {peers}")
