"""Time by watermarks: the greatest committed value of a table's column, minus a delay; the least of them if there are several tables.

After each tick the time is determined by the committed rows, including those of the tick, so it does not depend on how rows are divided
into ticks. It never goes back, even if the rows that determined it are deleted. A late row is a change like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from deltic.circuit.nodes import Dataflow
from deltic.circuit.pending import PendingRows
from deltic.errors import ClockError, SetupError, did_you_mean
from deltic.frontends.sql import DELAY_FORM
from deltic.frontends.sql import delay_us as parsed_us
from deltic.purity import shown
from deltic.runtimes import Runtime
from deltic.runtimes.distributed import Distributed
from deltic.schema import TIMESTAMP, TableSchema
from deltic.session.catalog import Catalog
from deltic.session.time_column import TimeColumn
from deltic.storage.program import CLOCK, WATERMARKS

BEGINNING: Final = -62_135_596_800_000_000
"""The time until a row determines it: the first microsecond of the calendar."""
Notes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Watermark:
    """The time is the greatest value of a TIMESTAMP column of a table, minus `delay`: a timedelta, or text such as "10 seconds"."""

    table: str
    column: str
    delay: timedelta | str = timedelta()

    def __post_init__(self) -> None:
        for name in (self.table, self.column):
            if not isinstance(name, str):
                raise SetupError(f"invalid name {shown(name)} in a watermark", expected="the names of a table and of a column")

    @property
    def delay_us(self) -> int:
        """Raises SetupError for an invalid delay."""
        delay_us = self.delay // timedelta(microseconds=1) if isinstance(self.delay, timedelta) else parsed_us(str(self.delay))
        if delay_us is None or delay_us < 0:
            raise SetupError(f"the delay of the watermark {self.table}.{self.column} is {self.delay!r}", expected=DELAY_FORM)
        return delay_us


@dataclass(frozen=True, slots=True)
class Marks:
    """The watermarks that are the clock, by table in lower case; empty if another clock is used. None: the table does not exist yet.

    The notes of a commit record, by table, the column and its greatest value: an entry [column, microseconds].
    """

    by_table: Mapping[str, TimeColumn | None] = field(default_factory=lambda: MappingProxyType({}))

    def __bool__(self) -> bool:
        return bool(self.by_table)

    @classmethod
    def of(cls, watermarks: Iterable[Watermark], catalog: Catalog) -> Marks:
        """Those of a session, and those of the catalog's tables. Raises ClockError for a column that cannot be a watermark."""
        marks: dict[str, TimeColumn | None] = {
            key: TimeColumn(catalog.tables[key], catalog.tables[key].schema.find(timed.column)[0], timed.delay_us)
            for key, timed in catalog.timed.items()
        }
        for watermark in watermarks:
            table = catalog.tables.get(watermark.table.lower())
            marks[watermark.table.lower()] = None if table is None else TimeColumn(table, _column(watermark, table), watermark.delay_us)
        return cls(marks)

    def check_tables(self) -> None:
        """Before a view reads the time. Raises ClockError if the table of a watermark does not exist."""
        missing = next((table for table, mark in self.by_table.items() if mark is None), None)
        if missing is not None:
            raise ClockError(
                f"a view reads now(), which is the watermark of table {missing}, but that table does not exist",
                remedy=f"CREATE TABLE {missing} before the view",
            )

    def recorded(self, committed: Notes) -> dict[str, list[Any]]:
        """The entries of these watermarks in the notes."""
        entries = committed.get(WATERMARKS, {})
        return {key: entries[key] for key, mark in self.by_table.items() if mark is not None and entries.get(key, [None])[0] == mark.column}

    def unrecorded(self, committed: Notes, circuit: Dataflow, runtime: Runtime) -> dict[str, list[Any]]:
        """Entries for columns with rows that were committed before the column was a watermark. O(table)."""
        recorded = self.recorded(committed)
        entries = {}
        for key, mark in self.by_table.items():
            if mark is not None and key not in recorded and (latest := mark.greatest_stored(circuit, runtime)) is not None:
                entries[key] = [mark.column, latest]
        return entries

    def advanced(self, committed: Notes, entries: Mapping[str, list[Any]]) -> Notes:
        """The notes of a commit by which these columns reach these values: the entries and the time that change."""
        recorded = self.recorded(committed)
        for key, (column, latest) in entries.items():
            recorded[key] = [column, max(latest, recorded.get(key, [column, latest])[1])]
        notes: dict[str, Any] = {} if recorded == committed.get(WATERMARKS, {}) else {WATERMARKS: recorded or None}
        values = [recorded[key][1] - mark.delay for key, mark in self.by_table.items() if mark is not None and key in recorded]
        if values and len(values) == len(self.by_table) and max(min(values), BEGINNING) > committed.get(CLOCK, BEGINNING - 1):
            notes[CLOCK] = max(min(values), BEGINNING)
        return notes

    def latest(self, changes: Mapping[str, PendingRows | Distributed]) -> dict[str, list[Any]]:
        """Entries for the rows that a tick adds. On Spark, one job for each distributed frame."""
        columns = {mark.table.name: mark.column for mark in self.by_table.values() if mark is not None}
        distributed = {id(change): change for name, change in changes.items() if name in columns and isinstance(change, Distributed)}
        distributed_latest = {name: value for change in distributed.values() for name, value in change.latest(columns).items()}
        entries: dict[str, list[Any]] = {}
        for key, mark in self.by_table.items():
            change = None if mark is None else changes.get(mark.table.name)
            if mark is None or change is None:
                continue
            latest = distributed_latest.get(mark.table.name) if isinstance(change, Distributed) else mark.greatest(change)
            if latest is not None:
                entries[key] = [mark.column, latest]
        return entries


def _column(watermark: Watermark, table: TableSchema) -> int:
    positions = table.schema.find(watermark.column)
    if not positions:
        remedy = did_you_mean(watermark.column, table.schema.names)
        raise ClockError(f"the watermark column {watermark.column!r} is not in table {table.name}", remedy=remedy)
    if (type_ := table.schema[positions[0]].type) != TIMESTAMP:
        raise ClockError(f"the watermark {table.name}.{watermark.column} is of type {type_.sql}", expected="a column of type TIMESTAMP")
    return positions[0]
