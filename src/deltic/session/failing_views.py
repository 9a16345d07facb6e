"""Views that have errors, where a session isolates them: they cannot be read, and their changes wait until they have none."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa

from deltic.connectors.net import net
from deltic.errors import StateError
from deltic.runtimes import Committed
from deltic.runtimes.view_errors import errors_of, failed_view
from deltic.session.definitions import Definitions, definitions_of
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.merge import merge
from deltic.trace.strings import StringTable


def failing_views(definitions: Definitions, committed: Committed) -> dict[str, int]:
    """The views that have errors, and the number of rows that fail in each. O(errors)."""
    return {view: count for view in definitions.places if (count := int(_errors(definitions, view, committed).weights[0].sum()))}


def _errors(definitions: Definitions, view: str, committed: Committed) -> Batch:
    spines = committed.snapshot(definitions.stored(errors_of(view)).spec.id)
    return merge([spine.scan(Counters()) for spine in spines])


def has_errors(definitions: Definitions, view: str, committed: Committed) -> bool:
    """Whether a view has errors. O(errors)."""
    return view in definitions.places and len(_errors(definitions, view, committed)) > 0


def check_readable(definitions: Definitions, view: str, committed: Committed, strings: StringTable) -> None:
    """Raises FailedView, with the least error, for a view that has errors."""
    if view in definitions.places and len(errors := _errors(definitions, view, committed)):
        rows = definitions.stored(errors_of(view)).reader.content(errors, strings)
        raise failed_view(view, rows, definitions.places[view])


class WithheldChanges:
    """The changes of views with errors, from the tick in which they got some to the one in which they lose them.

    changes_at: the change of a view in a past epoch, which raises StateError for one that is not retained. Of a view that had errors before
    the session was opened, the changes of the retained epochs are read.
    """

    def __init__(self, changes_at: Callable[[str, int], Batch | None]) -> None:
        self._changes_at = changes_at
        self._seen: dict[str, str] = {}
        """The views of the commit that was taken into account last, and the arrangement of each: that of a replaced view is another."""
        self._waiting: dict[str, list[pa.Table]] = {}
        self._healed: dict[str, list[pa.Table]] = {}
        self._followed: tuple[object, object] = (self, self)
        """The result and the definitions of the commit that was taken into account last."""

    def follow(self, committed: Committed, strings: StringTable) -> Collection[str]:
        """Takes a commit into account, once; the views that show a change in it. Under the session's lock."""
        definitions, last = definitions_of(committed), committed.last
        changes = {} if last is None else last.changes
        if self._followed[0] is last and self._followed[1] is definitions:
            return self._shown(changes)
        self._followed, self._healed = (last, definitions), {}
        if not definitions.places and not self._waiting:
            self._seen = {}
            return changes
        before, self._seen = self._seen, {view: definitions.stored(view).spec.id for view in definitions.places}
        self._waiting = {view: tables for view, tables in self._waiting.items() if self._seen.get(view) == before[view]}
        for view in definitions.places:
            if len(errors := _errors(definitions, view, committed)):
                reader = definitions.stored(view).reader
                if self._seen[view] != before.get(view):
                    pending = self._since_errors(view, int(errors.weights[0].sum()), committed.epoch)
                    self._waiting[view] = [reader.changes(change, strings) for change in pending]
                else:
                    tables = self._waiting.setdefault(view, [])
                    if view in changes:
                        tables.append(reader.changes(changes[view], strings))
            elif view in self._waiting:
                self._healed[view] = self._waiting.pop(view)
        return self._shown(changes)

    def _since_errors(self, view: str, count: int, epoch: int) -> list[Batch]:
        """The changes of a view, which has `count` errors at `epoch`, since it had none. Cost: each epoch's changes and manifest."""
        newest_first = []
        while count > 0:
            try:
                change, errors = self._changes_at(view, epoch), self._changes_at(errors_of(view), epoch)
            except StateError:  # it is not retained, or the view was defined after it
                break
            newest_first += [] if change is None else [change]
            count -= 0 if errors is None else int(errors.weights[0].sum())
            epoch -= 1
        return newest_first[::-1]

    def _shown(self, changes: Collection[str]) -> Collection[str]:
        if not self._waiting and not self._healed:
            return changes
        return {*(view for view in changes if view not in self._waiting), *self._healed}

    def change(self, view: str, change: pa.Table) -> pa.Table:
        """The change that a view shows: its own and, in the tick in which it loses its errors, those since it got them."""
        return net([*self._healed[view], change]) if view in self._healed else change
