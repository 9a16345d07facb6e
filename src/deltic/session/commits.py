"""The commits of a session, one at a time: its ticks and its definitions.

A runtime's last commit is replaced as a whole, definitions included. What follows it here (calls of subscribers, a commit that brings new
definitions to the current time) may be cut off by Ctrl-C, so each turn begins with what the one before it left undone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import datetime
from threading import RLock
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar

from deltic.circuit.pending import PendingRows
from deltic.connectors.offset_notes import without_offsets
from deltic.errors import DelticError
from deltic.optimizer.row_estimates import Sizes
from deltic.runtimes import GroupingRuntime, Runtime
from deltic.schema import Forms
from deltic.session.alterations import Transition, forms_in_state
from deltic.session.catalog import Catalog
from deltic.session.clock import SessionClock, advanced_us, is_behind
from deltic.session.collector import FEW, uncollected
from deltic.session.column_defaults import defaults_note
from deltic.session.compiling import Compiler
from deltic.session.contents import Contents
from deltic.session.definitions import NOTHING, Definitions
from deltic.session.draft import DefinitionGuard
from deltic.session.earlier_ticks import check_earlier_ticks, queries_of
from deltic.session.functions import check_functions
from deltic.session.group_commit import TickQueue, WaitingTick
from deltic.session.lateness import late_tables, watermarks_after, watermarks_after_definitions, watermarks_of
from deltic.session.plan_sizes import PlanSizes, sizes_note
from deltic.session.plan_warnings import warn_of_plans
from deltic.session.reentrance import calling, check_not_called
from deltic.storage.program import CLOCK, PLANS, QUERIES, REACHED, PlannedSizes, TableDescription

Notes = Mapping[str, Any]
P = ParamSpec("P")
T = TypeVar("T")
NO_SIZES: Mapping[str, Sizes] = MappingProxyType({})


class Commits:
    """lock: the session's, which orders commits; reads take none. sampled: see PlanSizes. grouping: the runtime if it can commit groups."""

    def __init__(
        self,
        runtime: Runtime,
        contents: Contents,
        clock: SessionClock,
        compiler: Compiler,
        lock: RLock,
        *,
        sampled: bool,
        grouping: GroupingRuntime | None,
    ) -> None:
        self._runtime, self._contents, self._clock, self.compiler, self._lock = runtime, contents, clock, compiler, lock
        self._grouping, self._ticks = grouping, TickQueue(lock, self._commit_waiting)
        self._sampled = sampled
        self.plans: Mapping[str, PlannedSizes] | None = None
        """The sizes by which another state planned its views, if definitions are to be planned as there."""
        self.tables: Mapping[str, TableDescription] | None = None
        """The tables of another state, if definitions are to be compiled as there."""
        self.guarded: tuple[Callable[[], bool], DefinitionGuard] | None = None
        """Whether the last pipeline is open, and what must allow definitions while it is: each statement of a draft, and each catalog."""
        self._settled = NOTHING
        """The definitions for which all that follows their commit has been done."""
        self._stated: Mapping[str, Collection[str]] | None = runtime.committed.program.functions
        """The functions that the state names, until they have been compared with those of the program."""

    @property
    def _definitions(self) -> Definitions:
        return self._contents.definitions

    @property
    def guard(self) -> DefinitionGuard | None:
        """What must allow definitions, while a pipeline is open."""
        return self.guarded[1] if self.guarded is not None and self.guarded[0]() else None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Commits in the block are this thread's alone; subscribers are called after it.

        Raises ClosedError, ReentrantCall, SubscriberError.
        """
        self._runtime.check_process()
        check_not_called(self._lock)
        with self._lock:
            self._contents.check_open()
            self._settle()
            yield
        self._contents.subscribers.deliver()

    def tick(self, changes: Mapping[str, Any], notes: Notes, *, amends: bool = False, listed: int = 0) -> None:
        """Commits changes by table, in a turn. notes: override those of the clock. amends, listed: see `circuit.operator.Tick`."""
        if self._awaits_program:
            assert not changes
            self.note(notes)
            return
        noted = self._noted(self._runtime.notes, changes, notes, amends=amends)
        precedence = self._contents.precedence
        try:
            precedence.begin()
            self._quietly(self._runtime.tick, changes, noted, amends=amends, listed=listed)
        finally:
            precedence.end()
        self._queue()

    def submit(self, changes: Mapping[str, Any], notes: Notes, check: Callable[[], None], listed: int = 0) -> None:
        """Commits changes by table as one tick, alone or together with those of other threads. check: raises what prevents it, in its turn.
        listed: see `circuit.operator.Tick`.

        Raises ClosedError, ReentrantCall, SubscriberError.
        """
        self._runtime.check_process()
        check_not_called(self._lock)
        if self._grouping is None or self._awaits_program:
            with self._lock:
                self._contents.check_open()
                self._settle()
                check()
                self.tick(changes, notes, listed=listed)
            self._contents.subscribers.deliver()
            return
        self._ticks.run(WaitingTick(changes, notes, check, listed))
        if self._grouping.unshown:  # the thread that would have shown them all was interrupted
            with self._lock:
                self._queue()
        self._contents.subscribers.deliver()

    def _noted(self, known: Notes, changes: Mapping[str, Any], notes: Notes, *, amends: bool = False) -> Notes:
        """The notes of a tick. known: those of the commit before it."""
        definitions = self._contents.definitions
        timed = self._clock.notes_of_tick(definitions.marks, known, changes)
        late = watermarks_after(definitions.late, known, changes) if definitions.late and not amends else {}
        return {**timed, **late, **notes}

    def _commit_waiting(self, ticks: Sequence[WaitingTick]) -> None:
        """See TickQueue."""
        assert self._grouping is not None
        left, precedence = deque(ticks), self._contents.precedence
        while left:
            try:
                precedence.begin()
                self._commit_group(left, self._grouping)
            finally:
                precedence.end()
            self._queue()

    def _commit_group(self, left: deque[WaitingTick], runtime: GroupingRuntime) -> None:
        """Takes ticks that one sync makes durable, or one that is too large for that. If it fails, so do they, and those whose errors may
        depend on them."""
        taken: list[WaitingTick] = []
        failure: Exception | None = None
        with runtime.group():
            try:
                while left and self._joins(left[0], runtime):
                    tick = left.popleft()
                    if tick.done:
                        break
                    taken.append(tick)
                runtime.commit_group()
            except Exception as error:  # any: the threads that wait raise it
                failure = error
            finally:
                if failure is not None or not runtime.pending:  # else the thread is interrupted, and another one commits them
                    for tick in taken:
                        if failure is not None and runtime.pending:
                            tick.error = _again(failure)
                        tick.done = True

    def _joins(self, tick: WaitingTick, runtime: GroupingRuntime) -> bool:
        """Computes a tick; False if it cannot be in this group. Its error is its own. It is done if it was too large to wait for a sync."""
        before: int | None = None
        try:
            self._contents.check_open()
            if not runtime.pending:
                self._settle()
            tick.check()
            noted = self._noted(runtime.newest.notes, tick.changes, tick.notes)
            before = runtime.newest.epoch
            return self._quietly(runtime.join, tick.changes, noted, listed=tick.listed)
        except Exception as error:  # any: its own thread raises it
            tick.error = error
            return True
        finally:  # at once: an interrupted thread leaves it to others only if it is not committed
            if before is not None and not runtime.pending and runtime.newest.epoch > before:
                tick.done = True

    def _quietly(
        self, run: Callable[Concatenate[Mapping[str, Any], P], T], changes: Mapping[str, Any], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The result of a tick, computed without the collector of cycles if the changes are few."""
        rows = [change.rows.length for change in changes.values() if isinstance(change, PendingRows)]  # a frame of Spark's is not counted
        if len(rows) == len(changes) and sum(rows) <= FEW:
            return calling(self._lock, uncollected, run, changes, *args, **kwargs)  # type: ignore[arg-type]  # a ParamSpec within another
        return calling(self._lock, run, changes, *args, **kwargs)

    def _queue(self) -> None:
        """Queues the calls of subscribers for each commit since the last one that was queued."""
        self._contents.queue()
        grouping = self._grouping
        while grouping is not None and grouping.show_next():
            self._contents.queue()

    def advance_to(self, moment: datetime) -> None:
        """A tick at `moment`, in a turn; before the definitions of a state, its first tick after them. Raises ClockError."""
        now_us = advanced_us(self._runtime.notes, moment)
        self.tick({}, {REACHED if self._awaits_program else CLOCK: now_us})

    @property
    def _awaits_program(self) -> bool:
        """Whether the state has a program that the session has not defined: a tick would pass its views by."""
        committed = self._runtime.committed
        is_defined = self._stated is None and bool(committed.circuit.nodes)  # first definitions that fail may leave a circuit of tables
        return not is_defined and bool(committed.program.arrangements)

    def note(self, notes: Notes) -> None:
        """Commits notes alone, in a turn. That is no tick: it has no time, and streams keep the rows of the last one."""
        self._runtime.note(notes)

    def install(
        self,
        catalog: Catalog,
        dropped: Collection[str],
        notes: Notes | None = None,
        *,
        replace: bool = False,
        replanned: Collection[str] = (),
    ) -> None:
        """Makes a catalog the session's, in a turn. dropped: tables whose rows go. replace: whether views by other functions may go.
        replanned: views, in lower case, whose joins are ordered by the sizes that tables have now."""
        if (guard := self.guard) is not None:
            guard(catalog, None)
        calling(self._lock, lambda: self._install(catalog, dropped, notes, replace=replace, replanned=replanned))
        self._settle()

    def _install(
        self, catalog: Catalog, dropped: Collection[str], notes: Notes | None, *, replace: bool, replanned: Collection[str]
    ) -> None:
        forms, transitions = self._altered(catalog, dropped)
        circuit = self.compiler.circuit(catalog, self._sizes(replanned, self.compiler.sizes_of_views if transitions else NO_SIZES), forms)
        warn_of_plans(self.compiler.optimized_plans)
        queries = queries_of(self.compiler.denotations)
        if self._stated is not None:
            if not replace:
                check_functions(self._stated, circuit, catalog.python_functions())
            check_earlier_ticks(self._runtime.committed.program, circuit, queries, replace=replace)
        marks = self._clock.marks(catalog)
        timed = self._clock.notes_of_definitions(marks, self._runtime.notes, circuit, dropped)
        timed = {**timed, **watermarks_of(late_tables(catalog.tables.values()), self._runtime.notes, dropped)}
        definitions = Definitions.of(catalog, self.compiler.plans, circuit, marks, self._definitions, self.compiler.places)
        defaults = defaults_note(catalog.tables.keys(), catalog.initial, self._runtime.notes, dropped)
        described = {QUERIES: queries, PLANS: sizes_note(self.compiler.sizes), **defaults}
        if transitions:
            self._runtime.prepare(*self.compiler.prepared(self._definitions, transitions))
        dropped_tables = {*dropped, *(one.after.name for one in transitions)}
        unread = without_offsets(self._runtime.notes, self._without_rows(catalog, dropped))
        self._runtime.install(
            circuit, dropped=dropped_tables, notes={**unread, **(notes or {}), **timed, **described}, definitions=definitions
        )
        self._stated = None

    def _without_rows(self, catalog: Catalog, dropped: Collection[str]) -> set[str]:
        """The tables that are dropped, and those that are new: of one that an earlier version dropped, the state may still have offsets."""
        held = {name.lower() for name in self._runtime.committed.program.tables}
        return {*(name.lower() for name in dropped), *(catalog.tables.keys() - held)}

    def lacking(self, catalog: Catalog, dropped: Collection[str]) -> frozenset[str]:
        """The views of a catalog that `install` would fill, since the state lacks them; in a turn."""
        circuit = self.compiler.circuit(catalog, self._sizes(), self._altered(catalog, dropped)[0])
        held = self._runtime.committed.program.arrangements
        return frozenset(view for view, arrangement in circuit.views.items() if arrangement not in held)

    def register(self, catalog: Catalog) -> None:
        """Makes a catalog that has another function the session's, in a turn. The views of a state stay until a program is defined."""
        if self._stated is None or catalog.views:
            self.install(catalog, (), replace=True)
        else:
            circuit = self.compiler.circuit(catalog, self._sizes(), self._altered(catalog, ())[0])
            marks = self._clock.marks(catalog)
            self._runtime.declare(Definitions.of(catalog, self.compiler.plans, circuit, marks, self._definitions, self.compiler.places))
            self._settle()

    def _altered(self, catalog: Catalog, dropped: Collection[str]) -> tuple[dict[str, Forms], list[Transition]]:
        """See `forms_in_state`."""
        dropped_tables = {name.lower() for name in dropped}
        stored = self._runtime.committed.program.tables if self.tables is None else self.tables
        state = {name: table for name, table in stored.items() if name.lower() not in dropped_tables}
        forms, transitions = forms_in_state(catalog.tables.values(), catalog.altered, state)
        return forms, transitions if self.tables is None else []

    def _sizes(self, replanned: Collection[str] = (), kept: Mapping[str, Sizes] = NO_SIZES) -> PlanSizes:
        """kept: by view in lower case, the sizes that it has unless it is replanned."""
        circuit = self._definitions.circuit
        return PlanSizes(self._runtime, circuit, sampled=self._sampled, replanned=replanned, stated=self.plans, kept=kept)

    def _settle(self) -> None:
        """Does what follows the last commit, unless it has been done."""
        self._queue()
        definitions = self._contents.definitions
        if self._settled is definitions:
            return
        self._contents.subscribers.keep(definitions.views)
        known = self._runtime.notes
        timed = self._clock.notes_after_definitions(definitions, known, self._runtime)
        late = watermarks_after_definitions(definitions.late, known, definitions.circuit, self._runtime)
        try:
            if timed is not None or late:
                self.tick({}, {**(timed or {}), **late}, amends=True)
            if is_behind(self._runtime.notes) and not self._awaits_program:
                self.tick({}, {})
        except DelticError:
            self._settled = definitions
            raise
        self._settled = definitions


def _again(error: Exception) -> Exception:
    """An error for one more thread."""
    if not isinstance(error, DelticError):
        return error
    other = copy(error)
    other.args, other.__cause__ = error.args, error
    return other
