"""Support for the tests of expressions: compares the column evaluator with the interpreter on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pytest

from deltic.errors import EvaluationError
from deltic.expr.columns import evaluate_columns
from deltic.expr.failing import can_fail
from deltic.expr.failures import row_of
from deltic.expr.nodes import Value
from deltic.types import frozen_list
from expr_terms import alike, outcome, table_of

Table = Callable[[Sequence[tuple[Value, ...]]], pa.Table]
KEPT: Final = 64
_COLUMNS: dict[tuple[Any, ...], tuple[Sequence[tuple[Value, ...]], list[pa.Array]]] = {}
"""Rows and their columns, by the rows' identity: 0.0 and -0.0 are equal, and different."""


def check(term: Any, rows: Sequence[tuple[Value, ...]], table: Table = table_of) -> None:
    """Columns and interpreter agree on the first row that fails and how, and on the values of all rows that do not.

    term: has `sql`, and `expr` over the columns of `table`.
    """
    outcomes = [outcome(term.expr, row) for row in rows]
    failed = {k: error for k, error in enumerate(outcomes) if isinstance(error, EvaluationError)}
    if failed:
        assert can_fail(term.expr), term.sql
        with pytest.raises(EvaluationError) as caught:
            evaluate_columns(term.expr, columns_of(rows, table), len(rows))
        first = min(failed)
        actual = (type(caught.value), str(caught.value), row_of(caught.value))
        assert actual == (type(failed[first]), str(failed[first]), first), term.sql
    good = [row for k, row in enumerate(rows) if k not in failed]
    result = evaluate_columns(term.expr, columns_of(good, table), len(good))
    assert isinstance(result, pa.Array) and result.type == term.expr.type.arrow, (term.sql, result.type)
    result.validate(full=True)
    expected = [value for value in outcomes if not isinstance(value, EvaluationError)]
    for row, got, wanted in zip(good, frozen_list(result), expected, strict=True):
        assert alike(got, wanted), (term.sql, row, got, wanted)
        assert wanted is not None or term.expr.nullable, (term.sql, "is NULL and said not to be")


def columns_of(rows: Sequence[tuple[Value, ...]], table: Table = table_of) -> list[pa.Array]:
    """The rows' columns, one array each; kept, since thousands of terms are evaluated on the same rows."""
    key = (table, *map(id, rows))
    if key not in _COLUMNS:
        if len(_COLUMNS) == KEPT:
            _COLUMNS.clear()
        _COLUMNS[key] = rows, [column.combine_chunks() for column in table(rows).columns]
    return _COLUMNS[key][1]
