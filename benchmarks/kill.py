"""Kills the flights pipeline and starts it again: `python -m benchmarks.kill [--runs N] [--spark N] [--commit-log] [--quick]`.

Each run takes up to 20,000 changes and is killed with SIGKILL once to three times, then left to end; its views and sinks must be those of
a run that was not killed, which DuckDB confirms. Embedded, the process is killed; on Spark, all of its processes (driver, JVM, Python
workers), or Python workers alone, which the running tick must survive. Two kills of three wait until the tick has written its first file
and strike before its manifest exists, if they can; the others come at a random moment. With --commit-log, embedded runs have a commit
log, and two kills of three come within 30 ms of a commit. `kills_by_step` says what the folder looked like after the kill. The figure of
`tick_ms` is how long one run takes, restarts included.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import flights_pipeline as flights
from benchmarks import harness
from benchmarks.processes import descendants, process_name
from deltic.storage.log_file import records
from deltic.storage.manifest import LAST_EPOCH

RUNS, SPARK_RUNS = 200, 50
FEEDS = [(3_000, 6 * 3_600), (8_000, 12 * 3_600), (20_000, 12 * 3_600)]
"""(changes, seconds of event time in a tick)."""
ROWS_PER_TICK = {"embedded": 1_000, "spark": 3_000}
EVERY_TICK_A_JOB = {"PYSPARK_SUBMIT_ARGS": "--conf spark.deltic.driverRows=0 pyspark-shell"}
"""On Spark: the kills are aimed at tasks, and ticks of so few rows would be the driver's."""
LEAST_EPOCHS = 3
AIMED = 2 / 3
TIMEOUT_S = 300.0
AFTER_S = 0.03
START_S = {"embedded": 1.5, "spark": 9.0}
"""About how long a process takes to its first tick, and so when a kill at random may come."""

Files = frozenset[str]


@dataclass
class Kept:
    """What a run that was not killed left."""

    inputs: flights.Inputs
    content: dict[str, flights.Content]


@dataclass
class Tally:
    """What came of all runs."""

    kills: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    epochs: int = 0
    least_epochs: int = 1 << 30
    lost: int = 0
    doubled: int = 0
    seconds: list[float] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.kills + other.kills,
            self.kinds + other.kinds,
            self.epochs + other.epochs,
            min(self.least_epochs, other.least_epochs),
            self.lost + other.lost,
            self.doubled + other.doubled,
            self.seconds + other.seconds,
        )


class Folder:
    """A run's state as the file system shows it, at little cost."""

    def __init__(self, state: Path) -> None:
        self._data, self._manifests, self._log = state / "data", state / "manifests", state / "log"
        self._out = state.parent / "out"

    def committed(self) -> int:
        """The last committed epoch; -1 before the first."""
        names = [name for name in _names(self._manifests) if name.endswith(".json")]
        return max((int(name.removesuffix(".json")) for name in names), default=-1)

    def logged(self) -> int:
        """The last epoch in a commit log; -1 without any."""
        last = -1
        for name in _names(self._log):
            with suppress(FileNotFoundError):
                found = records((self._log / name).read_bytes(), name, LAST_EPOCH)
                last = max([last, *(record.epoch for record in found[-1:])])
        return last

    def written(self) -> int:
        """The newest epoch that a data file was written for; -1 without any."""
        names = [name.split("-") for name in _names(self._data) if name.endswith(".deltic")]
        newest = max((parts[0] for parts in names), default="")
        return max((int(parts[1]) for parts in names if parts[0] == newest), default=-1)

    def step(self) -> str:
        """Where the process was when it died."""
        committed = self.committed()
        if any(".staged" in name for name in _names(self._manifests)):
            return "in its manifest"
        if self.logged() > committed:
            return "with epochs in the log alone"
        if self.written() > committed:
            return "after its first write, before its manifest"
        if committed < 0:
            return "before the state"
        if any(".staged" in name for folder in _names(self._out) for name in _names(self._out / folder)):
            return "in a sink"
        return "between two ticks, or before the first write"


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def struck(kept: Kept, folder: Path, engine: str, chance: random.Random, tally: Tally, *, log: bool) -> None:
    """One run with its kills, to its end, and its defects."""
    flights.link(kept.inputs, folder)
    started = time.perf_counter()
    for _ in range(chance.randint(1, 3)):
        run = flights.Run(_command(folder, engine, log=log), folder / "log", EVERY_TICK_A_JOB)
        workers = engine == "spark" and chance.random() < 0.25
        if strike(run, Folder(folder / "state"), engine, chance, tally, workers=workers, log=log) and not workers:
            continue
        finish(run, folder)
        break
    finish(flights.Run(_command(folder, engine, log=log), folder / "log", EVERY_TICK_A_JOB), folder)
    tally.seconds.append(time.perf_counter() - started)
    epochs = flights.epochs(folder / "state")
    tally.epochs += epochs
    tally.least_epochs = min(tally.least_epochs, epochs)
    lost, doubled = flights.difference(flights.everything(folder), kept.content)
    tally.lost += lost
    tally.doubled += doubled
    if lost or doubled:
        harness.progress(f"{folder}: {lost} rows lost, {doubled} doubled")


def _command(folder: Path, engine: str, *, log: bool) -> list[str]:
    return flights.command(folder, engine, ["--rows-per-tick", str(ROWS_PER_TICK[engine]), *(["--commit-log"] if log else [])])


