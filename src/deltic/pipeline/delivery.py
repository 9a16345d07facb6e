"""Delivery: each sink receives every epoch of its view once, in order, after the epoch is committed.

The state says which epochs a sink lacks: the note `sinks`, committed with each tick, has the offset of each sink before that tick. So after
a crash the next process delivers the same epochs with the same content again, and a sink ignores those that it has. The first delivery of
a sink is the whole content of its view; if a view was redefined, it is the difference between the old and the new content, so the
deliveries of a `changes` sink always add up to the view. That delivery too is noted, in an epoch of its own, before it is made. Of a
view over streams, which contains its last change alone, what was emitted stays, and each change is that by the definition of its tick.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from deltic.connectors.net import difference, net, weighed
from deltic.connectors.sink import Mode, Sink, claim_id_of
from deltic.connectors.source import Json
from deltic.errors import SinkError, Span, StateError
from deltic.pipeline.history import History
from deltic.pipeline.notes import CLAIMS, SINKS, SinkOffset, sink_offsets
from deltic.schema import Schema
from deltic.session import Session
from deltic.storage.manifest import KEEP

_KEPT_AT_MOST: Final = 10
"""How many epochs a state retains before the offsets of idle sinks are committed."""


@dataclass(frozen=True, slots=True)
class OpenSink:
    """An open sink, its view, and whether it receives the view's content (snapshot) or its changes."""

    name: str
    view: str
    mode: Mode
    sink: Sink

    @property
    def snapshot(self) -> bool:
        return self.mode == "snapshot"


