"""Pages that a process waited for are asked for together: which ones, and that answers do not depend on it."""

from __future__ import annotations

import mmap
from collections.abc import Callable

import numpy as np
import pytest

from deltic.storage.files import GUARDED_ROWS, DataFile
from deltic.trace import paging as module
from deltic.trace.counters import Counters
from deltic.trace.paging import MOST_PAGES, Paging, paging, prefetch
from deltic.trace.probe import probe
from deltic.trace.spine import Spine
from stored import batch_of

PAGE = mmap.PAGESIZE


class AdvisedMap:
    """Records what is asked for."""

    def __init__(self) -> None:
        self.advice: list[tuple[int, ...]] = []

    def madvise(self, *advice: int) -> None:
        self.advice.append(advice)


def test_pages_are_asked_for_once_and_neighbours_together() -> None:
    content = AdvisedMap()
    starts, ends = np.array([9 * PAGE, 10, 20, PAGE - 1, 4 * PAGE]), np.array([9 * PAGE + 8, 20, 30, PAGE + 1, 4 * PAGE])
    prefetch(content, starts, ends)  # type: ignore[arg-type]
    assert content.advice == [(mmap.MADV_WILLNEED, 0, 2 * PAGE), (mmap.MADV_WILLNEED, 9 * PAGE, PAGE)]


def test_nothing_is_asked_for_where_there_are_no_rows_or_too_many() -> None:
    content = AdvisedMap()
    prefetch(content, np.array([5]), np.array([5]))  # type: ignore[arg-type]
    assert content.advice == []
    prefetch(content, np.array([0]), np.array([MOST_PAGES * PAGE + 1]), alone=True)  # type: ignore[arg-type]
    assert content.advice == [(mmap.MADV_NORMAL,)]


def test_a_process_asks_for_some_time_after_it_waited_for_many_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    faults, now = [7], [100.0]
    monkeypatch.setattr(module, "_faults", lambda: faults[0])
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    observed = Paging()
    assert not observed.observe()
    faults[0] += module.MANY - 1
    assert not observed.observe()
    faults[0] += 1
    assert observed.observe()
    assert observed.observe()
    now[0] += module.REMEMBERED_S
    assert not observed.observe()
    for _ in range(3):  # a few each time, far from one another, are not many
        faults[0] += module.MANY // 2
        now[0] += 1.1 * module.REMEMBERED_S
        assert not observed.observe()


@pytest.mark.parametrize("waits", [False, True])
def test_answers_do_not_depend_on_it(root: str, store: Callable[..., tuple], monkeypatch: pytest.MonkeyPatch, waits: bool) -> None:
    rows = [(7 * i, i % 5, 1) for i in range(2 * GUARDED_ROWS)]
    ref, _ = store(batch_of(*rows))
    asked: list[int] = []
    monkeypatch.setattr("deltic.storage.files.prefetch", lambda content, starts, ends, alone=False: asked.append(len(starts)))
    monkeypatch.setattr(paging, "active", waits)
    monkeypatch.setattr(Paging, "observe", lambda self: self.active)
    spine = Spine.of(DataFile(root, ref).batch("a"))
    keys = np.array([0, 7 * 1000, 7 * 1000 + 1, 7 * (2 * GUARDED_ROWS - 1)])
    for _ in range(2):
        _, columns, weights = probe(spine, [keys], [1], Counters())
        found = list(zip(columns[0].tolist(), weights[0].tolist(), strict=True))
        assert found == [rows[0][1:], rows[1000][1:], rows[-1][1:]]
    assert bool(asked) == waits
