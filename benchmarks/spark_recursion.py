"""The closure of a graph on Spark local[2]: `python -m benchmarks.spark_recursion [--cases NAME …] [--quick]`.

`layered`: an acyclic graph of 60 levels of 100 nodes, 5,900 edges, each from a level to the next. `closure`: the graph of
benchmarks.recursion, 2,000 nodes and 4,000 edges, with cycles. Ticks of 10 changes. Peers, each from scratch over cached edges: `spark`,
its WITH RECURSIVE, which has UNION ALL alone and so cannot end on a cycle, and `spark_loop`, the loop over DataFrames that users write
then. The figures at the top are those of the first case. `peak_mb` is the PSS of all Python processes, the JVM's is separate, in `params`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import checks, drive, graphs, harness, workloads
from benchmarks.engine import CHANGE
from benchmarks.harness import Figures
from benchmarks.spark_recursion_case import LOOP, RECURSIVE
from benchmarks.workloads import Feed

RECOMPUTED = 3
TIMEOUT_S = 3600.0
ENDLESS = "Spark's WITH RECURSIVE has UNION ALL alone: it counts ways, of which a cycle has no end, and is not run on one"


@dataclass(frozen=True)
class Case:
    """The feed of a graph, and which of Spark's own ways end on it."""

    feed: Feed
    ways: tuple[str, ...]

    def write(self, folder: Path) -> Figures:
        """Writes what spark_recursion_case reads: the feed, the checksum after each tick, the ticks that are recomputed. Says its size."""
        rows, expected = [], []
        for view in graphs.closure(self.feed):
            rows.append(len(view[0]))
            expected.append(checks.Accumulated().replace(view))
        ticks = len(expected)
        recomputed = [tick >= ticks - RECOMPUTED for tick in range(ticks)]
        drive.write(folder, {"edges": self.feed}, [CHANGE] * ticks, expected, ways=self.ways, recomputed=recomputed)
        loaded, changes = (int((self.feed[:, 0] == tick).sum()) for tick in (0, 1))
        return {"edges": loaded, "rows": rows[0], "rows_at_the_end": rows[-1], "ticks": ticks - 1, "changes": changes, "master": "local[2]"}


def layered(quick: bool) -> Case:
    return Case(workloads.layered(8, 10, ticks=4) if quick else workloads.layered(ticks=30), (RECURSIVE, LOOP))


def closure(quick: bool) -> Case:
    return Case(workloads.nearly_acyclic(100, 200, ticks=4) if quick else workloads.nearly_acyclic(ticks=30), (LOOP,))


CASES = {"layered": layered, "closure": closure}


def measure(name: str, quick: bool) -> Figures:
    """One case in a process of its own: Deltic's figures, and those of Spark's ways."""
    case = CASES[name](quick)
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as folder:
        params = case.write(Path(folder))
        harness.progress(f"{name}: " + ", ".join(f"{key} {value}" for key, value in params.items()))
        answer = harness.run([sys.executable, "-m", "benchmarks.spark_recursion_case", folder], TIMEOUT_S)
    if "absent" in answer:
        sys.exit(f"{name}: {answer['absent']}")
    return result(answer, params)


def result(answer: Figures, params: Figures) -> Figures:
    """A case with the benchmark's keys; all ways share the processes, hence the peak."""
    params = params | {key: answer.pop(key) for key in ("jobs_per_tick", "jvm_mb")}
    ran = {name: {"load_s": None, **peer, "peak_mb": answer["peak_mb"]} for name, peer in answer.pop("peers").items()}
    peers = {name: ran.get(name, {"absent": ENDLESS}) for name in (RECURSIVE, LOOP)}
    return {**answer, "params": params, "peers": peers}


def describe(name: str, case: Figures) -> str:
    """A case as a line of progress: Deltic's tick, and how many times as long each of Spark's ways takes."""
    own = case["tick_ms"]["median"]
    ran = {peer: measured["tick_ms"]["median"] for peer, measured in case["peers"].items() if "absent" not in measured}
    return "; ".join([harness.describe(name, case), *(f"{peer} {took:.0f} ms ({took / own:.1f} ×)" for peer, took in ran.items())])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_recursion", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--quick", action="store_true", help="small graphs, few ticks")
    options = parser.parse_args()
    cases = {}
    for name in options.cases:
        cases[name] = measure(name, options.quick)
        harness.progress(describe(name, cases[name]))
    face = next(iter(cases.values()))
    harness.emit({"benchmark": "spark_recursion", "engine": "deltic", **face, "growth": None, "cases": cases})


if __name__ == "__main__":
    main()