class Delivery:
    """Delivers to the sinks of a session. history: of the session's state."""

    def __init__(self, session: Session, open_sinks: Sequence[OpenSink], history: History) -> None:
        self._session, self._outlets, self._history = session, open_sinks, history
        self._offsets = sink_offsets(session.notes)
        self._claims = {open_sink.name: claim for open_sink in open_sinks if (claim := claim_id_of(open_sink.sink)) is not None}
        self._unnoted = False
        """Whether a sink has received an epoch that its offset in the state does not include."""
        self._empty = set[str]()
        """Sinks of snapshots of streams that are known to be empty."""
        self._same: dict[str, int] = {}
        """By sink, the epoch up to which its view is known to have the arrangement of its offset."""
        self._failing: dict[str, int] = {}
        """By sink, the epoch up to which its view is known to have errors in all that it lacks."""

    def finish(self) -> None:
        """The next start delivers what sinks lack."""

    def end(self) -> None:
        """Nothing is open between two calls."""

    def begin(self) -> None:
        """Brings every sink up to date, and notes the first delivery of sinks that are new or whose view is. Raises SinkError.

        Another thread may commit meanwhile: if it redefines a view again, the next call takes that into account.
        """
        before, following = self._offsets, self._session.epoch + 1
        opened = {open_sink.name: self._opened(open_sink, before.get(open_sink.name), following) for open_sink in self._outlets}
        new = [name for name, offset in opened.items() if offset.first == following]

        def notes_of(epoch: int) -> dict[str, Json]:
            self._offsets = opened | {name: replace(opened[name], first=epoch) for name in new}
            return self.notes()

        if new or before.keys() != opened.keys():
            try:
                self._session._note_at(notes_of)
            except BaseException:
                self._offsets = before
                raise
            self.noted()
        else:
            self._offsets = opened
        self.deliver()

    def notes(self) -> dict[str, Json]:
        """The offsets of the sinks, to be committed with the next tick; epochs that a sink lacks stay readable."""
        offsets = {name: offset.json() for name, offset in self._offsets.items()}
        keep = min((offset.needs for offset in self._offsets.values()), default=None)
        return {SINKS: offsets or None, CLAIMS: self._claims or None, KEEP: keep}

    def noted(self) -> None:
        """The notes are committed."""
        self._unnoted = False

    @property
    def unrecorded(self) -> bool:
        """Whether the offsets of the sinks require a commit of their own."""
        kept = self._session.notes.get(KEEP)
        return self._unnoted or (kept is not None and kept != self.notes()[KEEP] and self._session.epoch - kept >= _KEPT_AT_MOST)

    @property
    def lag(self) -> dict[str, int]:
        """By sink, how many committed epochs it has not received."""
        return {name: max(0, self._session.epoch - max(offset.epoch, offset.first - 1)) for name, offset in self._offsets.items()}

    def deliver(self) -> None:
        """Brings every sink up to the session's epoch, or up to that before its view was redefined. Raises SinkError."""
        deliver_to_each(self._outlets, self._deliver_to)

    def _deliver_to(self, open_sink: OpenSink) -> None:
        offset, last = self._offsets[open_sink.name], self._session.epoch
        redefined = self._redefined(open_sink, offset, last)
        self._offsets[open_sink.name] = self._delivered(open_sink, offset, last if redefined is None else redefined - 1)

    def _opened(self, open_sink: OpenSink, offset: SinkOffset | None, following: int) -> SinkOffset:
        """The offset of the sink. If the sink or its view is new, its first delivery is that of the epoch `following`."""
        arrangement = self._session.view(open_sink.view)._arrangement
        view = open_sink.view.lower()
        if offset is None or offset.view != view:
            if not open_sink.snapshot:
                check_empty(open_sink.name, open_sink.sink)
            return SinkOffset(view, arrangement, following - 1, following)
        redefined = self._redefined(open_sink, offset, following - 1)
        if redefined is None:
            return offset
        offset = self._delivered(open_sink, offset, redefined - 1)
        base = offset.base if offset.epoch < offset.first else offset.epoch
        if base is not None and not open_sink.snapshot:
            check_columns(open_sink.name, open_sink.view, self._history.schema(view, base), self._session.view(open_sink.view).schema)
        emitted = base is not None and self._history.stream_at(view, base) is not None
        if base is not None and (stream := self._history.stream_at(view, redefined)) is not None:
            self._unnoted = True
            first, base = (offset.first, offset.base) if emitted else (redefined, base)
            return self._opened(open_sink, SinkOffset(view, stream, offset.epoch, first, base), following)
        base = None if emitted else base
        return SinkOffset(view, arrangement, offset.epoch, following, base)

    def _redefined(self, open_sink: OpenSink, offset: SinkOffset, last: int) -> int | None:
        """The first epoch that the sink lacks, up to `last`, in which its view has another definition, or does not exist."""
        unknown = max(offset.following, self._same.get(open_sink.name, -1) + 1)
        try:
            arrangements = self._history.arrangements(offset.view, unknown, last)
            redefined = next((epoch for epoch, arrangement in arrangements if arrangement != offset.arrangement), None)
        except StateError as error:
            raise _too_late(open_sink, unknown, error) from error
        self._same[open_sink.name] = last if redefined is None else redefined - 1
        return redefined

    def _delivered(self, open_sink: OpenSink, offset: SinkOffset, last: int) -> SinkOffset:
        """Delivers the epochs up to `last` that changed the view; returns the sink's offset.

        Those after the last epoch in which the view has no errors wait; the changes of epochs with errors are delivered with those of the
        next one without.
        """
        readable = self._readable(open_sink, offset, last)
        if not readable:
            return offset
        if offset.epoch < offset.first:
            offset = replace(offset, first=readable[0])
        last = readable[-1]
        due = self._states(open_sink, offset, last) if open_sink.snapshot else self._readable_changes(open_sink, offset, last, readable)
        for epoch, rows in due:
            open_sink.sink.deliver(epoch, rows)
            self._offsets[open_sink.name] = offset = replace(offset, epoch=epoch)
            self._unnoted = True
        return replace(offset, epoch=last)

    def _readable(self, open_sink: OpenSink, offset: SinkOffset, last: int) -> Sequence[int]:
        """The epochs that the sink lacks, up to `last`, in which the view has no errors. Each epoch with errors is looked up once."""
        unknown = max(offset.following, self._failing.get(open_sink.name, -1) + 1)
        try:
            readable = self._history.readable(offset.view, offset.arrangement, unknown, last)
        except StateError as error:
            raise _too_late(open_sink, unknown, error) from error
        if not readable:
            self._failing[open_sink.name] = max(last, unknown - 1)
        return readable

    def _readable_changes(
        self, open_sink: OpenSink, offset: SinkOffset, last: int, readable: Sequence[int]
    ) -> Iterator[tuple[int, pa.Table]]:
        """The changes of epochs without errors; each has those of the epochs with errors before it."""
        if len(readable) == last - max(offset.epoch, offset.first - 1):
            yield from self._changes(open_sink, offset, last)
            return
        waiting: list[pa.Table] = []
        pending = deque(self._changes(open_sink, offset, last))
        for epoch in readable:
            while pending and pending[0][0] <= epoch:
                waiting.append(pending.popleft()[1])
            if waiting and (rows := net(waiting)).num_rows:
                yield epoch, rows
            waiting = []

    def _changes(self, open_sink: OpenSink, offset: SinkOffset, last: int) -> Iterator[tuple[int, pa.Table]]:
        if offset.epoch < offset.first <= last and (rows := self._opening(offset)).num_rows:
            yield offset.first, rows
        for epoch in range(max(offset.epoch, offset.first) + 1, last + 1):
            if (rows := self._change(open_sink, offset.view, epoch)).num_rows:
                yield epoch, rows

    def _states(self, open_sink: OpenSink, offset: SinkOffset, last: int) -> Iterator[tuple[int, pa.Table]]:
        """The content after epoch `last`, if any pending epoch changed it: a stream also becomes empty, without a change."""
        undelivered = range(offset.epoch + 1, last + 1)
        changed = offset.epoch < offset.first <= last or any(self._change(open_sink, offset.view, epoch).num_rows for epoch in undelivered)
        if not (changed or (undelivered and open_sink.name not in self._empty and self._session.view(open_sink.view)._is_stream)):
            return
        rows = self._history.content(offset.view, last)
        if changed or not rows.num_rows:
            yield last, rows
        self._empty = self._empty - {open_sink.name} if rows.num_rows else self._empty | {open_sink.name}

    def _opening(self, offset: SinkOffset) -> pa.Table:
        """The rows of the first delivery."""
        after = self._history.content(offset.view, offset.first)
        if offset.base is None:
            return weighed(after)
        return difference(self._history.content(offset.view, offset.base), after)

    def _change(self, open_sink: OpenSink, view: str, epoch: int) -> pa.Table:
        try:
            return self._history.change(view, epoch)
        except StateError as error:
            raise _too_late(open_sink, epoch, error) from error


