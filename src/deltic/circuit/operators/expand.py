"""expand: each row once for each grouping set, with NULL in the keys that the set leaves out. Linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.schema import BIGINT, Schema
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import MARKER, Layout
from deltic.trace.rows import Rows

NUMBER: Final = -1
"""In place of a field: the number of the set."""


@dataclass(frozen=True, slots=True)
class ExpandOperator:
    """Rows of `source` as rows of `target`.

    fields: for each field of the target that of the source, or NUMBER, and the bit of the sets that leave it out, 0 for none.
    merged: equal rows of a change are added first, so that they are repeated once.
    """

    source: Schema
    target: Schema
    fields: tuple[tuple[int, int], ...]
    sets: tuple[int, ...]
    merged: bool

    @property
    def name(self) -> str:
        return "expand"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        context.counters.touched += len(inputs[0])
        rows: Rows = consolidate(inputs[0]) if self.merged else inputs[0]
        n, times = len(rows), len(self.sets)
        layout = Layout.of(self.source)
        columns: list[np.ndarray] = []
        for field, mask in self.fields:
            if field == NUMBER:
                columns.append(np.repeat(np.array(self.sets, np.int64), n))
                continue
            for place, word in enumerate(rows.columns[layout.slices[field]]):
                tiled = np.tile(word, times)
                if mask:
                    tiled.reshape(times, n)[self._omitting(mask)] = self._null(field, place)
                columns.append(tiled)
        return Rows(columns, tuple(np.tile(weight, times) for weight in rows.weights))

    def _omitting(self, mask: int) -> np.ndarray:
        return np.array([bool(number & mask) for number in self.sets])

    def _null(self, field: int, place: int) -> np.int64:
        """Word `place` of NULL."""
        assert self.source[field].nullable
        return np.int64(0) if place or self.source[field].type == BIGINT else MARKER
