"""The session: what a user holds. It assembles front end, optimizer, lowering and runtime, and is safe to share between threads.

One lock orders ticks and definitions; reads take none and see the last commit.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from threading import Lock, RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from weakref import WeakSet

from deltic.connectors.connector import SourceSpec
from deltic.connectors.frames import change_frame
from deltic.connectors.recognise import is_spark
from deltic.errors import CatalogError, CircuitError, DelticError, UnknownName
from deltic.explain import Explanation, explain
from deltic.frontends.python import Circuit, check_unchanged
from deltic.frontends.sql import parse_script
from deltic.kernels import prepare
from deltic.runtimes import RETAINED_EPOCHS, TickResult
from deltic.runtimes.distributed import Distributed
from deltic.runtimes.program import checked
from deltic.schema import TableSchema
from deltic.session.catalog import Catalog, SinkDefinition
from deltic.session.circuit_nodes import CircuitNode, circuit_nodes
from deltic.session.circuits import circuit_statements
from deltic.session.clock import Clock, advanced, checked_clock, installed, instant, is_temporal, next_due, ticked
from deltic.session.compiling import Compiler
from deltic.session.contents import Contents
from deltic.session.definitions import NOTHING, Definitions
from deltic.session.draft import Draft
from deltic.session.engines import open_runtime, spark_changes
from deltic.session.functions import check_functions
from deltic.session.options import RunOptions
from deltic.session.program import Program
from deltic.session.transaction import PendingChanges, Transaction, unknown_table
from deltic.session.view import View
from deltic.session.watermark import Marks, Watermark
from deltic.storage.program import WATERMARKS

if TYPE_CHECKING:
    import pyspark.sql


class Session:
    """Tables and views that stay exact.

    spark: every tick runs on this SparkSession; without one, in this process. state: a folder, or the URL of one in an object store, where
    all is kept for the next session, on whichever engine; without one, all is gone with the session. shards: into how many hash ranges
    state is split; by default as it is, and a new one into 1 in this process, on Spark by its parallelism. retain: how many past epochs of
    a state stay readable. shared_state: the folder is one that all machines of a Spark cluster have under its name.
    iteration_limit: no recursion of a view goes on for more iterations, whatever it says itself.
    clock: what now() is in views. "manual": it stands still until `advance_to`. "wall": each tick has the time of the wall clock.
    A Watermark, or several: it follows columns of tables. So it does, whatever else is said here, where tables have the option watermark.
    Raises SetupError for an invalid option.
    """

    def __init__(
        self,
        *,
        spark: pyspark.sql.SparkSession | None = None,
        state: str | os.PathLike[str] | None = None,
        shards: int | None = None,
        retain: int = RETAINED_EPOCHS,
        shared_state: bool = False,
        iteration_limit: int | None = None,
        clock: Clock | Watermark | Iterable[Watermark] = "manual",
    ) -> None:
        self._open(
            RunOptions(
                spark=spark,
                state=state,
                shards=shards,
                retain=retain,
                shared_state=shared_state,
                iteration_limit=iteration_limit,
                clock=clock,
            )
        )

    @classmethod
    def of(cls, options: RunOptions) -> Self:
        """A session with these options."""
        session = cls.__new__(cls)
        session._open(options)
        return session

    def _open(self, options: RunOptions) -> None:
        self.spark = options.spark
        self._clock, self._watermarks = checked_clock(options.clock)
        self._lock = RLock()
        prepare()
        self._runtime = open_runtime(options)
        """Its last commit is all that changes when something is committed, definitions included: see `_settle` for what follows."""
        self._settled = NOTHING
        """The definitions for which all that follows their commit has been done."""
        self._due: tuple[object, datetime | None] = (None, None)
        """When something comes due, as of the commit beside it."""
        self._contents = Contents(self._runtime, self._lock)
        self._gathering: WeakSet[PendingChanges] = WeakSet()
        self._gathering_lock = Lock()
        self._compiler = Compiler(self._runtime.shards, options.iteration_limit)

    def sql(self, script: str, *, name: str = "<sql>") -> None:
        """Runs CREATE and DROP statements: all of them, or none if one is refused. New views are filled in one tick.

        Raises QueryError with the place in the script; EvaluationError if a new view's query fails on the data that is there.
        """
        with self._lock:
            self._contents.check_open()
            self._settle()
            draft = Draft(self._catalog, self._kept())
            for statement in parse_script(script, name, draft):
                draft.apply(statement)
            self._install(draft.catalog, draft.dropped)
        self._contents.subscribers.deliver()

    def program(self, program: str | Program, *, name: str = "<sql>", notes: Mapping[str, Any] | None = None) -> None:
        """Replaces all definitions: what the program does not define is dropped, and views that it defines as before keep their state.

        program: a Program, or the text of a script, which errors call `name`. A view whose Python functions have changed is filled again.
        notes: committed with it, as in `apply`. Raises QueryError, CircuitError and EvaluationError as `sql` and `install` do, and
        StateError if a table differs from the state's; then nothing changes.
        """
        catalog = Program.of(program, name).catalog
        check_unchanged(view.plan for view in catalog.views.values())
        with self._lock:
            self._contents.check_open()
            self._settle()
            dropped = [table for table in self._runtime.committed.program.tables if table.lower() not in catalog.tables]
            self._install(catalog, dropped, checked(notes or {}), replace=True)
        self._contents.subscribers.deliver()

    def install(self, circuit: Circuit, *, replace: bool = False) -> None:
        """Makes the inputs of a circuit made in Python tables, and its outputs materialized views, beside what there is.

        All of it or nothing. An input may be a table that is there already, if it is the same. Raises CatalogError and EvaluationError; and
        StateError where a state has views by a function that this first program of the session has not, or has otherwise, unless `replace`.
        """
        with self._lock:
            self._contents.check_open()
            if not isinstance(circuit, Circuit):
                raise CircuitError(f"{circuit!r} is no circuit", expected="a deltic.Circuit")
            self._settle()
            draft = Draft(self._catalog, self._kept())
            for statement in circuit_statements(circuit, self._catalog.tables, self._catalog):
                draft.apply(statement)
            self._install(draft.catalog, draft.dropped, replace=replace)
        self._contents.subscribers.deliver()

    def transaction(self) -> Transaction:
        """A tick in the making; use it in a `with` block."""
        self._contents.check_open()
        return Transaction(self._gather(), self.table, self._commit_pending)

    def apply(
        self,
        changes: Mapping[str, Any],
        *,
        sequence: str | Mapping[str, str] | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        """One tick of change frames by table: the table's columns and `_op` or `_weight`.

        sequence: the column that orders the changes of a frame, or one for each table. On Spark, a Spark DataFrame is not collected; it
        must be deterministic, and a key that occurs twice in it needs a sequence. notes: named JSON values that are committed with the
        tick, such as how far a source was read; None removes one.
        """
        self._contents.check_open()
        pending = self._gather()
        distributed: dict[str, Distributed] = {}
        for name, frame in changes.items():
            table = self.table(name)
            column = sequence if sequence is None or isinstance(sequence, str) else sequence.get(name)
            if self.spark is not None and is_spark(frame):
                distributed[table.name] = spark_changes(frame, table, column)
            elif self.spark is not None and isinstance(frame, Distributed):
                distributed[table.name] = frame
            else:
                pending.add_changes(table, change_frame(frame, table, column))
        tables = {**pending.tables, **{name: frame.tables[name] for name, frame in distributed.items()}}
        self._tick({**pending.rows(), **distributed}, tables, checked(notes or {}))
        self._trim(pending)

    def _commit_pending(self, changes: PendingChanges) -> None:
        """Makes them one tick."""
        self._tick(changes.rows(), changes.tables)
        self._trim(changes)

    def _gather(self) -> PendingChanges:
        with self._gathering_lock:
            changes = PendingChanges(self._runtime.strings)
            self._gathering.add(changes)
            return changes

    def _trim(self, committed: PendingChanges) -> None:
        """Frees memory, unless other changes are being gathered, whose strings are nowhere else."""
        with self._lock, self._gathering_lock:
            self._gathering.discard(committed)
            if not self._gathering:
                self._runtime.trim()

    def _tick(self, changes: Mapping[str, Any], tables: Mapping[str, TableSchema], notes: Mapping[str, Any] | None = None) -> None:
        """tables: those that change, as the changes were made for."""
        with self._lock:
            self._contents.check_open()
            self._settle()
            for name, table in tables.items():
                if self.table(name) is not table:
                    raise CatalogError(f"table {name} was made anew while changes to it were gathered", remedy="gather them again")
            self._commit(changes, notes or {})
        self._contents.subscribers.deliver()

    def _commit(self, changes: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        self._runtime.tick(changes, {**self._timed(changes), **notes})
        self._contents.queue()

    def _settle(self) -> None:
        """What follows a commit. Ctrl-C may have come between, so all that commits does this first."""
        self._contents.queue()
        definitions = self._definitions
        if self._settled is definitions:
            return
        self._contents.subscribers.keep(definitions.views)
        missed = definitions.marks.missed(self.notes, definitions.circuit, self._runtime)
        if missed or (self.clock == "wall" and is_temporal(definitions.circuit)):  # state is taken over at the time that it has
            try:
                self._commit({}, definitions.marks.told(self.notes, missed))
            except DelticError:
                self._settled = definitions
                raise
        self._settled = definitions

    def _timed(self, changes: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a tick of these changes notes of the time."""
        marks = self._definitions.marks
        return marks.told(self.notes, marks.brought(changes)) if marks else ticked(self._clock, self.notes)

    def advance_to(self, moment: datetime) -> None:
        """A tick that brings the time, which is now() in views, to `moment`, a datetime with its zone.

        Raises ClockError if that is before the time where it stands.
        """
        with self._lock:
            self._contents.check_open()
            self._settle()
            self._commit({}, advanced(self.notes, moment))
        self._contents.subscribers.deliver()

    def view(self, name: str) -> View:
        """A materialized view by its name."""
        definition = self._catalog.views.get(name.lower())
        if definition is None:
            expected = f"one of {', '.join(self.views)}" if self.views else "a view made by CREATE MATERIALIZED VIEW"
            table = self._catalog.tables.get(name.lower())
            remedy = f"CREATE MATERIALIZED VIEW v AS SELECT * FROM {table.name} lets a table be read" if table else None
            raise UnknownName(f"there is no view {name}", expected=expected, remedy=remedy)
        if not definition.materialized:
            raise CatalogError(f"view {definition.name} is not materialized", remedy="CREATE MATERIALIZED VIEW keeps a view's content")
        return View(self._contents, definition.name, self.spark)

    def table(self, name: str) -> TableSchema:
        """A table's schema by its name."""
        table = self._catalog.tables.get(name.lower())
        if table is None:
            raise unknown_table(name, self.tables)
        return table

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(t.name for t in self._catalog.tables.values())

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the materialized views."""
        return tuple(v.name for v in self._catalog.views.values() if v.materialized)

    @property
    def sources(self) -> Mapping[str, SourceSpec]:
        """Where the changes of tables come from, by the table's name in lower case; tables that are fed by hand are not in it."""
        return self._catalog.sources

    @property
    def sinks(self) -> Mapping[str, SinkDefinition]:
        """Where views go, by the sink's name in lower case."""
        return self._catalog.sinks

    @property
    def circuit(self) -> tuple[CircuitNode, ...]:
        """The nodes that keep the views exact, those of scopes after the child that each is. O(nodes)."""
        return circuit_nodes(self._definitions.circuit)

    @property
    def notes(self) -> Mapping[str, Any]:
        """The notes of the last commit, Deltic's own among them."""
        return self._runtime.notes

    @property
    def now(self) -> datetime | None:
        """What now() is in views: the time of the last tick that had one."""
        return instant(self.notes)

    @property
    def clock(self) -> Literal["manual", "wall", "watermark"]:
        """What moves the time."""
        return "watermark" if self._definitions.marks else self._clock

    @property
    def reads_time(self) -> bool:
        """Whether a view depends on now()."""
        return is_temporal(self._definitions.circuit)

    @property
    def next_due(self) -> datetime | None:
        """When the passing of time next makes a row come or go, if nothing else happens; None if nothing waits."""
        with self._lock:
            self._contents.check_open()
            if self._due[0] is not (committed := self._runtime.committed):
                self._due = (committed, next_due(committed))
            return self._due[1]

    @property
    def state_id(self) -> str:
        """What names this state for good, wherever its folder is moved."""
        found = self._runtime.committed.program.id
        assert found is not None
        return found

    @property
    def epoch(self) -> int:
        """How many ticks have been committed, definitions that filled something included."""
        return self._runtime.epoch

    @property
    def last_tick(self) -> TickResult | None:
        """What the last tick did: counters by node, seconds."""
        return self._runtime.committed.last

    def explain(self, view: str | None = None) -> Explanation:
        """Plan and circuit of one view, or of all; print it, or take its `.json()`."""
        with self._lock:
            if view is not None:
                view = self.view(view).name
            return explain(
                {name: plan for name, plan in self._definitions.plans.items() if view in (None, name)},
                self._definitions.circuit,
                self._runtime.statistics(),
                self.last_tick,
                self._runtime.shards,
                sources=self._catalog.sources,
                sinks={sink.name: (sink.view, sink.sink) for sink in self._catalog.sinks.values()},
            )

    def close(self) -> None:
        """Frees the state; views can no longer be read."""
        with self._lock:
            if not self._contents.closed:
                self._contents.closed = True
                self._runtime.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def _definitions(self) -> Definitions:
        return self._contents.definitions

    @property
    def _catalog(self) -> Catalog:
        return self._definitions.catalog

    def _kept(self) -> frozenset[str]:
        """The tables, in lower case, that the state has and no statement of this session declared."""
        return frozenset(name.lower() for name in self._runtime.committed.program.tables) - frozenset(self._catalog.tables)

    def _install(
        self, catalog: Catalog, dropped: Collection[str], notes: Mapping[str, Any] | None = None, *, replace: bool = False
    ) -> None:
        circuit = self._compiler.circuit(catalog)
        supplied = self._definitions is not NOTHING  # with a program came the functions that the state names
        if not (supplied or replace):
            check_functions(self._runtime.committed.program.functions, circuit)
        marks = Marks.of(self._watermarks, catalog)
        kept = {name: entry for name, entry in marks.kept(self.notes).items() if name not in {gone.lower() for gone in dropped}}
        notes = {**(notes or {}), **installed(self._clock, marks, self.notes, circuit)}
        if kept != self.notes.get(WATERMARKS, {}):
            notes[WATERMARKS] = kept or None
        self._runtime.install(
            circuit, dropped=dropped, notes=notes, definitions=Definitions.of(catalog, self._compiler.plans, circuit, marks)
        )
        self._settle()
