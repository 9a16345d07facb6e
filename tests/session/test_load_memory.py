"""Loads: what they leave in memory, and what they take meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.circuit.operators import table
from deltic.circuit.programs import passes
from deltic.circuit.stage import LARGE_TICK
from deltic.errors import DuplicateKey, EvaluationError
from deltic.kernels.bounds import owner_of
from deltic.trace.partition import partition
from deltic.trace.rows import Rows

ROWS = LARGE_TICK + 40_000
SCRIPT = """
    CREATE TABLE orders (id BIGINT NOT NULL, customer BIGINT NOT NULL, amount BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE TABLE customers (id BIGINT NOT NULL, region BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW spend AS
        SELECT c.region, count(*) AS n, sum(o.amount) AS amount FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region;
"""


def _orders(ids: Any, customers: int = 100) -> pa.Table:
    return pa.table({"id": ids, "customer": ids % customers, "amount": ids % 1_000, "_weight": np.ones(len(ids), np.int64)})


def _stored(session: deltic.Session, table: str = "orders") -> list[Any]:
    circuit = session._definitions.circuit
    return [batch for spine in session._runtime.committed.snapshot(circuit.tables[table]) for batch in spine.batches]


@pytest.mark.parametrize("shards", [1, 3])
def test_a_table_loaded_in_order_keeps_its_words_and_weights_alone(shards: int) -> None:
    with deltic.Session(shards=shards) as session:
        session.sql(SCRIPT)
        session.apply({"orders": _orders(np.arange(ROWS))})
        batches = _stored(session)
        owners = {
            id(owner): owner.nbytes for batch in batches for array in (*batch.columns, *batch.weights) if len(owner := owner_of(array))
        }
        assert sum(len(batch) for batch in batches) == ROWS
        assert sum(owners.values()) <= 8 * 5 * ROWS  # with indexes; pending rows have two words more


def test_rows_with_measures_are_added_up_by_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a pass over a load, for an aggregate of few groups, take memory for the groups."""
    monkeypatch.setattr(passes, "STRETCH_ROWS", 1 << 15)
    most = 0
    append = passes._Results.append

    def appended(results: Any, rows: Any) -> None:
        nonlocal most
        append(results, rows)
        most = max(most, results._end)

    monkeypatch.setattr(passes._Results, "append", appended)
    with deltic.Session() as session:
        session.sql(SCRIPT)
        ids = np.random.default_rng(5).permutation(ROWS)
        session.apply({"orders": _orders(ids, customers=2_000)})
        session.apply({"customers": [{"_op": "insert", "id": i, "region": i} for i in range(2_000)]})
        totals = {row["region"]: (row["n"], row["amount"]) for row in session.view("spend").rows()}
        assert totals == {c: (len(of), int((of % 1_000).sum())) for c in range(2_000) if len(of := np.arange(c, ROWS, 2_000))}
    assert 0 < most < 1 << 16


def test_keys_are_checked_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "CHECKED_AT_ONCE", 1_000)
    with deltic.Session() as session:
        session.sql(SCRIPT)
        session.apply({"orders": _orders(np.arange(0, 2 * ROWS, 2))})
        for ids in (np.append(np.arange(2 * ROWS, 3 * ROWS), 2 * ROWS + 70_000), np.append(np.arange(1, 2 * ROWS, 2), 5_000)):
            with pytest.raises(DuplicateKey, match=f"id={ids[-1]}"):
                session.apply({"orders": _orders(ids)})
        assert sum(len(batch) for batch in _stored(session)) == ROWS


def test_rows_of_the_state_keep_their_memory_when_they_are_a_change() -> None:
    """Where no rows replace those of a table, which are on one shard, these are what is deleted, and stay if the tick fails."""
    with deltic.Session(shards=3) as session:
        session.sql("CREATE TABLE t (id BIGINT NOT NULL, PRIMARY KEY (id))")
        ids = partition(Rows([np.arange(16 * ROWS)], [np.ones(16 * ROWS, np.int64)]), [0], 3)[0].columns[0]
        session.insert("t", pa.table({"id": ids}))
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT 1 / count(*) AS a FROM t")
        with pytest.raises(EvaluationError, match="division by zero"):
            session._replace({"t": pa.table({"id": ids[:0]})}, {}, lambda _: {})
        assert sum(int(batch.columns[0].sum()) for batch in _stored(session, "t")) == ids.sum()
