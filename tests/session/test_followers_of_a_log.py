"""Readers of a folder whose writer has a commit log: who follows a view misses no change, and who comes during a fold does no harm."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltic
from crashes import watching
from deltic.errors import StateError
from deltic.runtimes.embedded.logged import FOLDING_THREAD
from deltic.session.state_query import StateQueries
from deltic.storage.folder import open_folder
from deltic.storage.history import epochs_in
from deltic.storage.reading import OpenFiles
from deltic.storage.verify import VerifyProgress, verify
from logged_runtimes import logged_runtime
from waiting import wait_until

SCRIPT = """
CREATE TABLE sales (id BIGINT NOT NULL, shop STRING, PRIMARY KEY (id));
CREATE STREAM visits (id BIGINT NOT NULL);
CREATE MATERIALIZED VIEW listed AS SELECT id, shop FROM sales;
CREATE MATERIALIZED VIEW counted AS SELECT shop, count(*) AS n FROM sales GROUP BY shop;
CREATE MATERIALIZED VIEW seen AS SELECT id FROM visits;
"""
RETAINED = 3


@pytest.fixture(autouse=True)
def when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.embedded.logged.FOLD_AFTER_S", 600.0)


def _opened(folder: Path, **options: Any) -> deltic.Session:
    session = deltic.Session(state=folder, retain=RETAINED, **{"commit_log": True, **options})
    session.sql(SCRIPT)
    return session


def _insert(session: deltic.Session, *ids: int) -> None:
    for id in ids:
        session.apply({"sales": [{"_op": "insert", "id": id, "shop": f"shop {id}"}], "visits": [{"_op": "insert", "id": id}]})


def _rows(changes: Iterator[pa.Table], count: int) -> Counter[Any]:
    """The sum of the next changes, once they come to so many rows."""
    rows: Counter[Any] = Counter()
    while sum(map(abs, rows.values())) < count:
        for row in next(changes).to_pylist():
            weight = row.pop("_weight")
            rows[tuple(row.items())] += weight
    return rows


def test_who_follows_a_view_gets_each_epoch(tmp_path: Path) -> None:
    """Also of folds with more epochs than are retained: the lease on the last epoch that was read keeps them."""
    with _opened(tmp_path) as session, StateQueries(tmp_path) as queries:
        changes = queries.changes("listed")
        for ids in (range(20), range(20, 25), range(25, 60)):
            _insert(session, *ids)
            session._fold()
            assert [next(changes)["id"].to_pylist() for _ in ids] == [[id] for id in ids]


def test_a_reader_that_does_not_follow_keeps_its_own_epoch_alone(tmp_path: Path) -> None:
    """While it is open, a fold writes as many manifests as without it; once it follows a view, one for each epoch."""

    def folded(*ids: int) -> int:
        before = len(epochs_in(folder))
        _insert(session, *ids)
        session._fold()
        return len(epochs_in(folder)) - before

    with _opened(tmp_path) as session, StateQueries(tmp_path) as queries:
        folder = open_folder(tmp_path)
        _insert(session, 0)
        session._fold()
        assert queries.refresh() and queries.query("SELECT count(*) AS n FROM listed").rows() == [{"n": 1}]
        assert folded(*range(1, 60)) == RETAINED + 2  # the first, which is never left out, and the last ones
        assert folded(*range(60, 120)) == RETAINED + 2
        logged_runtime(session)._state.sweep()
        assert queries.query("SELECT count(*) AS n FROM listed").rows() == [{"n": 1}]
        assert list(verify(tmp_path, VerifyProgress())) == []
        changes = queries.changes("listed")
        assert folded(*range(120, 180)) == 60
        assert _rows(changes, 179) == Counter({(("id", id), ("shop", f"shop {id}")): 1 for id in range(1, 180)})
        assert folded(*range(180, 240)) == 60
        assert [next(changes)["id"].to_pylist() for _ in range(60)] == [[id] for id in range(180, 240)]
        seen = queries.changes("seen")
        assert folded(240, 241) == 2
        assert [next(seen)["id"].to_pylist() for _ in range(2)] == [[240], [241]]
    with _opened(tmp_path) as session:
        assert len(session.view("listed").rows()) == 242


def _opens_during_a_fold(session: deltic.Session, folder: Path) -> StateQueries:
    """What opens the folder once a fold has decided what nobody reads, and before that has manifests."""
    opened: list[StateQueries] = []
    begun: list[str] = []

    def at(step: str, _: str) -> None:
        if step == "sync:before" and not begun:
            begun.append(step)
            opened.append(StateQueries(folder))

    with watching(at):
        session._fold()
    return opened[0]


def test_who_comes_during_a_fold_gets_the_sum_of_what_it_has_left_out(tmp_path: Path) -> None:
    with _opened(tmp_path) as session:
        _insert(session, 1, 2)
        session._fold()
        session.apply({"sales": [{"_op": "delete", "id": 2}]})
        _insert(session, *range(10, 30))
        with _opens_during_a_fold(session, tmp_path) as queries:
            changes = queries.changes("listed")
            expected = Counter({(("id", id), ("shop", f"shop {id}")): 1 for id in range(10, 30)}) | Counter()
            expected[("id", 2), ("shop", "shop 2")] = -1
            assert _rows(changes, 21) == expected
            _insert(session, 99)
            session._fold()
            assert next(changes).to_pylist() == [{"id": 99, "shop": "shop 99", "_weight": 1}]


def test_rows_of_a_stream_that_a_fold_has_left_out_are_an_error(tmp_path: Path) -> None:
    with _opened(tmp_path) as session:
        _insert(session, *range(20))
        with (
            _opens_during_a_fold(session, tmp_path) as queries,
            pytest.raises(StateError, match="rows of seen in some epochs"),
        ):
            next(queries.changes("seen"))


def test_a_reader_that_comes_during_a_fold_leaves_the_folder_sound(tmp_path: Path) -> None:
    session = _opened(tmp_path)
    _insert(session, *range(20))
    with _opens_during_a_fold(session, tmp_path) as queries:
        reader = queries._reader
        assert (reader.epoch, reader.epochs()) == (1, range(session.epoch - RETAINED, session.epoch + 1))
        assert list(verify(tmp_path, VerifyProgress())) == []
        for epoch in range(3, reader.epochs()[0]):
            with pytest.raises(StateError, match="is not readable"):
                reader.manifest_at(epoch)
        for epoch in reader.epochs():
            assert reader.manifest_at(epoch).epoch == epoch
        session.close()
        with _opened(tmp_path) as again:
            assert len(again.view("listed").rows()) == 20
            _insert(again, *range(100, 220))
            again._fold()
            assert queries.query("SELECT count(*) AS n FROM listed").rows() == [{"n": 0}]
            assert list(verify(tmp_path, VerifyProgress())) == []
            again._runtime._state.sweep()  # type: ignore[attr-defined]
            assert queries.query("SELECT count(*) AS n FROM counted").rows() == [{"n": 0}]
    with _opened(tmp_path) as again:
        assert len(again.view("counted").rows()) == 140


@pytest.mark.parametrize("logs", [True, False])
def test_rows_are_gathered_while_files_with_their_strings_are_replaced(tmp_path: Path, logs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    reached, goes_on, opened = threading.Event(), threading.Event(), OpenFiles.__getitem__

    def waits(files: OpenFiles, ref: Any) -> Any:
        if threading.current_thread() is gatherer and not reached.is_set():
            reached.set()
            assert goes_on.wait(30)
        return opened(files, ref)

    with deltic.Session(state=tmp_path, retain=0, commit_log=logs) as session:
        session.sql(SCRIPT)
        for id in range(25):
            _insert(session, id)
            session._fold()
        _insert(session, *range(30, 50))
        gatherer = threading.Thread(target=_insert, args=(session, 99))
        monkeypatch.setattr(OpenFiles, "__getitem__", waits)
        gatherer.start()
        assert reached.wait(30)
        if logs:
            session._fold()
        else:
            for id in range(25):
                with session.transaction() as tx:
                    tx.delete("sales", [id])
        goes_on.set()
        gatherer.join()
        assert 99 in [row["id"] for row in session.view("listed").rows()]


def test_a_fold_that_fails_in_any_way_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = threading.Event()

    def at(step: str, _: str) -> None:
        if threading.current_thread().name == FOLDING_THREAD and step == "write:before" and not failed.is_set():
            failed.set()
            raise MemoryError

    monkeypatch.setattr("deltic.runtimes.embedded.logged.FOLD_AFTER_S", 0.0)
    monkeypatch.setattr("deltic.runtimes.embedded.logged.FOLD_SHARE", 0)
    with _opened(tmp_path) as session, watching(at):
        _insert(session, 1)
        assert failed.wait(30)
        wait_until(lambda: logged_runtime(session)._state.epoch == session.epoch)


def test_a_tick_that_is_committed_does_not_fail_because_strings_cannot_be_freed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def at(step: str, path: str) -> None:
        if step == "write:before" and "/data/" in path:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("deltic.runtimes.durable.core.STRINGS_BYTES", 100)
    with _opened(tmp_path) as session:
        with watching(at):
            for id in range(3):
                _insert(session, id)
        _insert(session, 3)
        assert logged_runtime(session)._state.epoch == session.epoch, "once there is room, the log is folded, and strings are freed"
        assert sorted(row["id"] for row in session.view("listed").rows()) == [0, 1, 2, 3]
