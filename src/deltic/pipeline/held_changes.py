"""The changes of a view in memory, held from their commits until its sinks have received them.

Each commit of the session is taken into account before the next one is made. A view that is redefined changes by the difference between its
contents, and one whose sinks are new by all its rows. So the changes always add up to the content, and none is missing or there twice.

A change waits until a commit makes an epoch after which the view has no errors, and is part of that epoch's change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from deltic.connectors.net import difference, net, weighed
from deltic.runtimes import Committed
from deltic.session.contents import content_of_view
from deltic.session.definitions import Stored, definitions_of
from deltic.session.failing_views import has_errors
from deltic.session.view import merged
from deltic.trace.strings import StringTable


class HeldChange(NamedTuple):
    """The rows by which an epoch changed the view."""

    epoch: int
    rows: pa.Table


class _Followed(NamedTuple):
    """The last commit that was taken into account, and after it: how many changes are held, those that wait, the last epoch that changed
    the content, whether the view has no errors, and the last epoch without any."""

    committed: Committed | None = None
    held: int = 0
    waiting: tuple[pa.Table, ...] = ()
    changed: int = 0
    exact: bool = True
    exact_to: int = -1


class HeldChanges:
    """view: its name in lower case. sums: whether the rows of its changes are held; otherwise only that there were some.

    All methods are called under the session's lock, `follow` first.
    """

    def __init__(self, view: str, *, sums: bool) -> None:
        self._view, self._sums = view, sums
        self._changes: list[HeldChange] = []
        """Ascending; those past the count are of an interrupted call of `follow`."""
        self._last = _Followed()

    @property
    def exact(self) -> bool:
        """Whether the view has no errors now."""
        return self._last.exact

    @property
    def exact_to(self) -> int:
        """The last epoch after which the view had no errors."""
        return self._last.exact_to

    @property
    def changed(self) -> int:
        """The last epoch that changed the content; before a commit has followed the first content, the next one."""
        return self._last.changed

    def follow(self, committed: Committed, strings: StringTable) -> None:
        """Takes a commit into account, once. O(change), amortized O(change log changes) while the view has errors; O(content) for the first
        commit, and if the view was redefined."""
        last = self._last
        if committed is last.committed:
            return
        name, _ = self._stored(committed)
        changed, rows = self._change(last.committed, committed, strings)
        exact = not has_errors(definitions_of(committed), name, committed)
        is_epoch = last.committed is not None and committed.epoch > last.committed.epoch
        waiting = last.waiting if rows is None else _with(last.waiting, rows)
        del self._changes[last.held :]
        if is_epoch and exact and waiting:
            if (rows := waiting[0] if len(waiting) == 1 else net(waiting)).num_rows:
                self._changes.append(HeldChange(committed.epoch, rows))
            waiting = ()
        changed_to = (committed.epoch if is_epoch else committed.epoch + 1) if changed else last.changed
        exact_to = committed.epoch if exact else last.exact_to
        self._last = _Followed(committed, len(self._changes), waiting, changed_to, exact, exact_to)

    def due(self, received: int) -> Iterator[tuple[int, pa.Table]]:
        """The changes after epoch `received`. O(changes held)."""
        return (change for change in self._changes[: self._last.held] if change.epoch > received)

    def forget(self, received: int) -> None:
        """Releases the changes up to epoch `received`, which all sinks have."""
        held = self._changes[: self._last.held]
        if held and held[0].epoch <= received:
            kept = [change for change in held if change.epoch > received]
            self._changes, self._last = kept, self._last._replace(held=len(kept))

    def content(self, committed: Committed, strings: StringTable) -> pa.Table:
        """The content of the view, also if it has errors. O(content)."""
        name, stored = self._stored(committed)
        return stored.reader.content(merged(content_of_view(committed, name, stored.spec)), strings)

    def _change(self, before: Committed | None, after: Committed, strings: StringTable) -> tuple[bool, pa.Table | None]:
        """Whether a commit changed the content, and the rows if they are held. before: the commit before it; None of the first."""
        if before is None:
            return True, weighed(self.content(after, strings)) if self._sums else None
        (_, earlier), (name, stored) = self._stored(before), self._stored(after)
        if earlier.spec.id != stored.spec.id:
            if not self._sums:
                return True, None
            rows = self.content(after, strings)
            if earlier.spec.ephemeral:  # its content is its last change: what it has emitted stays
                return True, weighed(rows)
            rows = difference(self.content(before, strings), rows)
            return rows.num_rows > 0, rows
        if after.last is before.last or after.last is None:
            return False, None
        batch = after.last.changes.get(name)
        if stored.spec.ephemeral:
            changed = any(len(spine.batches) for one in (before, after) for spine in content_of_view(one, name, stored.spec))
        else:
            changed = batch is not None
        return changed, stored.reader.changes(batch, strings) if self._sums and batch is not None else None

    def _stored(self, committed: Committed) -> tuple[str, Stored]:
        """The view's name in the definitions of a commit, and its layout."""
        definitions = definitions_of(committed)
        name = definitions.catalog.views[self._view].name
        return name, definitions.stored(name)


def _with(waiting: tuple[pa.Table, ...], rows: pa.Table) -> tuple[pa.Table, ...]:
    """One more change that waits. Those that are not at least twice as large are added up: so they need about as much memory as the view,
    and each row is added up O(log changes) times."""
    while waiting and waiting[-1].num_rows < 2 * rows.num_rows:
        *before, last = waiting
        waiting, rows = tuple(before), net([last, rows])
    return (*waiting, rows) if rows.num_rows else waiting
