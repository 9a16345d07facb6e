"""Views that have errors, where a session isolates them: they cannot be read, and their changes wait until they have none."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from deltic.connectors.net import net
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


def check_readable(definitions: Definitions, view: str, committed: Committed, strings: StringTable) -> None:
    """Raises FailedView, with the least error, for a view that has errors."""
    if view in definitions.places and len(errors := _errors(definitions, view, committed)):
        rows = definitions.stored(errors_of(view)).reader.content(errors, strings)
        raise failed_view(view, rows, definitions.places[view])


class Withheld:
    """The changes of views with errors, from the tick in which they got some to the one in which they lose them."""

    def __init__(self) -> None:
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
            return changes
        self._waiting = {view: tables for view, tables in self._waiting.items() if view in definitions.places}
        for view in definitions.places:
            if len(_errors(definitions, view, committed)):
                tables = self._waiting.setdefault(view, [])
                if view in changes:
                    tables.append(definitions.stored(view).reader.changes(changes[view], strings))
            elif view in self._waiting:
                self._healed[view] = self._waiting.pop(view)
        return self._shown(changes)

    def _shown(self, changes: Collection[str]) -> Collection[str]:
        if not self._waiting and not self._healed:
            return changes
        return {*(view for view in changes if view not in self._waiting), *self._healed}

    def change(self, view: str, change: pa.Table) -> pa.Table:
        """The change that a view shows: its own and, in the tick in which it loses its errors, those since it got them."""
        return net([*self._healed[view], change]) if view in self._healed else change
