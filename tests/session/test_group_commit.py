"""Ticks of several threads on a session with a commit log: one sync for many, each as if it were alone."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Event, RLock, Thread
from typing import Any

import pytest

import deltic
from crashes import watching
from deltic.errors import ClosedError, DelticError, DivisionByZero, DuplicateKey, StateError
from deltic.runtimes.embedded import LoggedEmbedded
from deltic.session.group_commit import TickQueue, WaitingTick
from deltic.storage.log_file import records
from engines import abandon
from interruptions import interrupted_everywhere
from logged_runtimes import logged_runtime
from waiting import wait_until

SCRIPT = """
CREATE TABLE sales (id BIGINT NOT NULL, shop STRING, amount BIGINT NOT NULL, PRIMARY KEY (id));
CREATE MATERIALIZED VIEW totals AS SELECT shop, sum(amount) AS total, count(*) AS n FROM sales GROUP BY shop;
CREATE MATERIALIZED VIEW inverses AS SELECT id, 100 DIV amount AS inverse FROM sales;
"""
Change = dict[str, Any]


@pytest.fixture(autouse=True)
def no_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.embedded.logged.FOLD_AFTER_S", 60.0)


def _opened(folder: Path, **options: Any) -> deltic.Session:
    session = deltic.Session(state=folder, commit_log=True, **options)
    session.sql(SCRIPT)
    return session


@pytest.fixture
def session(tmp_path: Path) -> Iterator[deltic.Session]:
    with _opened(tmp_path / "state") as session:
        yield session


def _insert(id: int, amount: int = 1, shop: str = "a") -> Change:
    return {"sales": [{"_op": "insert", "id": id, "shop": shop, "amount": amount}]}


def _ids(session: deltic.Session) -> list[int]:
    return sorted(row["id"] for row in session.view("inverses").rows())


def _together(session: deltic.Session, changes: Sequence[Change]) -> list[BaseException | None]:
    """Applies changes from a thread each, in this order, as one group; what each raised."""
    raised: list[BaseException | None] = [None] * len(changes)

    def apply(number: int) -> None:
        try:
            session.apply(changes[number], notes={"last": number})
        except BaseException as error:
            raised[number] = error

    threads = [Thread(target=apply, args=(number,)) for number in range(len(changes))]
    with session._lock:  # until all wait
        for number, thread in enumerate(threads, 1):
            thread.start()
            _until_waiting(session, number)
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return raised


def _until_waiting(session: deltic.Session, ticks: int) -> None:
    wait_until(lambda: len(session._commits._ticks._waiting) == ticks)


def test_ticks_of_several_threads_share_a_sync_and_are_epochs_of_their_own(session: deltic.Session) -> None:
    heard: list[Any] = []
    session.view("totals").subscribe(lambda change: heard.append(change.to_pylist()))
    first, steps = session.epoch + 1, list[str]()
    with watching(lambda step, path: steps.append(step)):
        assert _together(session, [_insert(id, 10**id) for id in range(6)]) == [None] * 6
    assert (session.epoch, steps.count("data-sync:after"), session.notes["last"]) == (first + 5, 1, 5)
    changes = [session.view("totals").changes(epoch).to_pylist() for epoch in range(first, first + 6)]
    assert changes == heard
    assert [max(row["total"] for row in change) for change in changes] == [1, 11, 111, 1111, 11111, 111111]


def test_what_is_durable_is_shown_to_its_thread_though_the_one_that_commits_is_interrupted(
    session: deltic.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(runtime: LoggedEmbedded) -> bool:
        if not runtime.unshown:
            return False
        monkeypatch.setattr(LoggedEmbedded, "show_next", show_next)
        raise KeyboardInterrupt

    show_next = LoggedEmbedded.show_next

    monkeypatch.setattr(LoggedEmbedded, "show_next", interrupted)
    seen: list[list[int]] = []
    apply = session.apply

    def applied(*arguments: Any, **options: Any) -> Any:
        apply(*arguments, **options)
        seen.append(_ids(session))

    monkeypatch.setattr(session, "apply", applied)
    raised = _together(session, [_insert(1), _insert(2), _insert(3)])
    assert [type(error) for error in raised] == [KeyboardInterrupt, type(None), type(None)]
    assert seen == [[1, 2, 3]] * 2


def test_the_error_of_a_tick_is_its_own(session: deltic.Session) -> None:
    first = session.epoch + 1
    raised = _together(session, [_insert(1), _insert(1), _insert(2, 0), _insert(3)])
    assert [type(error) for error in raised] == [type(None), DuplicateKey, DivisionByZero, type(None)]
    assert (_ids(session), session.epoch) == ([1, 3], first + 1)


def test_a_failed_sync_fails_all_that_waited_for_it(tmp_path: Path) -> None:
    session = _opened(tmp_path)
    session.apply(_insert(0))
    heard: list[Any] = []
    session.view("totals").subscribe(heard.append)
    epoch = session.epoch

    def failing(step: str, path: str) -> None:
        if step == "data-sync:before":
            raise OSError(5, "Input/output error")

    with watching(failing):
        raised = _together(session, [_insert(1), _insert(1), _insert(2)])
    assert [type(error) for error in raised] == [StateError] * 3 and len({id(error) for error in raised}) == 3
    assert len({str(error) for error in raised}) == 1 and "Input/output error" in str(raised[0])
    assert (session.epoch, _ids(session), heard) == (epoch, [0], [])
    assert _together(session, [_insert(2), _insert(5)]) == [None, None]
    abandon(logged_runtime(session))
    with _opened(tmp_path) as again:
        assert _ids(again) == [0, 2, 5]


def test_a_call_returns_when_its_commit_is_on_disk(session: deltic.Session, tmp_path: Path) -> None:
    session.apply(_insert(-1))
    synced = [b""]
    syncs: list[int] = []

    def at(step: str, path: str) -> None:
        if step == "data-sync:after" and path.endswith(".log"):
            synced[0] = Path(path).read_bytes()
            syncs.append(1)

    missing: list[str] = []

    def work(thread: int) -> None:
        for number in range(20):
            key = f"{thread} {number}"
            session.apply(_insert(100 * thread + number), notes={"key": key})
            if f'"key":"{key}"'.encode() not in b"".join(bytes(record.content) for record in records(synced[0], "log", 0)):
                missing.append(key)

    threads = [Thread(target=work, args=(thread,)) for thread in range(8)]
    with watching(at):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert missing == []
    assert len(syncs) < 160 < len(_ids(session))


def test_a_tick_too_large_for_the_log_is_between_the_others(session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.embedded.logged.LARGEST_BYTES", 4_000)
    large = {"sales": [{"_op": "insert", "id": id, "shop": "b", "amount": 1} for id in range(100, 300)]}
    again = {"sales": [{"_op": "update", "id": 299, "shop": "c", "amount": 2}]}
    first = session.epoch + 1
    assert _together(session, [_insert(1), large, again, _insert(2)]) == [None] * 4
    assert session.epoch == first + 3
    assert session.view("totals").lookup("b") == [{"shop": "b", "total": 199, "n": 199}]
    assert session.view("totals").lookup("c") == [{"shop": "c", "total": 2, "n": 1}]


@pytest.mark.parametrize("most", ["MOST_EPOCHS", "MOST_BYTES"])
def test_a_group_that_does_not_fit_into_the_log_is_divided(session: deltic.Session, most: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, value = ("commit_log", 4) if most == "MOST_EPOCHS" else ("log_file", 4096)
    monkeypatch.setattr(f"deltic.storage.{owner}.{most}", value)
    assert _together(session, [_insert(id) for id in range(11)]) == [None] * 11
    assert _ids(session) == [*range(11)]
    assert len(logged_runtime(session)._log.epochs) <= 4


class Interrupted(BaseException):
    """As Ctrl-C raises in the thread that commits."""


def test_an_interrupted_thread_leaves_the_ticks_of_others_to_them(session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    join, calls = LoggedEmbedded.join, list[int]()

    def interrupted(runtime: LoggedEmbedded, *args: Any, **options: Any) -> bool:
        calls.append(1)
        if len(calls) == 2:
            raise Interrupted
        return join(runtime, *args, **options)

    monkeypatch.setattr(LoggedEmbedded, "join", interrupted)
    raised = _together(session, [_insert(1), _insert(2), _insert(3)])
    assert [type(error) for error in raised] == [Interrupted, type(None), type(None)]
    assert _ids(session) == [2, 3]


def test_a_thread_interrupted_after_the_sync_has_committed_all(session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, heard = LoggedEmbedded.commit_group, list[Any]()
    session.view("totals").subscribe(heard.append)

    def interrupted(runtime: LoggedEmbedded) -> None:
        commit(runtime)
        monkeypatch.undo()
        raise Interrupted

    monkeypatch.setattr(LoggedEmbedded, "commit_group", interrupted)
    raised = _together(session, [_insert(1), _insert(2), _insert(3)])
    assert [type(error) for error in raised] == [Interrupted, type(None), type(None)]
    session.apply(_insert(4))
    assert (_ids(session), len(heard)) == ([1, 2, 3, 4], 4)


def test_a_large_tick_is_committed_whatever_becomes_of_those_after_it(session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is durable before the others, whose error is not its own."""
    monkeypatch.setattr("deltic.runtimes.embedded.logged.LARGEST_BYTES", 20_000)
    monkeypatch.setattr(logged_runtime(session)._log, "append", _no_room)
    rows = [{"_op": "insert", "id": id, "shop": "a", "amount": 1} for id in range(10_000)]
    large, small = _together(session, [{"sales": rows}, _insert(-1)])
    assert large is None and isinstance(small, StateError)
    assert _ids(session) == list(range(10_000))


