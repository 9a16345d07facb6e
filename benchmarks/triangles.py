"""Triangles t(x, y, z) := g(x, y), g(x, z), g(y, z): `python -m benchmarks.triangles [--cases NAME …] [--ticks N] [--quick] [--no-peers]`.

`power_law`: counted in a graph of 200,000 nodes and 1M edges whose degrees follow a power law; 100 ticks of 1,000 changes, 70 % of them
new edges. `power_law_listed`: the same, listed. `hub`: counted among 20,000 edges, 45 % into one node and 45 % out of it; 100 ticks of
100. `wiki`: counted in wiki_vote.parquet (in the folder that DELTIC_DATA names) as an undirected graph, 10 % of the edges taken out and
put back in in ticks of 100. Peers that compute from scratch run the first ticks only. `growth` is the median tick of power_law over that
at a tenth of its nodes and edges, with as many changes. The figures at the top are those of the first case.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import checks, drive, graphs, harness, votes, workloads
from benchmarks.engine import CHANGE, Absent
from benchmarks.harness import Figures
from benchmarks.patterns import PATTERNS
from benchmarks.peers import rust
from benchmarks.workloads import Feed

TIMEOUT_S = 900.0
RECOMPUTED = 5
NODES, EDGES, TICKS = 200_000, 1_000_000, 100
COUNTED, LISTED = "triangles", "triangles_listed"


@dataclass(frozen=True)
class Case:
    """A pattern of triangles over the edges of a feed."""

    pattern: str
    feed: Feed

    def write(self, folder: Path) -> tuple[Figures, list[int]]:
        """Writes the input of benchmarks.drive; returns its sizes, and the number of triangles after every tick."""
        counts, expected, listed = [0], [], checks.Accumulated()
        for weight, *triangle in graphs.triangles(self.feed):
            counts.append(counts[-1] + int(weight.sum()))
            if PATTERNS[self.pattern].listed:
                expected.append(listed.add(triangle, weight))
            else:
                expected.append(checks.Accumulated().replace([np.array(counts[-1:], np.int64)]))
        drive.write(folder, {"edges": self.feed}, [CHANGE] * len(expected), expected, pattern=self.pattern)
        loaded = self.feed[self.feed[:, 0] == 0]
        sizes = {"nodes": len(np.unique(loaded[:, 2:])), "edges": len(loaded), "triangles": counts[1], "triangles_at_the_end": counts[-1]}
        return sizes | {"ticks": len(expected) - 1, "changes": int((self.feed[:, 0] == 1).sum())}, counts[1:]


@functools.cache
def power_law_feed(size: int, ticks: int) -> Feed:
    """The graph, nodes and edges divided by `size`; made once, as that takes its time."""
    return workloads.power_law(NODES // size, EDGES // size, ticks=ticks)


def power_law(quick: bool, ticks: int) -> Case:
    return Case(COUNTED, power_law_feed(10 if quick else 1, ticks))


def power_law_listed(quick: bool, ticks: int) -> Case:
    return Case(LISTED, power_law_feed(10 if quick else 1, ticks))


def hub(quick: bool, ticks: int) -> Case:
    return Case(COUNTED, workloads.hub(2_000 if quick else 20_000, ticks=ticks))


def wiki(quick: bool, ticks: int) -> Case:
    """All ticks in which a tenth of the edges is removed and added again, or the first ones."""
    edges = votes.undirected()
    feed = workloads.churn(edges, len(edges) // (100 if quick else 10))
    return Case(COUNTED, feed if ticks >= TICKS else feed[feed[:, 0] <= ticks])


CASES: dict[str, Callable[[bool, int], Case]] = {"power_law": power_law, "power_law_listed": power_law_listed, "hub": hub, "wiki": wiki}


def measure(name: str, quick: bool, ticks: int, peers: bool) -> Figures:
    """One case, each engine in a process of its own; only the reason if the case's data is missing."""
    try:
        case = CASES[name](quick, ticks)
    except Absent as reason:
        harness.progress(f"{name}: absent, {reason}")
        return {"absent": str(reason)}
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as made:
        folder = Path(made)
        params, counts = case.write(folder)
        harness.progress(f"{name}: " + ", ".join(f"{key} {value:,}" for key, value in params.items()))
        own = harness.drive("benchmarks.patterns", folder, TIMEOUT_S)
        harness.progress(harness.describe("deltic", own))
        answers = measure_peers(folder, counts) if peers else {}
    for figure in (own, *answers.values()):
        figure.pop("by_kind", None)
    return {"correct": False, **own, "params": params, "peers": answers}


def measure_peers(folder: Path, counts: list[int]) -> dict[str, Figures]:
    """Every peer over the feed in `folder`, one after another."""
    peers = {"differential": rust.triangles(folder, counts, TIMEOUT_S)}
    harness.progress(harness.describe("differential", peers["differential"]))
    for name, ticks in (("numba", RECOMPUTED), ("duckdb", RECOMPUTED), ("kuzu", RECOMPUTED), ("pathway", None)):
        peers[name] = harness.drive(f"benchmarks.peers.{name}_patterns", folder, TIMEOUT_S, ticks)
        harness.progress(harness.describe(name, peers[name]))
    return peers


def measure_growth(grown: Figures, ticks: int) -> float | None:
    """The median tick over that at a tenth of the nodes and edges."""
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as folder:
        Case(COUNTED, power_law_feed(10, ticks)).write(Path(folder))
        small = harness.drive("benchmarks.patterns", Path(folder), TIMEOUT_S)
    harness.progress(harness.describe(f"deltic at {EDGES // 10:,} edges", small))
    if "absent" in small or "tick_ms" not in grown:
        return None
    return round(float(grown["tick_ms"]["median"] / small["tick_ms"]["median"]), 3)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.triangles", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--ticks", type=int, default=TICKS, help="how many; wiki has at most those of its edges")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="measure the peers too")
    parser.add_argument("--growth", action=argparse.BooleanOptionalAction, default=True, help="measure a tenth of the edges too")
    parser.add_argument("--quick", action="store_true", help="a tenth of the nodes and edges, and of the ticks, without growth")
    options = parser.parse_args()
    ticks = min(options.ticks, TICKS // 10) if options.quick else options.ticks
    cases = {name: measure(name, options.quick, ticks, options.peers) for name in options.cases}
    growth = measure_growth(cases["power_law"], ticks) if options.growth and not options.quick and "power_law" in cases else None
    face = next(iter(cases.values()))
    harness.emit({"benchmark": "triangles", "engine": "deltic", **face, "growth": growth, "cases": cases})


if __name__ == "__main__":
    main()
