"""Rows of a source that are late, or too far ahead, which go to its dead letters if it has any; otherwise they fail the tick."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from deltic.connectors.source import DeadLetter, Json, SourceBatch
from deltic.pipeline.feeds import Load
from deltic.session.lateness import Notes, late_tables

MOST: int = 10_000
"""The most characters of a letter's text."""


def without_late_rows(load: Load, notes: Notes) -> Load:
    """The load with such rows as dead letters. notes: of the last commit."""
    for late in late_tables([load.table]):
        changes = load.batch.changes
        if isinstance(changes, pa.Table) and (reasons := late.reasons(changes, notes)):
            return replace(load, batch=_parted(load.batch, changes, late.column, reasons))
    return load


def _parted(batch: SourceBatch, changes: pa.Table, column: str, reasons: Mapping[int, str]) -> SourceBatch:
    """The batch without the rows that have a reason, by position, as dead letters."""
    kept = np.setdiff1d(np.arange(changes.num_rows), np.array(list(reasons)))
    texts = [_text(row) for row in changes.take(list(reasons)).to_pylist()]
    letters = [DeadLetter(*_place(batch, row), column, reason, text) for (row, reason), text in zip(reasons.items(), texts, strict=True)]
    origin, place = batch.origin, batch.place
    return replace(
        batch,
        changes=changes.take(kept) if len(kept) else None,
        dead_letters=[*batch.dead_letters, *letters],
        origin=None if origin is None else lambda row: origin(int(kept[row])),
        place=None if place is None else lambda row: place(int(kept[row])),
    )


def _place(batch: SourceBatch, row: int) -> tuple[str, int]:
    """The file of the row, or the part of the source, and its number."""
    return batch.place(row) if batch.place is not None else (", ".join(batch.parts), row + 1)


def _text(row: dict[str, Any]) -> str:
    values: Json = {name: value for name, value in row.items() if not name.startswith("_")}
    return json.dumps(values, default=str, ensure_ascii=False)[:MOST]
