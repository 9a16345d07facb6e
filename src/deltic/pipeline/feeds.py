"""The sources of a pipeline's tables: what each tick reads from them, and the notes that are committed with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

import numpy as np
import pyarrow as pa

from deltic.connectors.frames import OP, WEIGHT
from deltic.connectors.offset_notes import offset_notes, offsets_of
from deltic.connectors.source import DeadLetter, Json, RemoteRows, Source, SourceBatch, SpreadSource
from deltic.errors import DataError
from deltic.schema import TableSchema
from deltic.session import Session

SPREAD_ROWS: Final = 1_000_000
"""Of a source that tasks read, by default: in a tick each of them has a part."""


@dataclass(frozen=True, slots=True)
class Load:
    """What one tick reads for one table.

    numbers: int64[n], the position of each row of the batch among those that its source read, if some are left out; None if all are there.
    """

    table: TableSchema
    batch: SourceBatch
    numbers: np.ndarray | None = field(default=None, compare=False)

    def origin(self, row: int) -> str | None:
        """The place of the batch's i-th row, for error messages; None if the source does not know it."""
        return None if self.batch.origin is None else self.batch.origin(self._number(row))

    def place(self, row: int) -> tuple[str, int]:
        """The file of the row, or the part of the source, and its number there."""
        batch, number = self.batch, self._number(row)
        return batch.place(number) if batch.place is not None else (", ".join(batch.parts), number + 1)

    def with_rows(self, changes: pa.Table | None, rows: np.ndarray, letters: Sequence[DeadLetter] = ()) -> Load:
        """The load with other changes, which are its rows of these positions, int64[n], and more dead letters."""
        numbers = rows if self.numbers is None else self.numbers[rows]
        batch = replace(self.batch, changes=changes, dead_letters=[*self.batch.dead_letters, *letters])
        return replace(self, batch=batch, numbers=numbers)

    def _number(self, row: int) -> int:
        return row if self.numbers is None else int(self.numbers[row])

    @property
    def notes(self) -> dict[str, Json]:
        """To be committed with the tick."""
        return offset_notes(self.table.name, self.batch.offsets)

    @property
    def changes(self) -> pa.Table | RemoteRows | None:
        """The rows as a change frame, or as changes that tasks read; None if there are none."""
        rows = self.batch.changes
        if rows is None or isinstance(rows, RemoteRows) or OP in rows.column_names or WEIGHT in rows.column_names:
            return rows
        if self.table.key:
            return rows.append_column(OP, pa.repeat("insert", rows.num_rows))
        return rows.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))


@dataclass(frozen=True, slots=True)
class Feed:
    """A table and its open source. rows_per_tick: the most rows of the source that a tick reads."""

    table: TableSchema
    source: Source
    rows_per_tick: int

    def spread(self, session: Session, rows_per_tick: int | None) -> Self:
        """The feed, which tasks read if the session has any and the source can be spread. rows_per_tick: as the user gave it."""
        run = session._on_tasks
        if run is None or not isinstance(self.source, SpreadSource) or not self.source.spread(run):
            return self
        return replace(self, rows_per_tick=rows_per_tick or SPREAD_ROWS)

    def restore(self, notes: Mapping[str, Json]) -> None:
        """Continues after the offsets in the state. Raises SourceError for offsets of another source."""
        self.source.restore(offsets_of(notes, self.table.name))

    def read(self) -> Load | None:
        """The next rows; None if there are no more."""
        batch = self.source.read(self.rows_per_tick)
        return None if batch is None else Load(self.table, batch)


def located(error: DataError, loads: Sequence[Load]) -> DataError:
    """The error, with the origin of its row (such as file and number) if that is a row of one of these loads.

    loads: in the order in which the tick had them; errors of the engine name rows by their position in the tick, or in what tasks read.
    """
    found = load_of(error, loads)
    origin = None if found is None else found[0].origin(error.ordinal - found[1])
    return error if origin is None else _with_origin(error, origin)


def load_of(error: DataError, loads: Sequence[Load]) -> tuple[Load, int] | None:
    """(the load that has the error's row, the ordinal of its first row); None if none has it."""
    first = 0
    for load in loads:
        changes = load.batch.changes
        rows = 0 if changes is None else changes.num_rows
        start = 0 if isinstance(changes, RemoteRows) else first
        if load.table.name == error.table and 0 <= error.ordinal - start < rows:
            return load, start
        first += 0 if isinstance(changes, RemoteRows) else rows
    return None


def _with_origin(error: DataError, origin: str) -> DataError:
    located = type(error)(f"{origin}: {error.message}", span=error.span, expected=error.expected, remedy=error.remedy)
    located.table, located.ordinal, located.row = error.table, error.ordinal, error.row
    return located
