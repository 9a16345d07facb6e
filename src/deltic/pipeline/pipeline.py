"""A pipeline: a program's tables read from their sources, its views kept exact, and its sinks written, tick by tick.

A tick reads, stages dead letters, commits changes and notes in one epoch, settles the letters and writes the sinks. Only the commit
counts: the next start discards what precedes it and repeats what follows it. So each change is applied once, and each sink receives each
epoch once, wherever a process ends. With the wall clock, rows that wait for their time make a tick when they come due.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import ref

from deltic.connectors.source import Json
from deltic.errors import CatalogError, ClosedError, DataError, ReentrantCall, SinkError, SubscriberError
from deltic.pipeline.bound_program import BoundProgram
from deltic.pipeline.dead_letters import DeadLetters
from deltic.pipeline.delivery import Delivery
from deltic.pipeline.feeds import Load, located
from deltic.pipeline.held_delivery import HeldDelivery
from deltic.pipeline.history import History
from deltic.pipeline.late import without_late_rows
from deltic.pipeline.opened_definitions import OpenedDefinitions
from deltic.pipeline.progress import Progress, StageClock, Summary
from deltic.pipeline.refused import listings, without_refused_rows
from deltic.reentrant import ReentrantEvent
from deltic.runtimes.view_errors import is_errors
from deltic.session import Program, Session
from deltic.session.clock import due_s
from deltic.session.options import PIPELINE_RETAINS, OnViewError, RunOptions
from deltic.session.reentrance import calling, check_not_called, is_called

if TYPE_CHECKING:
    import pyspark.sql

ROWS_PER_TICK: Final = 100_000
"""Of each source, by default: the memory that a tick needs does not grow with the files."""

DUE_S: Final = 1.0
"""The least seconds between two ticks that only the passing of time causes."""

Listener = Callable[[Progress], object]


class Pipeline:
    """The pipeline of a program. Safe to share between threads; use it in a `with` block, or close it."""

    def __init__(
        self,
        program: str | Program,
        *,
        name: str = "<sql>",
        spark: pyspark.sql.SparkSession | None = None,
        state: str | os.PathLike[str] | None = None,
        shards: int | None = None,
        threads: int | None = None,
        rows_per_tick: int | None = None,
        base: str | Path | None = None,
        retain: int = PIPELINE_RETAINS,
        shared_state: bool = False,
        commit_log: bool = False,
        on_view_error: OnViewError = "isolate",
    ) -> None:
        """Opens the state, makes the program its definitions, and brings the sinks up to date; reads no source yet.

        program: a Program, or the text of a SQL script, which errors call `name`.
        spark, state, shards, threads, retain, shared_state, commit_log: as of a Session.
        rows_per_tick: the most rows of each source in a tick; 100,000 by default.
        base: the folder that relative paths count from; the working folder by default.
        on_view_error: as of a Session, but errors are isolated by default: the sinks of a view that has some wait until it has none.
        Raises SetupError for an invalid option, QueryError, CircuitError, StateError, SourceError, SinkError, EvaluationError; then
        nothing is read, and no sink written unless it is another one that cannot be.
        """
        options = RunOptions(
            spark=spark,
            state=state,
            shards=shards,
            threads=threads,
            retain=retain,
            shared_state=shared_state,
            commit_log=commit_log,
            clock="wall",
            rows_per_tick=rows_per_tick,
            on_view_error=on_view_error,
        )
        self._open(Program.of(program, name), options, base)

    @classmethod
    def of(cls, program: Program, options: RunOptions, *, base: str | Path | None = None) -> Self:
        """The pipeline of a program with these options, whose clock is "wall"."""
        pipeline = cls.__new__(cls)
        pipeline._open(program, options, base)
        return pipeline

    def _open(self, program: Program, options: RunOptions, base: str | Path | None) -> None:
        bound = BoundProgram.bind(program, base, options.on_view_error)
        if options.folder is not None:
            bound.check_new(options.folder)
        self._prepare(Session._of(options), owned=True)
        try:
            notes, epoch = self.session.notes, self.session.epoch
            bound.check(notes)
            self.session.program(program, notes=bound.renewed(notes))
            self._keep_definitions()
            self.start = BoundProgram.of(self.session, base).start(notes, epoch)
            self._attach(bound, options.rows_per_tick)
        except BaseException:
            self._closed = True
            self.session.close()
            raise

    @classmethod
    def over(cls, session: Session, *, rows_per_tick: int | None = None, base: str | Path | None = None) -> Self:
        """The sources and sinks of a session, which stays open when the pipeline is closed. Raises SetupError while another pipeline over
        it is open, and otherwise as `Pipeline`."""
        pipeline = cls.__new__(cls)
        pipeline._prepare(session, owned=False)
        try:
            pipeline._keep_definitions()
            bound = BoundProgram.of(session, base)
            if session._root is not None:
                bound.check_sinks(session.notes)
                if renewed := bound.renewed(session.notes):
                    session._note(renewed)
            pipeline.start = bound.start(session.notes, session.epoch)
            pipeline._attach(bound, rows_per_tick)
        except BaseException:
            pipeline._closed = True
            raise
        return pipeline

    def _prepare(self, session: Session, *, owned: bool) -> None:
        self.session, self._owned = session, owned
        self._lock, self._stopping, self._idle, self._closed, self._closes = RLock(), ReentrantEvent(), True, False, False
        pipeline = ref(self)
        self._is_open = lambda: (one := pipeline()) is not None and not one._closed  # one that is gone without a close is not, either

    def _keep_definitions(self) -> None:
        """The session refuses statements that change its sources or sinks."""
        self.session._guard(self._is_open, lambda catalog: OpenedDefinitions(catalog).check)

    def _attach(self, bound: BoundProgram, rows_per_tick: int | None) -> None:
        session = self.session
        self._feeds = [
            bound.feed(session.table(name), rows_per_tick or ROWS_PER_TICK).spread(session, rows_per_tick) for name in session.sources
        ]
        self._letters = DeadLetters(bound.letter_paths(), session.notes)
        sinks, root = bound.open_sinks(session._state_id), session._root
        self._delivery = HeldDelivery(session, sinks, self._is_open) if root is None else Delivery(session, sinks, History(session, root))
        try:
            self._delivery.begin()
            self._restore()
        except BaseException:
            self._delivery.end()
            raise

    def run_once(self, on_progress: Listener | None = None) -> Summary:
        """Reads everything that is available, tick by tick, unless `stop` is called; rows that are due count too. Calls `on_progress` after
        each tick.

        Raises as `tick`.
        """
        return self._run(on_progress, None)

    def follow(self, poll_seconds: float = 1.0, on_progress: Listener | None = None) -> Summary:
        """As `run_once`, and again every `poll_seconds` until `stop` or `close` is called. Raises as `tick`.

        With the wall clock, rows that wait for their time make a tick when they come due, even within `poll_seconds`.
        """
        return self._run(on_progress, poll_seconds)

    def stop(self) -> None:
        """Ends the run after the current tick, or the next run before its first tick. From any thread, or a signal handler."""
        self._stopping.set()

    def tick(self, changes: Mapping[str, Any] | None = None, notes: Mapping[str, Json] | None = None) -> Progress | None:
        """One tick of the next rows; None if there are none, and none are due by the wall clock.

        changes, notes: of tables without a source, as in `Session.apply`; with them there is always a tick. Raises CatalogError for
        a table with a source, SourceError, DataError or EvaluationError, and nothing has happened; SinkError, and the next tick begins
        with the sinks; or SubscriberError once the tick is committed and the sinks have it. Raises ReentrantCall in a function that a
        tick calls, such as a subscriber: its rows have been read, and not noted; and in one that a commit of the session calls otherwise.
        Raises ClosedError after `close`.
        """
        if is_called(self._lock):
            raise ReentrantCall(
                "a function that the pipeline calls in a tick has called for another tick",
                expected="one tick at a time",
                remedy="call tick once the first one has returned",
            )
        check_not_called(self.session._lock)
        with self._lock:
            self._check_open()
            self._check_without_source(changes or {})
            try:
                return calling(self._lock, lambda: self._tick(changes or {}, notes or {}))
            except BaseException:
                self._restore()
                raise
            finally:
                if self._closes:
                    self._close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the pipeline is closed", remedy="open a new deltic.Pipeline, or Pipeline.over(session)")

    def _check_without_source(self, changes: Mapping[str, Any]) -> None:
        for name in changes:
            table = self.session.table(name)
            if table.name.lower() in self.session.sources:
                raise CatalogError(
                    f"table {table.name} is read from its source",
                    expected="changes of tables without USING",
                    remedy="write the rows to the source, or leave USING out and give all changes of the table",
                )

    def close(self) -> None:
        """Closes the state, unless it is that of a session that was given. A run in another thread ends.

        With a state folder, the next start repeats deliveries that no commit has noted, with the same content. In memory no later start
        can: the sinks receive what they lack, and SinkError says which do not; the pipeline is closed all the same. In a function that a
        tick calls, such as a subscriber, the pipeline is closed at the end of the tick. Raises ReentrantCall in a function that a commit
        of the session calls otherwise.
        """
        if is_called(self._lock):
            self._closes = True
            self._stopping.set()
            return
        check_not_called(self.session._lock)
        self._stopping.set()
        with self._lock:
            self._close()

    def _close(self) -> None:
        try:
            if not self._closed:
                self._delivery.finish()
        finally:
            self._closed = True
            try:
                self._delivery.end()
            finally:
                if self._owned:  # again if another call was interrupted
                    self.session.close()

    def _tick(self, changes: Mapping[str, Any], notes: Mapping[str, Json]) -> Progress | None:
        clock = StageClock()
        self._delivery.begin()
        self._letters.settle(self.session.notes)
        loads = self._read()
        clock.lap("read")
        self._idle = not loads
        if not (loads or changes or notes or due_s(self.session.clock, self.session.next_due) == 0.0):
            return None
        loads, raised = self._commit(loads, changes, notes)
        clock.lap("tick")
        try:
            self._letters.settle(self.session.notes)
            self._delivery.deliver()
        except Exception as error:  # any: subscribers have raised, too
            if raised is not None:
                error.add_note(str(raised))
            raise
        if raised is not None:
            raise raised
        clock.lap("sinks")
        return self._progress(loads, clock.seconds)

    def _read(self) -> Sequence[Load]:
        for feed in self._feeds:
            feed.source.refresh(force=self._idle)
        loads = [load for feed in self._feeds if (load := feed.read()) is not None]
        return [without_late_rows(load, self.session.notes) if self._letters.takes(load.table.name) else load for load in loads]

    def _commit(
        self, loads: Sequence[Load], changes: Mapping[str, Any], notes: Mapping[str, Json]
    ) -> tuple[Sequence[Load], SubscriberError | None]:
        """Commits the loads, without the rows that become dead letters; returns them, and what subscribers raised after the commit."""
        raised: SubscriberError | None = None
        for listed in listings():
            try:
                without = self._try_commit(loads, changes, notes, listed)
            except SubscriberError as error:
                without, raised = None, error
            if without is None:
                break
            loads = without
        self._delivery.noted()
        for feed, load in ((feed, load) for feed in self._feeds for load in loads if load.table is feed.table):
            feed.source.committed(load.batch)
        return loads, raised

    def _try_commit(
        self, loads: Sequence[Load], changes: Mapping[str, Any], notes: Mapping[str, Json], listed: int
    ) -> Sequence[Load] | None:
        """None once the tick is committed; if it fails on rows that can be dead letters, the loads without at most `listed` of them."""
        epoch = self.session.epoch + 1
        noted = {**notes, **self._delivery.notes(), **self._letters.stage(epoch, loads)}
        for load in loads:
            noted |= load.notes
        frames = {load.table.name: rows for load in loads if (rows := load.changes) is not None}
        taken = any(self._letters.takes(load.table.name) for load in loads)
        try:
            self.session._apply_frames({**frames, **changes}, notes=noted, listed=listed if taken else 0)
        except DataError as error:
            if (without := without_refused_rows(error, loads, self._letters.takes)) is None:
                raise located(error, loads) from error
            return without
        return None

    def _progress(self, loads: Sequence[Load], seconds: Mapping[str, float]) -> Progress:
        result = self.session.last_tick
        assert result is not None
        return Progress(
            self.session.epoch,
            {load.table.name: tuple(load.batch.parts) for load in loads},
            {load.table.name: load.batch.rows for load in loads},
            {view: len(change) for view, change in result.changes.items() if not is_errors(view)},
            {load.table.name: len(load.batch.dead_letters) for load in loads if load.batch.dead_letters},
            seconds,
            self.session.failing,
            self._delivery.lag,
        )

    def _run(self, on_progress: Listener | None, poll_seconds: float | None) -> Summary:
        self._check_open()
        summary = Summary(self.session.epoch)
        self._idle = True
        while not self._stopping.is_set():
            try:
                progress = self.tick()
            except ClosedError:
                if self._closed:  # meanwhile, by another thread or a function that the tick called
                    break
                raise
            if progress is not None:
                summary.add(progress)
                if on_progress is not None:
                    on_progress(progress)
                if progress.files:
                    continue
            else:
                self._note()
            if poll_seconds is None:
                break
            wait_s = self._due_s()
            least = 0.0 if progress is None else DUE_S
            self._stopping.wait(poll_seconds if wait_s is None else min(poll_seconds, max(wait_s, least)))
        self._note()
        summary.stopped = self._stopping.is_set()
        if summary.stopped and not self._closed:  # else one that comes now is for the next run
            self._stopping.clear()
        with self._lock:
            summary.epoch = self.session.epoch
            if not self._closed:  # else those of the last tick
                summary.failing = self.session.failing
        return summary

    def _due_s(self) -> float | None:
        """The seconds until the passing of time causes a tick."""
        with self._lock:
            return None if self._closed else due_s(self.session.clock, self.session.next_due)

    def _note(self) -> None:
        """Commits the offsets of the sinks, so that an epoch is not delivered again even if it was removed from its sink."""
        with self._lock:
            if not self._closed and self._delivery.unrecorded:
                self.session._note(self._delivery.notes())
                self._delivery.noted()

    def _restore(self) -> None:
        """Returns to the offsets in the state."""
        self._idle = True
        for feed in self._feeds:
            feed.restore(self.session.notes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.close()
        except SinkError as undelivered:
            if error is None:
                raise
            error.add_note(str(undelivered))
