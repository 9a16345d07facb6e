"""Nexmark's queries: DuckDB's answers after a load and after five ticks of new events, updates and deletions."""

from __future__ import annotations

import pytest

from benchmarks.queries import texts
from nexmark_answers import compared
from parts import slow

QUICK = ["q4", "q18"]


@pytest.mark.parametrize("name", [*QUICK, *slow(*(name for name in texts("nexmark") if name not in QUICK))])
def test_as_duckdb(name: str) -> None:
    assert compared(name)[-1]
