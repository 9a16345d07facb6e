"""What time it is for a session: now() in views is the time of the last tick that had one, and never goes back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, get_args

from deltic.circuit.nodes import Circuit
from deltic.circuit.operators.temporal_filter import TemporalFilter
from deltic.errors import ClockError, SetupError
from deltic.runtimes.program import CLOCK

Clock = Literal["manual", "wall"]
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
Notes = Mapping[str, Any]


def checked_clock(clock: Clock) -> Clock:
    """Raises SetupError for what is no clock."""
    if clock not in get_args(Clock):
        raise SetupError(f"clock={clock!r}", expected="clock='manual' or clock='wall'")
    return clock


def microseconds(moment: datetime) -> int:
    """Since 1970 UTC. Raises ClockError for a datetime without a zone."""
    if moment.tzinfo is None:
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


def ticked(clock: Clock, known: Notes) -> Notes:
    """What a tick notes of the time of its own accord."""
    return {} if clock == "manual" else {CLOCK: max(time.time_ns() // 1000, known.get(CLOCK, 0))}


def installed(clock: Clock, known: Notes, circuit: Circuit) -> Notes:
    """What the installation of a program notes. Raises ClockError if a view wants the time and there is none."""
    if CLOCK in known:
        return {}
    if clock == "manual" and is_temporal(circuit):
        raise ClockError(
            "a view reads now(), and nobody has said what time it is",
            remedy="session.advance_to(datetime.now(UTC)) before the view is made, or Session(clock='wall')",
        )
    return ticked(clock, known)


def is_temporal(circuit: Circuit) -> bool:
    """Whether a view of the program depends on the time."""
    return any(isinstance(node.operator, TemporalFilter) for node in circuit.nodes)