def strike(run: flights.Run, state: Folder, engine: str, chance: random.Random, tally: Tally, *, workers: bool, log: bool) -> bool:
    """Kills at a random moment; False if the process ended before."""
    if chance.random() < AIMED:
        ticks = chance.randint(0, 4)
        due = _aim_at_log(run, state, ticks, chance.random() * AFTER_S) if log else _aim(run, state, after=ticks)
    else:
        deadline = time.monotonic() + chance.random() * 2.5 * START_S[engine]
        due = _wait(run, lambda: time.monotonic() >= deadline)
    if not due:
        return False
    if workers:
        kill_workers(run)
    else:
        run.kill()
    tally.kills["in a tick that goes on" if workers else state.step()] += 1
    tally.kinds["Python workers" if workers else "all processes"] += 1
    return True


def _aim(run: flights.Run, state: Folder, after: int) -> bool:
    """Waits for so many ticks of this process, and then for a file of one that is not committed."""
    first = state.committed() + 2 + after  # opening commits an epoch of its own
    return _wait(run, lambda: state.committed() >= first - 1 and state.written() > state.committed())


def _aim_at_log(run: flights.Run, state: Folder, after: int, wait_s: float) -> bool:
    """Waits for so many ticks of this process, and then a moment."""
    first = max(state.committed(), state.logged()) + 2 + after
    if not _wait(run, lambda: max(state.committed(), state.logged()) >= first):
        return False
    time.sleep(wait_s)
    return not run.ended


def _wait(run: flights.Run, condition: Callable[[], bool]) -> bool:
    while not run.ended:
        if condition():
            return True
        time.sleep(0.0002)
    return False


def kill_workers(run: flights.Run) -> None:
    """SIGKILL to the Python processes below the driver."""
    for pid in list(descendants(run.process.pid)):
        if process_name(pid).startswith("python"):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def finish(run: flights.Run, folder: Path) -> None:
    """Waits for the end, which must be a good one."""
    code = run.wait(TIMEOUT_S)
    if code:
        sys.exit(f"the pipeline in {folder} ended with exit code {code}:\n{(folder / 'log').read_text()[-4000:]}")


def measure(runs: Mapping[str, int], root: Path, *, log: bool) -> tuple[Tally, bool]:
    """Runs both engines in parallel; returns their results, and whether DuckDB confirms the reference."""
    feed = flights.feed()
    kept, confirmed = [], True
    for number, (changes, every_s) in enumerate(FEEDS):
        inputs = flights.write_inputs(feed, root / f"feed{number}", changes, every_s)
        kept.append(Kept(inputs, flights.undisturbed(inputs, root / f"undisturbed{number}")))
        confirmed = confirmed and flights.confirmed(feed, inputs, flights.views(root / f"undisturbed{number}" / "state"))
    with ThreadPoolExecutor(len(runs)) as pool:
        tallies = [pool.submit(series, engine, count, kept, root, log=log and engine == "embedded") for engine, count in runs.items()]
    return sum((tally.result() for tally in tallies), Tally()), confirmed


def series(engine: str, runs: int, kept: Sequence[Kept], root: Path, *, log: bool) -> Tally:
    """One engine's runs."""
    tally, chance = Tally(), random.Random(engine)
    for number in range(runs):
        struck(kept[number % len(kept)], root / f"{engine}{number}", engine, chance, tally, log=log)
        shutil.rmtree(root / f"{engine}{number}")
        if number % 10 == 9:
            wrong = f"lost {tally.lost}, doubled {tally.doubled}"
            harness.progress(f"{engine}: {number + 1} of {runs} runs, {tally.kills.total()} kills, {wrong}")
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=RUNS, help="of both engines")
    parser.add_argument("--spark", type=int, help=f"how many of them on Spark (default: {SPARK_RUNS} of {RUNS}, and in proportion)")
    parser.add_argument("--commit-log", action="store_true", help="embedded runs have a commit log")
    parser.add_argument("--quick", action="store_true", help="8 runs, 2 of them on Spark")
    options = parser.parse_args()
    runs = 8 if options.quick else options.runs
    spark = options.spark if options.spark is not None else runs * SPARK_RUNS // RUNS
    with tempfile.TemporaryDirectory(prefix="deltic-kill-") as folder:
        tally, confirmed = measure({"spark": spark, "embedded": runs - spark}, Path(folder), log=options.commit_log)
    within = tally.kills["after its first write, before its manifest"] + tally.kills["in its manifest"]
    result = {
        "benchmark": "kill",
        "engine": "deltic",
        "params": {
            "spark_runs": spark,
            "changes": [changes for changes, _ in FEEDS],
            "rows_per_tick": ROWS_PER_TICK,
            "commit_log": options.commit_log,
        },
        "runs": runs,
        "kills": tally.kills.total(),
        "kills_by_step": dict(tally.kills),
        "kills_by_kind": dict(tally.kinds),
        "within_a_commit": round(within / max(1, tally.kills.total()), 3),
        "epochs": tally.epochs,
        "least_epochs": tally.least_epochs,
        "lost": tally.lost,
        "doubled": tally.doubled,
        "tick_ms": harness.summary([1e3 * seconds for seconds in tally.seconds]),
        "correct": confirmed and not tally.lost and not tally.doubled and tally.least_epochs >= LEAST_EPOCHS,
    }
    harness.emit(result)


if __name__ == "__main__":
    main()
