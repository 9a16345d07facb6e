"""Late rows: the watermarks of tables with LATENESS, which are notes of the state, and the rejection of rows that are before them.

A row is judged by the watermark as of the last commit, so the order of rows within a tick does not matter. A note holds the column, the
watermark and the greatest value of the column: the next tick applies a lateness that has become shorter. Rows that are too far ahead are
rejected, too: one would move the watermark so far that all later rows are late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from deltic.circuit.nodes import Dataflow
from deltic.circuit.operators.table import located
from deltic.circuit.pending import PendingRows
from deltic.errors import DataError
from deltic.runtimes import Runtime
from deltic.runtimes.distributed import Distributed
from deltic.schema import StreamSchema, TableSchema
from deltic.session.time_column import TimeColumn, wall_us
from deltic.storage.program import LATENESS
from deltic.trace.encoding import MARKER

Notes = Mapping[str, Any]
_LEAST: Final = int(np.iinfo(np.int64).min)
_MOST: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class Limits:
    """The least and the greatest value of the column with LATENESS that a tick takes: a watermark, and how far ahead a row may be."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class LateTable(TimeColumn):
    """A table with a lateness. ahead: see `schema.Lateness`."""

    ahead: int | None

    @classmethod
    def of(cls, table: TableSchema) -> Self:
        assert table.lateness is not None
        return cls(table, table.lateness.column, table.lateness.delay, table.lateness.ahead)

    @property
    def key(self) -> str:
        """Its name in the notes."""
        return self.table.name.lower()

    @property
    def is_number(self) -> bool:
        """Whether the column has whole numbers, not times."""
        return self.table.schema[self.field].type.is_integer

    def watermark(self, notes: Notes) -> int | None:
        """None before the first row, and if another column had the lateness."""
        entry = self._entry(notes)
        return None if entry is None else entry[1]

    def _entry(self, notes: Notes) -> list[Any] | None:
        entry = notes.get(LATENESS, {}).get(self.key)
        return entry if entry is not None and entry[0] == self.column else None

    def limits(self, notes: Notes) -> Limits:
        """Those of the tick after a commit with these notes."""
        entry = self._entry(notes)
        least, greatest = (_LEAST, None) if entry is None else entry[1:]
        origin = greatest if self.is_number else wall_us()
        return Limits(least, _MOST if self.ahead is None or origin is None else min(origin + self.ahead, _MOST))

    def entry(self, notes: Notes, latest: int | None) -> list[Any] | None:
        """Its note after rows with this greatest value, if any; None before the first row."""
        entry = self._entry(notes)
        greatest = max((value for value in (latest, None if entry is None else entry[2]) if value is not None), default=None)
        if greatest is None:
            return None
        due = max(greatest - self.delay, _LEAST)
        return [self.column, due if entry is None else max(entry[1], due), greatest]

    def reasons(self, rows: pa.Table, notes: Notes) -> dict[int, str]:
        """Why rows of a change frame are rejected, by their position. A frame without the column has none: the tick reports it."""
        limits = self.limits(notes)
        if self.column not in rows.column_names or rows.schema.field(self.column).type != self._type:
            return {}
        values = self.values(rows)
        rejected = np.flatnonzero(((values < limits.least) | (values > limits.most)) & (values != MARKER))
        return {int(row): f"the row is {self._reason(int(values[row]), limits)}" for row in rejected}

    def _reason(self, value: int, limits: Limits) -> str:
        shown = self.table.shown_time
        if value < limits.least:
            return f"late: {self.column} is {shown(value)}, before the watermark {shown(limits.least)}"
        assert self.ahead is not None
        origin = "the greatest value" if self.is_number else "the clock of the machine"
        return f"too far ahead: {self.column} is {shown(value)}, more than {self._length(self.ahead)} after {origin}"

    @property
    def _type(self) -> pa.DataType:
        return self.table.schema.arrow.field(self.field).type

    def _length(self, units: int) -> str:
        return str(units) if self.is_number else str(timedelta(microseconds=units))

    def error(self, value: int, limits: Limits, ordinal: int) -> DataError:
        """For a row with a value outside the limits."""
        kind = "stream" if isinstance(self.table, StreamSchema) else "table"
        if value < limits.least:
            older = "less" if self.is_number else "older"
            expected = f"rows at most {self._length(self.delay)} {older} than the greatest {self.column} of the ticks before"
            remedy = "increase LATENESS, or leave out late rows; a source with on_error 'dead_letter' sends them to its dead letters"
        else:
            expected = "rows that do not make all later rows late"
            remedy = "increase AHEAD, or leave out the row; a source with on_error 'dead_letter' sends it to its dead letters"
        error = DataError(f"{kind} {self.table.name}: a row is {self._reason(value, limits)}", expected=expected, remedy=remedy)
        return located(error, self.table.name, ordinal)

    def greatest_of(self, change: PendingRows | Distributed, notes: Notes) -> int | None:
        """The greatest value of rows that are added. Raises DataError for a row outside the limits; deleted rows may be far ahead."""
        limits = self.limits(notes)
        if isinstance(change, Distributed):
            extremes = change.extremes({self.table.name: self.column}).get(self.table.name, (None, None))
            earliest, latest = (None if value is None else value * self.scale for value in extremes)
            for value in (earliest, latest):
                if value is not None and not limits.least <= value <= limits.most:
                    raise self.error(value, limits, 0)
            return latest
        values = change.words[self.word] * self.scale
        rejected = np.flatnonzero((values < limits.least) | ((values > limits.most) & change.added))
        if len(rejected):
            first = min(rejected, key=lambda row: change.ordinals[row])
            raise self.error(int(values[first]), limits, int(change.ordinals[first]))
        return self.greatest(change)


def late_tables(tables: Iterable[TableSchema]) -> tuple[LateTable, ...]:
    """Those of the tables that have a lateness."""
    return tuple(LateTable.of(table) for table in tables if table.lateness is not None)


def watermarks_after(tables: Iterable[LateTable], notes: Notes, changes: Mapping[str, PendingRows | Distributed]) -> Notes:
    """The notes of a tick with these changes. Raises DataError for the first row that is late, or too far ahead."""
    entries: dict[str, Any] = notes.get(LATENESS, {})
    after = dict(entries)
    for late in tables:
        change = changes.get(late.table.name)
        entry = late.entry(notes, None if change is None else late.greatest_of(change, notes))
        if entry is not None:
            after[late.key] = entry
    return {} if after == entries else {LATENESS: after}


def watermarks_after_definitions(tables: Iterable[LateTable], notes: Notes, circuit: Dataflow, runtime: Runtime) -> Notes:
    """The notes for columns with rows that were committed before the column had a lateness. O(tables that have none yet)."""
    added = {}
    for late in tables:
        if late.watermark(notes) is None and not isinstance(late.table, StreamSchema):
            entry = late.entry(notes, late.greatest_stored(circuit, runtime))
            if entry is not None:
                added[late.key] = entry
    return {LATENESS: {**notes.get(LATENESS, {}), **added}} if added else {}


def watermarks_of(tables: Iterable[LateTable], notes: Notes, dropped: Iterable[str]) -> Notes:
    """The notes of new definitions: the watermarks of tables that no longer have this lateness, or are dropped, go."""
    removed = {name.lower() for name in dropped}
    kept = {late.key: notes[LATENESS][late.key] for late in tables if late.key not in removed and late.watermark(notes) is not None}
    return {} if kept == notes.get(LATENESS, {}) else {LATENESS: kept or None}
