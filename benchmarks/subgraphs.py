"""Larger patterns in a graph of votes under churn: `python -m benchmarks.subgraphs [--cases NAME …] [--ticks N] [--quick] [--no-peers]`.

Counted over the directed votes of wiki_vote.parquet (in the folder that DELTIC_DATA names), of which some are taken out and put back in
in ticks of 100: `cliques`, four nodes of which each has voted for all after it; `cycles`, four nodes of which each has voted for the
next; `bow_ties`, two directed triangles that share a node, five variables. Peers: `deltic_from_scratch`, a new session of the same
engine for every tick's edges, and DuckDB, which recomputes too and is given 60 s. `speedup` is what our own recompute takes over our
tick. The figures at the top are those of the first case.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks import checks, drive, graphs, harness, votes, workloads
from benchmarks.engine import CHANGE, Absent
from benchmarks.harness import Figures
from benchmarks.workloads import Feed

TIMEOUT_S = 900.0
TICKS, CHANGES = 20, 100
RECOMPUTED = 3
CASES: dict[str, Callable[[Feed], Iterator[int]]] = {
    "cliques": graphs.cliques,
    "cycles": graphs.cycles,
    "bow_ties": graphs.bow_ties,
}
PEERS = {"deltic_from_scratch": "deltic_patterns", "duckdb": "duckdb_patterns"}


def feed(ticks: int, quick: bool) -> Feed:
    """The votes, or a tenth of the nodes' with `quick`; half of the ticks take out, and half put back in."""
    edges = votes.directed()
    if quick:
        edges = edges[(edges < edges.max() // 4).all(axis=1)]
    return workloads.churn(edges, ticks // 2 * CHANGES, CHANGES)


def write(name: str, fed: Feed, folder: Path) -> Figures:
    """Writes the input of benchmarks.drive; returns its sizes."""
    counts = list(CASES[name](fed))
    expected = [checks.Accumulated().replace([np.array([count], np.int64)]) for count in counts]
    drive.write(folder, {"edges": fed}, [CHANGE] * len(expected), expected, pattern=name)
    return {"edges": int((fed[:, 0] == 0).sum()), "found": counts[0], "ticks": len(counts) - 1, "changes": CHANGES}


def measure(name: str, fed: Feed, peers: Sequence[str]) -> Figures:
    """One case, each engine in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as made:
        folder = Path(made)
        params = write(name, fed, folder)
        harness.progress(f"{name}: " + ", ".join(f"{key} {value:,}" for key, value in params.items()))
        own = harness.drive("benchmarks.patterns", folder, TIMEOUT_S)
        harness.progress(harness.describe("deltic", own))
        answers = {}
        for peer in peers:
            answers[peer] = harness.drive(f"benchmarks.peers.{PEERS[peer]}", folder, TIMEOUT_S, RECOMPUTED)
            harness.progress(harness.describe(peer, answers[peer]))
    for figure in (own, *answers.values()):
        figure.pop("by_kind", None)
    return {"correct": False, **own, "params": params, "peers": answers, "speedup": _speedup(own, answers)}


def _speedup(own: Figures, peers: dict[str, Figures]) -> float | None:
    scratch = peers.get("deltic_from_scratch", {})
    if "tick_ms" not in own or "tick_ms" not in scratch:
        return None
    return round(float(scratch["tick_ms"]["median"] / own["tick_ms"]["median"]), 1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.subgraphs", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--ticks", type=int, default=TICKS, help="an even number")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="measure the peers too")
    parser.add_argument("--quick", action="store_true", help="few of the votes, four ticks")
    options = parser.parse_args()
    try:
        fed = feed(min(options.ticks, 4) if options.quick else options.ticks, options.quick)
    except Absent as reason:
        harness.progress(f"absent: {reason}")
        harness.emit({"benchmark": "subgraphs", "engine": "deltic", "absent": str(reason), "cases": {}})
        return
    cases = {name: measure(name, fed, list(PEERS) if options.peers else []) for name in options.cases}
    face = next(iter(cases.values()))
    harness.emit({"benchmark": "subgraphs", "engine": "deltic", **face, "growth": None, "cases": cases})


if __name__ == "__main__":
    main()
