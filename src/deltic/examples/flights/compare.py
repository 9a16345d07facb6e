"""Compares a view with its query's result, as multisets of rows: floats within the error bound of summation in any order, all else exactly.

For floats x of n summands the bound is (n − 1)·2^−53·Σ|x| on each side. In the views of flights.sql the summands of floats are wind
speeds, none of them negative, so that Σ|x| is the sum itself, n is at most the number of flights, and the bound of an average is that
much relative to it; dividing rounds once more on each side.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """rows: of the reference. differing: rows on either side without a partner. example: one of them, with the side that has it."""

    view: str
    rows: int
    differing: int
    example: str = ""


def compare(view: str, kept: pa.Table, reference: pa.Table, summands: int) -> Comparison:
    """kept: the view's content; reference: the same columns from another engine; summands: the most values that a float is the sum of."""
    assert [name.lower() for name in kept.column_names] == [name.lower() for name in reference.column_names], view
    floats = [i for i, field in enumerate(kept.schema) if pa.types.is_floating(field.type)]
    kept_rows, reference_rows = _grouped(kept, floats), _grouped(reference, floats)
    tolerance = (summands + 1) * 2.0**-52
    differing, example = 0, ""
    for key in kept_rows.keys() | reference_rows.keys():
        left, right = kept_rows.get(key, []), reference_rows.get(key, [])
        if len(left) != len(right) or not all(_close(a, b, tolerance) for a, b in zip(left, right, strict=True)):
            differing += max(len(left), len(right))
            example = example or f"{key}: kept {left}, reference {right}"
    return Comparison(view, reference.num_rows, differing, example)


def _grouped(table: pa.Table, floats: list[int]) -> dict[Row, list[Row]]:
    """The floats of the rows that are equal in all other columns, sorted."""
    groups: dict[Row, list[Row]] = defaultdict(list)
    columns = [column.to_pylist() for column in table.columns]
    for row in zip(*columns, strict=True):
        groups[tuple(value for i, value in enumerate(row) if i not in floats)].append(tuple(row[i] for i in floats))
    for rows in groups.values():
        rows.sort(key=lambda row: [(value is not None, value or 0.0) for value in row])
    return groups


def _close(left: Row, right: Row, tolerance: float) -> bool:
    return all(_near(a, b, tolerance) for a, b in zip(left, right, strict=True))


def _near(a: float | None, b: float | None, tolerance: float) -> bool:
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=0.0)