def _no_room(content: Any) -> None:
    raise StateError("no room")


def test_a_large_tick_of_an_interrupted_thread_is_committed_once(session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.embedded.logged.LARGEST_BYTES", 20_000)
    runtime, join = logged_runtime(session), logged_runtime(session).join

    def interrupted(*arguments: Any, **options: Any) -> bool:
        epoch = runtime.epoch
        joined = join(*arguments, **options)
        if runtime.epoch > epoch:  # the large one has been committed, in the first thread
            monkeypatch.setattr(runtime, "join", join)
            raise Interrupted
        return joined

    monkeypatch.setattr(runtime, "join", interrupted)
    rows = [{"_op": "insert", "id": id, "shop": "a", "amount": 1} for id in range(10_000)]
    small, large = _together(session, [_insert(-1), {"sales": rows}])
    assert large is None and isinstance(small, Interrupted)
    assert _ids(session) == list(range(-1, 10_000))


class LockedQueue(deque[WaitingTick]):
    """Ticks leave it only while this thread has the lock."""

    lock = RLock()

    def popleft(self) -> WaitingTick:
        assert self.lock._is_owned()  # type: ignore[attr-defined]  # not in the stubs
        return super().popleft()


def test_ticks_that_an_interrupted_thread_leaves_are_not_committed_again() -> None:
    committed: list[WaitingTick] = []

    def commit(group: Sequence[WaitingTick]) -> None:
        committed.extend(group)
        for each in group:
            each.done = True

    queue = TickQueue(LockedQueue.lock, commit)
    queue._waiting = LockedQueue()
    left = [WaitingTick({}, {}, lambda: None) for _ in range(2)]
    for tick in left:
        tick.done = True
    queue._waiting.extend(left)
    ticks = [WaitingTick({}, {}, lambda: None) for _ in range(40)]
    threads = [Thread(target=lambda part=ticks[i::4]: [queue.run(tick) for tick in part], daemon=True) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(map(id, committed)) == sorted(map(id, ticks))
    assert not queue._waiting


def test_an_interrupt_at_any_step_of_a_tick_lets_others_tick() -> None:
    def commit(group: Sequence[WaitingTick]) -> None:
        for each in group:
            each.done = True

    queue = TickQueue(RLock(), commit)

    def tick() -> None:
        queue._expected, queue._patience_s = 2, 0.001
        queue.run(WaitingTick({}, {}, lambda: None))

    def check() -> None:
        thread = Thread(target=tick, daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()

    assert interrupted_everywhere(tick, check) > 20


def test_a_thread_that_is_interrupted_twice_leaves_no_tick_for_which_others_wait() -> None:
    """The second time while it waits for the lock, as where it is held for a long commit."""

    class Interrupting:
        armed = False

        def __enter__(self) -> None:
            if self.armed:
                raise KeyboardInterrupt

        def __exit__(self, *_: object) -> None:
            pass

        def acquire(self, timeout: float) -> None:
            self.armed = True
            raise KeyboardInterrupt

    def commit(group: Sequence[WaitingTick]) -> None:
        for each in group:
            each.done = True

    lock: Any = Interrupting()
    queue, before, tick = TickQueue(lock, commit), WaitingTick({}, {}, lambda: None), WaitingTick({}, {}, lambda: None)
    queue._waiting.append(before)  # of the thread that commits, without the tick of this one
    tick.wake = lock
    with pytest.raises(KeyboardInterrupt):
        queue.run(tick)
    lock.armed, before.done = False, True
    other = WaitingTick({}, {}, lambda: None)
    thread = Thread(target=queue.run, args=(other,), daemon=True)
    thread.start()
    thread.join(20)
    assert other.done and not tick.done
    assert not queue._waiting


def test_an_interrupt_at_any_step_of_waking_the_thread_that_folds(tmp_path: Path) -> None:
    session = _opened(tmp_path)
    runtime = logged_runtime(session)

    def end() -> None:
        thread = Thread(target=runtime._end_folding, daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
        runtime._closing.clear()
        runtime._folding, runtime._is_due, runtime._wake = None, False, SimpleQueue()

    def wake() -> None:
        runtime._fold_soon()
        runtime._is_due = False
        runtime._fold_soon()

    assert interrupted_everywhere(wake, end) > 10
    session.close()


def test_a_session_closes_in_the_moment_in_which_its_log_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = _opened(tmp_path)
    runtime = logged_runtime(session)
    waited, closing = Event(), runtime._closing

    class Late:
        """The thread that folds has waited long enough, but goes on only when `close` has set what wakes it."""

        def wait(self, seconds: float) -> bool:
            if waited.is_set():
                return closing.wait(seconds)
            waited.set()
            assert closing.wait(20)
            time.sleep(0.05)
            return False

        set, is_set = closing.set, closing.is_set

    monkeypatch.setattr(runtime, "_closing", Late())
    session.apply(_insert(1))
    assert waited.wait(20)
    closer = Thread(target=session.close, daemon=True)
    closer.start()
    closer.join(20)
    assert not closer.is_alive()


def test_a_closed_session_refuses_those_that_wait(tmp_path: Path) -> None:
    session = _opened(tmp_path)
    raised: list[BaseException] = []

    def apply() -> None:
        try:
            session.apply(_insert(1))
        except ClosedError as error:
            raised.append(error)

    with session._lock:
        thread = Thread(target=apply)
        thread.start()
        _until_waiting(session, 1)
        session.close()
    thread.join(30)
    assert len(raised) == 1


@pytest.mark.parametrize("shards", [1, 3])
def test_many_threads_leave_what_one_would(tmp_path: Path, shards: int) -> None:
    """Each thread owns its keys, defines and reads views too; the order of the epochs is the order of the changes."""
    session = _opened(tmp_path, shards=shards)
    owned: list[dict[int, Change]] = [{} for _ in range(6)]
    stop = Event()

    def work(number: int) -> None:
        rng = random.Random(number)
        for _ in range(25):
            id = 10 * rng.randrange(8) + number
            row = {"id": id, "shop": rng.choice("abc"), "amount": rng.randrange(3)}
            try:
                if id in owned[number] and rng.random() < 0.4:
                    session.apply({"sales": [{"_op": "delete", **owned[number].pop(id)}]})
                else:
                    session.apply({"sales": [{"_op": "insert" if rng.random() < 0.3 else "upsert", **row}]})
                    owned[number][id] = row
            except DelticError:
                assert row["amount"] == 0 or id in owned[number]

    def define() -> None:
        while not stop.is_set():
            session.sql("CREATE MATERIALIZED VIEW most AS SELECT max(amount) AS most FROM sales")
            assert len(session.view("most").rows()) == 1
            session.sql("DROP VIEW most")

    threads = [Thread(target=work, args=(number,)) for number in range(6)]
    definer = Thread(target=define)
    for thread in (*threads, definer):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    definer.join()
    rows = [row for rows in owned for row in rows.values()]
    with deltic.Session() as memory:
        memory.sql(SCRIPT)
        memory.apply({"sales": [{"_op": "insert", **row} for row in rows]})
        expected = [sorted(map(repr, memory.view(view).rows())) for view in ("totals", "inverses")]
    for _ in range(2):
        assert [sorted(map(repr, session.view(view).rows())) for view in ("totals", "inverses")] == expected
        abandon(logged_runtime(session))
        session = _opened(tmp_path, shards=shards)
    session.close()
