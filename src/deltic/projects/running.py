"""Refreshes the datasets of a project.

Level by level: Spark runs its flows, one tick takes what has changed in all that Deltic reads, and the views that changed are written. What
has been written and read is noted in the state, so that a run that ends early is completed by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

from deltic.errors import EvaluationError, QueryError
from deltic.frontends.sql.parse_dataset import QueryText
from deltic.pipeline import Summary
from deltic.projects.cost import recomputation
from deltic.projects.definitions import SINK, Dataset
from deltic.projects.direct import local
from deltic.projects.flows import have_been_read, reset, rows_are_lost, rows_are_of_others, run_events, run_flow, united
from deltic.projects.notes import NOTE, ProjectNotes
from deltic.projects.planning import DatasetPlan, EventsPlan, FlowPlan, ProjectPlan, tables_of
from deltic.projects.progress import Listener, RunProgress
from deltic.projects.publishing import Publisher
from deltic.projects.server import Server, spark_errors, together
from deltic.projects.source_reads import SourceReads
from deltic.projects.tables import TRANSACTIONAL, CatalogTables, Creation
from deltic.session import Program, Session
from deltic.session.options import PIPELINE_RETAINS
from deltic.storage.program import ProgramDescription
from deltic.types import backquoted

STATE: Final = "_deltic"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Selection:
    """What a run refreshes. refresh: keys; all datasets if empty. full: those that are computed from nothing."""

    refresh: frozenset[str] = frozenset()
    full: frozenset[str] = frozenset()
    full_all: bool = False

    def includes(self, key: str) -> bool:
        chosen = self.refresh | self.full
        return self.full_all or not chosen or key in chosen

    def from_nothing(self, key: str) -> bool:
        return self.full_all or key in self.full


class ProjectRun:
    """A run of a project: use it in a `with` block. state: the folder or URL of Deltic's state. say: receives a line for each step."""

    def __init__(self, plan: ProjectPlan, server: Server, state: str, say: Say) -> None:
        self.plan, self.server, self._say = plan, server, say
        self.session = Session(state=state, retain=PIPELINE_RETAINS, clock="wall")
        self.notes = ProjectNotes.of(self.session)
        self.tables = CatalogTables(server, plan.project.storage, state, self.notes)
        self.publisher = Publisher(self.session, server, self.tables, self.notes)
        self._waiting: set[str] = set()
        """Views that are left out until the tick of their level: their rows would be computed twice, or cannot be computed now."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def refresh(self, selection: Selection, listener: Listener | None = None) -> Summary:
        """Refreshes the datasets. listener: receives the progress of each tick.

        Raises QueryError, with the dataset's place, if Spark or Deltic fails; what precedes it stays.
        """
        self.progress = RunProgress(self.session, self.publisher, self.plan.incremental, listener)
        datasets = self.plan.datasets.values()
        self._define(selection)
        self._restore(selection)
        self._create(selection, [one for one in datasets if not (one.dataset.live and one.dataset.key in self._waiting)])
        for level in range(1 + max((one.level for one in datasets), default=0)):
            self.progress.begin()
            run = [one for one in datasets if one.level == level and one.refresh != "incremental" and selection.includes(one.dataset.key)]
            self._reset([one for one in run if one.refresh in ("appended", "written") and self._from_nothing(one.dataset.key, selection)])
            for wave in waves(run):
                for lines in together(partial(self._run, one) for one in wave):
                    for line in lines:
                        self._say(line)
            events = [key for key, one in self.plan.events.items() if self._begins(one, level, selection)]
            self.progress.clock.lap("flows")
            self._tick(level, [*(one.dataset.key for one in run), *events], selection)
            self._publish(
                [one for one in datasets if one.level == level and one.refresh == "incremental" and selection.includes(one.dataset.key)]
            )
            self.progress.clock.lap("sinks")
            self.progress.ended()
        self._note()
        self.progress.summary.epoch = self.session.epoch
        return self.progress.summary

    def _define(self, selection: Selection) -> None:
        """Makes the project the definitions of the session. Tables with other columns, and views from nothing, are filled again.

        The tables of views from nothing, and of those that the project did not define, are then written whole.
        """
        emptied = [one.dataset.key for one in self.plan.incremental if selection.from_nothing(one.dataset.key)]
        changed, views = self._changed_tables(), {one.dataset.key for one in self.plan.incremental}
        held = self.plan.tables.keys() & {name.lower() for name in ProgramDescription.of(self.session.notes).tables}
        if emptied or changed:
            self.notes.keep(held - set(changed), views - set(emptied))
            self._install(emptied, changed)
        self.notes.keep(held, views)
        self._install()

    def _install(self, views: Collection[str] = (), tables: Collection[str] = ()) -> None:
        """Defines the project without some views, and without tables and what reads them. Views that cannot be filled are left out, too.

        The rows that are held may be those of a source that has been repaired since.
        """
        try:
            self._program({*self._waiting, *views}, tables)
        except EvaluationError:
            lacking = self.session._lacking(self._defined({*self._waiting, *views}, tables))
            if not lacking:
                raise
            self._waiting |= lacking
            self._program({*self._waiting, *views}, tables)
            for key in sorted(lacking):
                self._waiting.remove(key)
                try:
                    self._program({*self._waiting, *views}, tables)
                except EvaluationError as error:
                    self._waiting.add(key)
                    self._say(f"{key}: not filled before its sources are read: {error.message}")

    def _program(self, views: Collection[str], tables: Collection[str] = ()) -> None:
        """See `_defined`."""
        self.session.program(self._defined(views, tables), notes=self.notes.json() if self._to_note else None)

    def _defined(self, views: Collection[str], tables: Collection[str] = ()) -> Program:
        """The project without some views, and without tables and what reads them."""
        return Program.defined_by(one for one in self.plan.statements(tables) if getattr(one, "name", None) not in views)

    def _fill(self, level: int, selection: Selection) -> None:
        """Defines the views of a level, and of those before it, that have been left out."""
        due = {one.dataset.key: one for one in self.plan.incremental if one.level <= level and selection.includes(one.dataset.key)}
        filled = due.keys() & self._waiting
        if filled:
            self._program(self._waiting - filled)
            self._waiting -= filled
            self.progress.ticked()
            self._create(selection, [due[key] for key in filled if due[key].dataset.live])

    def _changed_tables(self) -> list[str]:
        """The tables that differ from those of the state."""
        before = ProgramDescription.of(self.session.notes)
        changed = []
        for key, table in self.plan.tables.items():
            old = next((one for name, one in before.tables.items() if name.lower() == key), None)
            if old is not None and (old.fields != table.schema.fields or old.key):
                changed.append(key)
        return changed

    def _create(self, selection: Selection, datasets: Iterable[DatasetPlan]) -> None:
        """Creates the tables of datasets."""
        stored = [one for one in datasets if one.dataset.stored and selection.includes(one.dataset.key)]
        if not stored:
            return
        self._forget_lost(stored)
        self._check_flows(stored, selection)
        self.tables.look_up(one.dataset for one in stored if one.schema is not None)
        dropped = self._forget_dropped(stored)
        withdrawn = self._withdrawn(stored, selection)
        for one in stored:
            dataset = one.dataset
            if one.schema is None:
                continue
            with spark_errors(f"{dataset.place}: {dataset.key}: "):
                creation = self.tables.create(dataset, one.schema, from_nothing=self._from_nothing(dataset.key, selection))
            if creation == "extended":
                self._say(f"{dataset.key}: columns added")
            if creation == "pending":
                self._say(f"{dataset.key}: other columns")
            if creation in ("kept", "extended", "pending"):
                continue
            self._say(f"{dataset.key}: table created")
            if one.refresh == "appended":
                self._locate(dataset)
                if dataset.key in dropped:
                    self._check_dropped(dataset)
            elif not dataset.live:
                self._recover(dataset, creation, withdrawn.get(dataset.key))

    def _restore(self, selection: Selection) -> None:
        """Gives the catalog the tables that are read, but not refreshed, if it lacks them: the catalog of a session ends with it.

        Raises QueryError for one without rows that could be read.
        """
        selected = [one for one in self.plan.datasets.values() if selection.includes(one.dataset.key)]
        readers = {key: one.dataset for one in selected for key in self._tables_read(one) if not selection.includes(key)}
        read = [one for key, one in self.plan.datasets.items() if key in readers and one.dataset.stored and one.schema is not None]
        if not read:
            return
        self.tables.look_up(one.dataset for one in read)
        for one in read:
            dataset, reader = one.dataset, readers[one.dataset.key]
            if not self.tables.is_absent(dataset):
                continue
            if not self._can_be_restored(one):
                raise QueryError(
                    f"{reader.place}: {reader.key} reads {dataset.key}, which has no table", remedy=f"--refresh {reader.key},{dataset.key}"
                )
            assert one.schema is not None
            with spark_errors(f"{dataset.place}: {dataset.key}: "):
                self.tables.restore(dataset, one.schema, self._files(one))
            self._say(f"{dataset.key}: table created over its rows")

    def _tables_read(self, one: DatasetPlan) -> set[str]:
        """The datasets whose tables the refresh of a dataset reads: those that Spark reads, or those of which Deltic takes the changes."""
        keys, flows = set[str](), one.flows
        if one.refresh == "incremental":
            assert one.plan is not None
            keys = set(tables_of(one.plan))
            flows = tuple(events.flow for events in self.plan.events.values() if events.dataset.key == one.dataset.key)
        return {*keys, *(read.key for flow in flows for read in flow.reads)} & self.plan.datasets.keys()

    def _files(self, one: DatasetPlan) -> str | None:
        """The location of the files of a table without commits."""
        if one.dataset.live or not self._of_files(one):
            return None
        return self.tables.location(one.dataset) if one.refresh == "appended" else self.notes.locations.get(one.dataset.key)

    def _can_be_restored(self, one: DatasetPlan) -> bool:
        """Whether a table has been written, and its files are there, as far as they are on this machine."""
        dataset, location = one.dataset, self._files(one)
        if dataset.live:
            return dataset.key in self.session.views
        if one.refresh == "appended":
            known = local(self.tables.checkpoints(dataset)) is None or have_been_read(self.tables, dataset)
            return known and (location is None or not rows_are_lost(location))
        if location is None:
            return not self._of_files(one) and dataset.key in self.notes.remarks
        folder = local(location)
        return folder is None or folder.is_dir()

    def _forget_lost(self, datasets: Iterable[DatasetPlan]) -> None:
        """Streaming tables whose files were removed, as by DROP TABLE, start from nothing. What is left of the files cannot be read."""
        fed = [one.dataset for one in self._fed(datasets) if self._of_files(one)]
        lost = [dataset for dataset in fed if rows_are_lost(self.tables.location(dataset))]
        keys = {one.dataset.key for one in datasets}
        events = [one.dataset for one in self.plan.events.values() if one.dataset.key in keys and have_been_read(self.tables, one.dataset)]
        lost_events = [dataset for dataset in events if rows_are_lost(self.tables.events(dataset))]
        for dataset in lost_events:  # its own rows may have been removed with the events
            self.notes.published.pop(dataset.key, None)
        self._feed_again([*lost, *lost_events])
        for dataset in lost:
            self.tables.remove_rows(dataset)
        for dataset in (*lost, *lost_events):
            self._say(f"{dataset.key}: its files were removed, so its streams are read again")

    def _check_flows(self, datasets: Iterable[DatasetPlan], selection: Selection) -> None:
        """Raises QueryError for a streaming table of files that other flows have fed: Spark would drop rows of those it has now."""
        for one in datasets:
            key = one.dataset.key
            if one.refresh != "appended" or not self._of_files(one) or self._from_nothing(key, selection):
                continue
            (flow,) = self._flows(one)
            before, now = self.notes.flows.get(key), flow.flow.name
            location, checkpoint = self.tables.location(one.dataset), self.tables.checkpoint(one.dataset, now)
            if (before or now) != now or rows_are_of_others(location, checkpoint):
                fed = "other flows" if before in (None, now) else before
                raise QueryError(
                    f"{one.dataset.place}: {key} was fed by {fed}, and is now fed by {now}",
                    expected=f"the same flows: in format {self.tables.format(one.dataset)}, all flows of a table share one checkpoint",
                    remedy=f"--full-refresh {key} empties it and reads all its flows from the beginning; format delta allows further flows",
                )
            self.notes.flows[key] = now
        self._note()

    def _forget_dropped(self, datasets: Iterable[DatasetPlan]) -> set[str]:
        """As `_forget_lost`, of tables with commits that the catalog does not have. Before they are created; returns their keys."""
        fed = [one.dataset for one in self._fed(datasets) if not self._of_files(one)]
        dropped = [dataset for dataset in fed if self.tables.is_absent(dataset)]
        self._feed_again(dropped)
        return {dataset.key for dataset in dropped}

    def _fed(self, datasets: Iterable[DatasetPlan]) -> list[DatasetPlan]:
        """The streaming tables of which flows have been read."""
        return [one for one in datasets if one.refresh == "appended" and have_been_read(self.tables, one.dataset)]

    def _feed_again(self, datasets: Collection[Dataset]) -> None:
        """Notes of streaming tables that they start from nothing."""
        if datasets:
            self.notes.resets |= {dataset.key: True for dataset in datasets}
            self._note()

    def _check_dropped(self, dataset: Dataset) -> None:
        """A table that was dropped starts from nothing, unless the catalog, as that of another session, has found its rows again."""
        if self.server.rows(self.server.message(self.server.table(dataset.identifier).limit(1))).num_rows:
            del self.notes.resets[dataset.key]
        else:
            self._say(f"{dataset.key}: it was dropped, so its streams are read again")

    def _withdrawn(self, datasets: Iterable[DatasetPlan], selection: Selection) -> dict[str, list[Any]]:
        """Notes of views whose tables are not there, or are others, that they are not written; returns what was noted.

        Notes, too, which streaming tables are emptied by that. Before these tables are created: if the run then ends, the next one finds
        tables that are as they should be, but lack the rows.
        """
        differing = [one for one in datasets if one.schema is not None and self.tables.differs(one.dataset, one.schema)]
        keys = [one.dataset.key for one in differing]
        withdrawn = {key: self.notes.published.pop(key) for key in keys if key in self.notes.published}
        emptied = [one.dataset.key for one in differing if one.refresh == "appended" and selection.from_nothing(one.dataset.key)]
        self.notes.resets |= dict.fromkeys(emptied, True)
        if withdrawn or emptied:
            self._note()
        return withdrawn

    def _recover(self, dataset: Dataset, creation: Creation, published: list[Any] | None) -> None:
        """Gives a new table the files that it had in another catalog: that of a session ends with it. published: as was noted."""
        location = self.notes.locations.get(dataset.key)
        folder = None if location is None else local(location)
        if creation == "new" and location is not None and folder is not None and folder.is_dir():
            self.tables.locate(dataset, location)
            if published is not None:
                self.notes.published[dataset.key] = published
        else:
            self.notes.locations.pop(dataset.key, None)

    def _locate(self, dataset: Dataset) -> None:
        """A streaming table's files are in the project's storage, so that it can be created again in another catalog of sessions."""
        if self.tables.format(dataset) not in TRANSACTIONAL:
            self.tables.locate(dataset, self.tables.location(dataset))

    def _run(self, one: DatasetPlan) -> list[str]:
        """Runs a dataset by Spark; returns what there is to say. Others may run at the same time."""
        dataset = one.dataset
        if one.refresh == "inlined":
            self._view(one)
            return []
        if one.refresh == "recomputed":
            (flow,) = one.flows
            with self.server.under(flow.flow.names, flow.flow.settings), spark_errors(f"{dataset.place}: {dataset.key}: "):
                self.publisher.replace(dataset, self.server.frame(flow.message))
            return [f"{dataset.key}: recomputed by Spark"]
        flows = self._flows(one)
        rows = together(partial(run_flow, self.server, self.tables, one, flow) for flow in flows)
        return [f"{dataset.key}: flow {flow.flow.name} read {count:,} rows" for flow, count in zip(flows, rows, strict=True)]

    def _flows(self, one: DatasetPlan) -> tuple[FlowPlan, ...]:
        """The queries that feed a streaming table or sink."""
        return (united(one.flows),) if self._of_files(one) else one.flows

    def _of_files(self, one: DatasetPlan) -> bool:
        """Whether the rows of a dataset are in files without commits."""
        return one.dataset.kind != SINK and self.tables.format(one.dataset) not in TRANSACTIONAL

    def _from_nothing(self, key: str, selection: Selection) -> bool:
        """Whether a streaming table or sink starts from nothing: it is selected, or was, by a run that ended while it was emptied."""
        return selection.from_nothing(key) or key in self.notes.resets

    @contextmanager
    def _emptying(self, *keys: str) -> Iterator[None]:
        """A block that empties datasets in several steps. Noted before it, since half of the steps would lose rows or repeat them."""
        if keys:
            self.notes.resets |= dict.fromkeys(keys, True)
            for key in keys:
                self.tables.begin_again(self.plan.datasets[key].dataset)
            self._note()
        yield
        for key in keys:
            del self.notes.resets[key]

    def _reset(self, datasets: Collection[DatasetPlan]) -> None:
        """Streaming tables and sinks start from nothing."""
        self.notes.flows |= {one.dataset.key: self._flows(one)[0].flow.name for one in datasets if self._of_files(one)}
        with self._emptying(*(one.dataset.key for one in datasets)):
            for one in datasets:
                self.notes.files.pop(one.dataset.key, None)
                for i, flow in enumerate(self._flows(one)):
                    reset(self.tables, one, flow, i == 0)

    def _begins(self, events: EventsPlan, level: int, selection: Selection) -> bool:
        """Runs a stream of events, if its dataset is refreshed on this level."""
        key = events.dataset.key
        if self.plan.datasets[key].level != level or not selection.includes(key):
            return False
        from_nothing = self._from_nothing(key, selection)
        if from_nothing:
            self.notes.files.pop(events.flow.flow.name, None)
        with self._emptying(*[key] * from_nothing):
            run_events(self.server, self.tables, events, from_nothing)
        return True

    def _view(self, one: DatasetPlan) -> None:
        """CREATE VIEW is a view of the catalog too."""
        (flow,) = one.flows
        if one.dataset.kind != "view" or not isinstance(flow.flow.query, QueryText):
            return
        columns = f" ({', '.join(backquoted(name) for name in one.dataset.names)})" if one.dataset.names else ""
        with self.server.under(flow.flow.names, flow.flow.settings):
            self.server.sql(f"CREATE OR REPLACE VIEW {one.dataset.identifier}{columns} AS {flow.flow.query.text}")

    def _tick(self, level: int, run: Iterable[str], selection: Selection) -> None:
        """Takes what has changed in the sources, on the first level, and in what Spark has written up to this level."""
        reading = SourceReads(self.plan, self.server, self.tables, self.notes, self._say)
        needed = self._sources(selection)
        reads = [partial(reading.source, key, read) for key, read in self.plan.sources.items() if level == 0 and key in needed]
        written = {key for key, one in self.plan.datasets.items() if one.level == level and one.refresh not in ("incremental", "inlined")}
        taken = set(run) | (written & needed)
        together([*reads, *(partial(reading.dataset, key) for key in self.plan.tables if key in taken)])
        self.progress.has_read(reading)
        self.progress.clock.lap("read")
        if reading or (level == 0 and self.session._reads_time):
            self._apply(reading, selection)
        self._fill(level, selection)
        self.progress.clock.lap("tick")

    def _publish(self, views: Sequence[DatasetPlan]) -> None:
        """Writes views to their tables, several at a time."""
        for one, line in zip(views, together(partial(self.publisher.publish, one) for one in views), strict=True):
            self._say(line)
            self.progress.wrote(one.dataset.key)

    def _apply(self, reading: SourceReads, selection: Selection) -> None:
        """One tick, without the views that are then recomputed because that is cheaper."""

        def leave_out(changed: Mapping[str, int]) -> dict[str, Any]:
            held = {key: self.session._rows_held(key) for key in self.plan.tables}
            before = len(self._waiting)
            for one in self.plan.incremental:
                key = one.dataset.key
                why = recomputation(one, changed, held) if selection.includes(key) and key not in self._waiting else None
                if why is not None:
                    self._say(str(why))
                    self._waiting.add(key)
                    self.notes.published.pop(key, None)
            if len(self._waiting) > before:
                self.session.program(self._defined(self._waiting))
            return self.notes.json()

        self.session._replace(reading.contents, reading.changes, leave_out)
        self.progress.ticked()

    def _sources(self, selection: Selection) -> set[str]:
        """The sources that the chosen views read."""
        chosen = [one for one in self.plan.incremental if selection.includes(one.dataset.key)]
        return {name for one in chosen if one.plan is not None for name in tables_of(one.plan)}

    @property
    def _to_note(self) -> bool:
        """Whether the state has other notes."""
        return bool(self.session.notes.get(NOTE) != self.notes.json()[NOTE])

    def _note(self) -> None:
        if self._to_note:
            self.session._note(self.notes.json())


def waves(datasets: Sequence[DatasetPlan]) -> list[list[DatasetPlan]]:
    """Datasets that Spark runs at the same time: each after those that it reads."""
    numbers: dict[str, int] = {}
    for one in datasets:
        numbers[one.dataset.key] = 1 + max((numbers[key] for key in one.reads if key in numbers), default=-1)
    all_levels = range(1 + max(numbers.values(), default=-1))
    return [[one for one in datasets if numbers[one.dataset.key] == number] for number in all_levels]


def state_of(plan_storage: str, given: str | None) -> str:
    """The location of the state: `given`, or a folder in the project's storage."""
    if given is not None:
        return given
    return f"{plan_storage.rstrip('/').replace('s3a://', 's3://', 1)}/{STATE}"


def chosen(plan: ProjectPlan, names: Iterable[str]) -> frozenset[str]:
    """The keys of datasets. Raises QueryError for a name that no dataset has."""
    keys = set()
    for name in names:
        key = plan.project.names.key(name)
        if key not in plan.datasets:
            raise QueryError(f"there is no dataset {name}", expected=f"one of {', '.join(plan.datasets)}")
        keys.add(key)
    return frozenset(keys)
