"""Columns by which time passes: the greatest value that a table's column has had, less a delay, is a watermark."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from deltic.circuit.nodes import Dataflow
from deltic.circuit.pending import PendingRows
from deltic.runtimes import Runtime
from deltic.schema import DATE, TableSchema
from deltic.trace.counters import Counters
from deltic.trace.encoding import MARKER, Layout
from deltic.trace.spine import Spine

DAY_US: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """A column of a table. field: its position. delay: how far the watermark is before its greatest value.

    Values are microseconds since 1970 UTC, a DATE being its midnight, or whole numbers.
    """

    table: TableSchema
    field: int
    delay: int

    @property
    def column(self) -> str:
        return self.table.schema[self.field].name

    @property
    def word(self) -> int:
        """The position of its word in a row."""
        start: int = Layout.of(self.table.schema).slices[self.field].start
        return start

    @property
    def scale(self) -> int:
        """Of a word, to a value."""
        return DAY_US if self.table.schema[self.field].type == DATE else 1

    def values(self, rows: pa.Table) -> np.ndarray:
        """int64[n]: those of a change frame; MARKER where it has NULL."""
        values = rows.column(self.column)
        whole = values.cast(pa.int32()) if pa.types.is_date32(values.type) else values
        words = whole.cast(pa.int64()).fill_null(int(MARKER)).to_numpy()
        return np.where(words == MARKER, MARKER, words * self.scale)

    def greatest(self, rows: PendingRows) -> int | None:
        """The greatest value in rows that are added; NULL does not count."""
        column = rows.words[self.word]
        words = column[rows.added & (column != MARKER)]
        return int(words.max()) * self.scale if len(words) else None

    def greatest_stored(self, circuit: Dataflow, runtime: Runtime) -> int | None:
        """The greatest value in the table as it is stored; None if there is none. O(table)."""
        arrangement = circuit.tables[self.table.name]
        spec = circuit.arrangements[arrangement]
        word = spec.shape.layout.slices[spec.order.index(self.field)].start
        spines: list[Spine] = [spine for spine in runtime.snapshot(arrangement) if spine.rows]
        columns = [spine.scan(Counters()).columns[word] for spine in spines]
        return max((int(column.max()) * self.scale for column in columns if len(column) and column.max() != MARKER), default=None)


def wall_us() -> int:
    """The wall clock: microseconds since 1970 UTC."""
    return time.time_ns() // 1000
