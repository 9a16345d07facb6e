"""Rows of a source that are late, or too far ahead, which go to its dead letters if it has any; otherwise they fail the tick."""

from __future__ import annotations

import pyarrow as pa

from deltic.pipeline.feeds import Load
from deltic.pipeline.refused import without_rows
from deltic.session.lateness import Notes, late_tables


def without_late_rows(load: Load, notes: Notes) -> Load:
    """The load with such rows as dead letters. notes: of the last commit."""
    for late in late_tables([load.table]):
        changes = load.batch.changes
        if isinstance(changes, pa.Table) and (reasons := late.reasons(changes, notes)):
            return without_rows(load, changes, reasons, late.column)
    return load
