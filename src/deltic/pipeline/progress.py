"""Reports of a pipeline: its start, each tick, and the summary of a run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Json: TypeAlias = Any


class StageClock:
    """Seconds of each stage, one after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Ends a stage."""
        now = time.perf_counter()
        self.seconds[stage], self._since = now - self._since, now


@dataclass(frozen=True, slots=True)
class Start:
    """How a program differs from its state. epoch: the last one committed before; None if the state is new.

    reused: views that keep their state. filled: views that are computed from the tables' rows. dropped, dropped_tables: views and tables
    that the program does not define. unfed: tables without a source.
    """

    epoch: int | None
    reused: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    dropped_tables: tuple[str, ...] = ()
    unfed: tuple[str, ...] = ()

    def json(self) -> dict[str, Json]:
        return {
            "event": "start",
            "epoch": self.epoch,
            "views": {"reused": list(self.reused), "filled": list(self.filled), "dropped": list(self.dropped)},
            "tables": {"dropped": list(self.dropped_tables), "unfed": list(self.unfed)},
        }

    def __str__(self) -> str:
        unfed = f"; tables without a source: {', '.join(self.unfed)}" if self.unfed else ""
        if self.epoch is None:
            return f"a new state{unfed}"
        kinds = {"reused": self.reused, "filled": self.filled, "dropped": self.dropped}
        views = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names) or "no views"
        tables = f"; tables dropped: {', '.join(self.dropped_tables)}" if self.dropped_tables else ""
        return f"resumes after epoch {self.epoch}; views {views}{tables}{unfed}"


@dataclass(frozen=True, slots=True)
class Progress:
    """One tick. files: by table, read whole or in part. rows_in: rows of the sources by table, including dead letters. rows_out: rows of
    the changes by view. letters: dead letters by table. seconds: read, tick and sinks. failing: by view with errors, the rows that fail.
    sink_lag: by sink, how many committed epochs it has not received.
    """

    epoch: int
    files: Mapping[str, tuple[str, ...]]
    rows_in: Mapping[str, int]
    rows_out: Mapping[str, int]
    letters: Mapping[str, int]
    seconds: Mapping[str, float]
    failing: Mapping[str, int] = field(default_factory=dict)
    sink_lag: Mapping[str, int] = field(default_factory=dict)

    def json(self) -> dict[str, Json]:
        return {
            "event": "tick",
            "epoch": self.epoch,
            "files": {table: list(names) for table, names in self.files.items()},
            "rows_in": dict(self.rows_in),
            "rows_out": dict(self.rows_out),
            "letters": dict(self.letters),
            "seconds": {stage: round(seconds, 6) for stage, seconds in self.seconds.items()},
            "sink_lag": dict(self.sink_lag),
            **({"failing": dict(self.failing)} if self.failing else {}),
        }


@dataclass(slots=True)
class Summary:
    """All ticks of a run; as Progress, but files are counted. epoch: the last commit. stopped: whether it ended before all was read."""

    epoch: int = 0
    ticks: int = 0
    files: int = 0
    rows_in: Counter[str] = field(default_factory=Counter)
    rows_out: Counter[str] = field(default_factory=Counter)
    letters: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    stopped: bool = False
    failing: Mapping[str, int] = field(default_factory=dict)
    _split: dict[str, str] = field(default_factory=dict)

    def add(self, progress: Progress) -> None:
        """Adds a tick."""
        self.epoch, self.failing = progress.epoch, progress.failing
        self.ticks += 1
        for table, names in progress.files.items():
            self.files += sum(name != self._split.get(table) for name in names)
            self._split[table] = names[-1]
        self.rows_in.update(progress.rows_in)
        self.rows_out.update(progress.rows_out)
        self.letters.update(progress.letters)
        for stage, seconds in progress.seconds.items():
            self.seconds[stage] += seconds  # type: ignore[assignment]

    def json(self) -> dict[str, Json]:
        return {
            "event": "end",
            "epoch": self.epoch,
            "ticks": self.ticks,
            "files": self.files,
            "rows_in": dict(self.rows_in),
            "rows_out": dict(self.rows_out),
            "letters": dict(self.letters),
            "seconds": {stage: round(seconds, 6) for stage, seconds in self.seconds.items()},
            "stopped": self.stopped,
            **({"failing": dict(self.failing)} if self.failing else {}),
        }
