"""The content of views as of the last commit, for readers and subscribers. Reads take no lock, but let a tick go first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from threading import RLock
from typing import Any, TypeVar

import pyarrow as pa

from deltic.circuit.nodes import ArrangementSpec
from deltic.errors import ClosedError, CorruptState, SubscriberError
from deltic.purity import shown
from deltic.runtimes import Committed, Runtime
from deltic.session.definitions import NOTHING, Definitions, Stored, definitions_of
from deltic.session.failing_views import WithheldChanges, check_readable, failing_views, has_errors
from deltic.session.precedence import Precedence
from deltic.session.reentrance import held
from deltic.session.subscribers import EpochSubscriber, Subscriber, Subscribers
from deltic.trace.spine import Spine
from deltic.trace.strings import StringsBelow, StringTable, UnknownString

T = TypeVar("T")
Observer = Callable[[Committed, StringTable], None]
"""Gets a commit and its strings, perhaps more than once."""


def content_of_view(committed: Committed, view: str, spec: ArrangementSpec) -> list[Spine]:
    """The content of a view, as the sum of spines: of a stream, its change in the last tick."""
    if not spec.ephemeral:
        return committed.snapshot(spec.id)
    change = None if committed.last is None else committed.last.changes.get(view)
    return [Spine(spec.columns, spec.weights) if change is None else Spine.of(change)]


class Contents:
    """The views of a runtime. lock: the session's; nothing is committed while a thread holds it."""

    def __init__(self, runtime: Runtime, lock: RLock) -> None:
        self._runtime, self._lock = runtime, lock
        self._decoded: tuple[object, dict[str, pa.Table]] = (None, {})
        """A commit, and by view its decoded change, once it has been read."""
        self._withheld = WithheldChanges(runtime.changes_at)
        self._queued: tuple[object, object] = (self, self)
        """The result and the definitions of the commit whose calls were queued last."""
        self.subscribers = Subscribers()
        self._observers: tuple[Observer, ...] = ()
        self.precedence = Precedence()
        self.closed = False

    def check_open(self) -> None:
        if self.closed:
            raise ClosedError("the session is closed", remedy="open a new deltic.Session")

    @property
    def definitions(self) -> Definitions:
        """Those of the last commit."""
        return self._runtime.committed.definitions or NOTHING  # what `definitions_of` returns; it is asked for several times in a tick

    @property
    def strings(self) -> StringTable:
        return self._runtime.strings

    def stored(self, view: str) -> Stored:
        """Raises UnknownName for a view that has been dropped."""
        self.check_open()
        return self.definitions.stored(view)

    def read(self, view: str, take: Callable[[Stored, list[Spine]], T]) -> T:
        """The result of `take` for the view's layout and its content as of the last commit: one spine per shard."""
        return self._repeated(lambda: self._read(view, take))

    def _repeated(self, read: Callable[[], T]) -> T:
        """What `read` returns.

        A concurrent commit may remove what it reads: strings that no row has any more, files of an epoch that is not retained. Then it is
        called again under the lock.
        """
        try:
            with self.precedence.reading():
                return read()
        except (KeyError, UnknownString, CorruptState):
            with held(self._lock):
                return read()

    def _read(self, view: str, take: Callable[[Stored, list[Spine]], T]) -> T:
        self.check_open()
        with self.strings.stable():
            return self._taken(self._runtime.committed, view, take)

    def _taken(self, committed: Committed, view: str, take: Callable[[Stored, list[Spine]], T]) -> T:
        definitions = definitions_of(committed)
        stored = definitions.stored(view)
        check_readable(definitions, view, committed, self.strings)
        return take(stored, content_of_view(committed, view, stored.spec))

    def read_if_last(self, epoch: int, view: str, take: Callable[[Stored, list[Spine]], T]) -> T | None:
        """As `read`, of the commit of an epoch; None unless that is the last commit."""
        return self._if_last(epoch, lambda committed: self._taken(committed, view, take))

    def arrangement_if_last(self, epoch: int, view: str) -> str | None:
        """The id of a view's arrangement after the commit of an epoch; None unless that is the last commit."""
        return self._if_last(epoch, lambda committed: definitions_of(committed).stored(view).spec.id)

    def has_errors_if_last(self, epoch: int, view: str) -> bool | None:
        """Whether a view has errors after the commit of an epoch; None unless that is the last commit. O(errors)."""
        return self._if_last(epoch, lambda committed: has_errors(definitions_of(committed), view, committed))

    def change_if_last(self, epoch: int, view: str) -> pa.Table | None:
        """The change of a view in the commit of an epoch, also if it has errors; of one that is no tick, nothing. None unless that is the
        last commit."""

        def change(committed: Committed) -> pa.Table:
            last = committed.last
            made = last if last is None or last.tick is None else last.tick
            own = None if made is None or made.epoch < epoch else made.changes.get(view)
            return definitions_of(committed).stored(view).reader.changes(own, self.strings)

        return self._if_last(epoch, change)

    def _if_last(self, epoch: int, read: Callable[[Committed], T]) -> T | None:
        def read_last() -> T | None:
            self.check_open()
            with self.strings.stable():
                committed = self._runtime.committed
                return read(committed) if committed.epoch == epoch else None

        return self._repeated(read_last)

    def read_table(self, table: str, take: Callable[[Stored, list[Spine]], T]) -> T:
        """The same for the layout and the rows of a table. Raises UnknownName for one that has been dropped."""
        return self._repeated(lambda: self._read_table(table, take))

    def _read_table(self, table: str, take: Callable[[Stored, list[Spine]], T]) -> T:
        self.check_open()
        with self.strings.stable():
            committed = self._runtime.committed
            stored = definitions_of(committed).stored_table(table)
            return take(stored, committed.snapshot(stored.spec.id))

    def failing(self) -> dict[str, int]:
        """The views that have errors, as of the last commit, and the number of rows that fail in each. Raises ClosedError."""
        self.check_open()
        committed = self._runtime.committed
        return failing_views(definitions_of(committed), committed)

    def compute(self, take: Callable[[Committed, StringTable], T]) -> T:
        """The result of `take` for the last commit and a table for the strings that it makes, which has those of the commit.

        Takes no lock; as in `read`, it is repeated under the lock if a commit removes what it reads.
        """
        try:
            return self._compute(take)
        except (KeyError, UnknownString, CorruptState):
            with held(self._lock):
                return self._compute(take)

    def _compute(self, take: Callable[[Committed, StringTable], T]) -> T:
        self.check_open()
        with self.strings.stable():
            return take(self._runtime.committed, StringTable(self.strings.identity, StringsBelow(self.strings)))

    def at_one_commit(self, read: Callable[[], T]) -> T:
        """The result of a function that reads several views, all as of one commit: under the lock if others commit meanwhile."""
        committed = self._runtime.committed
        result = read()
        if self._runtime.committed is committed:
            return result
        with held(self._lock):
            return read()

    def change(self, view: str) -> pa.Table:
        """The change of the last tick."""
        try:
            return self._change(view)
        except UnknownString:  # a commit has removed the string, and replaced the change
            with held(self._lock):
                return self._change(view)

    def _change(self, view: str) -> pa.Table:
        self.check_open()
        committed, cache = self._runtime.committed, self._decoded
        definitions = definitions_of(committed)
        stored = definitions.stored(view)
        if cache[0] is not committed:
            cache = self._decoded = (committed, {})
        decoded = cache[1]
        table = decoded.get(view)
        if table is None:
            change, strings = None if committed.last is None else committed.last.changes.get(view), self._runtime.strings
            with strings.stable():
                if view in definitions.places:
                    check_readable(definitions, view, committed, strings)
                    table = self._shown(view, stored.reader.changes(change, strings))
                else:
                    table = stored.reader.changes(change, strings)
            decoded[view] = table
        return table

    def _shown(self, view: str, change: pa.Table) -> pa.Table:
        """The last change of a view whose errors are isolated, as it is shown."""
        with held(self._lock):
            self._withheld.follow(self._runtime.committed, self.strings)
            return self._withheld.change(view, change)

    def change_at(self, view: str, epoch: int) -> pa.Table:
        """The change of an epoch. Raises StateError if it is not retained."""
        with held(self._lock):
            return self.stored(view).reader.changes(self._runtime.changes_at(view, epoch), self.strings)

    def subscribe(self, view: str, callback: Subscriber) -> Callable[[], None]:
        """Returns a function that ends the subscription."""
        if not callable(callback):
            raise SubscriberError(f"invalid subscriber {shown(callback)} of view {view}: expected a function of a pyarrow.Table")
        return self.subscribe_with_epoch(view, lambda change, epoch: callback(change))

    def subscribe_with_epoch(self, view: str, callback: EpochSubscriber) -> Callable[[], None]:
        """The same for a function of the changes and the epoch."""
        return self._subscribed((view,), lambda: self._change(view), callback)

    def subscribe_to(
        self, views: Sequence[str], read: Callable[[], Collection[Any]], callback: Callable[[Any], object]
    ) -> Callable[[], None]:
        """Calls `callback` with what `read` returns, unless it is empty, after each commit that changes one of several views."""
        return self._subscribed(views, read, lambda changes, epoch: callback(changes))

    def _subscribed(self, views: Sequence[str], read: Callable[[], Collection[Any]], callback: EpochSubscriber) -> Callable[[], None]:
        with held(self._lock):
            for view in views:
                self.stored(view)
            return self.subscribers.add(views, read, callback, self._runtime.epoch).end

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Calls `observer` with each commit of rows or definitions before the next one is made, under the lock. Returns a function that
        ends this."""

        def end() -> None:
            with self._lock:
                self._observers = tuple(other for other in self._observers if other is not observer)

        with self._lock:
            self._observers = (*self._observers, observer)
        return end

    def at_last_commit(self, read: Callable[[Committed, StringTable], T]) -> T:
        """The result of `read` for the last commit and its strings, under the lock."""
        with self._lock:
            self.check_open()
            return read(self._runtime.committed, self.strings)

    def queue(self) -> None:
        """Shows the last commit to the observers, and queues the calls of subscribers for it unless it is one of definitions. Under the
        lock."""
        committed = self._runtime.committed
        for observer in self._observers:
            observer(committed, self.strings)
        last, definitions = committed.last, committed.definitions
        if self._queued[0] is last and self._queued[1] is definitions:
            return
        shown = self._withheld.follow(committed, self.strings)
        if last is not None and not last.installs:
            self.subscribers.queue(last.epoch, shown)
        self._queued = last, definitions
