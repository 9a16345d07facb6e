"""The six views of the flights demo over the year, embedded: `python -m benchmarks.flights [--changes N] [--rounds N] [--beside PYTHON]`.

PYTHON is that of an environment with another version of Deltic, which takes turns with this one; `ratio` is its CPU time over ours, each
the least of its rounds. `touched_per_change` counts the rows and index entries that operators read. The final views are compared with
what DuckDB computes from the final tables.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import harness
from benchmarks.harness import Figures

CASE = Path(__file__).resolve().parent / "flights_case.py"
ROUNDS, QUICK_CHANGES = 3, 20_000
TIMEOUT_S = 1_800.0


def run(python: str, changes: int | None) -> Figures:
    """One replay. python: that of the environment."""
    return harness.run([python, str(CASE), *([] if changes is None else [str(changes)])], TIMEOUT_S)


def summary(rounds: Sequence[Figures]) -> Figures:
    """The replay that took the least CPU time."""
    absent = next((each for each in rounds if "absent" in each), None)
    if absent is not None:
        return absent
    best = min(rounds, key=lambda each: each["cpu_s"])
    return {
        "cpu_s": round(best["cpu_s"], 3),
        "tick_cpu_ms": round(best["cpu_s"] / max(1, best["ticks"] - 1) * 1e3, 3),
        "touched_per_change": round(best["touched"] / best["changes"], 2),
        "correct": all(each["correct"] for each in rounds),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flights", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--changes", type=int, help="stop after so many changes; by default all of the year")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--beside", metavar="PYTHON", help="the Python of an environment with another version of Deltic")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_CHANGES:,} changes, one round")
    options = parser.parse_args(arguments)
    changes, rounds = (QUICK_CHANGES, 1) if options.quick else (options.changes, options.rounds)
    own, other = list[Figures](), list[Figures]()
    for _ in range(rounds):
        own.append(run(sys.executable, changes))
        if options.beside:
            other.append(run(options.beside, changes))
    result = summary(own)
    peers = {"beside": summary(other)} if other else {}
    ratio = round(peers["beside"]["cpu_s"] / result["cpu_s"], 3) if peers and "absent" not in {**peers["beside"], **result} else None
    harness.emit({"benchmark": "flights", "engine": "deltic", "params": {"changes": changes}, "ratio": ratio, **result, "peers": peers})


if __name__ == "__main__":
    main()
