"""The time of a session: now() in views is the time of the last tick that had one, and never goes back.

The rows that wait in a state are those that are due after its last tick. So the time does not move while the program of the state is not
defined: what it is advanced to is noted (REACHED), and is the time of a tick as soon as there are definitions that follow it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, get_args

from deltic.circuit.nodes import Dataflow
from deltic.circuit.operators.chain import temporal_filter
from deltic.circuit.pending import PendingRows
from deltic.errors import ClockError, SetupError
from deltic.runtimes import Committed, Runtime
from deltic.runtimes.distributed import Distributed
from deltic.session.catalog import Catalog
from deltic.session.definitions import Definitions
from deltic.session.time_column import wall_us
from deltic.session.watermark import BEGINNING, Marks, Watermark
from deltic.storage.program import CLOCK, REACHED, WATERMARKS
from deltic.trace.between import first_after
from deltic.trace.counters import Counters

Clock = Literal["manual", "wall"]
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST: Final = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
"""The end of the calendar, in microseconds."""
Notes = Mapping[str, Any]


class SessionClock:
    """What moves the time: the user ("manual"), the wall clock, or watermarks. Its methods return the notes to commit with a tick."""

    def __init__(self, clock: Clock | Watermark | Iterable[Watermark]) -> None:
        """Raises SetupError for an invalid clock."""
        self._clock, self._watermarks = checked_clock(clock)
        self._due: tuple[Committed | None, datetime | None] = (None, None)
        """When the next row comes due, as of the commit beside it."""

    def kind(self, marks: Marks) -> Literal["manual", "wall", "watermark"]:
        """What moves the time under definitions with these watermarks."""
        return "watermark" if marks else self._clock

    def marks(self, catalog: Catalog) -> Marks:
        """The session's watermarks and those of the catalog's tables. Raises ClockError for a column that cannot be one."""
        return Marks.of(self._watermarks, catalog)

    def notes_of_tick(self, marks: Marks, committed: Notes, changes: Mapping[str, PendingRows | Distributed]) -> Notes:
        """For a tick with these changes. committed: the notes of the last commit."""
        if not marks:
            return self._now(committed)
        advanced = marks.advanced(committed, marks.latest(changes))
        return {**advanced, CLOCK: max(committed[REACHED], advanced.get(CLOCK, BEGINNING))} if is_behind(committed) else advanced

    def time_of_changes(self, marks: Marks, committed: Notes) -> int:
        """The time of statements that are about to change rows, in microseconds since 1970 UTC."""
        return time_us(committed if marks else {**committed, **self._now(committed)})

    def notes_of_definitions(self, marks: Marks, committed: Notes, circuit: Dataflow, dropped: Collection[str]) -> Notes:
        """For the installation of a circuit that drops these tables. Raises ClockError if a view reads now() and there is no time."""
        removed = {name.lower() for name in dropped}
        recorded = {table: entry for table, entry in marks.recorded(committed).items() if table not in removed}
        notes = self._first_time(marks, committed, circuit)
        return notes if recorded == committed.get(WATERMARKS, {}) else {**notes, WATERMARKS: recorded or None}

    def notes_after_definitions(self, definitions: Definitions, committed: Notes, runtime: Runtime) -> Notes | None:
        """For a commit of its own after new definitions, which is no tick; None if none is due.

        Rows that were stored before their column became a watermark count; and by the wall clock, time has passed since the state was last
        open, whose views the installation took over at the time that they had. O(tables that became watermarks).
        """
        marks = definitions.marks
        unrecorded = marks.unrecorded(committed, definitions.circuit, runtime)
        if not unrecorded and not (self.kind(marks) == "wall" and is_temporal(definitions.circuit)):
            return None
        return marks.advanced(committed, unrecorded)

    def next_due(self, committed: Committed) -> datetime | None:
        """As the function `next_due`, computed once for each commit."""
        if self._due[0] is not committed:
            self._due = (committed, next_due(committed))
        return self._due[1]

    def _now(self, committed: Notes) -> Notes:
        """The time of the next tick without watermarks."""
        if self._clock == "wall":
            return {CLOCK: max(wall_us(), _reached(committed) or 0)}
        return {CLOCK: committed[REACHED]} if is_behind(committed) else {}

    def _first_time(self, marks: Marks, committed: Notes, circuit: Dataflow) -> Notes:
        """The time of a session that has none yet."""
        if is_temporal(circuit):
            marks.check_tables()
        if CLOCK in committed or (marks and not is_temporal(circuit)):
            return {}
        if marks:
            return {CLOCK: committed.get(REACHED, BEGINNING)}
        if self._clock == "manual" and REACHED not in committed and needs_clock(circuit):
            raise ClockError(
                "a view reads now(), and the session has no clock",
                remedy="before the view: session.advance_to(datetime.now(UTC)); or Session(clock='wall'), or a deltic.Watermark as clock",
            )
        return self._now(committed)


def checked_clock(clock: Clock | Watermark | Iterable[Watermark]) -> tuple[Clock, tuple[Watermark, ...]]:
    """The clock where there are no watermarks, and the watermarks. Raises SetupError for an invalid clock."""
    if clock in get_args(Clock):
        return clock, ()  # type: ignore[return-value]
    marks = (clock,) if isinstance(clock, Watermark) or not isinstance(clock, Iterable) else tuple(clock)
    if not marks or not all(isinstance(mark, Watermark) for mark in marks):
        raise SetupError(f"invalid clock={clock!r}", expected="clock='manual', clock='wall', a deltic.Watermark, or a list of them")
    tables = [mark.table.lower() for mark in marks if isinstance(mark, Watermark) and mark.delay_us >= 0]
    if twice := next((table for table in tables if tables.count(table) > 1), None):
        raise SetupError(f"table {twice} has two watermarks", expected="one column of each table")
    return "manual", tuple(mark for mark in marks if isinstance(mark, Watermark))


def microseconds(moment: datetime) -> int:
    """Since 1970 UTC. Raises ClockError for a datetime without a zone."""
    if not isinstance(moment, datetime):
        raise ClockError(f"invalid time {moment!r}", expected="datetime(…, tzinfo=datetime.UTC)")
    if moment.utcoffset() is None:
        raise ClockError(f"the time {moment} has no zone", expected="datetime(…, tzinfo=datetime.UTC)")
    return (moment - EPOCH) // timedelta(microseconds=1)


def instant(notes: Notes) -> datetime | None:
    """The time of the last tick that had one, or a later one that the session was advanced to before its definitions."""
    reached = _reached(notes)
    return None if reached is None else EPOCH + timedelta(microseconds=reached)


def time_us(notes: Notes) -> int:
    """The time of a query as of a commit, in microseconds since 1970 UTC: the commit's, or the wall clock's where it has none."""
    reached = _reached(notes)
    return wall_us() if reached is None else reached


def is_behind(committed: Notes) -> bool:
    """Whether the session was advanced to a time that no tick has had yet."""
    return REACHED in committed and committed[REACHED] > committed.get(CLOCK, BEGINNING - 1)


def _reached(notes: Notes) -> int | None:
    return max((notes[name] for name in (CLOCK, REACHED) if name in notes), default=None)


def advanced_us(committed: Notes, moment: datetime) -> int:
    """`moment` in microseconds since 1970 UTC. Raises ClockError if it is before the time in `committed`."""
    now, last = microseconds(moment), _reached(committed)
    if last is not None and now < last:
        raise ClockError(f"the time cannot go back to {moment}", expected=f"the current time, {instant(committed)}, or a later one")
    return now


def next_due(committed: Committed) -> datetime | None:
    """When the passing of time next adds or removes a row; None if nothing waits, or only past the calendar's end. O(queues)."""
    now = committed.notes.get(CLOCK, 0)
    spines = [spine for queue in queues(committed.circuit) for spine in committed.snapshot(queue)]
    due = min((due for spine in spines if (due := first_after(spine, now, Counters())) is not None), default=LAST + 1)
    return None if due > LAST else EPOCH + timedelta(microseconds=due)


def due_s(clock: str, due: datetime | None) -> float | None:
    """In how many seconds of the wall clock something comes due, 0 if it has; None if nothing will, or another clock moves the time.

    clock, due: the session's `clock` and `next_due`.
    """
    return None if clock != "wall" or due is None else max(0, microseconds(due) - wall_us()) / 1e6


def is_temporal(circuit: Dataflow) -> bool:
    """Whether a view of the program depends on the time."""
    return bool(queues(circuit))


def needs_clock(circuit: Dataflow) -> bool:
    """Whether a view of the program has no content without a time."""
    return any(operator.needs_clock for node in circuit.nodes if (operator := temporal_filter(node.operator)) is not None)


def queues(circuit: Dataflow) -> tuple[str, ...]:
    """The arrangements in which rows wait for their time."""
    operators = (temporal_filter(node.operator) for node in circuit.nodes)
    return tuple(operator.queue for operator in operators if operator is not None)
