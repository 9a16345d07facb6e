"""Delivery from memory: a session without a state folder has no past epochs, so its changes are held until the sinks have received them.

Nothing is noted. What the sinks have is kept while the session lives, for the next pipeline over it; the state ends with its process, and
the next one refuses the sinks unless they are emptied.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

import pyarrow as pa

from deltic.connectors.source import Json
from deltic.errors import ClosedError
from deltic.pipeline.delivery import OpenSink, check_columns, check_empty, other_columns
from deltic.pipeline.held_changes import HeldChanges
from deltic.runtimes import Committed
from deltic.schema import Schema
from deltic.session import Session
from deltic.trace.strings import StringTable


@dataclass(frozen=True, slots=True)
class _Kept:
    """Of a sink of a closed pipeline, the last epoch that it has received, whether it has received any rows, and the changes of its view,
    which are paused."""

    sink: OpenSink
    received: int
    delivered: bool
    held: HeldChanges

    def is_of(self, other: OpenSink, columns: Schema) -> bool:
        """Whether the other one goes on with it. columns: those that its view has now."""
        one = self.sink
        same = (one.view.lower(), one.mode, one.sink.location) == (other.view.lower(), other.mode, other.sink.location)
        return same and (self.delivered or other_columns(self.held.paused_schema, columns) is None)


_KEPT: Final = WeakKeyDictionary[Session, Mapping[str, _Kept]]()
"""By session, the sinks of its last pipeline once that is closed, by name."""


class HeldDelivery:
    """Delivers to the sinks of a session in memory. Its methods are those of Delivery."""

    def __init__(self, session: Session, open_sinks: Sequence[OpenSink]) -> None:
        """Raises SinkError for a `changes` sink that has epochs of others, or of a view with other columns."""
        before, kept = _KEPT.get(session, {}), dict[str, _Kept]()
        for open_sink in open_sinks:
            columns, known = session.view(open_sink.view).schema, before.get(open_sink.name)
            if known is not None and known.is_of(open_sink, columns):
                kept[open_sink.name] = known
                if not open_sink.snapshot:
                    check_columns(open_sink.name, open_sink.view, known.held.paused_schema, columns)
            elif not open_sink.snapshot:
                check_empty(open_sink.name, open_sink.sink)
        self._session, self._contents, self._outlets = session, session._contents, open_sinks
        self._received = {one.name: kept[one.name].received if one.name in kept else session.epoch for one in open_sinks}
        """By sink, the last epoch that it has received, or that did not change its view."""
        self._delivered = {name for name, known in kept.items() if known.delivered}
        """The sinks that have received any rows."""
        new = [one for one in open_sinks if one.name not in kept]
        summed = {one.view.lower() for one in new if not one.snapshot}
        begun = {view: HeldChanges(view, sums=view in summed) for view in {one.view.lower() for one in new}}
        self._held = {one.name: kept[one.name].held if one.name in kept else begun[one.view.lower()] for one in open_sinks}
        """By sink, the changes of its view; those that started together share them."""
        self._open, self._end = True, self._contents.observe(self._follow)
        try:
            self._contents.at_last_commit(self._follow)
        except BaseException:
            self._end()
            raise
        _KEPT.pop(session, None)

    def close(self) -> None:
        """Changes are no longer held; what the sinks have is kept. O(content of the views of `changes` sinks)."""
        if not self._open:
            return
        with suppress(ClosedError):  # of a session that is closed, nothing is kept
            self._contents.at_last_commit(self._pause)
        self._end()
        self._open = False

    def _pause(self, committed: Committed, strings: StringTable) -> None:
        for held in self._distinct:
            held.pause(committed, strings)
        _KEPT[self._session] = {
            one.name: _Kept(one, self._received[one.name], one.name in self._delivered, self._held[one.name]) for one in self._outlets
        }

    @property
    def _distinct(self) -> Collection[HeldChanges]:
        return {id(held): held for held in self._held.values()}.values()

    def begin(self) -> None:
        """Brings every sink up to date; what changed without an epoch, such as the first content, gets one. Raises SinkError."""
        if any(held.changed > self._session.epoch for held in self._distinct):
            self._session._note({})
        self.deliver()

    def deliver(self) -> None:
        """Brings every sink up to the session's epoch, or the last one in which its view had no errors. Raises SinkError."""
        for open_sink in self._outlets:
            due, last = self._contents.at_last_commit(partial(self._due, open_sink))
            for epoch, rows in due:
                self._delivered.add(open_sink.name)
                open_sink.sink.deliver(epoch, rows)
                self._received[open_sink.name] = epoch
            self._received[open_sink.name] = last
        self._contents.at_last_commit(self._forget)

    def notes(self) -> Mapping[str, Json]:
        """Nothing is committed with ticks."""
        return {}

    def noted(self) -> None:
        """The notes are committed."""

    @property
    def unrecorded(self) -> bool:
        """See Delivery."""
        return False

    @property
    def lag(self) -> dict[str, int]:
        """By sink, how many committed epochs it has not received."""
        return {name: max(0, self._session.epoch - epoch) for name, epoch in self._received.items()}

    def _due(self, open_sink: OpenSink, committed: Committed, strings: StringTable) -> tuple[list[tuple[int, pa.Table]], int]:
        """What a sink is to receive, and the last epoch that it has then received."""
        self._follow(committed, strings)
        held, received = self._held[open_sink.name], self._received[open_sink.name]
        if not open_sink.snapshot:
            return list(held.due(received)), max(received, held.exact_to)
        if not held.exact:
            return [], received
        if not received < held.changed <= committed.epoch:
            return [], committed.epoch
        return [(committed.epoch, held.content(committed, strings))], committed.epoch

    def _follow(self, committed: Committed, strings: StringTable) -> None:
        for held in self._distinct:
            held.follow(committed, strings)

    def _forget(self, committed: Committed, strings: StringTable) -> None:
        for held in self._distinct:
            held.forget(min(self._received[name] for name, other in self._held.items() if other is held))
