"""Views at past epochs, read from the retained manifests of the state; a session reads its last epoch alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pyarrow as pa

from deltic.runtimes.stored_view import StoredView
from deltic.schema import Schema
from deltic.session import Session
from deltic.storage.reader import StateReader


class History:
    """root: the state folder of the session."""

    def __init__(self, session: Session, root: str) -> None:
        self._session, self._root = session, root

    def arrangements(self, view: str, first: int, last: int) -> Iterator[tuple[int, str | None]]:
        """For each epoch from `first` to `last`, the id of the view's arrangement; None if the view did not exist.

        Raises StateError for epochs that are not retained. Cost: reads the manifest of each epoch, but not that of the last
        commit alone.
        """
        if last < first:
            return
        if first == last and (arrangement := self._session.view(view)._arrangement_if_last(last)) is not None:
            yield last, arrangement
            return
        self._session._fold()
        with StateReader.open(self._root) as reader:
            for epoch in range(first, last + 1):
                yield epoch, reader.manifest_at(epoch).program.arrangement_of(view)

    def readable(self, view: str, arrangement: str, first: int, last: int) -> Sequence[int]:
        """The epochs from `first` to `last` in which the view has no errors, ascending. O(errors) for each, if it can have some.

        arrangement: that of the view in these epochs; the session's view may have another definition, which cannot fail.
        """
        epochs, exact = range(first, last + 1), not self._session._isolates(view)
        if exact and self._session.view(view)._arrangement == arrangement:
            return epochs
        return [epoch for epoch in epochs if not self._has_errors(view, epoch)]

    def _has_errors(self, view: str, epoch: int) -> bool:
        if (last := self._session.view(view)._has_errors_if_last(epoch)) is not None:
            return last
        with self._stored(view, epoch) as stored:
            return len(stored.errors()) > 0

    def change(self, view: str, epoch: int) -> pa.Table:
        """The view's change in an epoch, with `_weight`, also if it has errors."""
        if (last := self._session.view(view)._change_if_last(epoch)) is not None:
            return last
        with self._stored(view, epoch) as stored:
            return stored.changes(epoch)

    def content(self, view: str, epoch: int) -> pa.Table:
        """The view after an epoch. O(view). Raises FailedView if it has errors."""
        if (last := self._session.view(view)._content_if_last(epoch)) is not None:
            return last
        with self._stored(view, epoch) as stored:
            return stored.to_arrow()

    def schema(self, view: str, epoch: int) -> Schema:
        """The columns of the view after an epoch before the last one."""
        with self._stored(view, epoch) as stored:
            return stored.schema

    def stream_at(self, view: str, epoch: int) -> str | None:
        """The id of the view's arrangement after an epoch; None if the view did not exist, or its content was not that of a stream, which
        is the change of the epoch."""
        self._session._fold()
        with StateReader.open(self._root) as reader:
            program = reader.manifest_at(epoch).program
        arrangement = program.arrangement_of(view)
        return arrangement if arrangement is not None and program.arrangements[arrangement].ephemeral else None

    @contextmanager
    def _stored(self, view: str, epoch: int) -> Iterator[StoredView]:
        self._session._fold()
        with ExitStack() as stack:
            yield StoredView(stack.enter_context(StateReader.open(self._root, epoch)), view)
