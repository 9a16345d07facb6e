"""Loads: what they leave in memory, and what they take meanwhile."""

from __future__ import annotations

from pathlib import Path
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
from deltic.trace.intake import FrameColumns
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


LENT = """
    CREATE TABLE keyed (id BIGINT NOT NULL, a BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE TABLE bag (a BIGINT NOT NULL, b BIGINT NOT NULL);
    CREATE STREAM events (a BIGINT NOT NULL, b BIGINT NOT NULL);
    CREATE MATERIALIZED VIEW pairs AS SELECT k.id, k.a, b.b FROM keyed k JOIN bag b ON k.id = b.a;
    CREATE MATERIALIZED VIEW near AS
        SELECT k.id, s.b FROM keyed k JOIN (SELECT DISTINCT b FROM bag) s ON k.a BETWEEN s.b AND s.b + 1;
    CREATE MATERIALIZED VIEW whole AS SELECT count(*) AS n, sum(a) AS a, max(b) AS b FROM bag;
    CREATE MATERIALIZED VIEW seen AS SELECT a, b FROM events;
"""


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("shards", [1, 3])
def test_a_frame_can_be_overwritten_once_it_is_applied(shards: int, folder: bool, tmp_path: Path) -> None:
    """Large frames lend their memory to the tick alone: what stays of them is copied, and so is what a transaction gathers."""
    ids, other = np.arange(ROWS), np.arange(ROWS) % 50
    names = ("pairs", "near", "whole", "seen")

    def filled(overwritten: bool) -> dict[str, Any]:
        frames = [(ids.copy(), other.copy()) for _ in range(4)]
        weights = np.ones(ROWS, np.int64)
        state = tmp_path / f"state-{overwritten}" if folder else None
        with deltic.Session(shards=shards, state=state) as session:
            session.sql(LENT)
            session.apply({"bag": pa.table({"a": frames[0][0], "b": frames[0][1], "_weight": weights})})
            session.insert("keyed", pa.table(dict(zip(("id", "a"), frames[1], strict=True))))
            session.apply({"events": pa.table({"a": frames[2][0], "b": frames[2][1], "_weight": weights})})
            if overwritten:
                for array in (*frames[0], *frames[1], *frames[2], weights):
                    array[:] = -7
            changes = session.view("seen").changes().sort_by([("a", "ascending")])
            with session.transaction() as tx:
                tx.upsert("keyed", pa.table({"id": frames[3][0], "a": frames[3][1]}))
                if overwritten:
                    frames[3][1][:] = -7
            session.apply({"bag": [{"a": 1, "b": 1, "_weight": -1}]})
            rows = {name: session.view(name).to_arrow() for name in names}
        return {"changes": changes} | {name: whole.sort_by([(c, "ascending") for c in whole.column_names]) for name, whole in rows.items()}

    expected, found = filled(False), filled(True)
    for name, whole in expected.items():
        assert whole.num_rows or name == "seen", name
        assert whole.equals(found[name]), name


@pytest.mark.parametrize("threads", [1, 2])
def test_large_frames_lend_their_memory_to_shards(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of BIGINT NOT NULL in one piece, if rows are copied to shards in any case; others are copied."""
    lent: list[list[int]] = []
    lend = FrameColumns._lent

    def noted(columns: FrameColumns, frame: Any) -> Any:
        found = lend(columns, frame)
        lent.append([*found])
        return found

    monkeypatch.setattr(FrameColumns, "_lent", noted)
    script = "CREATE TABLE t (id BIGINT NOT NULL, a BIGINT, b INT NOT NULL, c BIGINT NOT NULL, PRIMARY KEY (id))"
    ids = np.arange(ROWS)
    whole = pa.table({"id": ids, "a": ids, "b": (ids % 7).astype(np.int32), "c": ids * 2})
    pieces = pa.concat_tables([whole.slice(0, ROWS // 2).select(["id"]), whole.slice(ROWS // 2).select(["id"])])
    with deltic.Session(shards=3, threads=threads) as session:
        session.sql(script)
        session.insert("t", whole)
        session.upsert("t", whole.set_column(0, "id", pieces["id"]))
        session.upsert("t", whole.slice(1).to_batches()[0])
        session.upsert("t", whole.slice(0, 100))
        assert lent == [[0, 3], [3], [0, 3]]
        assert session.query("SELECT count(*) AS n, sum(id) AS id, sum(a) AS a, sum(b) AS b, sum(c) AS c FROM t").rows() == [
            {"n": ROWS, "id": ids.sum(), "a": ids.sum(), "b": (ids % 7).sum(), "c": 2 * ids.sum()}
        ]
    with deltic.Session() as session:
        session.sql(script)
        session.insert("t", whole)
        assert len(lent) == 3