def deliver_to_each(open_sinks: Iterable[OpenSink], deliver: Callable[[OpenSink], None]) -> None:
    """Calls `deliver` for each sink. One that fails keeps nothing from the others: the first error is raised after the last call."""
    failures: list[Exception] = []
    for open_sink in open_sinks:
        try:
            deliver(open_sink)
        except Exception as error:  # any: such as a MemoryError
            failures.append(error)
    if failures:
        raise failures[0]


def check_empty(name: str, sink: Sink) -> None:
    """Raises SinkError if a new `changes` sink has epochs, to which its first delivery, the whole view, must not be added."""
    if sink.epoch():
        raise SinkError(
            f"sink {name}: {sink.location} contains changes from before a sink of this name was dropped, or wrote to another location",
            expected="an empty location for a new sink, which first receives the whole content of its view",
            remedy="empty it, or choose another location",
        )


def other_columns(before: Schema, now: Schema) -> tuple[str, str] | None:
    """Both lists of columns, as errors show them, if names or types differ."""
    was, shown = (", ".join(f"{field.name} {field.type.sql}" for field in schema) for schema in (before, now))
    return None if was == shown else (was, shown)


def check_columns(sink: str, view: str, before: Schema, now: Schema, span: Span | None = None) -> None:
    """Raises SinkError if the view of a `changes` sink has other columns than before."""
    if (differing := other_columns(before, now)) is not None:
        was, shown = differing
        raise SinkError(
            f"sink {sink} contains changes of view {view} with the columns {was}; now it has {shown}",
            span=span,
            expected="the same columns, since the content of a sink is never altered",
            remedy="give the sink a new name and an empty location: it then receives the whole content of the view",
        )


def _too_late(open_sink: OpenSink, epoch: int, cause: StateError) -> SinkError:
    return SinkError(
        f"sink {open_sink.name} lacks epoch {epoch} and those after it, which cannot be read: {cause.message}",
        remedy=f"empty {open_sink.sink.location}, or choose another location: the sink then receives the whole content of the view",
    )
