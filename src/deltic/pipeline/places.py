"""From a row of a tick to the file that it came from: errors of the engine name rows by their place in the tick."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.errors import DataError
from deltic.pipeline.taking import Load


def located(error: DataError, loads: Sequence[Load]) -> DataError:
    """The same error, with the file and the row that it is about, if it is about one of these loads.

    loads: in the order in which the tick had them. Rows are counted from 1, as the files' formats do (connectors/files).
    """
    at = error.ordinal
    for load in loads:
        for piece in load.pieces:
            if 0 <= at < len(piece.lines) and load.table.name == error.table:
                return _named(error, f"file {load.folder / piece.name}, row {piece.lines[at]}")
            at -= len(piece.lines)
    return error


def _named(error: DataError, place: str) -> DataError:
    found = type(error)(f"{place}: {error.message}", span=error.span, expected=error.expected, remedy=error.remedy)
    found.table, found.ordinal, found.row = error.table, error.ordinal, error.row
    return found
