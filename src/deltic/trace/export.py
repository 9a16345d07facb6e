"""Export: small changes as Arrow tables by one call of a kernel, which costs what two of Arrow's arrays do, however many columns there are.

What always holds: the tables are those of `encoding.py`, which reads whatever is left here: many rows, nested values, damaged ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from deltic.kernels import export, intake, text
from deltic.kernels.build import CHECKED
from deltic.kernels.memory import Words
from deltic.kernels.table import address
from deltic.schema import Field
from deltic.trace.intake import planned
from deltic.trace.rows import Rows
from deltic.trace.strings import StringTable

SMALL: Final = 1 << 12
"""Rows up to which copying words costs less than what it saves."""
_NO_STRINGS: Final = None, np.array((*export.MEMORY, *export.NO_STRINGS), np.int64)
_KINDS: Final = {intake.INTEGER, intake.BITS, intake.DOUBLE, intake.NARROW, intake.WIDE}


class FrameExport:
    """How rows with these fields at these positions of their words become a table of a schema."""

    __slots__ = ("_has_texts", "_plan", "_schema")

    def __init__(self, plan: Words, has_texts: bool, schema: pa.Schema) -> None:
        self._plan, self._has_texts, self._schema = plan, has_texts, schema

    @staticmethod
    def of(fields: Sequence[tuple[Field, int]], schema: pa.Schema) -> FrameExport | None:
        """None if the kernel does not write a column. fields: with the position of the first word of each."""
        if CHECKED:  # Arrow's memory has no handles
            return None
        columns = [_planned(field, place) for field, place in fields]
        if any(column is None for column in columns):
            return None
        plan = np.array([word for column in columns if column is not None for word in column], np.int64)
        return FrameExport(plan, any(field.type.has_bytes for field, _ in fields), schema)

    def table(self, rows: Rows, strings: StringTable) -> pa.Table | None:
        """The rows as a table; None if there are many, or if `encoding.py` must say what is wrong with one."""
        n = rows.length
        if n > SMALL:
            return None
        frame = np.zeros(intake.ARROW_ARRAY, np.int64)
        place, (_entries, context) = address(frame), strings.exported if self._has_texts else _NO_STRINGS  # holds the entries
        try:
            if export.export_frame(rows.table, n, self._plan, place, context) != export.DONE:
                return None
            return pa.Table.from_batches((pa.RecordBatch._import_from_c(place, self._schema),))
        finally:
            export.release_frame(place)  # unless Arrow has taken it


def _planned(field: Field, place: int) -> list[int] | None:
    """A column, as for the kernel; None if it does not write such columns."""
    type = field.type
    if type.held.is_nested or type.kind.stored == "none":
        return None
    column = planned(field, place, False)
    if type.has_bytes:
        column[intake.WIDTH] = text.UTF8 if type.is_text else text.NOTHING
        return column
    return column if column[intake.KIND] in _KINDS else None
