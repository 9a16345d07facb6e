"""Rows of a source that a tick refuses, which become dead letters: late ones, and those that do not fit what their table has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from deltic.connectors.source import POSITION, DeadLetter, Json, RemoteRows
from deltic.errors import DataError, shortened
from deltic.pipeline.feeds import Load, load_of

LISTED: Final = 1_000
"""Of the rows that a table refuses, the first attempt of a tick lists at most so many; each further one GROWTH times as many,"""
MOST_LISTED: Final = 1 << 16
"""but at most this many: errors of Spark's tasks travel as text."""
GROWTH: Final = 4
MOST: Final = 10_000
"""The most characters of a letter's text."""


def listings() -> Iterator[int]:
    """How many of the rows that a table refuses the attempts of a tick list, one after another."""
    listed = LISTED
    while True:
        yield listed
        listed = min(GROWTH * listed, MOST_LISTED)


def without_refused_rows(error: DataError, loads: Sequence[Load], takes: Callable[[str], bool]) -> list[Load] | None:
    """The loads without the rows that failed a tick, which are dead letters of one of them; None if they cannot be.

    takes: whether a table has dead letters. Rows that tasks would have read are read here.
    """
    found = load_of(error, loads)
    if found is None or not error.refused or not takes(error.table):
        return None
    load, first = found
    reasons = {ordinal - first: message for ordinal, message in reversed(error.refused)}  # of a row the first
    changes = load.batch.changes
    if isinstance(changes, RemoteRows):
        load, changes, reasons = _read(load, changes, reasons)
    assert changes is not None
    parted = without_rows(load, changes, {row: reasons[row] for row in sorted(reasons)})
    return [parted if one.table is load.table else one for one in loads]


def without_rows(load: Load, changes: pa.Table, reasons: Mapping[int, str], column: str | None = None) -> Load:
    """The load without the rows that have a reason, by position, as dead letters. changes: its rows. column: the one that is invalid."""
    kept = np.setdiff1d(np.arange(changes.num_rows), np.array(list(reasons)))
    texts = [_text(row) for row in changes.take(list(reasons)).to_pylist()]
    letters = [
        DeadLetter(*load.place(row), column, shortened(reason), text) for (row, reason), text in zip(reasons.items(), texts, strict=True)
    ]
    return load.with_rows(changes.take(kept) if len(kept) else None, kept, letters)


def _read(load: Load, changes: RemoteRows, reasons: Mapping[int, str]) -> tuple[Load, pa.Table, dict[int, str]]:
    """(the load with the rows themselves, these, the reasons by position among them). reasons: by position in what tasks read."""
    rows = pa.concat_tables(frame for part in range(changes.parts) for frame in changes.frames(part))
    positions = rows.column(POSITION).to_numpy()
    rows = rows.drop_columns([POSITION])
    numbers = np.flatnonzero(np.isin(positions, np.array(list(reasons))))
    return load.with_rows(rows, positions), rows, {int(number): reasons[int(positions[number])] for number in numbers}


def _text(row: dict[str, Any]) -> str:
    values: Json = {name: value for name, value in row.items() if not name.startswith("_")}
    return json.dumps(values, default=str, ensure_ascii=False)[:MOST]
