"""The session, the object that users work with: it assembles front ends, optimizer, lowering and runtime. Safe to share between threads.

One lock orders ticks and definitions; reads take none and see the last commit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from threading import RLock
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from deltic.connectors.connector import SourceSpec
from deltic.connectors.file_loads import CsvOptions
from deltic.connectors.recognise import is_spark
from deltic.connectors.source import RemoteRows, Run
from deltic.errors import CatalogError, CircuitError, FrameError, QueryError, SetupError, StateError, UnknownName
from deltic.explain import Explanation, explain
from deltic.frontends.datalog import Dialect
from deltic.frontends.python import UDF, Circuit, Columns, Delay, Lateness, check_unchanged
from deltic.frontends.sql import Args, parse_sql
from deltic.frontends.statements import DropTable, Statement
from deltic.kernels import prepare
from deltic.purity import shown
from deltic.runtimes import RETAINED_EPOCHS, TickResult
from deltic.runtimes.distributed import Distributed
from deltic.runtimes.program import checked
from deltic.schema import TableSchema, folded
from deltic.session.catalog import Catalog
from deltic.session.circuit_nodes import CircuitNode, circuit_nodes
from deltic.session.circuits import circuit_statements
from deltic.session.clock import Clock, SessionClock, instant, is_temporal
from deltic.session.collector import without_collector
from deltic.session.commits import Commits
from deltic.session.compiling import Compiler
from deltic.session.contents import Contents
from deltic.session.datalog import Datalog, datalog_statements
from deltic.session.definitions import Definitions
from deltic.session.draft import DefinitionGuard, Draft
from deltic.session.edn import EdnReport, EdnStore, Prepare
from deltic.session.edn_stores import EdnStores
from deltic.session.edn_view import EdnView
from deltic.session.engines import divides_tables, grouping, open_runtime, run_on_tasks, source_changes, spark_changes, workers_of
from deltic.session.frame_tables import inserts, table_of_frame
from deltic.session.frame_views import FrameView, frame_statements, frames_over
from deltic.session.gathering import Gathering
from deltic.session.load_progress import LoadProgress, ProgressOption, checked_progress
from deltic.session.loading import LOAD_ROWS, Loader
from deltic.session.options import OnViewError, RunOptions
from deltic.session.printing import PrintedViews, PrintLine, to_stderr
from deltic.session.program import Program, registration
from deltic.session.query import Answer, answered
from deltic.session.reentrance import calling, check_not_called, held
from deltic.session.replacement import replacement
from deltic.session.row_changes import changed_rows
from deltic.session.script import ScriptStep, applied, steps_of
from deltic.session.transaction import PartialChanges, PendingChanges, Transaction, unknown_table
from deltic.session.typed_transaction import TypedTransaction
from deltic.session.view import View
from deltic.session.view_definitions import SinkDefinition
from deltic.session.watermark import Watermark

if TYPE_CHECKING:
    import pyspark.sql

    from deltic.frontends.dataframes import Frames
_UNDEFINED: Final = (
    "run the whole script that defines it, since the state's views that the first definitions of a session lack are dropped; "
    "deltic.open(folder) reads the state without one"
)


class Session:
    """Tables, and views that stay exact while the tables change.

    spark: the SparkSession on which every tick runs; by default, ticks run in this process. state: a folder, or the URL of one in an object
    store, from which the next session resumes, on either engine; without one, the content is lost when the session is closed.
    shards: the number of hash ranges into which the state is split; by default that of the state, and for a new state 1 in this process, or
    Spark's parallelism. threads: the most threads that compute a large tick in this process, each a shard at a time, or an operator
    if there is one shard; by default as many as there are processors. Functions of your own may then be called by several threads at once.
    retain: how many epochs before the last stay readable, 0 or more. shared_state: every machine of the Spark cluster has the folder under
    this path.
    commit_log: ticks are durable in a log, which is faster; readers of the folder see them about a second later.
    iteration_limit: the most iterations of every recursion, besides its own limit.
    clock: what now() is in views. "manual": the time of the last `advance_to`. "wall": the time of the wall clock at each tick.
    A Watermark, or several: it follows columns of tables, as it does in any case if tables have the option `watermark`.
    on_view_error: "rollback": a tick on whose rows a view's expression fails is rolled back. "isolate": it is committed, the rows are
    errors of that view (`View.errors`), which cannot be read while it has any, and other views go on.
    progress: of loads. True: a bar on a terminal or in a notebook. A function gets a LoadProgress after each chunk.
    Raises SetupError for an invalid option.
    """

    def __init__(
        self,
        *,
        spark: pyspark.sql.SparkSession | None = None,
        state: str | os.PathLike[str] | None = None,
        shards: int | None = None,
        threads: int | None = None,
        retain: int = RETAINED_EPOCHS,
        shared_state: bool = False,
        commit_log: bool = False,
        iteration_limit: int | None = None,
        clock: Clock | Watermark | Iterable[Watermark] = "manual",
        on_view_error: OnViewError = "rollback",
        progress: ProgressOption = False,
    ) -> None:
        self._open(
            RunOptions(
                spark=spark,
                state=state,
                shards=shards,
                threads=threads,
                retain=retain,
                shared_state=shared_state,
                commit_log=commit_log,
                iteration_limit=iteration_limit,
                clock=clock,
                on_view_error=on_view_error,
                progress=progress,
            )
        )

    @classmethod
    def _of(cls, options: RunOptions) -> Self:
        """A session with these options."""
        session = cls.__new__(cls)
        session._open(options)
        return session

    def _open(self, options: RunOptions) -> None:
        self.spark = options.spark
        self._clock = SessionClock(options.clock)
        self._progress = options.progress
        self._iteration_limit = options.iteration_limit
        self._lock, self._ended = RLock(), False
        prepare()
        self._runtime = open_runtime(options)
        self._contents = Contents(self._runtime, self._lock)
        compiler = Compiler(self._runtime.shards, options.iteration_limit, isolates=options.on_view_error == "isolate")
        sampled, groups = options.spark is None, grouping(self._runtime)
        self._commits = Commits(self._runtime, self._contents, self._clock, compiler, self._lock, sampled=sampled, grouping=groups)
        self._printed = PrintedViews(self._contents)
        self._gathering = Gathering(self._runtime, self._lock)
        self._workers, self._divides_tables = workers_of(self._runtime), divides_tables(self._runtime)
        self._frames: Frames | None = None
        self._stores = EdnStores(self._contents, lambda: self.notes, self._define, self._commit_prepared, self.view)

    def sql(self, script: str, *, args: Args = None, name: str = "<sql>") -> None:
        """Runs CREATE and DROP statements: all of them, or none if one is refused. New views are filled in one tick.

        INSERT, UPDATE, DELETE, MERGE and TRUNCATE between them are each a tick; those between BEGIN and COMMIT are one, which ROLLBACK
        drops. Definitions after a tick see it, and are a commit of their own. All statements are checked before anything is applied; if one
        then fails, such as on the rows, those before it stay, and a note of the exception says which these are.
        args: the values of parameters: a dict for `:name`, or a list for `?`. A definition keeps the values that it is made with.
        Raises QueryError with the place in the script; EvaluationError if the query of a new view fails on the rows of its tables.
        """
        with self._commits.turn(), self._knowing_the_state():
            steps = self._read(script, name, args)
            for number, step in enumerate(steps):
                epoch = self.epoch
                try:
                    self._apply(step)
                except BaseException as error:
                    with suppress(StateError):  # after an interrupted commit, of a folder that cannot be read
                        is_applied = self.epoch > epoch if step.definitions is None else self._catalog is step.definitions.catalog
                        if done := number + is_applied:
                            error.add_note(applied(steps, done))
                    raise

    def _apply(self, step: ScriptStep) -> None:
        """Commits a step of a script, in a turn."""
        if step.definitions is not None:
            self._commits.install(step.definitions.catalog, step.definitions.dropped, replanned=step.definitions.replanned)
            return
        pending = self._gather()
        changed = calling(self._lock, lambda: changed_rows(step.tick, self._contents, self._time_of_changes(), self._iteration_limit))
        for table, frame in changed.items():
            pending.add_changes(table, frame)
        self._commits.tick(pending.rows(), {})
        self._gathering.end(pending)

    @without_collector
    def _read(self, script: str, name: str, args: Args) -> list[ScriptStep]:
        """Raises QueryError."""
        draft = self._draft()
        return steps_of(parse_sql(script, name, draft, self._time_of_changes(), args), draft, self._stores.check)

    def query(self, query: str, *, args: Args = None, name: str = "<query>") -> Answer:
        """The answer of one query over tables and views as of the last commit, which is not kept. Ticks go on meanwhile.

        EXPLAIN before the query answers its plan and circuit, as one row, `plan`.
        args: as in `sql`. It runs in this process, on Spark too. Raises QueryError with the place; EvaluationError if it fails on a row.
        """
        with self._knowing_the_state():
            return answered(self._contents, query, args, name, self._iteration_limit)

    def _typed_transaction(self) -> TypedTransaction:
        """A transaction whose statements come one by one."""
        draft = self._draft()
        return TypedTransaction(draft, self._contents, self._time_of_changes, self._iteration_limit)

    def datalog(
        self,
        program: str | os.PathLike[str] | Datalog,
        *,
        name: str = "<datalog>",
        dialect: Dialect = "ddlog",
        warn: bool = True,
        inspect: PrintLine = to_stderr,
    ) -> None:
        """Adds a Datalog program, or that of a file: input relations are tables, others views, materialized if they are outputs.

        All of it, or nothing. An input relation may be a table that exists, if the two are the same. Atoms read tables and views of the
        session by their names, and SQL reads the program's relations by theirs. Raises QueryError with the place in the program, and
        EvaluationError if a relation fails on the rows of its tables. warn: issue DatalogWarning for relations that nothing derives or
        reads. dialect: the syntax, DDlog's or Soufflé's. inspect: receives each line that Inspect prints; by default, on standard error.
        """
        source = Datalog.of(program, name, dialect)
        with self._commits.turn(), self._knowing_the_state():
            draft = self._draft()
            for statement in datalog_statements(source, draft, warn=warn):  # from here, so that its warnings name the caller's line
                draft.apply(statement)
            self._commits.install(draft.catalog, draft.dropped)
            self._printed.follow(draft.catalog, inspect)

    def edn_store(self, store: str, *, schema: Any = None, tables: Mapping[str, str] | None = None, name: str = "<schema>") -> EdnStore:
        """A store of entities, attributes and values: a table for each attribute, `store/attribute`.

        schema: the attributes in DataScript's or Datomic's form, as a text in EDN, which errors call `name`, or as values of Python.
        tables: {"person": "users"} makes the columns of the table users attributes :person/column of the entities that its key numbers.
        A store that exists, also one in the state, gets the attributes that it lacks; without `tables`, one in the state has those that it
        had. Raises QueryError.
        """
        return self._stores.open(store, schema, tables, name)

    def edn_transact(self, store: str, data: Any, *, name: str = "<transaction>") -> EdnReport:
        """`EdnStore.transact` of a store by its name."""
        return self._stores.store(store).transact(data, name=name)

    def edn(
        self,
        query: Any,
        *,
        name: str | None = None,
        store: str | None = None,
        rules: Any = None,
        inputs: Sequence[Any] = (),
        input_kinds: Mapping[str, str] | None = None,
    ) -> EdnView:
        """A query in EDN as a materialized view `name` over a store, by default the only one.

        Without a name, the view has one that follows from the other arguments and the schema: the same query is the same view, also after
        a restart.
        query: a map or vector, as a text or as forms. rules: those that % in :in stands for. Each other part of :in is a table. inputs:
        their first values, as of `EdnView.set_inputs`. input_kinds: of those that no data pattern has, such as {"?least": "long"}; by
        default that of the value in `inputs`. Raises QueryError with the place in the text.
        """
        return self._stores.query(query, name, store, rules, inputs, input_kinds)

    def view_of(self, name: str | FrameView, function: Callable[..., Any] | None = None, *, replace: bool = False) -> None:
        """A materialized view that a function defines by PySpark's DataFrames, with no server, JVM or socket.

        function: returns a DataFrame, made of `session.frame(name)`; it takes no argument, or the SparkSession, and is called once. Or a
        function with `@deltic.view` alone. Equal queries in SQL have the same plan, and share state. replace: of a view of the same name.
        Raises QueryError with the place in the function; EvaluationError if the view fails on the rows of its tables; SetupError without
        PySpark.
        """
        one = name if isinstance(name, FrameView) else FrameView(name, function)
        self._define(lambda draft: frame_statements(one, self._frame_maker(), draft, or_replace=replace))

    def frame(self, name: str) -> pyspark.sql.DataFrame:
        """A table or view as a DataFrame, in a function of `view_of`. Raises QueryError outside of one."""
        frames = self._frame_maker()
        if not frames.making:
            raise QueryError("session.frame is for functions that define views", expected="session.view_of(name, function)")
        return frames.spark.table(name)

    def _frame_maker(self) -> Frames:
        if self._frames is None:
            self._frames = frames_over(lambda: self._catalog)
        return self._frames

    def program(self, program: str | Program, *, name: str = "<sql>", notes: Mapping[str, Any] | None = None) -> None:
        """Replaces all definitions: what the program does not define is dropped, and views that it defines as before keep their state.

        program: a Program, or the text of a script, which errors call `name`. A view whose Python functions have changed is filled again.
        notes: committed with it, as in `apply`. Raises QueryError, CircuitError and EvaluationError as `sql` and `install` do, and
        StateError if a table differs from the state's; then nothing changes.
        """
        catalog = Program.of(program, name).catalog
        check_unchanged(view.plan for view in catalog.views.values())
        with self._commits.turn():
            self._commits.install(catalog, self._without(catalog), checked(notes or {}), replace=True)
            self._printed.follow(catalog)

    def _lacking(self, program: Program) -> frozenset[str]:
        """The views that `program` would fill, since the state lacks them."""
        with self._commits.turn():
            return self._commits.lacking(program.catalog, self._without(program.catalog))

    def _without(self, catalog: Catalog) -> list[str]:
        """The tables of the state that a catalog lacks."""
        return [table for table in self._runtime.committed.program.tables if table.lower() not in catalog.tables]

    def install(self, circuit: Circuit, *, replace: bool = False) -> None:
        """Adds the inputs of a circuit as tables, and its outputs as materialized views, to the definitions of the session.

        All of it or nothing. An input may be a table that exists, if the two are the same. Raises CircuitError, CatalogError and
        EvaluationError. If the state has views by functions that differ from the circuit's, or that it lacks, and these are the first
        definitions of the session, raises StateError; with `replace`, such views are dropped or filled again.
        """
        if not isinstance(circuit, Circuit):
            raise CircuitError(f"invalid circuit {circuit!r}", expected="a deltic.Circuit")
        self._define(lambda draft: circuit_statements(circuit, draft.catalog.tables, draft.catalog), replace=replace)

    def table_from(self, name: str, frame: Any, *, key: Sequence[str] = ()) -> None:
        """Creates a table with the columns and the rows of a frame of Spark, pandas, Polars, DuckDB or Arrow, or of a list of dicts.

        key: the columns of its PRIMARY KEY. If the state has the table already, its rows become those of the frame, by a tick of the
        difference. Raises FrameError for columns that no type has, CatalogError, ConstraintViolation, and StateError for other columns than
        the state's; then there is no new table.
        """
        made = table_of_frame(name, frame, key)
        with self._commits.turn():
            had = made.table.name.lower() in self._undeclared()
            if had and self.spark is not None:
                raise CatalogError(f"the state has a table {name}", remedy="CREATE TABLE declares it, and apply changes it")
            self._define(lambda draft: [made])
            try:
                if self.spark is None:
                    self._replace({made.table.name: frame}, {}, lambda changed: {})
                else:
                    self.apply({made.table.name: inserts(frame, made.table)})
            except BaseException:
                if not had:
                    self._define(lambda draft: [DropTable(made.table.name, False, made.span)])
                raise

    def load(
        self,
        table: str,
        source: Any,
        *,
        upsert: bool = False,
        resume: str | None = None,
        rows_per_tick: int = LOAD_ROWS,
        format: str | None = None,
        header: bool = False,
        sep: str = ",",
        null_value: str = "",
        progress: ProgressOption | None = None,
    ) -> LoadProgress:
        """Inserts the rows of a source into a table in chunks, each of them a tick, so that memory holds a chunk and not the source.

        source: a file, a folder, a pattern such as "orders/*.parquet", or a list of these; a frame; an Arrow RecordBatchReader, or what
        has an Arrow C stream; an iterator of frames or dicts. A Spark DataFrame is collected. format: of files, "parquet", "csv", "json"
        or "arrow"; by default what their names end in. header, sep, null_value: of CSV. upsert: rows replace those with the same key.
        progress: by default that of the session. Each tick commits alone: a load that fails, or is interrupted by Ctrl-C or an exception
        of the `progress` function, leaves the chunks before, whose rows the exception's note counts.
        resume: a name for the load, under which each tick commits that count to `notes`: the same call continues after these rows, and
        does nothing once all are loaded. Raises SourceError, and as a transaction; errors name the file and row, or the row in the load.
        """
        self._contents.check_open()
        checked_progress(self._progress if progress is None else progress)
        loader = Loader(
            lambda: self._gather(self._definitions),
            self._commit_pending,
            lambda: self._runtime.epoch,
            lambda: self.notes,
        )
        return loader.load(
            self.table(table),
            source,
            upsert=upsert,
            resume=resume,
            rows_per_tick=rows_per_tick,
            format=format,
            csv=CsvOptions(header, sep, null_value),
            progress=self._progress if progress is None else progress,
        )

    def stream(self, name: str, *, schema: Columns, lateness: Lateness | None = None, ahead: Delay | None = None) -> None:
        """Creates a stream, as CREATE STREAM does: it holds the rows that a tick inserts, and is empty in the next tick.

        schema: {"column": type}; lateness: {"column": "1 hour"}, and ahead: "1 day", as in `Circuit.stream`.
        Raises CircuitError, CatalogError.
        """
        circuit = Circuit()
        circuit.stream(name, schema=schema, lateness=lateness, ahead=ahead)
        if name.lower() in self._catalog.tables:
            raise CatalogError(f"{name} is defined already", remedy="drop it first, or give it another name")
        self.install(circuit)

    def register(
        self, name: str | UDF, function: Any = None, returns: Any = None, *, on_batches: bool = False, aggregate: bool = False
    ) -> None:
        """Makes a function in Python callable from SQL: a UDF, or what `UDF` takes. One of the same name is replaced.

        Views that call a replaced function are filled again. Raises CircuitError, and CatalogError for the name of a builtin function.
        """
        defined = name if isinstance(name, UDF) else UDF(name, function, returns, on_batches=on_batches, aggregate=aggregate)
        with self._commits.turn():
            draft = self._draft()
            draft.apply(registration(defined, or_replace=True))
            self._commits.register(draft.catalog)

    def transaction(self) -> Transaction:
        """Gathers changes, and commits them as one tick at the end of a `with` block."""
        return self._transaction()

    def _transaction(self, *, borrows: bool = False) -> Transaction:
        """borrows: see `_gather`."""
        self._contents.check_open()
        return Transaction(self._gather(self._definitions, borrows=borrows), self.table, self._commit_pending)

    def insert(self, table: str, frame: Any) -> None:
        """One tick of new rows; see `Transaction.insert`."""
        with self._transaction(borrows=True) as tx:
            tx.insert(table, frame)

    def upsert(self, table: str, frame: Any) -> None:
        """One tick of rows that replace those with the same primary key, or are new; see `Transaction.upsert`."""
        with self._transaction(borrows=True) as tx:
            tx.upsert(table, frame)

    def update(self, table: str, frame: Any) -> None:
        """One tick of rows that replace those with the same primary key, which must exist; see `Transaction.update`."""
        with self._transaction(borrows=True) as tx:
            tx.update(table, frame)

    def delete(self, table: str, keys_or_whole_rows: Any) -> None:
        """One tick of deletes; see `Transaction.delete`."""
        with self.transaction() as tx:
            tx.delete(table, keys_or_whole_rows)

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
        self._apply_frames(changes, sequence=sequence, notes=notes)

    def _apply_frames(
        self,
        changes: Mapping[str, Any],
        *,
        sequence: str | Mapping[str, str] | None = None,
        notes: Mapping[str, Any] | None = None,
        listed: int = 0,
    ) -> None:
        """See `apply`. listed: the most rows that a table refuses which the error lists."""
        self._contents.check_open()
        if type(changes) is not dict and not isinstance(changes, Mapping):
            raise FrameError(f"invalid changes {shown(changes)}", expected="a dict of change frames by table")
        pending = self._gather(self._contents.definitions, borrows=True)
        distributed: dict[str, Distributed] = {}
        given: dict[str, str] = {}
        for name, frame in changes.items():
            table = self.table(name)
            if (other := given.setdefault(table.name, name)) != name:
                raise FrameError(f"table {table.name} has two frames, as {other!r} and as {name!r}", expected="one frame of each table")
            column = sequence if sequence is None else sequence.get(name) if isinstance(sequence, Mapping) else sequence
            if self.spark is not None and is_spark(frame):
                distributed[table.name] = spark_changes(frame, table, column)
            elif self.spark is not None and isinstance(frame, Distributed):
                distributed[table.name] = frame
            elif self.spark is not None and isinstance(frame, RemoteRows):
                distributed[table.name] = source_changes(self.spark, frame, table)
            else:
                pending.add_frame(table, frame, column)
        self._tick(pending, distributed, checked(notes) if notes else {}, listed)
        self._gathering.end(pending)

    def _note(self, notes: Mapping[str, Any]) -> None:
        """Commits notes, as of `apply`, without a tick."""
        self._note_at(lambda epoch: notes)

    def _note_at(self, notes: Callable[[int], Mapping[str, Any]]) -> None:
        """The same for notes that depend on the epoch that they are committed in."""
        with self._commits.turn():
            self._commits.note(checked(notes(self.epoch + 1)))

    def _replace(
        self, contents: Mapping[str, Any], changes: Mapping[str, Any], before: Callable[[Mapping[str, int]], Mapping[str, Any]]
    ) -> None:
        """One tick that leaves each table of `contents` with exactly the rows of its frame, and applies change frames to others.

        before: gets the number of rows that change, by table, and may change the definitions of views; it returns the notes that are
        committed with the tick. In this process alone. Raises as `apply`.
        """
        self._contents.check_open()
        pending = self._gather()
        with self._commits.turn():
            for name, frame in changes.items():
                pending.add_frame(self.table(name), frame, None)
            circuit = self._definitions.circuit
            rows = dict(pending.rows())
            for name, frame in contents.items():
                table = self.table(name)
                held = self._runtime.committed.snapshot(circuit.tables[table.name])
                change = replacement(table, frame, circuit, held, self._runtime.strings)
                rows |= {table.name: change} if len(change) else {}
            notes = before({name: len(change) for name, change in rows.items()})
            self._commits.tick(rows, checked(notes))
        self._gathering.end(pending)

    def _time_of_changes(self) -> int:
        return self._clock.time_of_changes(self._definitions.marks, self._runtime.committed.notes)

    @property
    def _on_tasks(self) -> Run | None:
        """Runs functions in Spark's tasks; None in this process."""
        return None if self.spark is None else run_on_tasks(self.spark)

    def _rows_held(self, name: str) -> int:
        """How many different rows a table has. In this process alone."""
        arrangement = self._definitions.circuit.tables[self.table(name).name]
        return sum(spine.rows for spine in self._runtime.committed.snapshot(arrangement))

    def advance_to(self, moment: datetime) -> None:
        """A tick that sets the time, which is now() in views, to `moment`, a datetime with a zone.

        Raises ClockError if that is before the current time.
        """
        with self._commits.turn():
            self._commits.advance_to(moment)

    def _commit_pending(self, changes: PendingChanges, notes: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Makes them one tick."""
        self._tick(changes, {}, checked(notes) if notes else notes)
        self._gathering.end(changes)

    def _define(
        self, statements: Callable[[Draft], Iterable[Statement]], notes: Callable[[], Mapping[str, Any]] = dict, *, replace: bool = False
    ) -> None:
        """Applies statements that are made from the catalog's draft: all of them, or none. notes: committed with them.

        replace: as of `install`.
        """
        with self._commits.turn():
            draft = self._draft()

            def apply_all() -> None:
                for statement in statements(draft):
                    draft.apply(statement)

            calling(self._lock, apply_all)
            self._commits.install(draft.catalog, draft.dropped, notes(), replace=replace)

    def _guard(self, is_open: Callable[[], bool], guard: Callable[[Catalog], DefinitionGuard]) -> None:
        """Checks all further definitions by a pipeline's guard of the current ones, as long as the pipeline is open.

        Raises SetupError while another pipeline does.
        """
        with self._lock:
            if self._commits.guard is not None:
                raise SetupError(
                    "a pipeline over this session is open, and a second one would read each source again",
                    expected="one open pipeline over a session",
                    remedy="close the other one first",
                )
            self._commits.guarded = is_open, guard(self._catalog)

    def _draft(self) -> Draft:
        return Draft(self._catalog, self._undeclared(), self._commits.guard)

    def _commit_prepared(self, prepare: Prepare) -> int:
        """Makes changes that depend on the content one tick; returns its epoch."""
        pending = self._gather()
        with self._commits.turn():
            notes = calling(self._lock, lambda: prepare(pending))
            self._commits.tick(pending.rows(), notes)
            epoch = self._runtime.epoch
        self._gathering.end(pending)
        return epoch

    def _gather(self, definitions: Definitions | None = None, *, borrows: bool = False) -> PendingChanges:
        """definitions: those that the changes are gathered by; what they do not read is not encoded.

        borrows: whether the caller gives frames and commits them in one call of the user's, who cannot write to them meanwhile.
        """
        runtime = self._runtime
        runtime.check_process()
        changes = PendingChanges(runtime.strings, self._workers, definitions, borrows=borrows and self._divides_tables)
        return self._gathering.begin(changes)

    def _tick(self, pending: PendingChanges, distributed: Mapping[str, Distributed], notes: Mapping[str, Any], listed: int = 0) -> None:
        """Commits changes of this process, and others by table, as one tick. listed: see `_apply_frames`."""

        def check() -> None:
            if pending.definitions is self._contents.definitions:
                return  # nothing was defined meanwhile
            tables = {**pending.tables, **{name: frame.tables[name] for name, frame in distributed.items()}}
            for name, table in tables.items():
                if self.table(name) is not table:
                    raise CatalogError(
                        f"table {name} was altered, or dropped and created again, while changes were gathered",
                        remedy="gather them again",
                    )
            if not pending.fits(self._definitions.unread):
                raise PartialChanges

        try:
            self._commits.submit({**pending.rows(), **distributed}, notes, check, listed)
        except PartialChanges:
            pending.complete()
            self._commits.submit({**pending.rows(), **distributed}, notes, check, listed)

    def view(self, name: str) -> View:
        """A materialized view by its name."""
        definition = self._contents.definitions.catalog.views.get(folded(name, "view"))
        if definition is None:
            expected = f"one of {', '.join(self.views)}" if self.views else "a view created by CREATE MATERIALIZED VIEW"
            table = self._catalog.tables.get(name.lower())
            remedy = f"to read a table: CREATE MATERIALIZED VIEW v AS SELECT * FROM {table.name}" if table else None
            with self._knowing_the_state():
                raise UnknownName.of_relation(name, f"there is no view {name}", expected=expected, remedy=remedy)
        if not definition.materialized:
            raise CatalogError(f"view {definition.name} is not materialized", remedy="CREATE MATERIALIZED VIEW keeps a view's content")
        return View(self._contents, definition.name, self.spark)

    def table(self, name: str) -> TableSchema:
        """A table's schema by its name."""
        table = self._contents.definitions.catalog.tables.get(folded(name, "table"))
        if table is None:
            with self._knowing_the_state():
                raise unknown_table(name, self.tables, is_view=folded(name, "table") in self._catalog.views)
        return table

    @contextmanager
    def _knowing_the_state(self) -> Iterator[None]:
        """An error about a table or view that the state has, and that this session has not defined, says so."""
        try:
            yield
        except UnknownName as error:
            state, name = self._runtime.committed.program, (error.relation or "").lower()
            stated = next((one for one in (*state.tables, *state.views) if one.lower() == name), None)
            if stated is not None and all(one.lower() != name for one in self._catalog.names()):
                error.advise(f"the state has {stated}, which this session has not defined: {_UNDEFINED}")
            raise

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables."""
        return tuple(t.name for t in self._catalog.tables.values())

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the materialized views."""
        return tuple(v.name for v in self._catalog.views.values() if v.materialized)

    @property
    def failing(self) -> Mapping[str, int]:
        """The views that have errors, where errors are isolated, and how many rows fail in each. O(errors)."""
        return self._contents.failing()

    @property
    def sources(self) -> Mapping[str, SourceSpec]:
        """The sources of tables, by the table's name in lower case; tables without a source are not in it."""
        return self._catalog.sources

    @property
    def sinks(self) -> Mapping[str, SinkDefinition]:
        """The sinks by their names in lower case."""
        return self._catalog.sinks

    @property
    def circuit(self) -> tuple[CircuitNode, ...]:
        """The nodes that keep the views exact; the nodes of a scope follow its child node. O(nodes)."""
        return circuit_nodes(self._definitions.circuit)

    @property
    def notes(self) -> Mapping[str, Any]:
        """The notes that `apply` and `program` have committed, by name, and Deltic's own."""
        return self._runtime.notes

    @property
    def now(self) -> datetime | None:
        """What now() is in views: the time of the last tick that had one."""
        return instant(self.notes)

    @property
    def clock(self) -> Literal["manual", "wall", "watermark"]:
        """What moves the time."""
        return self._clock.kind(self._definitions.marks)

    @property
    def _reads_time(self) -> bool:
        """Whether a view depends on now()."""
        return is_temporal(self._definitions.circuit)

    @property
    def next_due(self) -> datetime | None:
        """When the passing of time next adds or removes a row of a view; None if no row waits."""
        with held(self._lock):
            self._contents.check_open()
            return self._clock.next_due(self._runtime.committed)

    @property
    def _state_id(self) -> str:
        """The id of the state, which it keeps when its folder is moved."""
        state_id = self._runtime.committed.program.id
        assert state_id is not None
        return state_id

    @property
    def _root(self) -> str | None:
        """The state folder; None if the state is in memory."""
        return self._runtime.root

    @property
    def epoch(self) -> int:
        """The number of the last commit: ticks, and definitions that filled a view, count."""
        return self._runtime.epoch

    @property
    def last_tick(self) -> TickResult | None:
        """The result of the last tick: changes of views, counters by node, seconds."""
        return self._runtime.committed.last

    def explain(self, view: str | None = None, *, level: bool = False) -> Explanation:
        """Plan and circuit of one view, or of all: print it, or use `.json()`. level: with the programs that run the levels."""
        with held(self._lock):
            self._contents.check_open()
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
                programs=level,
            )

    def close(self) -> None:
        """Frees the state; views can no longer be read. If Ctrl-C ends this, another call does the rest.

        In a process that was forked from the one that opened a state folder, the folder stays as it is.
        """
        if self._runtime.inherited:  # the lock may be held for ever, by a thread that the fork has not copied
            self._contents.closed = self._ended = True
            return
        check_not_called(self._lock)
        with self._lock:
            self._contents.closed = True
            if not self._ended:
                self._runtime.close()
                self._ended = True

    def __repr__(self) -> str:
        if self._ended:
            return "<session, closed>"
        tables, views = len(self.tables), len(self.views)
        return f"<session: {tables} table{'s' * (tables != 1)}, {views} materialized view{'s' * (views != 1)}, epoch {self.epoch}>"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _fold(self) -> None:
        """Shows all commits to readers of the state folder."""
        self._runtime.check_process()
        check_not_called(self._lock)
        with self._lock:
            self._runtime.fold()

    @property
    def _definitions(self) -> Definitions:
        return self._contents.definitions

    @property
    def _catalog(self) -> Catalog:
        return self._contents.definitions.catalog

    @property
    def _relations(self) -> Catalog:
        """What `deltic.Circuit(session)` reads."""
        return self._catalog

    def _isolates(self, view: str) -> bool:
        """Whether errors of a view are isolated, and it can have some."""
        return self.view(view).name in self._definitions.places

    def _undeclared(self) -> frozenset[str]:
        """The tables of the state, in lower case, that no definition of this session declares."""
        return frozenset(name.lower() for name in self._runtime.committed.program.tables) - frozenset(self._catalog.tables)
