"""The cost of a tick on a large state: rows touched, bytes read and bytes written are proportional to the change, not to the state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deltic
from calls import calls_of
from deltic.runtimes.embedded import DurableEmbedded
from deltic.storage.merging import RATIO
from deltic.trace.guard import AHEAD, OFTEN, PAGE_WORDS
from deltic.trace.paging import Paging
from deltic.trace.spine import Spine
from session_rows import touched_rows

ROWS = 300_000
SCRIPT = """
CREATE TABLE sales (id BIGINT NOT NULL, shop BIGINT NOT NULL, label STRING, amount BIGINT NOT NULL, PRIMARY KEY (id));
CREATE MATERIALIZED VIEW totals AS SELECT shop, sum(amount) AS total, max(amount) AS most FROM sales GROUP BY shop;
CREATE MATERIALIZED VIEW best AS SELECT id, label FROM sales ORDER BY amount DESC, id LIMIT 10;
"""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state of many rows, each with a distinct string."""
    folder = tmp_path_factory.mktemp("state")
    ids = np.arange(ROWS)
    labels = pa.array(ids).cast(pa.string())
    frame = pa.table({"id": ids, "shop": ids % 100_003, "label": labels, "amount": ids * 7919 % 1_000_003})
    with deltic.Session(state=str(folder)) as session:
        session.sql(SCRIPT)
        with session.transaction() as tx:
            tx.insert("sales", frame)
    return folder


def written(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def read(session: deltic.Session) -> int:
    """Bytes of data files that were read to be verified."""
    assert isinstance(session._runtime, DurableEmbedded)
    return sum(file.verified_bytes for file in session._runtime._files._open.values())


def test_opening_reads_no_rows_and_a_change_of_one_row_costs_little(state: Path) -> None:
    size = sum(written(state).values())
    assert size > 50 * ROWS
    with deltic.Session(state=str(state)) as session:
        session.sql(SCRIPT)
        assert read(session) == 0
        for row in (5, 277_777, ROWS + 1):
            before, known = read(session), written(state)
            with session.transaction() as tx:
                tx.upsert("sales", [{"id": row, "shop": row % 100_003, "label": f"new {row}", "amount": 3}])
            assert session.last_tick is not None
            assert touched_rows(session) < 300
            assert read(session) - before < 500_000
            new = [count for path, count in written(state).items() if path not in known]
            assert sum(new) < 20_000
            assert session.view("totals").lookup(row % 100_003)


@pytest.mark.parametrize("log", [False, True])
def test_ticks_on_a_state_that_is_often_read_run_as_those_in_memory(tmp_path: Path, log: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Paging, "observe", lambda self: False)  # as on a machine that is not busy
    ids = np.arange(60_000)
    script = SCRIPT.split("CREATE MATERIALIZED VIEW best", maxsplit=1)[0]
    frame = pa.table({"id": ids, "shop": ids % 30_011, "label": pa.array(ids).cast(pa.string()), "amount": ids})
    with deltic.Session(state=str(tmp_path), commit_log=log) as session:
        session.sql(script)
        session.insert("sales", frame)
    with deltic.Session(state=str(tmp_path), commit_log=log) as session:
        session.sql(script)
        tables = table(session)
        assert [spine.located for spine in tables] == [(0, -1)]
        for i in range(OFTEN + 60_000 * 6 // (AHEAD * PAGE_WORDS) + 100):
            session.upsert("sales", [{"id": 60_000 + i % 7, "shop": i % 7, "label": "x", "amount": i}])
        assert all(spine.located[1] > 0 for spine in table(session))
        newest = i - (i - 3) % 7
        assert session.view("totals").lookup(3) == [{"shop": 3, "total": 3 + 30_014 + newest, "most": max(30_014, newest)}]


def test_a_merge_that_runs_when_the_session_ends_is_adopted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.storage.merging.TICK_ROWS", 100)
    with deltic.Session(state=str(tmp_path)) as session:
        session.sql(SCRIPT)
        for tick in range(RATIO):
            assert not tick or max(len(spine.batches) for spine in table(session)) == tick
            with session.transaction() as tx:
                tx.insert("sales", [{"id": 200 * tick + i, "shop": i, "label": "x", "amount": i} for i in range(200)])
    with deltic.Session(state=str(tmp_path)) as session:
        session.sql(SCRIPT)
        assert [len(spine.batches) for spine in table(session)] == [1]


def table(session: deltic.Session) -> list[Spine]:
    return session._runtime.snapshot(session._definitions.circuit.tables["sales"])


def test_a_durable_commit_of_one_row_makes_few_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The median of some, since a merge makes more. Threads that share a sync wait for these calls more than for the disk."""
    monkeypatch.setattr("deltic.runtimes.embedded.logged.FOLD_AFTER_S", 3600.0)
    with deltic.Session(state=tmp_path, commit_log=True) as session:
        session.sql("""
            CREATE TABLE accounts (id BIGINT, owner BIGINT NOT NULL, amount BIGINT NOT NULL, PRIMARY KEY (id));
            CREATE MATERIALIZED VIEW totals AS SELECT owner, sum(amount) AS total, count(*) AS n FROM accounts GROUP BY owner;
        """)
        changes = [{"accounts": [{"_op": "insert", "id": row, "owner": row % 7, "amount": row}]} for row in range(60)]
        counts = sorted(calls_of(lambda change=change: session.apply(change)) for change in changes)  # type: ignore[misc]
        assert counts[30] < 390
