"""Datalog programs under changes: `python -m benchmarks.datalog [--cases NAME …] [--quick] [--no-peers]`.

`points_to`: Andersen's analysis of 100,000 statements. `same_generation`: pairs of relatives of one generation, 20,000 people. `dataflow`:
null pointers along 100,000 arcs of control flow (CSDA). `classes`: completion of an ontology in OWL EL of 100,000 axioms, by its rules.
Each loads its facts, then runs 100 ticks that delete five facts and add five. The output is compared with an evaluation from scratch after
the load and every tenth tick, and with the other engines' after every tick. The figures at the top are those of the first case.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import deltic
from benchmarks import checks, derivation, drive, harness, programs
from benchmarks.checks import Change
from benchmarks.engine import CHANGE, Answer, arrow
from benchmarks.harness import Figures
from benchmarks.peers import rust
from benchmarks.programs import Facts
from deltic import kernels

TIMEOUT_S = 1800.0
TICKS, QUICK_TICKS = 100, 10
EVERY = 10
"""After every so many ticks the output is computed from scratch."""
CASES: dict[str, tuple[Callable[[int, int], Facts], int]] = {
    "points_to": (programs.points_to, 100_000),
    "same_generation": (programs.same_generation, 20_000),
    "dataflow": (programs.dataflow, 100_000),
    "classes": (programs.classes, 100_000),
}
PROGRAMS = {
    "points_to": programs.POINTS_TO,
    "same_generation": programs.SAME_GENERATION,
    "dataflow": programs.DATAFLOW,
    "classes": programs.CLASSES,
}
SOUFFLE = "no package of Debian 12, and it would derive everything again after each tick"


class Embedded:
    """Deltic in this process: a program of Datalog, through the public API."""

    def __init__(self, case: str) -> None:
        kernels.warm_up()
        self.program = PROGRAMS[case]
        self.session = deltic.Session()
        self.session.datalog(self.program.text())

    def prepare(self, *changes: Change) -> dict[str, pa.Table]:
        named = zip(self.program.inputs.items(), changes, strict=True)
        return {name: arrow(change, [f"c{i}" for i in range(width)]) for (name, width), change in named if len(change[0])}

    def tick(self, prepared: dict[str, pa.Table]) -> pa.Table:
        self.session.apply(prepared)
        return self.session.view(self.program.output).changes()

    def answer(self, read: pa.Table) -> Answer:
        columns = [np.asarray(read[name].combine_chunks()).astype(np.int64) for name in ("c0", "c1", "_weight")]
        return Answer(columns[:-1], columns[-1])


def engine(case: str, widths: dict[str, int]) -> Embedded:
    return Embedded(case)


def write(folder: Path, case: str, facts: Facts, ticks: int, every: int) -> Figures:
    """Writes the input of benchmarks.drive; returns its sizes."""
    feeds = facts.feeds()
    expected: list[int | None] = [None] * (ticks + 1)
    rows = 0
    for tick, columns in derivation.outputs(facts.program, feeds, every):
        expected[tick] = checks.Accumulated().replace(columns)
        rows = rows or len(columns[0])
    drive.write(folder, feeds, [CHANGE] * (ticks + 1), expected, case=case, widths=facts.program.inputs)
    changes = [int((feed[:, 0] == 1).sum()) for feed in feeds.values()]
    loaded = [int((feed[:, 0] == 0).sum()) for feed in feeds.values()]
    return {"facts": sum(loaded), "rows": rows, "ticks": ticks, "changes": sum(changes)}


def measure(case: str, quick: bool, peers: bool) -> Figures:
    """One case, each engine in a process of its own."""
    make, size = CASES[case]
    ticks, every = (QUICK_TICKS, 1) if quick else (TICKS, EVERY)
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as made:
        folder = Path(made)
        params = write(folder, case, make(size // 10 if quick else size, ticks), ticks, every)
        harness.progress(f"{case}: " + ", ".join(f"{key} {value:,}" for key, value in params.items()))
        own = harness.drive("benchmarks.datalog", folder, TIMEOUT_S)
        harness.progress(harness.describe("deltic", own))
        answers = measure_peers(folder, case, own.get("sums")) if peers else {}
    for figure in (own, *answers.values()):
        figure.pop("by_kind", None)
        figure.pop("sums", None)
    return {"correct": False, **own, "checked": checked(every, answers), "params": params, "peers": answers}


def checked(every: int, peers: dict[str, Figures]) -> str:
    """With what the answers were compared, in words."""
    ticks = "every tick" if every == 1 else f"every {every}th tick"
    others = ", ".join(name for name, figure in peers.items() if "absent" not in figure)
    compared = f"; after every tick with the answers of {others}, by checksums" if others else ""
    return f"by checksums with all rows derived from scratch with NumPy after the load and after {ticks}{compared}"


def measure_peers(folder: Path, case: str, sums: list[int] | None) -> dict[str, Figures]:
    """Every peer over the feed in `folder`, one after another. sums: the checksums after every tick that are to be equal."""
    peers = {
        "differential": rust.datalog(folder, case, PROGRAMS[case].inputs, TIMEOUT_S),
        "duckdb": harness.drive("benchmarks.peers.duckdb_datalog", folder, TIMEOUT_S),
        "souffle": {"absent": SOUFFLE},
    }
    for name, figure in peers.items():
        if "absent" not in figure and sums is not None:
            figure["correct"] = figure["correct"] and figure["sums"] == sums
        harness.progress(harness.describe(name, figure))
    return peers


def main() -> None:
    harness.run_cases("datalog", __doc__, CASES, measure, quick="a tenth of the facts, ten ticks")


if __name__ == "__main__":
    main()
