"""Triangles counted on Spark local[2]: `python -m benchmarks.spark_triangles [--ticks N] [--quick]`.

The feed of `power_law` in benchmarks.triangles: 200,000 nodes, 1M edges, ticks of 1,000 changes. Peers: `spark_bare`, a job with as many
exchanges of as many bytes between Python stages that do nothing, and `spark`, the join over cached tables, after the last ticks only. A
tick that is not one job ends the program with an error. `peak_mb` is the PSS of all Python processes (they also hold the feed and the
peers), the JVM's is separate, in `params`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import checks, graphs, harness, spark_views, workloads
from benchmarks.harness import Figures

NODES, EDGES = 200_000, 1_000_000
TICKS, CHANGES = 40, 1_000
RECOMPUTED = 5
TIMEOUT_S = 1800.0


def write_feed(folder: Path, nodes: int, edges: int, ticks: int) -> int:
    """The load and the ticks, which of them Spark recomputes, and the count's checksum after each; gives the count at the end."""
    feed = workloads.power_law(nodes, edges, ticks=ticks, changes=CHANGES)
    counts = np.cumsum([int(weight.sum()) for weight, *_ in graphs.triangles(feed)])
    expected = [checks.Accumulated().replace([counts[tick : tick + 1]]) for tick in range(ticks + 1)]
    recomputed = [tick >= ticks - RECOMPUTED for tick in range(ticks)]
    spark_views.write(folder, "triangles", {"edges": feed}, [CHANGES] * ticks, recomputed, expected, ["jobs"])
    return int(counts[-1])


def measure(nodes: int, edges: int, ticks: int) -> Figures:
    """The JSON object."""
    harness.progress(f"{nodes:,} nodes, {edges:,} edges, {ticks} ticks of {CHANGES:,} changes")
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as folder:
        triangles = write_feed(Path(folder), nodes, edges, ticks)
        case = spark_views.measure(Path(folder), TIMEOUT_S)[CHANGES]
    sizes = {"nodes": nodes, "edges": edges, "ticks": ticks, "changes": CHANGES, "triangles_at_the_end": triangles}
    params = sizes | {"master": "local[2]"} | case["params"]
    return {"benchmark": "spark_triangles", "engine": "deltic", **case, "params": params, "growth": None}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_triangles", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ticks", type=int, default=TICKS)
    parser.add_argument("--quick", action="store_true", help="a tenth of the nodes and edges, 10 ticks")
    options = parser.parse_args()
    size, ticks = (10, min(options.ticks, 10)) if options.quick else (1, options.ticks)
    result = measure(NODES // size, EDGES // size, ticks)
    spark_views.progress("deltic", result)
    harness.emit(result)
    if result["params"]["jobs_per_tick"] != 1:
        sys.exit(f"a tick was {result['params']['jobs_per_tick']} jobs, and not one")


if __name__ == "__main__":
    main()
