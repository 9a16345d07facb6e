"""The time to open a state, and the cost of keeping it: `python -m benchmarks.recovery [--quick]`.

States of 1M and 10M orders, embedded: seconds to open and to run the first tick in a new process (medians; the files are in the page
cache), the same with twice the shards, the state's size over that of the rows as Arrow, and the bytes written per byte of change over
1,000 ticks of 1,000 changes. `growth` is what opening and the first tick take at the last size over the first.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.harness import Figures

SIZES = [1_000_000, 10_000_000]
TICKS = 1_000
REPEATS = 5
TIMEOUT_S = 1_800.0


def step(name: str, state: Path, rows: int, number: int = 0) -> Figures:
    """Runs a step of benchmarks.recovery_case."""
    answer = harness.run([sys.executable, "-m", "benchmarks.recovery_case", name, str(state), str(rows), str(number)], TIMEOUT_S)
    if "absent" in answer:
        sys.exit(f"{name} of {rows:,} orders: {answer['absent']}")
    return answer


def opened(state: Path, rows: int, shards: int, repeats: int) -> Figures:
    """Medians over processes."""
    answers = [step("open", state, rows, shards) for _ in range(repeats)]
    median: Figures = {key: round(statistics.median(answer[key] for answer in answers), 4) for key in ("open_s", "first_tick_s")}
    median["correct"] = all(answer["correct"] for answer in answers)
    return median | {"both_s": round(statistics.median(answer["open_s"] + answer["first_tick_s"] for answer in answers), 4)}


def measure(rows: int, ticks: int, folder: Path) -> Figures:
    """One size."""
    state = folder / f"state{rows}"
    built = step("build", state, rows)
    harness.progress(f"{rows:,} orders loaded in {built['load_s']:.1f} s, {built['state_bytes'] / 1e6:,.0f} MB")
    shutil.copytree(state, copy := folder / "twice")
    figures: Figures = {
        "load_s": built["load_s"],
        "size_ratio": round(built["state_bytes"] / built["rows_bytes"], 3),
        "state_mb": round(built["state_bytes"] / 1e6, 1),
        "opened": opened(state, rows, 1, REPEATS),
        "twice_the_shards": opened(copy, rows, 2, 1),
    }
    shutil.rmtree(copy)
    figures |= step("feed", state, rows, ticks)
    figures["correct"] = all(part["correct"] for part in (figures, figures["opened"], figures["twice_the_shards"]))
    harness.progress(f"{rows:,} orders: {figures['opened']}, twice the shards {figures['twice_the_shards']}")
    harness.progress(f"{rows:,} orders: {figures['written_per_byte']} bytes written per byte of change, tick {figures['tick_ms']} ms")
    shutil.rmtree(state)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="states of a tenth, 100 ticks")
    options = parser.parse_args()
    sizes, ticks = ([rows // 10 for rows in SIZES], TICKS // 10) if options.quick else (SIZES, TICKS)
    with tempfile.TemporaryDirectory(prefix="deltic-recovery-") as folder:
        cases: dict[str, Any] = {f"{rows:,} orders": measure(rows, ticks, Path(folder)) for rows in sizes}
    first, last = list(cases.values())
    growth = round(last["opened"]["both_s"] / first["opened"]["both_s"], 3)
    params = {"orders": sizes, "ticks": ticks, "changes": 1_000}
    harness.emit({"benchmark": "recovery", "engine": "deltic", "params": params, **last, "growth": growth, "cases": cases})


if __name__ == "__main__":
    main()
