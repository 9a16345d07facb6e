"""The answers of two systems to a query, compared."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]


def spoken_by_duckdb(text: str) -> str:
    """A query of TPC-H or TPC-DS in DuckDB's dialect. Its quotients and means are DOUBLEs, and its casts of them to INT round.

    >>> spoken_by_duckdb("SELECT a AS `b c` FROM (SELECT 1 AS a) at, t")
    'SELECT a AS "b c" FROM (SELECT 1 AS a) "at", t'
    """
    text = text.replace("(revenue / 50)", "trunc(revenue / 50)")
    return re.sub(r"\) at,", ') "at",', text.replace("`", '"'))


def difference(actual: Sequence[Row], expected: Sequence[Row]) -> str | None:
    """What distinguishes the rows as multisets; numbers are equal up to the rounding of DOUBLEs and of decimal quotients.

    >>> difference([(1, "a"), (2, None)], [(2.0, None), (1.0000001, "a")])
    >>> difference([(1, "a")], [(1, "b")])
    "(1, 'a'), expected (1, 'b')"
    """
    if len(actual) != len(expected):
        return f"{len(actual)} rows, expected {len(expected)}"
    pairs = zip(sorted(actual, key=_order), sorted(expected, key=_order), strict=True)
    for ours, theirs in pairs:
        if len(ours) != len(theirs) or not all(map(_same, ours, theirs)):
            return f"{ours}, expected {theirs}"
    return None


def _order(row: Row) -> tuple[tuple[bool, str], ...]:
    return tuple((value is None, f"{float(value):.1f}" if isinstance(value, int | float | Decimal) else str(value)) for value in row)


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, int | float | Decimal) and isinstance(theirs, int | float | Decimal):
        return math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-4)
    return bool(ours == theirs)
