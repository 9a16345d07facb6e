"""Merges on a thread of their own: batches are those of a spine without it, step by step, and errors are the tick's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from weakref import ref

import numpy as np
import pytest

from deltic.errors import WeightOverflow
from deltic.trace import levels
from deltic.trace.background import Background
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.merge import EVERYTHING, LAG, Merge
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from waiting import wait_until

HIGH = 2**63 - 1
PATIENCE_S = 20.0


@pytest.fixture
def background() -> Background:
    made = Background()
    made.enabled = True
    return made


def appends(sizes: list[int], columns: int = 2) -> Iterator[Batch]:
    rng = np.random.default_rng(len(sizes))
    for size in sizes:
        words = [rng.integers(0, 40_000, size) for _ in range(columns)]
        yield consolidate(Rows(words, [rng.choice([-1, 1, 2], size)]))


def wait(merge: Merge, read: int = EVERYTHING) -> None:
    """Until the thread has read so many rows of the merge, or is done with it."""
    wait_until(lambda: merge.read >= read or merge.done)


@pytest.mark.parametrize("sizes", [[3000] * 80, [20_000] * 30, [700, 9000, 40, 30_000] * 12, [100_000, *[1200] * 120]])
def test_batches_are_those_without_the_thread(sizes: list[int], background: Background) -> None:
    alone = helped = Spine(2, 1)
    most = 0
    for number, batch in enumerate(appends(sizes)):
        alone, helped = alone.appended(batch), helped.appended(batch)
        background.offer(helped.merges)
        most = max(most, sum(merge.shared for merge in helped.merges))
        if number % 7 == 0:
            for merge in helped.merges:
                if merge.shared:
                    wait(merge)
        assert [batch.length for batch in helped.batches] == [batch.length for batch in alone.batches]
    assert most
    left, right = helped.scan(Counters()), alone.scan(Counters())
    assert [column.tolist() for column in (*left.columns, *left.weights)] == [
        column.tolist() for column in (*right.columns, *right.weights)
    ]


def test_the_thread_reads_ahead_of_what_is_allowed(background: Background) -> None:
    first, second = appends([60_000, 50_000])
    merge = Merge((first, second))
    background.offer([merge])
    wait(merge)
    assert merge.read == merge.cost == first.length + second.length
    assert merge.allow(merge.cost - 1) == 0  # it is done when as much was allowed, whoever has read it
    assert merge.allow(5) == 5


def test_a_tick_reads_what_the_thread_lags_behind() -> None:
    merge = Merge(tuple(appends([200_000, 200_000])))
    merge.shared = True  # with a thread that never comes
    assert merge.allow(LAG) == merge.allow(LAG) == 0
    assert merge.read == 0
    assert merge.allow(1) == 0
    assert LAG <= merge.read <= LAG + levels.BASE
    assert merge.allow(EVERYTHING) >= 1
    assert merge.result().length


def test_small_merges_and_merges_without_a_second_processor_are_left_to_ticks(background: Background) -> None:
    small, large = Merge(tuple(appends([900, 900]))), Merge(tuple(appends([9000, 9000])))
    background.offer([small])
    background.enabled = False
    background.offer([large])
    assert not small.shared and not large.shared


def test_batches_are_those_without_the_thread_if_sums_of_some_leave_64_bits(background: Background) -> None:
    alone = helped = Spine(1, 1)
    single = total = 0
    rng = np.random.default_rng(5)
    for number in range(61):
        weight = -(2**62) if total > 0 else 2**62 if total == -(2**63) else int(rng.choice([-(2**62), 2**62]))
        total += weight
        batch = consolidate(Rows([np.arange(9000)], [np.append(np.ones(8999, np.int64), weight)]))
        alone, helped = alone.appended(batch), helped.appended(batch)
        background.offer(helped.merges)
        if number % 7 == 0:
            for merge in helped.merges:
                if merge.shared:
                    wait(merge)
        assert [len(each) for each in helped.batches] == [len(each) for each in alone.batches]
        single += len(alone.batches) == 1
    assert single > 2
    assert alone.scan(Counters()).weights[0].tolist() == [*[61] * 8999, total]


def test_an_overflow_is_raised_in_the_tick(background: Background) -> None:
    rows = [np.arange(5000)]
    merge = Merge([Batch.trusted(rows, [np.full(5000, HIGH)]) for _ in range(2)])
    background.offer([merge])
    (other,) = [Merge(tuple(appends([9000, 9000])))]
    background.offer([other])
    wait(other)
    assert other.read == other.cost  # the thread has gone on
    assert merge.allow(EVERYTHING) >= 1
    for _ in range(2):
        with pytest.raises(WeightOverflow, match="merging batches"):
            merge.result()


def test_merges_of_a_session_that_ends_are_dropped(background: Background) -> None:
    merge, last = Merge(tuple(appends([300_000, 300_000]))), Merge(tuple(appends([9000, 9000])))
    gone = ref(merge)
    background.offer([merge, last])
    del merge
    wait(last)
    wait_until(lambda: gone() is None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_goes_on_with_whole_chunks(background: Background) -> None:
    batches = list(appends([400_000, 400_000], columns=3))
    expected = Merge(batches)
    expected.work(EVERYTHING)
    for _ in range(3):
        merge = Merge(batches)
        background.offer([merge])
        wait(merge, 1)
        child = os.fork()
        if not child:
            code = 1
            signal.alarm(int(PATIENCE_S))
            try:
                merge.allow(EVERYTHING)
                after = Merge(batches[:1] * 2)
                background.offer([after])
                wait(after)
                same = all((one == other).all() for one, other in zip(merge.result().columns, expected.result().columns, strict=True))
                code = 0 if same and after.read == after.cost else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_that_is_interrupted_waits_for_the_end_of_the_chunk_too() -> None:
    program = """
import os, signal, sys, threading, time
from deltic.trace.background import Background

background, begun, ended = Background(), threading.Event(), []

def chunk():
    with background._working:
        begun.set()
        time.sleep(0.3)
        ended.append(True)

thread = threading.Thread(target=chunk)
thread.start()
begun.wait()
threading.Timer(0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
signal.signal(signal.SIGINT, signal.default_int_handler)
child = os.fork()
if not child:
    with background._working:
        os._exit(0 if ended else 1)
thread.join()
with background._working:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "unlocked lock" not in done.stderr and "KeyboardInterrupt" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_locks_of_the_process_are_free_in_a_child() -> None:
    program = """
import os, signal, sys, threading
import deltic
from deltic.plan import node
from deltic.trace import batch, spine

def tick():
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        session.apply({"t": [{"a": 1, "_weight": 2}]})
        assert session.view("v").rows() == [{"a": 1, "n": 2}]

tick()
held, done = threading.Event(), threading.Event()

def hold():
    with batch._INDEXING, spine._COUNTING, node._lock:
        held.set()
        done.wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    tick()
    os._exit(0)
done.set()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=3 * PATIENCE_S)
    assert done.returncode == 0, done.stderr
