"""Background merges: an interrupt of the thread that starts and takes them leaves none of their threads waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from deltic.runtimes.durable import merges
from deltic.runtimes.durable.merges import Merged, Merger
from interruptions import interrupted_everywhere


@contextmanager
def merging() -> Iterator[None]:
    yield


@pytest.fixture
def merger(monkeypatch: pytest.MonkeyPatch) -> Iterator[Merger]:
    monkeypatch.setattr(merges, "large_merges", lambda manifest: [()])
    state: Any = SimpleNamespace(manifest=None, merging=merging)
    merger = Merger(state, lambda *_: [Merged((), None, None)])
    yield merger
    merger.close()


def test_an_interrupt_at_any_step_leaves_no_thread_waiting(merger: Merger) -> None:
    def use() -> None:
        merger.start()
        merger.take()
        merger.start()
        merger.take(wait=True)
        merger.release()

    def check() -> None:
        taken = list[Merged]()

        def again() -> None:
            merger.take(wait=True)
            merger.start()
            taken.extend(merger.take(wait=True))

        thread = Thread(target=again, daemon=True)
        thread.start()
        thread.join(20)
        assert len(taken) == 1

    assert interrupted_everywhere(use, check) > 50


def test_a_failed_merge_is_left_out(merger: Merger, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any) -> list[Merged]:
        raise OSError("no room")

    perform, merger._perform = merger._perform, fail
    merger.start()
    assert merger.take(wait=True) == []
    assert "a background merge of state failed" in caplog.text and "no room" in caplog.text
    merger._perform = perform
    merger.start()
    assert len(merger.take(wait=True)) == 1


def test_a_merge_that_no_thread_can_run_is_started_later(merger: Merger, caplog: pytest.LogCaptureFixture) -> None:
    with patch.object(Thread, "start", side_effect=RuntimeError("can't start new thread")):
        merger.start()
    assert "no background merge of state can be started yet: can't start new thread" in caplog.text
    assert merger.take(wait=True) == []
    merger.start()
    assert len(merger.take(wait=True)) == 1
