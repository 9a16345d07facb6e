"""Pipelines on Spark: a program whose tables are fed by Structured Streaming, by its own files, or by both."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from deltic.connectors.recognise import in_arrow
from deltic.errors import CatalogError, ClosedError, DelticError, SetupError
from deltic.pipeline import Pipeline, Progress
from deltic.pipeline.bound_program import BoundProgram
from deltic.reentrant import ReentrantEvent
from deltic.runtimes.spark.changes import TaggedTable
from deltic.runtimes.spark.streams import (
    Trigger,
    batch_changes,
    check_streaming,
    is_connect,
    observed,
    query_id,
    start_query,
    tagged,
    tagged_table,
)
from deltic.schema import TableSchema
from deltic.session import Program, Session
from deltic.session.options import PIPELINE_RETAINS, OnViewError, RunOptions
from deltic.spark.opening import Definition, OpenedPipeline, Stopped, read_progress, served, write_progress
from deltic.spark.running import POLL_S, Journal, Running, seconds
from deltic.storage.names import CHECKPOINTS

if TYPE_CHECKING:
    import pyspark.sql
    from pyspark.sql.streaming.query import StreamingQuery

STREAMS: Final = "streams"
"""The default name of a pipeline's streams, in checkpoints and in the note of their batches' numbers."""
QUERY: Final = "query:"
"""The prefix of the names under which batches of pipelines' own queries are numbered."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class TableFeed:
    """How a stream feeds a table. inserts: whether all rows are new; None until a batch's columns are known."""

    table: str
    sequence: str | None
    inserts: bool | None = None


