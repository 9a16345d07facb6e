"""Rows of weights too large to list: the view is exact, and the error of a read says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import deltic
from deltic.errors import DelticError, WeightOverflow


@pytest.fixture
def session() -> deltic.Session:
    session = deltic.Session()
    session.sql("""
        CREATE TABLE t (a BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT a FROM t;
        CREATE MATERIALIZED VIEW n AS SELECT a, count(*) AS n FROM t GROUP BY a;
    """)
    return session


@pytest.mark.parametrize("weights", [(2**63 - 1,), (2**31,), (2**62, 2**62, 2**62)])
@pytest.mark.parametrize("read", [lambda view: view.rows(), lambda view: view.to_arrow(), lambda view: view.lookup(1)])
def test_rows_that_are_too_many_to_list_are_an_error(
    session: deltic.Session, weights: tuple[int, ...], read: Callable[[deltic.View], object]
) -> None:
    same = len(weights) == 1
    session.apply({"t": [{"a": 1 if same else i, "_weight": weight} for i, weight in enumerate(weights, 1)]})
    with pytest.raises(DelticError, match=r"there are about .* rows.*at most 2,147,483,647") as caught:
        read(session.view("v"))
    assert "GROUP BY" in str(caught.value)
    assert session.view("n").lookup(1) == [{"a": 1, "n": weights[0]}]
    assert session.view("v").changes()["_weight"].to_pylist() == list(weights)
    session.apply({"t": [{"a": 1, "_weight": 1 - weights[0]}]})
    assert session.view("v").lookup(1) == [{"a": 1}]


def test_a_weight_overflow_names_the_row_and_the_tick_has_not_happened(session: deltic.Session) -> None:
    session.apply({"t": [{"a": 1, "_weight": 2**63 - 1}]})
    with pytest.raises(WeightOverflow, match=r"weight overflow in view n, values \(1\)"):
        session.apply({"t": [{"a": 1, "_weight": 1}, {"a": 2, "_weight": 1}]})
    assert session.view("n").rows() == [{"a": 1, "n": 2**63 - 1}]


def test_weights_that_come_and_go_are_merged_in_memory_while_every_sum_fits(session: deltic.Session) -> None:
    for turn in range(60):
        session.apply({"t": [{"a": -1, "_weight": 2**63 - 1}]})
        rows = range(300 * turn, 300 * turn + 300)  # so that batches with the weight are smaller than those without
        session.apply({"t": [{"a": -1, "_weight": 1 - 2**63}, *({"a": row, "_weight": 1} for row in rows)]})
    assert session.view("n").lookup(-1) == [] and session.view("n").lookup(17_999) == [{"a": 17_999, "n": 1}]
    table = session._definitions.circuit.tables["t"]
    assert all(len(spine.batches) < 30 for spine in session._runtime.committed.snapshot(table))


@pytest.mark.parametrize("kind", ["manifests", "log"])
def test_weights_that_come_and_go_are_stored_while_every_sum_fits(tmp_path: Path, kind: str) -> None:
    script = "CREATE TABLE t (a BIGINT NOT NULL); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t WHERE a >= 0"
    with deltic.Session(state=tmp_path, commit_log=kind == "log") as session:
        session.sql(script)
        for turn in range(30):
            session.apply({"t": [{"a": -1, "_weight": 2**63 - 1}]})
            rows = range(300 * turn, 300 * turn + 300)  # so that batches with the weight are smaller than those without
            session.apply({"t": [{"a": -1, "_weight": 1 - 2**63}, *({"a": row, "_weight": 1} for row in rows)]})
            if turn % 3 == 2:
                session._fold()
        assert session.view("n").rows() == [{"n": 9000}]
        table = session._definitions.circuit.tables["t"]
        assert sum(len(spine.batches) for spine in session._runtime.committed.snapshot(table)) < 30
    with deltic.Session(state=tmp_path, shards=2) as session:
        session.sql(script)
        session.apply({"t": [{"a": -1, "_weight": 2**63 - 1}]})
        assert session.view("n").rows() == [{"n": 9000}]
