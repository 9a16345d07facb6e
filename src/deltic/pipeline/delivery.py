"""Sinks: each gets every epoch of its view once, in order, after the epoch is committed.

What a sink lacks is always what the state says: the note `sinks` is committed with each tick and says how far each sink had come before
that tick. So whatever a process dies at, the next one delivers the same epochs with the same content again, and a sink that has one
already passes over it. A sink's first delivery is all that its view holds; where a view was defined anew, it is the difference between
what it held and what it holds, so that the sum of what a `changes` sink has had is always the view. That too is noted, in an epoch of
its own, before it is delivered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from deltic.connectors.sinks import ChangesSink, SnapshotSink
from deltic.errors import SinkError, StateError
from deltic.pipeline.history import History, difference, weighed
from deltic.pipeline.notes import SINKS, Json, Standing, standings
from deltic.session import Session
from deltic.storage.manifest import KEEP

_KEPT_AT_MOST: Final = 10
"""How many epochs a state keeps for sinks that need none of them."""


@dataclass(frozen=True, slots=True)
class Outlet:
    """A sink, what it is of, and where it writes."""

    name: str
    view: str
    sink: ChangesSink | SnapshotSink
    folder: Path

    @property
    def snapshot(self) -> bool:
        """Whether it holds the view's last content, and not its changes."""
        return isinstance(self.sink, SnapshotSink)


class Delivery:
    """The sinks of a session, whose state's past is `history`."""

    def __init__(self, session: Session, outlets: Sequence[Outlet], history: History) -> None:
        self._session, self._outlets, self._history = session, outlets, history
        self._standings = standings(session.notes)
        self.unnoted = False
        """Whether a sink has had something of which the state does not know."""

    def begin(self) -> None:
        """Brings every sink up to the state, and notes what those are to get first that are new, or whose view is. Raises SinkError."""
        before, following = self._standings, self._session.epoch + 1
        self._standings = {outlet.name: self._begun(outlet, before.get(outlet.name), following) for outlet in self._outlets}
        if before.keys() != self._standings.keys() or any(standing.first == following for standing in self._standings.values()):
            self._session.apply({}, notes=self.notes())
            assert self._session.epoch == following
            self.unnoted = False
        self.deliver()

    def notes(self) -> dict[str, Json]:
        """How far the sinks are, to be committed with the next tick; what they lack stays readable until they have had it."""
        found = {name: standing.json() for name, standing in self._standings.items()}
        return {SINKS: found or None, KEEP: min((standing.needs for standing in self._standings.values()), default=None)}

    @property
    def untold(self) -> bool:
        """Whether the state should be told by a commit of its own how far the sinks are."""
        kept = self._session.notes.get(KEEP)
        return self.unnoted or (kept is not None and self._session.epoch - kept >= _KEPT_AT_MOST)

    def deliver(self) -> None:
        """Brings every sink up to the session's epoch. Raises SinkError."""
        for outlet in self._outlets:
            self._standings[outlet.name] = self._delivered(outlet, self._standings[outlet.name], self._session.epoch)

    def _begun(self, outlet: Outlet, known: Standing | None, following: int) -> Standing:
        """Where the sink stands; if it or its view is new, its first delivery is that of the epoch `following`."""
        arrangement = self._session.view(outlet.view).arrangement
        view = outlet.view.lower()
        if known is None or known.view != view:
            if not outlet.snapshot:
                check_empty(outlet.name, outlet.folder)
            return Standing(view, arrangement, following - 1, following)
        broken = self._redefined(outlet, known)
        if broken is None:
            return known
        last = self._delivered(outlet, known, broken - 1)
        return Standing(view, arrangement, last.epoch, following, last.epoch)

    def _redefined(self, outlet: Outlet, known: Standing) -> int | None:
        """The first epoch that the sink lacks in which its view is not what it was."""
        since = max(known.epoch + 1, known.first)
        try:
            found = self._history.arrangements(known.view, since, self._session.epoch)
            return next((epoch for epoch, arrangement in found if arrangement != known.arrangement), None)
        except StateError as error:
            raise _too_late(outlet, since, error) from error

    def _delivered(self, outlet: Outlet, standing: Standing, last: int) -> Standing:
        """Where the sink stands after the deliveries up to epoch `last`; none of an epoch that did not change the view."""
        due = self._states(outlet, standing, last) if outlet.snapshot else self._changes(outlet, standing, last)
        for epoch, rows in due:
            outlet.sink.deliver(epoch, rows)
            self._standings[outlet.name] = standing = replace(standing, epoch=epoch)
            self.unnoted = True
        return replace(standing, epoch=max(last, standing.epoch))

    def _changes(self, outlet: Outlet, standing: Standing, last: int) -> Iterator[tuple[int, pa.Table]]:
        if standing.epoch < standing.first <= last and (rows := self._opening(standing)).num_rows:
            yield standing.first, rows
        for epoch in range(max(standing.epoch, standing.first) + 1, last + 1):
            if (rows := self._change(outlet, standing.view, epoch)).num_rows:
                yield epoch, rows

    def _states(self, outlet: Outlet, standing: Standing, last: int) -> Iterator[tuple[int, pa.Table]]:
        """Only the last one counts."""
        missed = range(standing.epoch + 1, last + 1)
        if standing.epoch < standing.first <= last or any(self._change(outlet, standing.view, epoch).num_rows for epoch in missed):
            yield last, self._history.content(standing.view, last)

    def _opening(self, standing: Standing) -> pa.Table:
        """The first delivery."""
        after = self._history.content(standing.view, standing.first)
        if standing.base is None:
            return weighed(after)
        return difference(self._history.content(standing.view, standing.base), after)

    def _change(self, outlet: Outlet, view: str, epoch: int) -> pa.Table:
        try:
            return self._history.change(view, epoch)
        except StateError as error:
            raise _too_late(outlet, epoch, error) from error


def check_empty(sink: str, folder: Path) -> None:
    """A new `changes` sink begins with all that its view holds, which may not come on top of what an old one had. Raises SinkError."""
    if any(folder.glob("changes-*")):
        raise SinkError(
            f"sink {sink}: the folder {folder} has the changes that a sink of this name had before it was dropped",
            expected="an empty folder for a new sink, which first gets all that its view holds",
            remedy="empty the folder, or name another",
        )


def _too_late(outlet: Outlet, epoch: int, cause: StateError) -> SinkError:
    return SinkError(
        f"sink {outlet.name} lacks the changes of epoch {epoch} and those after it, which cannot be read: {cause.message}",
        remedy="empty the sink's folder, or give it another: it then gets all that the view holds",
    )