class StreamingPipeline:
    """A program's tables, views and sinks, fed by Spark.

    Streams given to `stream` run as one query, and one batch of it is one tick; each function that `foreach_batch` returns makes ticks of
    its own, one at a time. `start` also reads the program's own sources. Changes, offsets and notes of a tick are one epoch, so a batch
    that Spark runs again changes nothing, and a sink receives each epoch once.

    Under Spark Connect the server's worker runs the batches of streams and holds the state: it must have Deltic installed and reach the
    folder. Read views there with `spark.read.format("deltic")`.
    """

    def __init__(
        self,
        session_or_program: Session | Program | str,
        spark: pyspark.sql.SparkSession | None = None,
        *,
        state: str | os.PathLike[str] | None = None,
        shards: int | None = None,
        name: str = "<sql>",
        rows_per_tick: int | None = None,
        base: str | os.PathLike[str] | None = None,
        retain: int = PIPELINE_RETAINS,
        shared_state: bool = False,
        on_view_error: OnViewError = "isolate",
    ) -> None:
        """session_or_program: a Program; the text of a SQL script, which errors call `name`; or a session on Spark, which stays open.

        state: the state folder, also if a session is given. rows_per_tick: the most rows of each source in a tick. base: the folder that
        relative paths start from. shards, retain, shared_state: as in Session. on_view_error: as in
        deltic.Pipeline. Raises QueryError, CircuitError and SetupError; the state
        is opened when it is first needed.
        """
        self._lock = RLock()
        self._opened: OpenedPipeline | None = None
        self._served = False
        self._streams: list[tuple[TableFeed, pyspark.sql.DataFrame]] = []
        self._running: Running | None = None
        self._journal = Journal()
        self.spark = spark
        self._definition: Definition | None = None
        options = RunOptions(
            spark=spark,
            state=state,
            shards=shards,
            retain=retain,
            shared_state=shared_state,
            clock="wall",
            rows_per_tick=rows_per_tick,
            on_view_error=on_view_error,
        )
        if isinstance(session_or_program, Session):
            self._over(session_or_program, options.folder, rows_per_tick, base)
            return
        if spark is None or options.folder is None:
            missing = "a Spark session" if spark is None else "a state folder"
            raise SetupError(f"a pipeline on Spark without {missing}", expected="StreamingPipeline(program, spark, state='folder')")
        where = str(Path.cwd() if base is None else Path(base).absolute())
        program = Program.of(session_or_program, name)
        bound = BoundProgram.bind(program, where, on_view_error)
        self._tables, self._sources = bound.tables, tuple(bound.sources)
        root = options.folder if "://" in options.folder else str(Path(options.folder).expanduser().absolute())
        self._definition = Definition(program, replace(options, spark=None, state=root), where)

    def _over(self, session: Session, state: str | None, rows_per_tick: int | None, base: str | os.PathLike[str] | None) -> None:
        if session.spark is None:
            raise SetupError(
                "the session of a pipeline on Spark does not run on Spark", expected="deltic.Session(spark=spark, state='folder')"
            )
        self.spark = session.spark
        self._tables, self._sources = {name: session.table(name) for name in session.tables}, tuple(session.sources)
        self._state = state
        self._opened = OpenedPipeline(Pipeline.over(session, rows_per_tick=rows_per_tick, base=None if base is None else Path(base)))

    @property
    def session(self) -> Session:
        """The session that holds the state; opens the state if it is not open yet."""
        return self._here().session

    def stream(self, table: str, frame: pyspark.sql.DataFrame, sequence: str | None = None) -> Self:
        """Feeds a table from a streaming frame: its columns and `_op` or `_weight`, or neither if all rows are new.

        sequence: the column that orders the changes of a key within a batch; without it a key may occur once in a batch. A table can have
        several streams. Raises UnknownName, FrameError.
        """
        schema = self._fed(table)
        check_streaming(frame, schema)
        inserts = tagged_table(frame.columns, schema, sequence).inserts
        self._streams.append((TableFeed(schema.name, sequence, inserts), in_arrow(frame, f"table {schema.name}")))
        return self

    def foreach_batch(self, table: str, sequence: str | None = None, *, name: str | None = None) -> BatchFunction:
        """The function for a `writeStream.foreachBatch` of your own: each batch is a tick.

        name: the name under which batches are numbered, by default the table's; needed if it has several such streams. Give the query a
        checkpoint: the state records its position, and refuses another checkpoint.
        """
        schema = self._fed(table)
        return BatchFunction(self, f"table:{_checked(name or schema.name)}", (TableFeed(schema.name, sequence),), title=None)

    def start(
        self,
        *,
        availableNow: bool = False,
        once: bool = False,
        processingTime: str | None = None,
        checkpoint: str | None = None,
        query_name: str | None = None,
    ) -> Running:
        """Starts the streams and reads the script's files: all available data (availableNow, once), or continuously.

        Rows that become due by the wall clock make a tick at that time even if no batch arrives, except under Spark Connect.
        processingTime: how long to wait for more, such as "5 seconds". checkpoint: that of the streams' query, by default in the state
        folder. query_name: the name under which its batches are numbered. Raises SetupError, and as opening the state.
        """
        trigger = Trigger(availableNow, once, processingTime)
        poll_s = POLL_S if processingTime is None else seconds(processingTime)
        name = _checked(query_name or STREAMS)
        if self._running is not None and self._running.isActive:
            raise SetupError("the pipeline is already running", remedy="stop it first")
        if not self._streams and not self._sources:
            raise SetupError("the pipeline has nothing to run", expected="a stream given to .stream, or tables with files in the script")
        if self._streams and self._sources and is_connect(self.spark):
            raise SetupError(
                f"under Spark Connect the server's worker runs streams, but {', '.join(self._sources)} would be read by this process",
                remedy="read the files with spark.readStream too, or put their tables into a script of their own",
            )
        self._journal = Journal()
        query = self._start_query(name, checkpoint or self._checkpoint(name), trigger) if self._streams else None
        elsewhere = query is not None and is_connect(self.spark)
        self._running = running = Running(
            self._journal, query, self._settle, (lambda: read_progress(self._root(), name)) if elsewhere else None
        )
        if self._sources or (not elsewhere and self._waits()):
            on_progress = self._journal.recent.append
            finite = availableNow or once
            beside = not self._sources and not finite
            running.follow(
                self._here().files, lambda files: files.run_once(on_progress) if finite else files.follow(poll_s, on_progress), beside
            )
        return running

    def _waits(self) -> bool:
        """Whether rows may become due while no batch arrives."""
        return self.session.clock == "wall" and self.session._reads_time

    @property
    def recentProgress(self) -> list[Progress]:
        """Progress of the last hundred ticks since the last start, including those of `foreach_batch`."""
        return list(self._journal.recent)

    def close(self) -> None:
        """Closes and unlocks the state folder; a session that was given stays open. Stop running queries first."""
        with self._lock:
            opened, self._opened = self._opened, None
            if opened is not None:
                opened.files.close()

    @contextmanager
    def opened(self, batch_session: pyspark.sql.SparkSession, *, keep: bool) -> Iterator[OpenedPipeline]:
        """The open pipeline that runs a batch: here, or in a worker of a Spark Connect server."""
        if not self._served:
            yield self._here()
            return
        assert self._definition is not None
        with served(self._definition, batch_session, keep=keep) as opened:
            yield opened

    def report(self, name: str) -> None:
        """In a server's worker: makes the progress of a query known to the client."""
        if self._served:
            write_progress(self._root(), name, self._journal.recent)

    def journal(self) -> Journal:
        """That of the last run."""
        return self._journal

    def _start_query(self, name: str, checkpoint: str, trigger: Trigger) -> StreamingQuery:
        title = f"deltic {name} {self._root()}"
        function = BatchFunction(self, f"{QUERY}{name}", tuple(fed for fed, _ in self._streams), title)
        tables = [fed.table for fed, _ in self._streams]
        if not is_connect(self.spark):
            self._here().check_streams(f"{QUERY}{name}", tables)
        frame = observed(tagged([frame for _, frame in self._streams]), tables)
        return start_query(frame, function, title, checkpoint, trigger)

    def _here(self) -> OpenedPipeline:
        with self._lock:
            if self._opened is None:
                if self._definition is None:
                    raise ClosedError("the pipeline is closed", remedy="open a new deltic.spark.StreamingPipeline over the session")
                assert self.spark is not None
                self._opened = self._definition.open(self.spark)
            return self._opened

    def _settle(self) -> None:
        if self._opened is not None:
            with self._opened.lock:
                pass

    def _fed(self, name: str) -> TableSchema:
        table = next((t for t in self._tables.values() if t.name.lower() == name.lower()), None)
        if table is None:
            raise CatalogError(f"there is no table {name}", expected=f"one of {', '.join(t.name for t in self._tables.values())}")
        if table.name.lower() in self._sources:
            raise CatalogError(f"table {table.name} is read from files by the script", expected="a table without USING for a stream")
        return table

    def _root(self) -> str:
        return self._definition.state if self._definition is not None else (self._state or "")

    def _checkpoint(self, name: str) -> str:
        """In the state folder, so that state and checkpoint are moved together."""
        root = self._root()
        if not root or "://" in root:
            raise SetupError(
                f"no default checkpoint for streams whose state is at {root or 'an unknown folder'}", expected="start(checkpoint='…')"
            )
        return os.path.join(root, CHECKPOINTS, name)

    def __getstate__(self) -> dict[str, Any]:
        if self._definition is None:
            raise SetupError(
                "a pipeline over a session cannot run on a Spark Connect server: its session belongs to this process",
                expected="deltic.spark.StreamingPipeline(program, spark, state='folder')",
            )
        return {"_definition": self._definition, "_tables": self._tables, "_sources": self._sources}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock, self._opened, self._served = RLock(), None, True
        self._streams, self._running, self._journal, self.spark = [], None, Journal(), None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class BatchFunction:
    """Spark calls it with each micro-batch. name: the name under which batches are numbered.

    title: the name of the pipeline's own query, whose frame is tagged; None for a user's query of one table.
    """

    def __init__(self, pipeline: StreamingPipeline, name: str, fed: tuple[TableFeed, ...], title: str | None) -> None:
        self._pipeline, self._name, self._fed, self._title = pipeline, name, fed, title

    def __call__(self, batch: pyspark.sql.DataFrame, batch_id: int) -> None:
        """One tick, or none if the batch was committed before. Raises as a tick; then nothing has happened."""
        own = self._title is not None
        journal = self._pipeline.journal()
        query = query_id(batch.sparkSession, self._title)
        try:
            with self._pipeline.opened(batch.sparkSession, keep=own) as opened:
                stopping = journal.stopping if own else ReentrantEvent()
                with self._kept(opened.session, batch):
                    tables = [fed.table for fed in self._fed]
                    progress = opened.batch(self._name, batch_id, query, tables, lambda session: self._changes(session, batch), stopping)
        except DelticError as error:
            if own and not isinstance(error, Stopped):
                journal.fail(error)
            raise
        if progress is not None:
            journal.recent.append(progress)
            if own:
                self._pipeline.report(self._name.removeprefix(QUERY))

    @contextmanager
    def _kept(self, session: Session, batch: pyspark.sql.DataFrame) -> Iterator[None]:
        """Keeps the rows of a batch that a tick reads twice: for the greatest time in them, and to apply them. So they are counted once."""
        timed = session.clock == "watermark" or any(session.table(fed.table).lateness is not None for fed in self._fed)
        if timed:
            batch.persist()
        try:
            yield
        finally:
            if timed:
                batch.unpersist()

    def _changes(self, session: Session, batch: pyspark.sql.DataFrame) -> Mapping[str, Any]:
        parts = tuple(self._part(session.table(fed.table), fed, batch) for fed in self._fed)
        changes = batch_changes(batch, parts, union=self._title is not None)
        return dict.fromkeys(changes.tables, changes)

    def _part(self, table: TableSchema, fed: TableFeed, batch: pyspark.sql.DataFrame) -> TaggedTable:
        if fed.inserts is None:
            return tagged_table(batch.columns, table, fed.sequence)
        return TaggedTable(table, fed.sequence, fed.inserts)


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise SetupError(f"invalid stream name {name!r}", expected="letters, digits, _ . and -, beginning with a letter or digit")
    return name
