"""Peers in Rust: builds `differential/` (differential dataflow, two to four minutes, once) and `dbsp/` (Feldera's crate, 5 to 20 minutes)
with cargo, and runs a workload on the first.

The build lies in the user's cache (XDG_CACHE_HOME), so that a checkout stays clean and a second one needs no build.
"""

from __future__ import annotations

import functools
import os
import shutil
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks import checks, drive, harness
from benchmarks.engine import CHANGE

SOURCES = Path(__file__).resolve().parent


@functools.cache
def build(peer: str = "differential", program: str = "differential-peer") -> Path | str:
    """The program of a peer, or the reason why it cannot be built."""
    if shutil.which("cargo") is None:
        return "there is no cargo"
    target = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deltic" / f"{peer}-peer"
    harness.progress(f"building the peer {peer} into {target} …")
    command = ["cargo", "build", "--release", "--quiet", "--manifest-path", str(SOURCES / peer / "Cargo.toml"), "--target-dir", str(target)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return f"cargo build failed: {done.stderr.strip().splitlines()[-1]}"
    return target / "release" / program


def run(
    workload: str, arguments: Sequence[object], kinds: Sequence[str], correct: Callable[[list[object]], bool], timeout_s: float
) -> harness.Figures:
    """The figures of a workload; `correct` judges what it reports of the view after every tick."""
    program = build()
    if isinstance(program, str):
        return {"absent": program}
    answer = harness.run([str(program), workload, *map(str, arguments)], timeout_s)
    if "absent" in answer:
        return answer
    milliseconds = defaultdict(list)
    for kind, seconds in zip(kinds, answer["seconds"], strict=True):
        milliseconds[kind].append(seconds * 1e3)
    load_ms, *ticks = milliseconds.pop(CHANGE)
    figures = harness.figures(load_ms / 1e3, ticks, answer["peak_mb"], correct(answer["result"]))
    return figures | {"by_kind": {kind: round(statistics.median(times), 4) for kind, times in milliseconds.items()}}


def join_aggregate(workload: str, folder: Path, timeout_s: float) -> harness.Figures:
    """The feed in `folder`, as `benchmarks.drive` has it, on `join_aggregate` or `join_aggregate_pushed`."""
    script = drive.script(folder)

    def correct(views: list[object]) -> bool:
        answers = [checks.Accumulated().replace(tuple(np.array(view, np.int64).reshape(-1, 3).T)) for view in views]
        return answers == script["expected"]

    return run(workload, [folder / "orders.bin", folder / "customers.bin"], script["kinds"], correct, timeout_s)


def recursion(folder: Path, timeout_s: float) -> harness.Figures:
    """The feed in `folder`, as `benchmarks.drive` has it, on `closure` or `reachability`, which say the checksum of their view."""
    script = drive.script(folder)
    view, root = script["arguments"]["view"], script["arguments"]["root"]
    arguments = [folder / "edges.bin", *([root] if view == "reachability" else [])]
    return run(view, arguments, script["kinds"], lambda sums: sums == script["expected"], timeout_s)


def datalog(folder: Path, case: str, inputs: Mapping[str, int], timeout_s: float) -> harness.Figures:
    """The feeds in `folder`, as `benchmarks.drive` has them, on a program of benchmarks.programs; with the checksum after each tick."""
    script = drive.script(folder)
    arguments = [part for name, width in inputs.items() for part in (width + 2, folder / f"{name}.bin")]
    found: list[object] = []

    def correct(sums: list[object]) -> bool:
        found.extend(sums)
        return all(expected in (None, value) for expected, value in zip(script["expected"], sums, strict=True))

    return run(case, arguments, script["kinds"], correct, timeout_s) | {"sums": found}


def triangles(folder: Path, counts: Sequence[int], timeout_s: float) -> harness.Figures:
    """The feed in `folder` on `triangles`, which lists what changes and says how many there are after every tick."""
    script = drive.script(folder)
    return run("triangles", [folder / "edges.bin"], script["kinds"], lambda answers: answers == counts, timeout_s)
