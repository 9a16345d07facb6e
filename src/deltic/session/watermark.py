"""Time by watermarks: the greatest value of a table's column that has been committed, less a delay; of several tables, the least.

What always holds after a tick: the time is what the committed rows make it, those of this tick among them, so it does not depend on how
rows fell into ticks. It never goes back: rows that are deleted have told it all the same. A late row is a change like any other, which
views hold at the time that it is.
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
from deltic.runtimes import Runtime
from deltic.runtimes.distributed import Distributed
from deltic.schema import TIMESTAMP, TableSchema
from deltic.session.catalog import Catalog
from deltic.storage.program import CLOCK, WATERMARKS
from deltic.trace.counters import Counters
from deltic.trace.encoding import MARKER, Layout
from deltic.trace.spine import Spine

BEGINNING: Final = -62_135_596_800_000_000
"""Where the time stands until a row tells it: the first microsecond of the calendar."""
Notes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Watermark:
    """The time is the greatest value of a TIMESTAMP column of a table, less `delay`: a timedelta, or text such as "10 seconds"."""

    table: str
    column: str
    delay: timedelta | str = timedelta()

    @property
    def delay_us(self) -> int:
        """Raises SetupError for what is no delay."""
        found = self.delay // timedelta(microseconds=1) if isinstance(self.delay, timedelta) else parsed_us(str(self.delay))
        if found is None or found < 0:
            raise SetupError(f"the delay of the watermark {self.table}.{self.column} is {self.delay!r}", expected=DELAY_FORM)
        return found


@dataclass(frozen=True, slots=True)
class Mark:
    """A watermark of a table that is there."""

    table: TableSchema
    field: int
    delay_us: int

    @property
    def column(self) -> str:
        return self.table.schema[self.field].name

    @property
    def word(self) -> int:
        start: int = Layout.of(self.table.schema).slices[self.field].start
        return start


@dataclass(frozen=True, slots=True)
class Marks:
    """The watermarks that are the clock, by table in lower case; none where another is. None stands for a table that is not there yet."""

    by_table: Mapping[str, Mark | None] = field(default_factory=lambda: MappingProxyType({}))

    def __bool__(self) -> bool:
        return bool(self.by_table)

    @classmethod
    def of(cls, asked: Iterable[Watermark], catalog: Catalog) -> Marks:
        """Those that a session was given, and those of the catalog's tables. Raises ClockError for a column that cannot be one."""
        found: dict[str, Mark | None] = {
            key: Mark(catalog.tables[key], catalog.tables[key].schema.find(timed.column)[0], timed.delay_us)
            for key, timed in catalog.timed.items()
        }
        for watermark in asked:
            table = catalog.tables.get(watermark.table.lower())
            found[watermark.table.lower()] = None if table is None else Mark(table, _column(watermark, table), watermark.delay_us)
        return cls(found)

    def check_there(self) -> None:
        """Before a view reads the time. Raises ClockError if a table that tells it is not there."""
        missing = next((table for table, mark in self.by_table.items() if mark is None), None)
        if missing is not None:
            raise ClockError(
                f"a view reads now(), which is the watermark of table {missing}, and there is no such table",
                remedy=f"CREATE TABLE {missing} before the view",
            )

    def kept(self, known: Notes) -> dict[str, list[Any]]:
        """What has been noted of these columns: by table the column and its greatest value."""
        noted = known.get(WATERMARKS, {})
        return {key: noted[key] for key, mark in self.by_table.items() if mark is not None and noted.get(key, [None])[0] == mark.column}

    def missed(self, known: Notes, circuit: Dataflow, runtime: Runtime) -> dict[str, list[Any]]:
        """The same of tables with rows from before they told the time. O(table)."""
        kept = self.kept(known)
        found = {}
        for key, mark in self.by_table.items():
            if mark is not None and key not in kept and (latest := _stored(mark, circuit, runtime)) is not None:
                found[key] = [mark.column, latest]
        return found

    def told(self, known: Notes, brought: Mapping[str, list[Any]]) -> Notes:
        """What is noted of the time when these columns have come to these values."""
        seen = self.kept(known)
        for key, (column, latest) in brought.items():
            seen[key] = [column, max(latest, seen.get(key, [column, latest])[1])]
        notes: dict[str, Any] = {} if seen == known.get(WATERMARKS, {}) else {WATERMARKS: seen or None}
        values = [seen[key][1] - mark.delay_us for key, mark in self.by_table.items() if mark is not None and key in seen]
        if values and len(values) == len(self.by_table) and max(min(values), BEGINNING) > known.get(CLOCK, BEGINNING - 1):
            notes[CLOCK] = max(min(values), BEGINNING)
        return notes

    def brought(self, changes: Mapping[str, PendingRows | Distributed]) -> dict[str, list[Any]]:
        """By table in lower case the column and its greatest value in rows that a tick is to add. On Spark a job for each frame there."""
        columns = {mark.table.name: mark.column for mark in self.by_table.values() if mark is not None}
        distributed = {id(change): change for name, change in changes.items() if name in columns and isinstance(change, Distributed)}
        there = {name: value for change in distributed.values() for name, value in change.latest(columns).items()}
        found: dict[str, list[Any]] = {}
        for key, mark in self.by_table.items():
            change = None if mark is None else changes.get(mark.table.name)
            if mark is None or change is None:
                continue
            latest = there.get(mark.table.name) if isinstance(change, Distributed) else _latest(change, mark.word)
            if latest is not None:
                found[key] = [mark.column, latest]
        return found


def _column(watermark: Watermark, table: TableSchema) -> int:
    found = table.schema.find(watermark.column)
    if not found:
        remedy = did_you_mean(watermark.column, table.schema.names)
        raise ClockError(f"the watermark {watermark.column!r} is no column of table {table.name}", remedy=remedy)
    if (type_ := table.schema[found[0]].type) != TIMESTAMP:
        raise ClockError(f"the watermark {table.name}.{watermark.column} is of type {type_.sql}", expected="a column of type TIMESTAMP")
    return found[0]


def _latest(rows: PendingRows, word: int) -> int | None:
    """The greatest value in rows that are added; NULL does not count."""
    column = rows.words[word]
    values = column[rows.added & (column != MARKER)]
    return int(values.max()) if len(values) else None


def _stored(mark: Mark, circuit: Dataflow, runtime: Runtime) -> int | None:
    """The greatest value of the column in the table as it is stored."""
    arrangement = circuit.tables[mark.table.name]
    spec = circuit.arrangements[arrangement]
    word = spec.shape.layout.slices[spec.order.index(mark.field)].start
    spines: list[Spine] = [spine for spine in runtime.snapshot(arrangement) if spine.rows]
    columns = [spine.scan(Counters()).columns[word] for spine in spines]
    return max((int(column.max()) for column in columns if len(column) and column.max() != MARKER), default=None)
