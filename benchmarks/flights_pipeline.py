"""The flights pipeline as a process that can be killed, and what it left: its views and sinks, row by row.

A run has a folder of its own: the script, `in` (a link to files that several runs share), the state, and `out` with the sinks.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import ROOT
from benchmarks.processes import descendants
from deltic.examples.flights.compare import compare
from deltic.examples.flights.data import read
from deltic.examples.flights.feed import FeedTick, FlightFeed, build
from deltic.examples.flights.files import SNAPSHOTS, write
from deltic.examples.flights.reference import without_spark
from deltic.examples.flights.script import NAME, QUERIES
from deltic.runtimes.stored_view import StoredView
from deltic.storage.reader import StateReader

UNDISTURBED_S = 900.0

Content = Counter[tuple[Any, ...]]
"""Rows and their weights."""


def feed() -> FlightFeed:
    """The flights of 2013 as a feed of changes."""
    return build(read())


@dataclass(frozen=True, slots=True)
class Inputs:
    """Script and files that several runs share. until_s: the event time that they reach."""

    folder: Path
    changes: int
    until_s: int


def write_inputs(feed: FlightFeed, folder: Path, changes: int | None, every_s: int) -> Inputs:
    """The first so many changes (None: all), in ticks of so much event time."""
    written = write(feed, folder, limit=changes, every_s=every_s)
    ends = ((tick.until_s, size) for tick, size in _running(feed, every_s) if size >= written)
    return Inputs(folder, written, next(ends)[0])


def _running(feed: FlightFeed, every_s: int) -> Iterator[tuple[FeedTick, int]]:
    """Each tick and how many changes there are up to its end."""
    size = 0
    for tick in feed.ticks(every_s):
        size += tick.size
        yield tick, size


def link(inputs: Inputs, folder: Path) -> None:
    """A new run's folder over the files of `inputs`."""
    folder.mkdir(parents=True)
    (folder / NAME).write_text((inputs.folder / NAME).read_text())
    (folder / "in").symlink_to(inputs.folder / "in", target_is_directory=True)


def command(folder: Path, engine: str, options: Sequence[str] = ()) -> list[str]:
    """What runs the pipeline to the end of its files."""
    script, state = str(folder / NAME), str(folder / "state")
    return [sys.executable, "-m", "deltic.cli", "run", script, "--engine", engine, "--state", state, "--once", "--json", *options]


class Run:
    """The pipeline in a process group of its own. log: the file for its output. environment: added to our own."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._log: IO[bytes] = log.open("ab")
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        given = os.environ | {"PYTHONPATH": path, **(environment or {})}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=given, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True
        )

    def kill(self) -> None:
        """SIGKILL to all of its processes; Spark's Python workers have a group of their own."""
        below = list(descendants(self.process.pid))
        os.killpg(self.process.pid, signal.SIGKILL)
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.wait(60)

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def wait(self, timeout_s: float) -> int:
        """The exit code."""
        code = self.process.wait(timeout_s)
        self._log.close()
        return code


def undisturbed(inputs: Inputs, folder: Path) -> dict[str, Content]:
    """All that the pipeline makes of these files, when nothing disturbs it."""
    link(inputs, folder)
    run = Run(command(folder, "embedded"), folder / "log")
    if code := run.wait(UNDISTURBED_S):
        sys.exit(f"the pipeline ended with exit code {code}:\n{(folder / 'log').read_text()[-4_000:]}")
    return everything(folder)


def views(state: Path) -> dict[str, pa.Table]:
    """What the state holds."""
    with StateReader.open(str(state)) as reader:
        return {view: StoredView(reader, view).to_arrow() for view in QUERIES}


def epochs(state: Path) -> int:
    """How many epochs have been committed."""
    with StateReader.open(str(state)) as reader:
        return int(reader.epoch) + 1


def content(table: pa.Table) -> Content:
    """A table's rows with their counts."""
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def sunk(folder: Path, view: str) -> Content:
    """The sum of the view's sink, without rows that cancel."""
    total: Content = Counter()
    for path in sorted((folder / "out" / view).glob("*.parquet")):
        table = pq.read_table(path)
        if view in SNAPSHOTS:
            total.update(content(table))
            continue
        weights = table.column("_weight").to_pylist()
        rows = zip(*(column.to_pylist() for column in table.drop_columns(["_weight", "_epoch"]).columns), strict=True)
        for row, weight in zip(rows, weights, strict=True):
            total[row] += weight
    return Counter({row: weight for row, weight in total.items() if weight})


def everything(folder: Path) -> dict[str, Content]:
    """The content of all views and all sinks, by name."""
    kept = {view: content(table) for view, table in views(folder / "state").items()}
    return kept | {f"sink of {view}": sunk(folder, view) for view in QUERIES}


def difference(contents: dict[str, Content], expected: dict[str, Content]) -> tuple[int, int]:
    """(rows lost, rows too many), over all views and sinks."""
    lost = sum((_minus(expected[name], contents[name])).total() for name in expected)
    return lost, sum((_minus(contents[name], expected[name])).total() for name in expected)


def _minus(left: Content, right: Content) -> Content:
    """The rows of which the left has more, and how many more; weights may be negative."""
    return Counter({row: left[row] - right[row] for row in left.keys() | right.keys() if left[row] > right[row]})


def confirmed(feed: FlightFeed, inputs: Inputs, contents: Mapping[str, pa.Table]) -> bool:
    """Whether DuckDB computes the same views from the final tables."""
    tables = feed.tables(inputs.until_s)
    reference, right = without_spark(tables)
    assert "DuckDB" in reference, reference
    summands = tables["flights"].num_rows
    return not any(compare(view, table, right[view], summands).differing for view, table in contents.items())
