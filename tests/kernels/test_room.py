"""Room for large arrays: what is released is lent again, up to a share, and never while an array over it lives."""

from __future__ import annotations

import mmap
import os
import sys
import warnings
from contextlib import suppress
from threading import Thread
from typing import Any

import numpy as np
import pytest

from deltic.kernels import room
from deltic.kernels.room import LARGE_BYTES, PAGE, Room, fresh, zeros
from deltic.kernels.table import start

LARGE = LARGE_BYTES // 8
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mappings are resized on Linux alone")


def test_a_released_mapping_is_lent_again_cut_or_extended() -> None:
    lender = Room()
    first, used = lender.lend(LARGE)
    assert not used and not first.any() and first.dtype == np.int64
    first[:] = 7
    del first
    shorter, used = lender.lend(LARGE - 1000)
    assert used == LARGE - 1000 and (shorter == 7).all()
    del shorter
    longer, used = lender.lend(2 * LARGE)
    assert LARGE - 1000 <= used < LARGE and (longer[: LARGE - 1000] == 7).all() and not longer[used:].any()
    assert start(longer) % PAGE == 0


def test_what_is_held_is_lent_to_no_other() -> None:
    lender = Room()
    whole, _ = lender.lend(3 * LARGE)
    part = whole[LARGE : 2 * LARGE].reshape(2, -1)
    whole[:] = 5
    del whole
    others = [lender.lend(LARGE)[0] for _ in range(3)]
    for each in others:
        each[:] = 1
    assert (part == 5).all()


def test_as_much_is_kept_as_a_share_of_what_is_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "KEPT_BYTES", LARGE_BYTES)
    monkeypatch.setattr(room, "KEPT_RECENT", 0)
    lender = Room()
    lent = [lender.lend(LARGE)[0] for _ in range(40)]
    del lent[:24]
    held, _ = lender.lend(PAGE // 8)
    assert list(map(len, lender._kept)) == [LARGE_BYTES] * 2 and lender._lent_bytes == 16 * LARGE_BYTES + PAGE
    lender.lend(100 * LARGE)
    again, _ = lender.lend(PAGE // 8)
    assert list(map(len, lender._kept)) == [2 * LARGE_BYTES]
    del lent, held, again
    _, used = lender.lend(LARGE)
    assert used and lender._lent_bytes == LARGE_BYTES and sum(map(len, lender._kept)) < LARGE_BYTES


def test_what_the_last_loans_needed_at_a_time_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "KEPT_BYTES", LARGE_BYTES)
    monkeypatch.setattr(room, "KEPT_RECENT", 10 * LARGE_BYTES)
    lender = Room()
    for lent, kept in (8, 8), (20, 10):
        for _ in range(3):
            together = [lender.lend(LARGE)[0] for _ in range(lent)]
            del together
            held, _ = lender.lend(PAGE // 8)
            assert (kept - 1) * LARGE_BYTES < sum(map(len, lender._kept)) <= kept * LARGE_BYTES
            del held
    for _ in range(2 * room.RECENT_LOANS):
        lender.lend(PAGE // 8)
    assert sum(map(len, lender._kept)) <= LARGE_BYTES


def test_what_is_kept_for_large_ticks_is_released_after_the_last_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "KEPT_BYTES", LARGE_BYTES)
    monkeypatch.setattr(room, "IDLE_S", 0.0)
    lender = Room()
    lender.release_idle()
    together = [lender.lend(LARGE)[0] for _ in range(8)]
    del together
    held, _ = lender.lend(LARGE)
    assert sum(map(len, lender._kept)) == 7 * LARGE_BYTES
    lender.release_idle()
    assert sum(map(len, lender._kept)) == LARGE_BYTES and not held.any()
    lender.release_idle()


def test_a_small_array_takes_no_large_mapping() -> None:
    lender = Room()
    lender.lend(8 * LARGE)
    assert not lender.lend(LARGE)[1]
    assert lender.lend(4 * LARGE)[1]


def test_zeros_are_zeros_in_used_memory() -> None:
    for _ in range(3):
        words = zeros(LARGE)
        assert not words.any()
        words[:] = -1
        del words
        fresh(LARGE)[:] = -1


def test_threads_share_it() -> None:
    lender, failed = Room(), list[int]()

    def use(number: int) -> None:
        rng = np.random.default_rng(number)
        held: list[np.ndarray] = []
        for _ in range(200):
            words, _ = lender.lend(int(rng.integers(1, 4 * PAGE)))
            words[:] = number
            held.append(words)
            if len(held) > 5:
                del held[int(rng.integers(5))]
            failed.extend(number for each in held if not (each == number).all())

    threads = [Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_no_memory_is_an_error_once_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*arguments: int, **options: int) -> mmap.mmap:
        if lender._kept or not permitted:
            raise OSError("Cannot allocate memory")
        return opened(*arguments, **options)

    opened, permitted = mmap.mmap, True
    lender = Room()
    lender.lend(8 * LARGE)
    monkeypatch.setattr("deltic.kernels.room.mmap.mmap", refuses)
    held, used = lender.lend(LARGE)
    assert not used and not lender._kept
    permitted = False
    with pytest.raises(MemoryError, match="no room for"):
        lender.lend(LARGE)
    del held
    assert lender.lend(LARGE)[1]


@pytest.mark.parametrize("interrupt", range(1, 60))
def test_an_interrupt_at_any_line_leaves_it_usable(interrupt: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "KEPT_BYTES", LARGE_BYTES)
    lender, lines = Room(), 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal lines
        lines += event == "line" and frame.f_code.co_filename == room.__file__
        if lines == interrupt:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    with suppress(KeyboardInterrupt):
        held = [lender.lend(LARGE)[0] for _ in range(3)]
        del held[1:]
        sys.settrace(trace)
        lender.lend(2 * LARGE)
        lender.lend(LARGE)
    sys.settrace(None)
    for length in (LARGE, 3 * LARGE, 2 * LARGE, LARGE):
        words, used = lender.lend(length)
        assert not words[used:].any()
        words[:] = 1


def test_a_signal_handler_may_lend_too() -> None:
    lender = Room()
    with lender._lock:
        assert lender.lend(LARGE)[0].size == LARGE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_of_a_fork_has_room_of_its_own() -> None:
    lender = Room()
    lender.lend(LARGE)[0][:] = 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with lender._lock:  # as held by another thread
            child = os.fork()
            if not child:
                words, _ = lender.lend(LARGE)
                words[:] = 4
                os._exit(int((words == 4).all()))
    assert os.waitpid(child, 0)[1] >> 8 == 1
    assert (lender.lend(LARGE)[0] == 3).all()
