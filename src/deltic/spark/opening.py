"""Open pipelines: a session with its files and sinks, which runs the batches of streams one at a time.

A batch's number is committed with its tick, in the note `batches`, with the id of its query. So a batch that Spark runs again, because
the batch or the process died after the commit, is skipped, and a batch of another checkpoint is not mistaken for a committed one.
The note `streams` has the tables that a query's streams feed, by position: Spark's checkpoint identifies a stream by its position alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from deltic.errors import DelticError, StateError, StateInUse
from deltic.pipeline import Pipeline, Progress
from deltic.reentrant import ReentrantEvent
from deltic.session import Program, Session
from deltic.session.options import RunOptions
from deltic.storage.folder import open_folder

if TYPE_CHECKING:
    import pyspark.sql

BATCHES: Final = "batches"
STREAMS: Final = "streams"
PROGRESS: Final = "progress"
"""The subfolder of the state folder in which the workers of a Spark Connect server report progress to clients."""
WAIT_S: Final = 120.0
"""How long a batch waits while another query's batch has the state open."""

Make = Callable[[Session], Mapping[str, Any]]


class Stopped(DelticError):
    """Raised in a batch that begins after its query was stopped; Spark runs it again at the next start."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Everything needed to open a pipeline in another process, on its own Spark session; see deltic.pipeline.Pipeline."""

    program: Program
    options: RunOptions
    base: str

    @property
    def state(self) -> str:
        assert self.options.folder is not None
        return self.options.folder

    def open(self, spark: pyspark.sql.SparkSession) -> OpenedPipeline:
        """Opens the state. Raises StateInUse while another process has it open."""
        return OpenedPipeline(Pipeline.of(self.program, self.options.on(spark), base=self.base))


class OpenedPipeline:
    """An open pipeline. files: its files, sinks and session."""

    def __init__(self, files: Pipeline) -> None:
        self.files = files
        self.lock = RLock()

    @property
    def session(self) -> Session:
        return self.files.session

    def batch(
        self, name: str, batch_id: int, query: str | None, tables: Sequence[str], make: Make, stopping: ReentrantEvent
    ) -> Progress | None:
        """One tick of a micro-batch; None if it was committed before. Pending deliveries to sinks are made in either case.

        tables: what the query's streams feed, by position. make: returns the changes by table. Raises StateError for a batch of another
        checkpoint, and as `check_streams`, Stopped, and as a tick.
        """
        with self.lock:
            if stopping.is_set():
                raise Stopped(f"stream {name} is stopped; batch {batch_id} runs at its next start")
            before = self.session.notes.get(BATCHES, {})
            if _committed(name, batch_id, query, before.get(name)):
                return self.files.tick()
            self.check_streams(name, tables)
            streams = {**self.session.notes.get(STREAMS, {}), name: list(tables)}
            progress = self.files.tick(make(self.session), {BATCHES: {**before, name: [batch_id, query]}, STREAMS: streams})
            committed = self.session.last_tick
            assert progress is not None and committed is not None
            return replace(progress, rows_in={**committed.rows_in, **progress.rows_in})

    def check_streams(self, name: str, tables: Sequence[str]) -> None:
        """Raises StateError if a query has fewer or more streams than before, or a table's stream at another position."""
        before = self.session.notes.get(STREAMS, {}).get(name)
        if before is None or (
            len(before) == len(tables) and all(old == new or new not in before for old, new in zip(before, tables, strict=True))
        ):
            return
        raise StateError(
            f"stream {name} had streams of the tables {', '.join(before)}, in this order, and has now those of {', '.join(tables)}",
            expected="the same streams in the same order: Spark's checkpoint identifies a stream by its position alone",
            remedy="feed a further table through foreach_batch; or give the stream another name if its rows are not yet in the state",
        )


def _committed(name: str, batch_id: int, query: str | None, before: Any) -> bool:
    """Whether a batch has been committed; if not, it is the next one. Raises StateError if it is neither."""
    last, last_query = (-1, query) if before is None else before
    if query is not None and last_query is not None and query != last_query:
        raise StateError(
            f"stream {name} had another checkpoint up to batch {last}: its query was {last_query} and is now {query}",
            expected="the checkpoint that the state was fed from",
            remedy="start it with that checkpoint; or give the stream another name if its rows are not yet in the state",
        )
    if batch_id not in (last, last + 1):
        raise StateError(
            f"stream {name} delivers batch {batch_id}, but the state has its batches up to {last}" if before is not None
            else f"stream {name} delivers batch {batch_id}, but the state has none of its batches",
            expected=f"batch {last + 1}",
            remedy="checkpoint and state belong together: start the stream with the checkpoint that the state was fed from, or with a new "
            "checkpoint and another name",
        )  # fmt: skip
    return batch_id == last


_kept: dict[Definition, OpenedPipeline] = {}
"""Pipelines that this process, a worker of a Spark Connect server, holds open for the one query that it serves."""


@contextmanager
def served(definition: Definition, spark: pyspark.sql.SparkSession, *, keep: bool) -> Iterator[OpenedPipeline]:
    """The pipeline in a worker of a Spark Connect server, which has a process for each query.

    keep: it stays open until the process ends, and no other query can open it; otherwise it is open for the block, and waits for its turn.
    """
    if keep:
        if definition not in _kept:
            _kept[definition] = definition.open(spark)
        yield _kept[definition]
        return
    opened = _waited(definition, spark)
    try:
        yield opened
    finally:
        opened.files.close()


def _waited(definition: Definition, spark: pyspark.sql.SparkSession) -> OpenedPipeline:
    until = time.monotonic() + WAIT_S
    while True:
        try:
            return definition.open(spark)
        except StateInUse:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def write_progress(root: str, name: str, recent: Iterable[Progress]) -> None:
    """Writes the progress of a query to the state folder, for `read_progress`."""
    open_folder(root).put(f"{PROGRESS}/{name}.json", json.dumps([progress.json() for progress in recent]).encode())


def read_progress(root: str, name: str) -> list[Progress]:
    """The progress that `write_progress` wrote; empty if the folder is not reachable."""
    content = open_folder(root).read(f"{PROGRESS}/{name}.json")
    return [] if content is None else [_progress(entry) for entry in json.loads(content)]


def _progress(entry: Any) -> Progress:
    files = {table: tuple(names) for table, names in entry["files"].items()}
    return Progress(
        entry["epoch"], files, entry["rows_in"], entry["rows_out"], entry["letters"], entry["seconds"], sink_lag=entry["sink_lag"]
    )
