"""Subscribers are called in the order of commits, once for each, by any thread and after any interrupt."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import deltic
from deltic.errors import SubscriberError, UnknownName

SCRIPT = (
    "CREATE TABLE t (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t; CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t"
)


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        session.sql(SCRIPT)
        yield session


def insert(session: deltic.Session, value: int) -> None:
    session.apply({"t": [{"a": value, "_op": "insert"}]})


def values(changes: list[pa.Table]) -> list[int]:
    return [row["a"] for change in changes for row in change.to_pylist()]


def test_all_subscribers_are_called_before_those_of_a_commit_by_a_subscriber(session: deltic.Session) -> None:
    heard: list[tuple[str, int]] = []

    def ticks(change: pa.Table) -> None:
        (value,) = values([change])
        heard.append(("first", value))
        if value < 3:
            insert(session, value + 1)

    session.view("v").subscribe(ticks)
    session.view("v").subscribe(lambda change: heard.append(("second", *values([change]))))
    insert(session, 1)
    assert heard == [(name, value) for value in (1, 2, 3) for name in ("first", "second")]


def test_concurrent_commits_are_delivered_in_their_order(session: deltic.Session) -> None:
    heard: list[int] = []
    started, going = threading.Event(), threading.Event()

    def slow(change: pa.Table) -> None:
        started.set()
        assert going.wait(30)
        heard.extend(row["n"] for row in change.to_pylist() if row["_weight"] > 0)

    session.view("n").subscribe(slow)
    threads = [threading.Thread(target=insert, args=(session, i)) for i in range(5)]
    threads[0].start()
    assert started.wait(30)
    for thread in threads[1:]:
        thread.start()
        thread.join(30)  # a commit does not wait for another one's subscribers
        assert not thread.is_alive()
    going.set()
    threads[0].join(30)
    assert heard == [1, 2, 3, 4, 5]


def test_commits_of_many_threads_are_delivered_in_order_and_once(session: deltic.Session) -> None:
    heard: list[int] = []
    session.view("n").subscribe(lambda change: heard.extend(row["n"] for row in change.to_pylist() if row["_weight"] > 0))
    threads = [threading.Thread(target=lambda: [insert(session, i) for i in range(40)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == list(range(1, 161))


def test_a_subscriber_may_wait_for_a_thread_that_commits(session: deltic.Session) -> None:
    heard: list[pa.Table] = []

    def waits(change: pa.Table) -> None:
        heard.append(change)
        if len(heard) == 1:
            other = threading.Thread(target=insert, args=(session, 2))
            other.start()
            other.join(30)
            assert not other.is_alive()

    session.view("v").subscribe(waits)
    insert(session, 1)
    assert values(heard) == [1, 2]


def test_an_interrupted_delivery_is_made_with_the_next_commit(session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[pa.Table] = []
    stop = session.view("v").subscribe(heard.append)
    tick = session._runtime.tick

    def interrupted(changes: Any, notes: Any, **options: Any) -> None:
        tick(changes, notes, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(session._runtime, "tick", interrupted)
        with pytest.raises(KeyboardInterrupt):
            insert(session, 1)
    late: list[pa.Table] = []
    session.view("v").subscribe(late.append)
    insert(session, 2)
    stop()
    insert(session, 3)
    assert values(heard) == [1, 2]
    assert values(late) == [2, 3]


def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def test_an_interrupted_subscriber_is_not_called_again_and_the_others_are_called_next(session: deltic.Session) -> None:
    called: list[int] = []
    heard: list[pa.Table] = []

    def interrupted(change: pa.Table) -> None:
        called.extend(values([change]))
        if len(called) == 2:
            raise KeyboardInterrupt

    session.view("v").subscribe(interrupted)
    session.view("v").subscribe(heard.append)
    insert(session, 1)
    with pytest.raises(KeyboardInterrupt):
        insert(session, 2)
    assert values(heard) == [1]
    insert(session, 3)
    assert called == [1, 2, 3] and values(heard) == [1, 2, 3]


def test_errors_before_an_interrupt_are_reported_with_the_next_commit(session: deltic.Session) -> None:
    session.view("v").subscribe(lambda change: 1 / (values([change])[0] - 1))
    stop = session.view("v").subscribe(interrupt)
    with pytest.raises(KeyboardInterrupt):
        insert(session, 1)
    stop()
    with pytest.raises(SubscriberError, match="1 of 3 subscribers raised, the first ZeroDivisionError"):
        insert(session, 2)
    insert(session, 3)


def test_an_ended_subscription_is_not_called_though_a_call_was_queued(session: deltic.Session) -> None:
    heard: list[pa.Table] = []
    session.view("v").subscribe(lambda change: stop())
    stop = session.view("v").subscribe(heard.append)
    insert(session, 1)
    assert not heard


def test_a_view_that_is_created_again_has_no_subscribers(session: deltic.Session) -> None:
    heard: list[pa.Table] = []
    view = session.view("v")
    view.subscribe(heard.append)
    session.sql("DROP VIEW v")
    with pytest.raises(UnknownName, match="has been dropped"):
        view.subscribe(heard.append)
    session.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    insert(session, 1)
    assert not heard
