"""Views of errors: beside a view whose errors are isolated, the collection of its errors, a view of its own (plan/isolate.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import FailedView, Span
from deltic.expr.functions.failures import COLUMNS

SUFFIX: Final = "!errors"
"""The catalog refuses names of users that end with it."""


def errors_of(view: str) -> str:
    """The name of the view of a view's errors."""
    return view + SUFFIX


def is_errors(view: str) -> bool:
    """Whether a view is of errors."""
    return view.endswith(SUFFIX)


def listed_errors(rows: pa.Table, places: Mapping[str, Span]) -> pa.Table:
    """The errors, each once, sorted, with its place in the text, if that is known, and its weight: how many rows have it."""
    errors = (
        rows.group_by(list(COLUMNS))
        .aggregate([([], "count_all")])
        .rename_columns([*COLUMNS, "weight"])
        .sort_by([(name, "ascending") for name in COLUMNS])
    )
    named = {text: f"{span.name}:{span.line}:{span.column}" for text, span in places.items()}
    place = pa.array([named.get(text) for text in errors.column("expression").to_pylist()], pa.string())
    return errors.add_column(1, "place", place)


NO_ERRORS: Final = listed_errors(pa.schema([(name, pa.string()) for name in COLUMNS]).empty_table(), {})


def failed_view(view: str, rows: pa.Table, places: Mapping[str, Span]) -> FailedView:
    """The error of reading a view that has errors: the least of them."""
    errors = listed_errors(rows, places)
    first = errors.slice(0, 1).to_pylist()[0]
    count = pc.sum(errors.column("weight")).as_py()
    others = f" (and {count - 1:,} more)" if count > 1 else ""
    where = f" of the row {first['row']}" if first["row"] else ""
    return FailedView(
        f"view {view} has errors: {first['error']}, in {first['expression']}{where}{others}",
        span=places.get(first["expression"]),
        remedy="change or delete the rows that `errors()` of the view lists; it is then exact again",
    )
