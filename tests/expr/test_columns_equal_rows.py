"""The column evaluator gives what the interpreter gives: on every function over edge values, with NULLs and without."""

from __future__ import annotations

import pyarrow as pa
import pytest
from expr_terms import SCHEMA, Term, alike, all_terms, edge_rows, outcome, table_of

from deltic.errors import EvaluationError
from deltic.expr.columns import evaluate_columns
from deltic.expr.failing import can_fail
from deltic.expr.failures import row_of
from deltic.expr.nodes import Value

ROWS = edge_rows(60, seed=1)
TERMS = all_terms()
CHUNK = 40


def check(term: Term, rows: list[tuple[Value, ...]]) -> None:
    """Columns and interpreter agree on the rows, on those that fail and on those that do not."""
    outcomes = [outcome(term.expr, row) for row in rows]
    failed = [k for k, value in enumerate(outcomes) if isinstance(value, EvaluationError)]
    if failed:
        assert can_fail(term.expr), term.sql
        with pytest.raises(EvaluationError) as caught:
            evaluate_columns(term.expr, columns_of(rows), len(rows))
        first = outcomes[failed[0]]
        assert (type(caught.value), str(caught.value), row_of(caught.value)) == (type(first), str(first), failed[0]), term.sql
    good = [row for k, row in enumerate(rows) if k not in set(failed)]
    result = evaluate_columns(term.expr, columns_of(good), len(good))
    assert isinstance(result, pa.Array) and result.type == term.expr.type.arrow, (term.sql, result.type)
    result.validate(full=True)
    expected = [value for value in outcomes if not isinstance(value, EvaluationError)]
    for row, got, wanted in zip(good, result.to_pylist(), expected, strict=True):
        assert alike(got, wanted), (term.sql, dict(zip(SCHEMA.names, row, strict=True)), got, wanted)
        assert wanted is not None or term.expr.nullable, (term.sql, "is NULL and said not to be")


def columns_of(rows: list[tuple[Value, ...]]) -> list[pa.Array]:
    return [column.combine_chunks() for column in table_of(rows).columns]


@pytest.mark.parametrize("start", range(0, len(TERMS), CHUNK))
def test_every_term_on_edge_values(start: int) -> None:
    for term in TERMS[start : start + CHUNK]:
        check(term, ROWS)


@pytest.mark.parametrize("start", range(0, len(TERMS), 8 * CHUNK))
def test_every_term_on_few_rows(start: int) -> None:
    for term in TERMS[start : start + 8 * CHUNK]:
        check(term, [])
        check(term, ROWS[7:8])
        check(term, [tuple(None for _ in SCHEMA)] * 2)


def test_terms_are_many() -> None:
    assert len(TERMS) > 1500
