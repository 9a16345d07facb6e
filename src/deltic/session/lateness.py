"""Late rows: the watermarks of tables with LATENESS, which are notes of the state, and the rejection of rows that are before them.

A row is judged by the watermark as of the last commit, so the order of rows within a tick does not matter. A note holds the column, the
watermark and the greatest value of the column: the next tick applies a lateness that has become shorter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from deltic.circuit.nodes import Dataflow
from deltic.circuit.operators.table import located
from deltic.circuit.pending import PendingRows
from deltic.errors import DataError
from deltic.expr.rows.casts import EPOCH
from deltic.runtimes import Runtime
from deltic.runtimes.distributed import Distributed
from deltic.schema import StreamSchema, TableSchema
from deltic.session.watermark import greatest_stored
from deltic.storage.program import LATENESS
from deltic.trace.encoding import Layout

Notes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LateTable:
    """A table with a lateness."""

    table: TableSchema

    @property
    def key(self) -> str:
        """Its name in the notes."""
        return self.table.name.lower()

    @property
    def column(self) -> str:
        return self.table.schema[self.field].name

    @property
    def word(self) -> int:
        start: int = Layout.of(self.table.schema).slices[self.field].start
        return start

    @property
    def delay_us(self) -> int:
        assert self.table.lateness is not None
        return self.table.lateness.microseconds

    @property
    def field(self) -> int:
        assert self.table.lateness is not None
        return self.table.lateness.column

    def watermark(self, known: Notes) -> int | None:
        """In microseconds since 1970 UTC; None before the first row, and if another column had the lateness."""
        entry = known.get(LATENESS, {}).get(self.key)
        return entry[1] if entry is not None and entry[0] == self.column else None

    def entry(self, known: Notes, latest: int | None) -> list[Any] | None:
        """Its note after rows with this greatest value, if any; None before the first row."""
        watermark, entry = self.watermark(known), known.get(LATENESS, {}).get(self.key)
        greatest = max((moment for moment in (latest, None if watermark is None else entry[2]) if moment is not None), default=None)
        if greatest is None:
            return None
        due = greatest - self.delay_us
        return [self.column, due if watermark is None else max(watermark, due), greatest]

    def late(self, rows: pa.Table, known: Notes) -> np.ndarray:
        """bool[n]: which rows of a change frame are before the watermark. A frame without the column has none: the tick reports it."""
        watermark = self.watermark(known)
        if watermark is None or self.column not in rows.column_names or rows.schema.field(self.column).type != self._type:
            return np.zeros(rows.num_rows, bool)
        moments = rows.column(self.column).cast(pa.int64())
        return np.asarray(moments.fill_null(watermark).to_numpy()) < watermark

    def reason(self, moment_us: int, watermark_us: int) -> str:
        """Why a row of that time is rejected."""
        return f"{self.column} is {_shown(moment_us)}, before the watermark {_shown(watermark_us)}"

    @property
    def _type(self) -> pa.DataType:
        return self.table.schema.arrow.field(self.field).type

    def error(self, moment_us: int, watermark_us: int, ordinal: int) -> DataError:
        kind = "stream" if isinstance(self.table, StreamSchema) else "table"
        least = f"rows at most {timedelta(microseconds=self.delay_us)} older than the greatest {self.column} of the ticks before"
        error = DataError(
            f"{kind} {self.table.name}: a row is late: {self.reason(moment_us, watermark_us)}",
            expected=least,
            remedy="increase LATENESS, or leave out late rows; a source with on_error 'dead_letter' sends them to its dead letters",
        )
        return located(error, self.table.name, ordinal)


def late_tables(tables: Iterable[TableSchema]) -> tuple[LateTable, ...]:
    """Those of the tables that have a lateness."""
    return tuple(LateTable(table) for table in tables if table.lateness is not None)


def watermarks_after(tables: Iterable[LateTable], known: Notes, changes: Mapping[str, PendingRows | Distributed]) -> Notes:
    """The notes of a tick with these changes. Raises DataError for the first row that is late."""
    entries: dict[str, Any] = known.get(LATENESS, {})
    after = dict(entries)
    for late in tables:
        change = changes.get(late.table.name)
        entry = late.entry(known, None if change is None else _latest(late, change, late.watermark(known)))
        if entry is not None:
            after[late.key] = entry
    return {} if after == entries else {LATENESS: after}


def watermarks_after_definitions(tables: Iterable[LateTable], known: Notes, circuit: Dataflow, runtime: Runtime) -> Notes:
    """The notes for columns with rows that were committed before the column had a lateness. O(tables that have none yet)."""
    found = {}
    for late in tables:
        if late.watermark(known) is None and not isinstance(late.table, StreamSchema):
            entry = late.entry(known, greatest_stored(late.table, late.field, circuit, runtime))
            if entry is not None:
                found[late.key] = entry
    return {LATENESS: {**known.get(LATENESS, {}), **found}} if found else {}


def watermarks_of(tables: Iterable[LateTable], known: Notes, dropped: Iterable[str]) -> Notes:
    """The notes of new definitions: the watermarks of tables that no longer have this lateness, or are dropped, go."""
    removed = {name.lower() for name in dropped}
    kept = {late.key: known[LATENESS][late.key] for late in tables if late.key not in removed and late.watermark(known) is not None}
    return {} if kept == known.get(LATENESS, {}) else {LATENESS: kept or None}


def _latest(late: LateTable, change: PendingRows | Distributed, watermark: int | None) -> int | None:
    """The greatest time of rows that are added. Raises DataError for a row before the watermark."""
    if isinstance(change, Distributed):
        earliest, latest = change.extremes({late.table.name: late.column}).get(late.table.name, (None, None))
        if watermark is not None and earliest is not None and earliest < watermark:
            raise late.error(earliest, watermark, 0)
        return latest
    moments = change.words[late.word]
    if watermark is not None and (before := np.flatnonzero(moments < watermark)).size:
        first = before[np.argmin(change.ordinals[before])]
        raise late.error(int(moments[first]), watermark, int(change.ordinals[first]))
    added = moments[change.added]
    return int(added.max()) if len(added) else None


def _shown(moment_us: int) -> str:
    try:
        return f"{(EPOCH + timedelta(microseconds=moment_us)).replace(tzinfo=None)}"
    except OverflowError:
        return f"{moment_us} µs"
