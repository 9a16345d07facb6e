"""Memory of strings is freed although threads commit without a pause, and no thread waits long, or in vain, for others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

import deltic
from deltic.session import gathering

SCRIPT = """
CREATE TABLE t (id BIGINT NOT NULL, s STRING, PRIMARY KEY (id));
CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n FROM t GROUP BY s;
"""
THREADS = 4
LIMIT = 1 << 15


@pytest.fixture(params=["in memory", "in a folder"])
def session(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[deltic.Session]:
    monkeypatch.setattr("deltic.runtimes.embedded.runtime.COLLECT_BYTES", LIMIT)
    monkeypatch.setattr("deltic.runtimes.durable.core.STRINGS_BYTES", LIMIT)
    monkeypatch.setattr(gathering, "FIRST_S", 5.0)
    with deltic.Session(state=None if request.param == "in memory" else tmp_path) as session:
        session.sql(SCRIPT)
        yield session


def _upsert(session: deltic.Session, id: int, text: str) -> None:
    session.apply({"t": [{"_op": "upsert", "id": id, "s": text}]})


def _exceed(session: deltic.Session) -> None:
    """Commits strings above the limit, which stay there because others are being gathered."""
    with session.transaction():
        for turn in range(20):
            _upsert(session, 0, f"{turn} {'x' * LIMIT}")
        assert session._runtime.trim_is_due


def _started(work: Callable[[], None]) -> Thread:
    thread = Thread(target=work)
    thread.start()
    return thread


def test_threads_that_commit_without_a_pause_free_strings(session: deltic.Session) -> None:
    most: list[int] = []

    def commit(thread: int) -> None:
        for turn in range(150):
            _upsert(session, thread, f"{thread}.{turn} {'x' * (LIMIT // 8)}")
            most.append(session._runtime.strings.used_bytes)

    threads = [_started(lambda thread=thread: commit(thread)) for thread in range(THREADS)]  # type: ignore[misc]
    for thread in threads:
        thread.join()
    assert max(most) < 12 * LIMIT < THREADS * 150 * LIMIT // 16
    assert sum(row["n"] for row in session.view("v").rows()) == THREADS


def test_a_thread_waits_for_those_that_have_begun(session: deltic.Session) -> None:
    waits, goes_on = Event(), Event()

    def hold() -> None:
        with session.transaction() as tx:
            tx.upsert("t", [{"id": 1, "s": "held"}])
            for turn in range(20):
                _upsert(session, 0, f"{turn} {'x' * LIMIT}")
            waits.set()
            goes_on.wait(30)

    holder = _started(hold)
    waits.wait(30)
    other = _started(lambda: _upsert(session, 2, "other"))
    time.sleep(0.1)
    assert session._runtime.trim_is_due and other.is_alive()
    goes_on.set()
    other.join(30)
    holder.join()
    assert not session._runtime.trim_is_due
    assert {row["s"] for row in session.view("v").rows()} >= {"held", "other"}


def test_a_wait_is_bounded_and_not_repeated_at_once(session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session._gathering._wait_s = 0.05
    begun, ended = Event(), Event()

    def hold() -> None:
        with session.transaction():
            for turn in range(20):
                _upsert(session, 0, f"{turn} {'x' * LIMIT}")
            begun.set()
            ended.wait(30)

    holder = _started(hold)
    begun.wait(30)
    waited: list[float | None] = []
    wait = gathering.ReentrantEvent.wait

    def counted(event: gathering.ReentrantEvent, seconds: float | None = None) -> bool:
        if event is session._gathering._freed:
            waited.append(seconds)
        return wait(event, seconds)

    monkeypatch.setattr(gathering.ReentrantEvent, "wait", counted)
    for turn in range(10):
        _upsert(session, 2, f"other {turn}")
    ended.set()
    holder.join()
    assert waited == [0.05] and session._runtime.trim_is_due is False


def test_a_thread_does_not_wait_for_itself(session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bool:
        raise AssertionError("it waits")

    calls: list[int] = []

    def again(_: object) -> None:
        if len(calls) < 30:
            calls.append(len(calls))
            _upsert(session, 5, f"{len(calls)} {'x' * LIMIT}")

    session.view("v").subscribe(again)
    monkeypatch.setattr(gathering.ReentrantEvent, "wait", fail)
    _exceed(session)
    with session.transaction():
        session.sql("INSERT INTO t VALUES (7, 'seven')")
    assert len(calls) == 30


def test_changes_that_are_abandoned_are_not_waited_for_again(session: deltic.Session) -> None:
    session._gathering._wait_s = 0.05
    begun, fails, failed = Event(), Event(), Event()

    def hold() -> None:
        try:
            with session.transaction():
                for turn in range(20):
                    _upsert(session, 0, f"{turn} {'x' * LIMIT}")
                begun.set()
                fails.wait(30)
                raise KeyError
        except KeyError:
            failed.set()

    holder = _started(hold)
    begun.wait(30)
    fails.set()
    failed.wait(30)
    holder.join()
    _upsert(session, 2, "other")
    assert not session._runtime.trim_is_due
