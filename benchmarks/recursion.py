"""Recursive views under changes: `python -m benchmarks.recursion [--cases NAME …] [--quick] [--no-peers]`.

`closure`: all pairs that are connected in a graph of 2,000 nodes and 4,000 edges, nearly acyclic; 50 ticks of 10 changes. `reachability`:
what node 0 reaches in one of 100,000 nodes and 400,000 edges; 50 ticks of 100 changes. `wiki`: what the busiest voter of
wiki_vote.parquet (in the folder that DELTIC_DATA names) reaches; 1,000 ticks that delete one vote. `path`: all pairs on a path of 1,500
nodes; 20 ticks that remove an edge or add it again. The figures at the top are those of the first case.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import deltic
from benchmarks import checks, drive, graphs, harness, votes, workloads
from benchmarks.checks import Change
from benchmarks.engine import CHANGE, Absent, Answer, arrow
from benchmarks.harness import Figures
from benchmarks.peers import rust
from benchmarks.workloads import Feed
from deltic import kernels

TIMEOUT_S = 900.0
CLOSURE, REACHABILITY = "closure", "reachability"
COLUMNS = {CLOSURE: ["src", "dst"], REACHABILITY: ["node"]}
SCRIPTS = {
    CLOSURE: """
        CREATE TABLE edges (src BIGINT NOT NULL, dst BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW closure AS
            WITH RECURSIVE paths AS (SELECT src, dst FROM edges UNION SELECT p.src, e.dst FROM paths p JOIN edges e ON p.dst = e.src)
            SELECT src, dst FROM paths
    """,
    REACHABILITY: """
        CREATE TABLE edges (src BIGINT NOT NULL, dst BIGINT NOT NULL);
        CREATE TABLE roots (node BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW reachability AS
            WITH RECURSIVE reached AS (SELECT node FROM roots UNION SELECT e.dst FROM reached r JOIN edges e ON r.node = e.src)
            SELECT node FROM reached
    """,
}


class Embedded:
    """Deltic in this process, through its public API."""

    def __init__(self, view: str, root: int) -> None:
        kernels.warm_up()
        self.view = view
        self.session = deltic.Session()
        self.session.sql(SCRIPTS[view])
        self.roots = pa.table({"node": [root], "_weight": [1]}) if view == REACHABILITY else None

    def prepare(self, edges: Change) -> dict[str, pa.Table]:
        tick = {"edges": arrow(edges, ["src", "dst"])}
        if self.roots is not None:
            tick["roots"], self.roots = self.roots, None
        return tick

    def tick(self, prepared: dict[str, pa.Table]) -> pa.Table:
        self.session.apply(prepared)
        return self.session.view(self.view).changes()

    def answer(self, read: pa.Table) -> Answer:
        columns = [np.asarray(read[name].combine_chunks()).astype(np.int64) for name in (*COLUMNS[self.view], "_weight")]
        return Answer(columns[:-1], columns[-1])


def engine(view: str, root: int) -> Embedded:
    return Embedded(view, root)


@dataclass(frozen=True)
class Case:
    """A view over the edges of a feed; the root is that of reachability."""

    view: str
    feed: Feed
    root: int = 0

    def write(self, folder: Path) -> Figures:
        """Writes the input of benchmarks.drive; returns its sizes."""
        views = graphs.closure(self.feed) if self.view == CLOSURE else graphs.reachability(self.feed, self.root)
        rows, expected = [], []
        for view in views:
            rows.append(len(view[0]))
            expected.append(checks.Accumulated().replace(view))
        drive.write(folder, {"edges": self.feed}, [CHANGE] * len(expected), expected, view=self.view, root=self.root)
        loaded = self.feed[self.feed[:, 0] == 0]
        sizes = {"nodes": len(np.unique(loaded[:, 2:])), "edges": len(loaded), "rows": rows[0], "rows_at_the_end": rows[-1]}
        return {"view": self.view, **sizes, "ticks": len(expected) - 1, "changes": int((self.feed[:, 0] == 1).sum())}


def closure(quick: bool) -> Case:
    return Case(CLOSURE, workloads.nearly_acyclic(200, 400, ticks=5) if quick else workloads.nearly_acyclic())


def reachability(quick: bool) -> Case:
    return Case(REACHABILITY, workloads.uniform(10_000, 40_000, ticks=5) if quick else workloads.uniform())


def wiki(quick: bool) -> Case:
    edges = votes.directed()
    return Case(REACHABILITY, workloads.deletions(edges, 100 if quick else 1_000), int(np.bincount(edges[:, 0]).argmax()))


def path(quick: bool) -> Case:
    return Case(CLOSURE, workloads.path(150, 4) if quick else workloads.path())


CASES: dict[str, Callable[[bool], Case]] = {"closure": closure, "reachability": reachability, "wiki": wiki, "path": path}


def measure(name: str, quick: bool, peers: bool) -> Figures:
    """One case, each engine in a process of its own; only the reason if the case's data is missing."""
    try:
        case = CASES[name](quick)
    except Absent as reason:
        harness.progress(f"{name}: absent, {reason}")
        return {"absent": str(reason)}
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as made:
        folder = Path(made)
        params = case.write(folder)
        harness.progress(f"{name}: " + ", ".join(f"{key} {value:,}" for key, value in params.items() if key != "view"))
        own = harness.drive("benchmarks.recursion", folder, TIMEOUT_S)
        harness.progress(harness.describe("deltic", own))
        answers = measure_peers(folder) if peers else {}
    for figure in (own, *answers.values()):
        figure.pop("by_kind", None)
    return {"correct": False, **own, "params": params, "peers": answers}


def measure_peers(folder: Path) -> dict[str, Figures]:
    """Every peer over the feed in `folder`, one after another."""
    peers = {"differential": rust.recursion(folder, TIMEOUT_S)}
    harness.progress(harness.describe("differential", peers["differential"]))
    for name in ("duckdb", "pathway"):
        peers[name] = harness.drive(f"benchmarks.peers.{name}_recursion", folder, TIMEOUT_S)
        harness.progress(harness.describe(name, peers[name]))
    return peers


def main() -> None:
    harness.run_cases("recursion", __doc__, CASES, measure, quick="a tenth of the nodes and edges, few ticks")


if __name__ == "__main__":
    main()
