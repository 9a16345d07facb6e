"""Counted work: a one-row change of a large group touches O(log n) rows, for every aggregate."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.aggregates.definition import Listed
from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.aggregate import AggregateOperator
from program_plans import built_in

ROWS = 40_000
GROUPS = 2
BOUND = 40 * math.ceil(math.log2(ROWS))
"""Rows touched over all operators of a view: a few probes each over a few batches, and the digits of a group's sums."""
REGRESSIONS = [function.name for function in built_in() if function.name.startswith("regr_")]
ARGUMENTS = {
    **dict.fromkeys(("count_if", "bool_and", "bool_or"), "b"),
    **dict.fromkeys(("covar_pop", "covar_samp", "corr"), "x, v"),
    **dict.fromkeys(("percentile", "approx_percentile"), "v, 0.3"),
    **dict.fromkeys(REGRESSIONS, "x, v"),
    "min_by": "s, v",
    "max_by": "b, s",
    "approx_top_k": "b, 2",
    **dict.fromkeys(("percentile_cont", "percentile_disc"), "0.3) WITHIN GROUP (ORDER BY v"),
}
"""The arguments of the aggregates that are not over v."""
NAMES = sorted(function.name for function in built_in() if not isinstance(function.state, Listed))
"""Those that list the rows of a group cost what their result costs."""


@pytest.fixture(scope="module")
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        filled(session, NAMES)
        yield session


def filled(session: deltic.Session, names: Sequence[str]) -> np.ndarray:
    """Makes the table with its rows, and a view of each of these aggregates; returns the column v."""
    rng = np.random.default_rng(1)
    session.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, k BIGINT NOT NULL, v BIGINT NOT NULL, x DOUBLE, b BOOLEAN, s STRING)")
    for name in names:
        session.sql(f"CREATE MATERIALIZED VIEW v_{name} AS SELECT k, {name}({ARGUMENTS.get(name, 'v')}) AS r FROM t GROUP BY k")
    values = rng.integers(-1000, 1000, ROWS)
    columns = {"id": np.arange(ROWS), "k": np.arange(ROWS) % GROUPS, "v": values, "x": rng.normal(size=ROWS), "b": values > 0}
    with session.transaction() as tx:
        tx.insert("t", pa.table({**columns, "s": [f"row {i}" for i in range(ROWS)]}))
    return values


def worked(session: deltic.Session, names: Sequence[str] = NAMES) -> dict[str, int]:
    """Rows that the operators of each view touched in the last tick."""
    assert session.last_tick is not None
    own = {name: {operator["id"] for operator in session.explain(f"v_{name}").json()["operators"]} for name in names}
    return {name: sum(c.touched for node, c in session.last_tick.counters.items() if node in own[name]) for name in names}


def changes(session: deltic.Session) -> Iterator[None]:
    """One-row ticks: a row that is every extreme, its deletion, and that of a row of the load."""
    with session.transaction() as tx:
        tx.insert("t", [{"id": -1, "k": 1, "v": 5_000, "x": 1e9, "b": False, "s": "zzz"}])
    yield
    with session.transaction() as tx:
        tx.upsert("t", [{"id": -1, "k": 1, "v": -5_000, "x": -1e9, "b": None, "s": ""}])
    yield
    with session.transaction() as tx:
        tx.delete("t", [-1])
    yield
    with session.transaction() as tx:
        tx.delete("t", [ROWS - 1])
    yield


def test_a_one_row_change_of_a_large_group_touches_few_rows(session: deltic.Session) -> None:
    assert BOUND < ROWS // GROUPS // 10
    for _ in changes(session):
        work = worked(session)
        assert {name: rows for name, rows in work.items() if not 0 < rows <= BOUND} == {}


def test_an_aggregate_that_scans_is_found(session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = AggregateOperator.step

    def scanning(self: AggregateOperator, inputs: Sequence[Delta], context: Context) -> Delta:
        for extreme in self.extremes:
            context.old(extreme.arrangement, self.key + extreme.width, 1).scan(context.counters)
        return honest(self, inputs, context)

    monkeypatch.setattr(AggregateOperator, "step", scanning)
    with session.transaction() as tx:
        tx.insert("t", [{"id": -2, "k": 1, "v": 1, "x": 1.0, "b": True, "s": "s"}])
    assert worked(session)["max_by"] > BOUND


def test_deleting_the_first_row_again_and_again_does_not_degrade() -> None:
    """Among ties, too: all have one y, so that the order of x decides. A median moves by half a value with each."""
    with deltic.Session() as session:
        values = filled(session, ("min_by", "median"))
        with session.transaction() as tx:
            tx.insert("t", [{"id": -100 - i, "k": 0, "v": -9_000, "x": 0.5, "b": True, "s": f"a{i:04}"} for i in range(40)])
        for i in range(40):
            with session.transaction() as tx:
                tx.delete("t", [-100 - i])
            assert max(worked(session, ("min_by", "median")).values()) <= BOUND
            expected = "row" if i == 39 else f"a{i + 1:04}"
            assert session.view("v_min_by").lookup(0)[0]["r"].startswith(expected)
        assert session.view("v_median").lookup(0)[0]["r"] == statistics.median(values[::GROUPS].tolist())
