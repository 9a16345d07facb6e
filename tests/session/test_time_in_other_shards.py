"""Rows that are due later, after resharding."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import deltic

START = datetime(2024, 1, 1, tzinfo=UTC)
SCRIPT = """
CREATE TABLE f (a BIGINT NOT NULL, at TIMESTAMP NOT NULL);
CREATE MATERIALIZED VIEW started AS SELECT a FROM f WHERE at <= now();
"""


@pytest.mark.parametrize(("before", "after"), [(1, 3), (2, 4), (3, 2)])
def test_pending_rows_appear_once_and_deleted_ones_never(tmp_path: Path, before: int, after: int) -> None:
    rows = [{"a": a, "at": START + timedelta(days=1)} for a in range(20)]
    with deltic.Session(state=tmp_path / "state", shards=before) as session:
        session.advance_to(START)
        session.sql(SCRIPT)
        session.apply({"f": [{**row, "_weight": 1} for row in rows]})
    with deltic.Session(state=tmp_path / "state", shards=after) as session:
        session.sql(SCRIPT)
        session.apply({"f": [{**row, "_weight": -1} for row in rows[::2]]})
        assert session.next_due == START + timedelta(days=1)
        session.advance_to(START + timedelta(days=1))
        assert [row["a"] for row in session.view("started").rows()] == list(range(1, 20, 2))
        assert session.next_due is None
