"""An interrupted tick or definition has happened as a whole or not at all, and the next one is exact."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import deltic
import interruptions
from deltic.runtimes.durable import Durable
from deltic.runtimes.durable.interrupts import uninterrupted
from deltic.runtimes.durable.version import DurableVersion
from deltic.storage.manifest import Change
from interruptions import Broken, raising
from parts import slow

Finish = Callable[[Durable, DurableVersion, Change], None]


@pytest.fixture(autouse=True)
def merges_in_every_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.trace.levels.BASE", 16)
    monkeypatch.setattr("deltic.trace.levels.LEAST_FUEL", 1)
    monkeypatch.setattr("deltic.trace.levels.FUEL", 1)


def at_line(kind: type[BaseException], line: int, lines: list[int]) -> Callable[[Callable[[], None]], bool]:
    """Interrupts at a line; adds the number of lines that ran to `lines`."""

    def breaking(action: Callable[[], None]) -> bool:
        try:
            with raising(kind, line) as seen:
                action()
        except kind:
            return True
        finally:
            lines.append(seen[0])
        return False

    return breaking


THOROUGH = [pytest.param(kind, shards, 3, marks=pytest.mark.slow) for kind in (KeyboardInterrupt, MemoryError) for shards in (1, 3)]


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    """Restores that of Ctrl-C: an error at a line may come where Ctrl-C is deferred, which a real one cannot."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def _break_ticks(broken: Broken, before: int, rows: int, kind: type[BaseException], stride: int) -> None:
    """Runs some ticks, then one that is broken at each `stride`-th line."""
    for _ in range(before):
        broken.tick(rows, lambda action: bool(action()))
    line, lines = stride, list[int]()
    while broken.tick(rows, at_line(kind, line, lines)):
        line += stride
    assert len(lines) > 4


@pytest.mark.parametrize(("kind", "shards", "stride"), [(KeyboardInterrupt, 1, 401), (MemoryError, 3, 1499), *THOROUGH])
def test_a_tick_interrupted_at_any_line_happens_as_a_whole_or_not(kind: type[BaseException], shards: int, stride: int) -> None:
    with deltic.Session(shards=shards) as session:
        _break_ticks(Broken(session, random.Random(shards)), 8, 9, kind, stride)


@pytest.mark.parametrize(("kind", "stride"), [(KeyboardInterrupt, 997), *slow((KeyboardInterrupt, 7), (MemoryError, 7))])
def test_a_tick_on_threads_interrupted_at_any_line_happens_as_a_whole_or_not(
    monkeypatch: pytest.MonkeyPatch, kind: type[BaseException], stride: int
) -> None:
    monkeypatch.setattr("deltic.trace.workers.DIVIDED_ROWS", 1)
    with deltic.Session(shards=3, threads=2) as session:
        _break_ticks(Broken(session, random.Random(stride)), 8, 9, kind, stride)


@pytest.mark.parametrize(("kind", "stride"), [(KeyboardInterrupt, 173), *slow((KeyboardInterrupt, 7), (MemoryError, 7))])
def test_a_logged_tick_interrupted_at_any_line_is_real_or_not(tmp_path: Path, kind: type[BaseException], stride: int) -> None:
    with deltic.Session(state=tmp_path, commit_log=True) as session:
        _break_ticks(Broken(session, random.Random(stride)), 3, 5, kind, stride)


@pytest.mark.parametrize("stride", [2003, *slow(41)])
def test_a_definition_interrupted_at_any_line_happens_as_a_whole_or_not(stride: int) -> None:
    with deltic.Session() as session:
        broken = Broken(session, random.Random(3))
        broken.tick(9, lambda action: bool(action()))
        line, lines = stride, list[int]()
        while broken.define(at_line(KeyboardInterrupt, line, lines)) or not broken.extra:
            line += stride
        assert len(lines) > 10


def alone(*arguments: str, **environment: str) -> int:
    """The report of a process of its own."""
    path = os.pathsep.join((str(Path(interruptions.__file__).parent), *sys.path))
    command = [sys.executable, interruptions.__file__, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path, **environment})
    assert not done.returncode, f"{arguments}: {done.stderr}"
    return int(done.stdout)


@pytest.mark.parametrize(("durable", "ticks"), [(True, 15), *slow((True, 40), (False, 40))])
def test_ctrl_c_at_any_moment_leaves_a_whole_epoch(tmp_path: Path, durable: bool, ticks: int) -> None:
    folder = [str(tmp_path / "state")] if durable else []
    assert alone("sigint", str(random.randrange(10**6)), str(ticks), *folder) > ticks // 4


@pytest.mark.parametrize("times", [2, *slow(40)])
def test_a_tick_without_memory_has_not_happened(times: int) -> None:
    assert alone("memory", str(random.randrange(10**6)), str(times), **interruptions.SYSTEM_MEMORY) == times


class InCommit:
    """Raises at a line of the next commit to a state folder; `committed` says whether each interrupted commit was real."""

    def __init__(self, session: deltic.Session, kind: type[BaseException]) -> None:
        self.session, self.kind, self.line = session, kind, 1
        self.committed: list[bool] = []

    def __call__(self, action: Callable[[], None]) -> bool:
        epoch = self.session.epoch
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Durable, "_finish", self.broken(Durable._finish))
                action()
        except self.kind:
            self.committed.append(self.session.epoch > epoch)
            return True
        return False

    def broken(self, finish: Finish) -> Finish:
        def broken(runtime: Durable, version: DurableVersion, change: Change) -> None:
            with raising(self.kind, self.line):
                finish(runtime, version, change)

        return broken


@pytest.mark.parametrize(
    ("kind", "shards", "stride"),
    [(MemoryError, 1, 131), *[pytest.param(*each.values[:2], 13, marks=pytest.mark.slow) for each in THOROUGH]],
)
def test_a_commit_to_a_folder_interrupted_at_any_line_is_real_or_not(
    tmp_path: Path, kind: type[BaseException], shards: int, stride: int
) -> None:
    state = str(tmp_path / "state")
    with deltic.Session(state=state, shards=shards) as session:
        broken, breaking = Broken(session, random.Random(shards)), InCommit(session, kind)
        while broken.tick(9, breaking):
            breaking.line += stride
        ticks = len(breaking.committed)
        assert {*breaking.committed} == {False, True} and ticks > 5
        breaking.line = 1
        while broken.define(breaking) or not broken.extra:
            breaking.line += 5 * stride
        assert {*breaking.committed[ticks:]} == {False, True}
        content = {name: session.view(name).rows() for name in session.views}
    assert {name: deltic.open(state).view(name).rows() for name in content} == content


def test_ctrl_c_waits_for_the_end_of_a_block_and_keeps_its_handler() -> None:
    before = signal.getsignal(signal.SIGINT)
    done = False
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done = True
    assert done and signal.getsignal(signal.SIGINT) is before
    with pytest.raises(ValueError, match="of the block"), uninterrupted():
        raise ValueError("of the block")
    assert signal.getsignal(signal.SIGINT) is before
    block = uninterrupted()
    block.__enter__()  # which the handler of another signal leaves by an exception, at its end
    assert signal.getsignal(signal.SIGINT) is not before
    del block
    assert signal.getsignal(signal.SIGINT) is before
