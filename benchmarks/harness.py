"""What every benchmark shares: a process for each engine, its figures, and the JSON line.

Times are wall clock, memory is the process's highest resident set (VmHWM); a peer that cannot run is {"absent": reason}, never left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

Figures = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent


def progress(text: str) -> None:
    """A line to stderr; stdout is the JSON's."""
    print(text, file=sys.stderr, flush=True)


def summary(milliseconds: Sequence[float]) -> dict[str, float]:
    """The median, the 95th percentile (nearest rank) and the maximum."""
    ordered = sorted(milliseconds)
    p95 = ordered[round(0.95 * (len(ordered) - 1))]
    return {"median": round(statistics.median(ordered), 4), "p95": round(p95, 4), "max": round(ordered[-1], 4)}


def figures(load_s: float, milliseconds: Sequence[float], peak_mb: float, correct: bool) -> Figures:
    """One engine's part of the JSON object."""
    return {"load_s": round(load_s, 4), "tick_ms": summary(milliseconds), "peak_mb": round(peak_mb, 1), "correct": correct}


class Stopwatch:
    """How long each piece of work takes, in milliseconds of wall clock and of CPU: by default this process's, with all of its threads."""

    def __init__(self, cpu_s: Callable[[], float] = time.process_time) -> None:
        self._cpu_s = cpu_s
        self.wall_ms: list[float] = []
        self.cpu_ms: list[float] = []

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        wall, cpu = time.perf_counter(), self._cpu_s()
        result = work(*args, **kwargs)
        self.cpu_ms.append((self._cpu_s() - cpu) * 1e3)
        self.wall_ms.append((time.perf_counter() - wall) * 1e3)
        return result


def process_peak_mb(pid: int | str = "self") -> float:
    """The highest resident set that a process has had (VmHWM)."""
    return _status_mb(Path(f"/proc/{pid}/status"), "VmHWM:")


def resident_mb() -> float:
    """The resident set of this process."""
    return _status_mb(Path("/proc/self/status"), "VmRSS:")


def forget_peak() -> None:
    """Makes the resident set of this process its highest one, for `process_peak_mb`."""
    Path("/proc/self/clear_refs").write_text("5")


def proportional_mb(pid: int) -> float:
    """What a process holds now, pages shared by n processes counted 1/n (PSS)."""
    return _status_mb(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")


def _status_mb(path: Path, key: str) -> float:
    for line in path.read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"{path} has no line {key}")


def run(command: Sequence[str], timeout_s: float) -> Figures:
    """Runs an engine in a process of its own; the last line of its stdout is its JSON. An engine that fails is absent, with the reason."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))  # for Spark's workers, which start elsewhere
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return {"absent": f"no answer within {timeout_s:.0f} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        return {"absent": f"it ended with exit code {done.returncode}"}
    answer: Figures = json.loads(lines[-1])
    return answer


def drive(module: str, folder: Path, timeout_s: float, ticks: int | None = None) -> Figures:
    """Runs a module's engine over the feed in `folder`, or its first ticks (see benchmarks.drive), in a process of its own."""
    return run([sys.executable, "-m", "benchmarks.drive", module, str(folder), *([] if ticks is None else [str(ticks)])], timeout_s)


def describe(name: str, figure: Figures) -> str:
    """An engine's figures as a line of progress."""
    if "absent" in figure:
        return f"{name}: absent, {figure['absent']}"
    tick = figure["tick_ms"]
    return (
        f"{name}: load {figure['load_s']:.2f} s, tick {tick['median']:.3f} ms (p95 {tick['p95']:.3f}), "
        f"peak {figure['peak_mb']:.0f} MB, {'correct' if figure['correct'] else 'WRONG'}"
    )


def run_cases(benchmark: str, doc: str | None, cases: Iterable[str], measure: Callable[[str, bool, bool], Figures], *, quick: str) -> None:
    """The command line of a benchmark of several cases, whose figures at the top are the first one's.

    measure: a case by (name, quick, with peers).
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{benchmark}", description=doc.splitlines()[0] if doc else None)
    parser.add_argument("--cases", nargs="+", choices=list(cases), default=list(cases))
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="measure the peers too")
    parser.add_argument("--quick", action="store_true", help=quick)
    options = parser.parse_args()
    measured = {name: measure(name, options.quick, options.peers) for name in options.cases}
    face = next(iter(measured.values()))
    emit({"benchmark": benchmark, "engine": "deltic", **face, "growth": None, "cases": measured})


def emit(result: Figures) -> None:
    """The last line on stdout. The exit code says whether the engine ran, and whether it and all peers that ran gave the right answers.

    A case that is nothing but absent, for want of its data, is neither right nor wrong.
    """
    print(json.dumps(result), flush=True)
    answers = [result, *(case for case in result.get("cases", {}).values() if case.keys() != {"absent"})]
    peers = [peer for answer in answers for peer in answer.get("peers", {}).values() if "absent" not in peer]
    if not all(answer.get("correct") for answer in answers + peers):
        sys.exit(1)
