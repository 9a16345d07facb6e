"""Counted work: a one-row change on a million rows touches O(log n) rows plus its effect."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.reweigh import Reweigh
from session_rows import touched_rows

ROWS = 1_000_000
BOUND = 40 * math.ceil(math.log2(ROWS))
"""Rows touched over all operators; a dozen operators of a few probes each, over a few batches."""

VIEWS = {
    "join": "SELECT a.id, a.v, b.w FROM a JOIN b ON a.k = b.k",
    "aggregate": "SELECT k, count(*) AS n, sum(v) AS total, min(v) AS least, max(v) AS most FROM a GROUP BY k",
    "join_aggregate": "SELECT b.w % 50 AS g, count(*) AS n, sum(a.v) AS total FROM a JOIN b ON a.k = b.k GROUP BY b.w % 50",
    "distinct": "SELECT DISTINCT k, v FROM a",
    "count_distinct": "SELECT k, count(DISTINCT v) AS n FROM a GROUP BY k",
    "top": "SELECT id, v FROM a ORDER BY v DESC, id LIMIT 10",
    "page": "SELECT id, v FROM a ORDER BY v DESC, id LIMIT 5 OFFSET 5",
    "anti": "SELECT * FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.k = b.k AND a.v > 990)",
    "left": "SELECT b.k, a.v FROM b LEFT JOIN a ON a.k = b.k",
    "set": "SELECT k FROM a EXCEPT SELECT k FROM b",
}


@pytest.fixture(scope="module")
def session() -> Iterator[deltic.Session]:
    rng = np.random.default_rng(1)
    with deltic.Session() as session:
        session.sql("CREATE TABLE a (id BIGINT, k BIGINT NOT NULL, v BIGINT NOT NULL, PRIMARY KEY (id))")
        session.sql("CREATE TABLE b (k BIGINT, w BIGINT NOT NULL, PRIMARY KEY (k))")
        for name, query in VIEWS.items():
            session.sql(f"CREATE MATERIALIZED VIEW v_{name} AS {query}")
        a = {"id": np.arange(ROWS), "k": rng.integers(0, ROWS // 2, ROWS), "v": rng.integers(0, 1000, ROWS)}
        b = {"k": np.arange(ROWS // 2), "w": rng.integers(0, 1000, ROWS // 2)}
        with session.transaction() as tx:
            tx.insert("a", pa.table(a))
            tx.insert("b", pa.table(b))
        yield session


def touched(session: deltic.Session, view: str) -> int:
    """Rows that the view's operators touched in the last tick."""
    return touched_rows(session, f"v_{view}")


def changes(session: deltic.Session) -> Iterator[None]:
    """One-row ticks: a new row that is the extreme of every view, its update, its deletion, and a row of the other table."""
    with session.transaction() as tx:
        tx.insert("a", [{"id": -1, "k": 3, "v": 5_000}])
    yield
    with session.transaction() as tx:
        tx.upsert("a", [{"id": -1, "k": 4, "v": -5_000}])
    yield
    with session.transaction() as tx:
        tx.delete("a", [-1])
    yield
    with session.transaction() as tx:
        tx.upsert("b", [{"k": 7, "w": 2_000}])
    yield


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_a_one_row_change_touches_about_log_n_rows(session: deltic.Session, view: str) -> None:
    work = [touched(session, view) for _ in changes(session)]
    assert 0 < max(work) <= BOUND


@pytest.mark.slow
def test_an_operator_that_scans_is_found(session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Reweigh.step

    def scanning(self: Reweigh, inputs: Sequence[Delta], context: Context) -> Delta:
        context.old(self.arrangement, self.width, self.weights).scan(context.counters)
        return honest(self, inputs, context)

    monkeypatch.setattr(Reweigh, "step", scanning)
    monkeypatch.setattr("deltic.circuit.stage.CORE", "python")
    with session.transaction() as tx:
        tx.insert("a", [{"id": -2, "k": 3, "v": 5_000}])
    assert touched(session, "distinct") > BOUND


@pytest.mark.slow
def test_deleting_the_extreme_again_and_again_does_not_degrade(session: deltic.Session) -> None:
    with session.transaction() as tx:
        tx.insert("a", [{"id": -100 - i, "k": 11, "v": 10_000 + i} for i in range(500)])
    for i in reversed(range(500)):
        with session.transaction() as tx:
            tx.delete("a", [-100 - i])
        assert touched(session, "aggregate") <= BOUND
        assert touched(session, "top") <= BOUND
