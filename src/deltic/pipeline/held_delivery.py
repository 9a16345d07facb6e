"""Delivery from memory: a session without a state folder has no past epochs, so its changes are held until the sinks have received them.

Nothing is noted: the state ends with its process, and the next pipeline refuses the sinks of changes unless they are emptied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from deltic.connectors.source import Json
from deltic.errors import ClosedError, SinkError
from deltic.pipeline.delivery import OpenSink, deliver_to_each
from deltic.pipeline.held_changes import HeldChanges
from deltic.runtimes import Committed
from deltic.session import Session
from deltic.trace.strings import StringTable


class HeldDelivery:
    """Delivers to the sinks of a session in memory. Its methods are those of Delivery."""

    def __init__(self, session: Session, open_sinks: Sequence[OpenSink], is_open: Callable[[], bool]) -> None:
        """Raises SinkError for a `changes` sink that has epochs. is_open: whether the pipeline is, for which changes are held."""
        for open_sink in open_sinks:
            if not open_sink.snapshot and open_sink.sink.epoch():
                raise SinkError(
                    f"sink {open_sink.name}: {open_sink.sink.location} contains changes that an earlier pipeline over this session "
                    "delivered; without a state folder it is not known up to which epoch",
                    expected="an empty location, which first receives the whole content of the view",
                    remedy="empty it, or choose another location; or give the session a state folder, with which pipelines resume",
                )
        self._session, self._contents, self._outlets, self._is_open = session, session._contents, open_sinks, is_open
        self._received = dict.fromkeys((open_sink.name for open_sink in open_sinks), session.epoch)
        """By sink, the last epoch that it has received, or that did not change its view."""
        views = {open_sink.view.lower() for open_sink in open_sinks}
        summed = {open_sink.view.lower() for open_sink in open_sinks if not open_sink.snapshot}
        self._held = {view: HeldChanges(view, sums=view in summed) for view in views}
        self._end = self._contents.observe(self._follow)
        self._contents.at_last_commit(self._follow)

    def finish(self) -> None:
        """Delivers what no later start could. Raises SinkError if sinks lack something after that."""
        try:
            self.deliver()
        except SinkError as error:
            if lacking := self._lacking():
                raise _lost(lacking, error.message, "make them writable before the pipeline is closed") from error
            raise
        except ClosedError:
            if lacking := self._lacking():
                raise _lost(lacking, "its session was closed first", "close a pipeline before its session") from None

    def end(self) -> None:
        """Changes are no longer held."""
        self._end()

    def begin(self) -> None:
        """Brings every sink up to date; the first content gets an epoch of its own. Raises SinkError."""
        if any(held.changed > self._session.epoch for held in self._held.values()):
            self._session._note({})
        self.deliver()

    def deliver(self) -> None:
        """Brings every sink up to the session's epoch, or the last one in which its view had no errors. Raises SinkError."""
        try:
            deliver_to_each(self._outlets, self._deliver_to)
        finally:
            self._contents.at_last_commit(self._forget)

    def _deliver_to(self, open_sink: OpenSink) -> None:
        due, last = self._contents.at_last_commit(partial(self._due, open_sink))
        for epoch, rows in due:
            open_sink.sink.deliver(epoch, rows)
            self._received[open_sink.name] = epoch
        self._received[open_sink.name] = last

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
        held, received = self._held[open_sink.view.lower()], self._received[open_sink.name]
        if not open_sink.snapshot:
            return list(held.due(received)), max(received, held.exact_to)
        if not held.exact:
            return [], received
        if not received < held.changed <= committed.epoch:
            return [], committed.epoch
        return [(committed.epoch, held.content(committed, strings))], committed.epoch

    def _lacking(self) -> list[OpenSink]:
        """The sinks that have not received a change that is held, or the content that it made."""
        lacking = []
        for open_sink in self._outlets:
            held, received = self._held[open_sink.view.lower()], self._received[open_sink.name]
            if (held.exact and received < held.changed) if open_sink.snapshot else any(held.due(received)):
                lacking.append(open_sink)
        return lacking

    def _follow(self, committed: Committed, strings: StringTable) -> None:
        if not self._is_open():
            self._end()
            return
        for held in self._held.values():
            held.follow(committed, strings)

    def _forget(self, committed: Committed, strings: StringTable) -> None:
        for view, held in self._held.items():
            held.forget(min(self._received[one.name] for one in self._outlets if one.view.lower() == view))


def _lost(lacking: Sequence[OpenSink], cause: str, remedy: str) -> SinkError:
    names = ", ".join(open_sink.name for open_sink in lacking)
    return SinkError(
        f"the last changes for sink{'s' * (len(lacking) > 1)} {names} are lost, as the pipeline in memory is closed without them: {cause}",
        remedy=f"{remedy}; or give the pipeline a state folder, from which the next start delivers them",
    )
