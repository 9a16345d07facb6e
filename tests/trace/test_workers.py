from __future__ import annotations

import signal
import sys
import threading
import time
from threading import Event

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltic.kernels.build import CHECKED
from deltic.kernels.room import LARGE_BYTES, fresh
from deltic.reentrant import ReentrantEvent
from deltic.schema import BIGINT, DOUBLE, STRING, Field, Schema, TableSchema
from deltic.trace import workers as module
from deltic.trace.identity import Identity
from deltic.trace.intake import intake_of
from deltic.trace.partition import partition
from deltic.trace.rows import Rows
from deltic.trace.strings import StringTable
from deltic.trace.workers import Workers
from interruptions import interrupted_everywhere


@pytest.fixture(autouse=True, scope="module")
def divided() -> object:
    patch = pytest.MonkeyPatch()
    patch.setattr(module, "DIVIDED_ROWS", 1)
    yield patch
    patch.undo()


def test_results_are_in_order() -> None:
    def work(item: int, _: ReentrantEvent) -> tuple[int, str]:
        time.sleep(0.01 * (3 - item))
        return item, threading.current_thread().name

    results = Workers(3).map(work, range(4))
    assert [item for item, _ in results] == [0, 1, 2, 3]
    assert {name for _, name in results} == {module.THREAD}
    assert {name for _, name in Workers(1).map(work, range(2))} == {threading.current_thread().name}


def test_the_error_of_the_first_item_is_raised() -> None:
    both = threading.Barrier(2)

    def work(item: int, _: ReentrantEvent) -> int:
        if item < 2:
            both.wait(5)
            time.sleep(0.05 * (1 - item))
            raise ValueError(item)
        return item

    with pytest.raises(ValueError, match=r"^0$"):
        Workers(2).map(work, range(4))


def test_items_wait_for_those_before_them() -> None:
    after = [(), (), (0,), (0, 1), (2,), (3, 4), ()]
    ended: list[int] = []

    def work(item: int, _: ReentrantEvent) -> int:
        assert ended.count(item) == 0 and set(after[item]) <= set(ended)
        time.sleep(0.002 * (item % 3))
        ended.append(item)
        return -item

    for threads in (1, 2, 5):
        ended.clear()
        assert Workers(threads).map(work, range(7), after) == [-item for item in range(7)]


def test_items_after_a_failed_one_are_not_begun_and_those_before_it_are() -> None:
    begun: list[int] = []
    later = Event()

    def work(item: int, _: ReentrantEvent) -> int:
        begun.append(item)
        if item == 3:
            later.set()
        if item == 0:
            assert later.wait(5)
        if item in (2, 3):
            raise ValueError(item)
        return item

    after = [(), (0,), (1,), (), (2,), ()]  # 3 fails while 0 is at work; then 2 fails, which comes first
    with pytest.raises(ValueError, match=r"^2$"):
        Workers(2).map(work, range(6), after)
    assert sorted(begun) == [0, 1, 2, 3]


def test_after_an_interrupt_nobody_works() -> None:
    begun, ended = [], []

    def work(item: int, stop: ReentrantEvent) -> None:
        begun.append(item)
        if item == 0:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        ended.append(stop.wait(5))

    with pytest.raises(KeyboardInterrupt):
        Workers(2).map(work, range(50))
    assert len(begun) == len(ended) <= 2
    assert all(ended)


def test_a_second_interrupt_waits_for_those_who_work_too() -> None:
    begun, ended = [], []

    def work(item: int, stop: ReentrantEvent) -> None:
        begun.append(item)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        ended.append(stop.wait(5))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.1)
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        Workers(2).map(work, range(50))
    assert 2 * len(begun) == len(ended)
    assert all(ended)


@pytest.mark.parametrize("after", [[()] * 4, [(), (), (0,), (1, 2)]], ids=["independent", "ordered"])
def test_an_interrupt_at_any_step_is_raised_when_nobody_works(after: list[tuple[int, ...]]) -> None:
    working = list[int]()

    def work(item: int, _: ReentrantEvent) -> int:
        working.append(item)
        time.sleep(0.001)
        working.remove(item)
        return item

    def check() -> None:
        assert not working

    assert interrupted_everywhere(lambda: Workers(2).map(work, range(4), after), check) > 50


def test_a_wait_that_releases_its_lock_twice_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: threading.Thread) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("release unlocked lock")

    monkeypatch.setattr(threading.Thread, "start", broken)
    with pytest.raises(KeyboardInterrupt):
        Workers(2).map(lambda item, _: item, range(5))


def test_without_more_threads_the_caller_works(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert Workers(2).map(lambda item, _: item * item, range(5)) == [0, 1, 4, 9, 16]


WORDS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.tuples(WORDS, st.integers(-3, 3)), max_size=60), st.integers(1, 5), st.integers(1, 4))
def test_rows_are_partitioned_as_by_one_thread(rows: list[tuple[int, int]], shards: int, threads: int) -> None:
    columns = [np.array([row[c] for row in rows], np.int64) for c in range(2)]
    whole = Rows(columns, [np.arange(len(rows))])
    one, several = partition(whole, [1], shards), partition(whole, [1], shards, Workers(threads))
    for left, right in zip(one, several, strict=True):
        assert [c.tolist() for c in (*left.columns, *left.weights)] == [c.tolist() for c in (*right.columns, *right.weights)]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is given back on Linux alone")
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_are_moved_leave_no_memory(threads: int) -> None:
    n = LARGE_BYTES // 8
    block = fresh(3 * n)
    block[:] = np.random.default_rng(4).integers(1, 1 << 40, 3 * n)
    columns = block.reshape(3, n)
    copied = [part.columns[0].copy() for part in partition(Rows(columns[:2].copy(), columns[2:].copy()), [1], 3)]
    moved = partition(Rows(columns[:2], columns[2:]), [1], 3, Workers(threads), moves=True)
    assert all((part.columns[0] == left).all() for part, left in zip(moved, copied, strict=True))
    assert np.count_nonzero(block) < 0.05 * len(block)  # what is left are the pages at the ends of each part


@pytest.mark.skipif(CHECKED, reason="frames are not copied by the kernel in the checked build")
@pytest.mark.parametrize("chunks", [1, 3])
def test_frames_are_copied_as_by_one_thread(chunks: int) -> None:
    schema = Schema((Field("a", BIGINT, False), Field("b", BIGINT), Field("c", STRING), Field("d", DOUBLE)))
    frames = intake_of(TableSchema("t", schema, (0,))).frames
    part = pa.table({"a": range(10), "b": [None, 2] * 5, "c": ["x", None, "y", "z", "x"] * 2, "d": [0.5, None] * 5})
    frame, identity = pa.concat_tables([part.cast(schema.arrow)] * chunks), Identity.drawn()
    copied = [frames.rows(frame, 0, 7, StringTable(identity), None, Workers(threads)) for threads in (1, 2, 7)]
    words = [[column.tolist() for column in (*rows.columns, *rows.weights)] for rows in copied]
    assert words[0] == words[1] == words[2]
