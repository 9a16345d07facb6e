"""What time it is for a session: now() in views is the time of the last tick that had one, and never goes back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, get_args

from deltic.circuit.nodes import Dataflow
from deltic.circuit.operators.chain import temporal_filter
from deltic.errors import ClockError, SetupError
from deltic.runtimes import Committed
from deltic.session.watermark import BEGINNING, Marks, Watermark
from deltic.storage.program import CLOCK
from deltic.trace.between import first_after
from deltic.trace.counters import Counters

Clock = Literal["manual", "wall"]
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST: Final = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
"""The end of the calendar, in microseconds."""
Notes = Mapping[str, Any]


def checked_clock(clock: Clock | Watermark | Iterable[Watermark]) -> tuple[Clock, tuple[Watermark, ...]]:
    """The clock where there are no watermarks, and the watermarks. Raises SetupError for what is no clock."""
    if clock in get_args(Clock):
        return clock, ()  # type: ignore[return-value]
    marks = (clock,) if isinstance(clock, Watermark) or not isinstance(clock, Iterable) else tuple(clock)
    if not marks or not all(isinstance(mark, Watermark) for mark in marks):
        raise SetupError(f"clock={clock!r}", expected="clock='manual', clock='wall', a deltic.Watermark, or a list of them")
    tables = [mark.table.lower() for mark in marks if isinstance(mark, Watermark) and mark.delay_us >= 0]
    if twice := next((table for table in tables if tables.count(table) > 1), None):
        raise SetupError(f"the table {twice} has two watermarks", expected="one column of each table")
    return "manual", tuple(mark for mark in marks if isinstance(mark, Watermark))


def microseconds(moment: datetime) -> int:
    """Since 1970 UTC. Raises ClockError for a datetime without a zone."""
    if not isinstance(moment, datetime):
        raise ClockError(f"{moment!r} is no time", expected="datetime(…, tzinfo=datetime.UTC)")
    if moment.utcoffset() is None:
        raise ClockError(f"the time {moment} has no zone", expected="datetime(…, tzinfo=datetime.UTC)")
    return (moment - EPOCH) // timedelta(microseconds=1)


def instant(notes: Notes) -> datetime | None:
    """The time of the last tick that had one."""
    return None if CLOCK not in notes else EPOCH + timedelta(microseconds=notes[CLOCK])


def advanced(known: Notes, moment: datetime) -> Notes:
    """The notes of a tick at `moment`. Raises ClockError if that is before the time that `known` has."""
    now, last = microseconds(moment), instant(known)
    if last is not None and now < known[CLOCK]:
        raise ClockError(f"the time cannot go back to {moment}", expected=f"{last}, where it stands, or later")
    return {CLOCK: now}


def wall_us() -> int:
    """The wall clock: microseconds since 1970 UTC."""
    return time.time_ns() // 1000


def ticked(clock: Clock, known: Notes) -> Notes:
    """What a tick notes of the time of its own accord."""
    return {} if clock == "manual" else {CLOCK: max(wall_us(), known.get(CLOCK, 0))}


def installed(clock: Clock, marks: Marks, known: Notes, circuit: Dataflow) -> Notes:
    """What the installation of a program notes. Raises ClockError if a view wants the time and there is none."""
    if is_temporal(circuit):
        marks.check_there()
    if CLOCK in known or (marks and not is_temporal(circuit)):
        return {}
    if marks:
        return {CLOCK: BEGINNING}
    if clock == "manual" and needs_clock(circuit):
        raise ClockError(
            "a view reads now(), and nobody has said what time it is",
            remedy="session.advance_to(datetime.now(UTC)) before the view is made, Session(clock='wall'), or a deltic.Watermark as clock",
        )
    return ticked(clock, known)


def next_due(committed: Committed) -> datetime | None:
    """When the passing of time next makes a row come or go; None if nothing waits, or only beyond the calendar. O(queues)."""
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
    return any(found.needs_clock for node in circuit.nodes if (found := temporal_filter(node.operator)) is not None)


def queues(circuit: Dataflow) -> tuple[str, ...]:
    """The arrangements in which rows wait for their time."""
    found = (temporal_filter(node.operator) for node in circuit.nodes)
    return tuple(operator.queue for operator in found if operator is not None)
