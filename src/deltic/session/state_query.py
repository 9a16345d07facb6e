"""Queries over a state folder, without a session: its tables and views at one epoch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import sleep
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa

from deltic.errors import StateError
from deltic.frontends.sql import Args
from deltic.frontends.statements import DefinedFunction
from deltic.plan.nodes import Plan
from deltic.runtimes.state_content import StateContent
from deltic.runtimes.stored_view import StoredView, changes_in, changes_since, is_stream
from deltic.schema import Schema, StreamSchema, TableSchema
from deltic.session.query import Answer, answer_of, view_as_table
from deltic.storage.leases import LEASE_S
from deltic.storage.program import ProgramDescription
from deltic.storage.reader import StateReader
from deltic.trace.spine import Spine

POLL_S: Final = 0.1
"""In seconds, how often a state is read for new epochs."""


@dataclass(frozen=True, slots=True)
class _Epoch:
    """What a query needs of a commit."""

    epoch: int
    notes: Mapping[str, Any]


class StateRelations:
    """The tables and views of a state; a view is a table with its content."""

    def __init__(self, program: ProgramDescription, content: StateContent) -> None:
        self._content = content
        self._relations: dict[str, tuple[TableSchema, str]] = {}
        for name, table in program.tables.items():
            positions = tuple([field.name for field in table.fields].index(key) for key in table.key)
            kind = StreamSchema if table.stream else TableSchema
            self._relations[name.lower()] = kind(name, Schema(table.fields), positions), table.arrangement
        for name, view in program.views.items():
            self._relations[name.lower()] = view_as_table(name, Schema(view.columns), view.order, view.key), view.arrangement
        self._streams = {name for name, view in program.views.items() if program.arrangements[view.arrangement].ephemeral}

    def relation(self, name: str) -> TableSchema | Plan | None:
        known = self._relations.get(name.lower())
        return None if known is None else known[0]

    def names(self) -> tuple[str, ...]:
        return tuple(table.name for table, _ in self._relations.values())

    def functions(self) -> Mapping[str, DefinedFunction]:
        return {}

    def content(self, table: TableSchema, committed: _Epoch) -> Sequence[Spine]:
        """The content, a spine for each shard."""
        _, arrangement = self._relations[table.name.lower()]
        self._content.check_readable(table.name)
        if table.name in self._streams:
            return self._content.stream(table.name)
        return self._content.spines(arrangement)


class StateQueries:
    """A state folder that is only read. `refresh` moves to its last epoch. lease: as of `deltic.open`."""

    def __init__(self, state: str | os.PathLike[str], *, lease: bool = True) -> None:
        """Raises StateError if there is no state."""
        self._state, self._lease_s, self._follows = state, LEASE_S if lease else None, False
        self._reader = self._opened()

    @property
    def program(self) -> ProgramDescription:
        """The description of the state's tables and views."""
        return self._reader.manifest.program

    @property
    def epoch(self) -> int:
        """The epoch that is read."""
        return self._reader.epoch

    @property
    def relations(self) -> StateRelations:
        """The tables and views by name."""
        return StateRelations(self.program, StateContent(self._reader))

    def refresh(self) -> bool:
        """Moves to the last epoch; whether there is a new one."""
        if (before := self._moved()) is None:
            return False
        before.close()
        return True

    def _moved(self) -> StateReader | None:
        """Moves to the last epoch; the reader of the one before, still open, or None if there is no new one."""
        if self._reader.epochs().stop - 1 == self._reader.epoch:
            return None
        before, self._reader = self._reader, self._opened()
        return before

    def _opened(self) -> StateReader:
        return StateReader.open(self._state, None, lease_s=self._lease_s, follows=self._follows)

    def query(self, text: str, *, args: Args = None, name: str = "<query>") -> Answer:
        """See `Session.query`."""
        content = StateContent(self._reader)
        relations = StateRelations(self.program, content)
        committed = _Epoch(self.epoch, self._reader.manifest.notes)
        return answer_of(text, name, relations, args, committed, content.strings(), None)

    def changes(self, view: str) -> Iterator[pa.Table]:
        """The changes of a view in each epoch that comes from now on; waits for them without an end. Raises UnknownName."""
        StoredView(self._reader, view)
        self._follows = True
        self._reader.follow()
        return self._followed(view)

    def _followed(self, view: str) -> Iterator[pa.Table]:
        try:
            while True:
                if (before := self._moved()) is None:
                    sleep(POLL_S)
                    continue
                try:
                    yield from (change for change in self._since(before, view) if change.num_rows)
                finally:
                    before.close()
        finally:
            self._follows = False

    def _since(self, before: StateReader, view: str) -> Iterator[pa.Table]:
        """The changes of a view since the epoch of a reader, whose lease keeps those after it."""
        stored = StoredView(self._reader, view)
        if before.epoch in before.epochs():
            for epoch in range(before.epoch + 1, self.epoch + 1):
                yield changes_in(stored, before.change_at(epoch))
        elif is_stream(stored):
            raise StateError(
                f"the rows of {stored.name} in some epochs from {before.epoch + 1} to {self.epoch} are not in {before.root} any more",
                remedy="start again; while it runs, the state keeps them",
            )
        else:  # a fold had begun before the reader followed, and has added up some of the epochs
            yield changes_since(stored, StoredView(before, view))

    def close(self) -> None:
        """Releases the files."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
