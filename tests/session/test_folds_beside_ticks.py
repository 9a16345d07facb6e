"""A commit log that is folded while ticks go on: nothing waits for the disk, and nothing is lost, whatever fails or ends meanwhile."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

import pytest

import deltic
from crashes import failing_log, watching
from deltic.errors import StateError, WeightOverflow
from deltic.runtimes.durable.merges import merge_group
from deltic.runtimes.durable.version import DurableVersion
from deltic.runtimes.embedded.logged import FOLDING_THREAD, LoggedEmbedded
from deltic.storage.commit_log import CommitLog
from deltic.storage.verify import VerifyProgress, verify
from engines import abandon
from logged_runtimes import logged_runtime
from parts import slow
from waiting import wait_until

SCRIPT = """
CREATE TABLE sales (id BIGINT NOT NULL, shop STRING, PRIMARY KEY (id));
CREATE MATERIALIZED VIEW totals AS SELECT shop, count(*) AS n, max(id) AS last FROM sales GROUP BY shop;
CREATE MATERIALIZED VIEW listed AS SELECT id FROM sales;
"""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.embedded.logged.FOLD_AFTER_S", 0.0)
    monkeypatch.setattr("deltic.runtimes.embedded.logged.FOLD_SHARE", 0)


def _opened(folder: Path) -> deltic.Session:
    session = deltic.Session(state=folder, commit_log=True)
    session.sql(SCRIPT)
    return session


def _insert(session: deltic.Session, *ids: int) -> None:
    for id in ids:
        session.apply({"sales": [{"_op": "insert", "id": id, "shop": f"shop {id % 2}"}]})


def _ids(session: deltic.Session) -> list[int]:
    rows = session.view("totals").rows()
    ids = sorted(row["id"] for row in session.view("listed").rows())
    assert {row["shop"]: (row["n"], row["last"]) for row in rows} == {
        f"shop {parity}": (len(of), max(of)) for parity in (0, 1) if (of := [id for id in ids if id % 2 == parity])
    }
    return ids


@contextmanager
def _held() -> Iterator[tuple[Event, Event]]:
    """(set when a fold is about to sync its files, what lets it go on)."""
    reached, goes_on = Event(), Event()

    def at(step: str, path: str) -> None:
        if threading.current_thread().name == FOLDING_THREAD and step == "sync:before":
            reached.set()
            assert goes_on.wait(30)

    with watching(at):
        try:
            yield reached, goes_on
        finally:
            goes_on.set()


@pytest.mark.parametrize("killed", ["while folding", "after it", "never"])
def test_ticks_are_committed_while_the_log_is_folded(tmp_path: Path, killed: str) -> None:
    session = _opened(tmp_path / "state")
    with _held() as (reached, _):
        _insert(session, 0, 1)
        assert reached.wait(30)
        folded = logged_runtime(session)._state.epoch
        threads = [Thread(target=_insert, args=(session, *range(10 * thread, 10 * thread + 5))) for thread in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = [0, 1, *(10 * thread + id for thread in range(1, 5) for id in range(5))]
        assert _ids(session) == expected and logged_runtime(session)._state.epoch == folded
        assert len(list((tmp_path / "state" / "log").iterdir())) == 2
        assert list(verify(tmp_path / "state", VerifyProgress())) == []
        changed = [session.view("totals").changes(epoch).num_rows for epoch in range(session.epoch - 19, session.epoch + 1)]
        if killed == "while folding":
            _check_copy(tmp_path, expected)
    wait_until(lambda: logged_runtime(session)._state.epoch > folded)
    if killed == "after it":
        _check_copy(tmp_path, expected, logged_runtime(session))
    _insert(session, 100)
    assert [session.view("totals").changes(epoch).num_rows for epoch in range(session.epoch - 20, session.epoch)] == changed
    wait_until(lambda: not logged_runtime(session)._log.epochs)
    assert _ids(session) == [*expected, 100]
    session.close()
    assert list((tmp_path / "state" / "log").iterdir()) == []
    with _opened(tmp_path / "state") as again:
        assert _ids(again) == [*expected, 100]


def _check_copy(folder: Path, expected: list[int], folding: LoggedEmbedded | None = None) -> None:
    """What a process that is killed now leaves. folding: a runtime whose next fold may begin meanwhile; then it is copied again."""
    copied = None
    while copied is None or (folding is not None and (folding._beside is not None or folding._state.epoch != copied)):
        copied = 0 if folding is None else folding._state.epoch
        shutil.rmtree(folder / "copy", ignore_errors=True)
        with suppress(shutil.Error):  # a file was deleted meanwhile
            shutil.copytree(folder / "state", folder / "copy")
    with _opened(folder / "copy") as again:
        assert _ids(again) == expected


def test_a_tick_that_fails_once_it_is_in_the_log_is_not_in_what_a_fold_has_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(log: CommitLog, logged: Any) -> None:
        append(log, logged)
        raise MemoryError

    append = CommitLog.append
    with _opened(tmp_path / "state") as session:
        runtime = logged_runtime(session)
        with _held() as (reached, goes_on):
            _insert(session, 0)
            assert reached.wait(30)
            _insert(session, 1)
            with monkeypatch.context() as patch, pytest.raises(MemoryError):
                patch.setattr(CommitLog, "append", fails)
                _insert(session, 2)
            with runtime._turn:
                fold = runtime._beside
                assert fold is not None
                goes_on.set()
                assert fold.written.wait(30) and fold.version is not None and fold.version.epoch == session.epoch + 1
                goes_on.clear()  # for the next fold
                _insert(session, 3)
            wait_until(lambda: runtime._beside is not fold)
            assert _ids(session) == [0, 1, 3]
    with _opened(tmp_path / "state") as again:
        assert _ids(again) == [0, 1, 3]


def test_what_commits_a_manifest_waits_for_the_fold(tmp_path: Path) -> None:
    with _opened(tmp_path) as session:
        with _held() as (reached, goes_on):
            _insert(session, 0)
            assert reached.wait(30)
            _insert(session, 1, 2)
            Timer(0.1, goes_on.set).start()
            session.sql("CREATE MATERIALIZED VIEW ids AS SELECT id FROM sales")
            assert goes_on.is_set() and not logged_runtime(session)._log.epochs
        _insert(session, 3)
        assert sorted(row["id"] for row in session.view("ids").rows()) == _ids(session) == [0, 1, 2, 3]


def test_a_session_closes_while_its_log_is_folded(tmp_path: Path) -> None:
    session = _opened(tmp_path)
    with _held() as (reached, goes_on):
        _insert(session, 0)
        assert reached.wait(30)
        _insert(session, 1)
        Timer(0.1, goes_on.set).start()
        session.close()
    with deltic.open(tmp_path) as state:
        assert sum(row["n"] for row in state.view("totals").rows()) == 2


@pytest.mark.parametrize("number", [0, 2, 5, 9, *slow(1, 3, 4, 6, 7, 8)])
def test_a_fold_that_fails_is_repeated(tmp_path: Path, number: int, caplog: pytest.LogCaptureFixture) -> None:
    """Meanwhile the other file of the log takes all ticks, also after it was full, and the next writer reads both."""
    session = _opened(tmp_path / "state")
    steps, fails, failed = 0, True, Event()

    def at(step: str, path: str) -> None:
        nonlocal steps
        if threading.current_thread().name == FOLDING_THREAD and step.endswith(":before"):
            steps += 1
            if fails and steps > number:
                failed.set()
                raise OSError(28, "No space left on device")

    with watching(at):
        _insert(session, 0, 1)
        assert failed.wait(30)
        _insert(session, 2, 3)
        assert _ids(session) == [0, 1, 2, 3]
        _check_copy(tmp_path, [0, 1, 2, 3])
        fails = False
        _insert(session, 4)
        wait_until(lambda: not logged_runtime(session)._log.epochs)
    assert "cannot be folded yet" in caplog.text and "No space left on device" in caplog.text
    _insert(session, 5)
    abandon(logged_runtime(session))
    with _opened(tmp_path / "state") as again:
        assert _ids(again) == [0, 1, 2, 3, 4, 5]


def test_sums_beyond_64_bits_above_the_files_are_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = _opened(tmp_path)
    logged, overflows = DurableVersion.logged, 0

    def overflowing(*arguments: Any) -> DurableVersion:
        nonlocal overflows
        if threading.current_thread().name == FOLDING_THREAD:
            overflows += 1
            raise WeightOverflow("the sum of weights")
        return logged(*arguments)

    with _held() as (reached, goes_on):
        _insert(session, 0)
        assert reached.wait(30)
        _insert(session, 1)
        monkeypatch.setattr(DurableVersion, "logged", overflowing)
        goes_on.set()
        wait_until(lambda: not logged_runtime(session)._log.epochs)
    _insert(session, 2)
    assert overflows == 2 and _ids(session) == [0, 1, 2]
    session.close()


def test_a_tick_that_failed_stays_so_after_close(tmp_path: Path) -> None:
    session = _opened(tmp_path)
    _insert(session, 1)
    wait_until(lambda: not logged_runtime(session)._log.epochs)

    with failing_log(), pytest.raises(StateError, match="Input/output error"):
        _insert(session, 77)
    session.close()
    with _opened(tmp_path) as again:
        assert _ids(again) == [1]


def test_no_commit_is_lost_if_the_fold_of_close_fails_beside_a_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.embedded.logged.FOLD_AFTER_S", 600.0)
    session = _opened(tmp_path)
    runtime = logged_runtime(session)
    for ids in (range(50), range(50, 52)):
        _insert(session, *ids)
        runtime.fold()
    manifest = runtime._state.manifest
    segments = sorted(manifest.segments(), key=lambda segment: segment.arrangement)
    groups = [tuple(parts) for _, parts in groupby(segments, lambda segment: segment.arrangement)]
    group = next(parts for parts in groups if len(parts) >= 2)
    with runtime._state.merging() as origin:
        merged = merge_group(runtime._state.root, manifest, group, origin)
    _insert(session, 200, 201)
    monkeypatch.setattr(runtime._merger, "take", lambda wait=False: [merged] if wait else [])  # as while it runs
    failed = False

    def at(step: str, path: str) -> None:
        nonlocal failed
        if step == "write:before" and "/data/" in path and not failed:
            failed = True
            raise OSError(28, "No space left on device")

    with watching(at):
        session.close()
    with _opened(tmp_path) as again:
        assert failed and _ids(again) == [*range(52), 200, 201]
