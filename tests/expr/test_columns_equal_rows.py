"""The column evaluator gives what the interpreter gives: on every function over edge values, with NULLs and without."""

from __future__ import annotations

import pytest

from expr_check import check
from expr_terms import SCHEMA, all_terms, edge_rows

ROWS = edge_rows(40, seed=1)
TERMS = all_terms()
NULLS = [(None,) * len(SCHEMA)] * 2
CHUNK = 100


@pytest.mark.parametrize("start", range(0, len(TERMS), CHUNK))
def test_every_term_on_edge_values(start: int) -> None:
    for term in TERMS[start : start + CHUNK]:
        check(term, ROWS)


@pytest.mark.parametrize("start", range(0, len(TERMS), 4 * CHUNK))
def test_every_term_on_few_rows(start: int) -> None:
    for term in TERMS[start : start + 4 * CHUNK]:
        for rows in ([], ROWS[7:8], NULLS):
            check(term, rows)


def test_terms_are_many() -> None:
    assert len(TERMS) > 1500
