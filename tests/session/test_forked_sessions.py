"""Processes that are forked while a session is open: they leave its state folder alone, and work with sessions of their own."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from threading import Event, Thread

import pytest

import deltic
from deltic.errors import ClosedError, StateError
from deltic.storage.reader import StateReader

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

SCRIPT = "CREATE TABLE t (id BIGINT NOT NULL, PRIMARY KEY (id)); CREATE MATERIALIZED VIEW v AS SELECT id FROM t"
PATIENCE_S = 30


def _opened(folder: Path, *, log: bool = False) -> deltic.Session:
    session = deltic.Session(state=folder, commit_log=log)
    session.sql(SCRIPT)
    return session


def _insert(session: deltic.Session, *ids: int) -> None:
    for id in ids:
        session.apply({"t": [{"_op": "insert", "id": id}]})


def _ids(session: deltic.Session) -> list[int]:
    return sorted(row["id"] for row in session.view("v").rows())


def _in_child(act: Callable[[], None]) -> int:
    """Forks a process, in which `act` runs; returns its id."""
    child = os.fork()
    if not child:
        code = 1
        signal.alarm(PATIENCE_S)
        try:
            act()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def _ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _wait_for_nothing() -> None:
    signal.pause()


@pytest.mark.parametrize("log", [False, True])
def test_a_child_that_closes_an_inherited_session_leaves_its_folder_alone(
    tmp_path: Path, log: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltic.runtimes.embedded.logged.FOLD_AFTER_S", 600.0)
    session = _opened(tmp_path / "state", log=log)
    _insert(session, 1)
    before = _files(tmp_path / "state")

    def leave() -> None:
        with session:
            pass
        session.close()
        with pytest.raises(ClosedError):
            session.view("v").rows()

    assert _ended(_in_child(leave)) == 0
    assert _files(tmp_path / "state") == before
    _insert(session, 2)

    copytree(tmp_path / "state", tmp_path / "copy")  # as a kill leaves it
    with _opened(tmp_path / "copy") as again:
        assert _ids(again) == [1, 2]
    session.close()
    with _opened(tmp_path / "state") as again:
        assert _ids(again) == [1, 2]


@pytest.mark.parametrize("log", [False, True])
def test_a_child_reads_an_inherited_session_and_changes_nothing(tmp_path: Path, log: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.embedded.logged.FOLD_AFTER_S", 600.0)
    with _opened(tmp_path / "state", log=log) as session:
        _insert(session, 1)
        before, transaction = _files(tmp_path / "state"), session.transaction()

        def commit() -> None:
            with transaction as tx:
                tx.insert("t", [{"id": 2}])

        def use() -> None:
            assert _ids(session) == [1]
            for change in (
                lambda: _insert(session, 2),
                lambda: session.sql("CREATE MATERIALIZED VIEW w AS SELECT id FROM t"),
                lambda: session.sql("DELETE FROM t"),
                lambda: session.load("t", [{"id": 3}]),
                session._fold,
                lambda: session._runtime.tick({}),
                commit,
            ):
                with pytest.raises(StateError, match=r"was opened by process \d+, from which this process was forked"):
                    change()
            with _opened(tmp_path / "other") as own:
                _insert(own, 7)
                assert _ids(own) == [7]

        assert _ended(_in_child(use)) == 0
        assert _files(tmp_path / "state") == before
        _insert(session, 2)
        assert _ids(session) == [1, 2]


def test_a_child_closes_an_inherited_session_while_another_thread_commits(tmp_path: Path) -> None:
    with _opened(tmp_path / "state") as session:
        held, goes_on = Event(), Event()

        def hold() -> None:
            with session._lock:
                held.set()
                goes_on.wait(PATIENCE_S)

        thread = Thread(target=hold)
        thread.start()
        held.wait(PATIENCE_S)
        assert _ended(_in_child(session.close)) == 0
        goes_on.set()
        thread.join()


def test_a_child_does_not_hold_the_lock(tmp_path: Path) -> None:
    session = _opened(tmp_path / "state")
    child = _in_child(_wait_for_nothing)
    try:
        session.close()
        with _opened(tmp_path / "state") as again:
            _insert(again, 1)
    finally:
        os.kill(child, signal.SIGKILL)
        _ended(child)


def test_a_child_does_not_hold_the_lock_of_a_killed_process(tmp_path: Path) -> None:
    reading, writing = os.pipe()

    def die() -> None:
        session = _opened(tmp_path / "state")
        _insert(session, 1)
        os.write(writing, f"{_in_child(_wait_for_nothing)}".encode())
        os.kill(os.getpid(), signal.SIGKILL)

    assert _ended(_in_child(die)) == -signal.SIGKILL
    try:
        with _opened(tmp_path / "state") as again:
            assert _ids(again) == [1]
    finally:
        os.kill(int(os.read(reading, 100)), signal.SIGKILL)


def test_a_session_in_memory_goes_on_in_a_child() -> None:
    with deltic.Session() as session:
        session.sql(SCRIPT)
        _insert(session, 1)

        def use() -> None:
            with session:
                _insert(session, 2)
                assert _ids(session) == [1, 2]

        assert _ended(_in_child(use)) == 0
        assert _ids(session) == [1]


def test_a_child_that_closes_an_inherited_reader_keeps_its_lease(tmp_path: Path) -> None:
    with _opened(tmp_path / "state"), StateReader.open(tmp_path / "state") as reader:
        assert _ended(_in_child(reader.close)) == 0
        assert len(list((tmp_path / "state" / "leases").iterdir())) == 1
    assert list((tmp_path / "state" / "leases").iterdir()) == []
