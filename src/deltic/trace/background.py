"""A thread that continues running merges between and beside ticks, one for the process.

What always holds: it only advances merges. A spine's batches are the same with it and without it, and a tick that needs a merge does what
the thread has not done yet (`Merge.allow`). What it is offered it holds weakly: a session that ends takes its merges with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from queue import SimpleQueue
from threading import RLock, Thread
from typing import Final
from weakref import ReferenceType, ref

from deltic.trace.merge import Merge
from deltic.trace.workers import processors

THREAD: Final = "deltic-merge"
CHUNK: Final = 1 << 15
"""Rows read at a time: as long may a tick wait that needs the merge."""
LEAST: Final = 1 << 12
"""Merges that read fewer rows are left to the tick: waking the thread would take as long."""


class Background:
    """Merges in turn, a chunk of each. enabled: False leaves all to the ticks, as where there is one processor only."""

    def __init__(self) -> None:
        self.enabled = processors() > 1
        self._working = RLock()
        """Held during a chunk, and while the process forks: a child must not inherit half of one."""
        self._reset()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(before=self._fork, after_in_parent=self._working.release, after_in_child=self._forked)

    def _reset(self) -> None:
        self._offered: SimpleQueue[ReferenceType[Merge]] = SimpleQueue()
        self._thread: Thread | None = None

    def _fork(self) -> None:
        """Waits for the end of the chunk, also if Ctrl-C comes meanwhile: Python forks whatever is raised here, and only prints it."""
        raised: BaseException | None = None
        while not self._working._is_owned():  # type: ignore[attr-defined]  # not in the stubs
            try:
                self._working.acquire()
            except BaseException as error:
                raised = error
        if raised is not None:
            raise raised

    def _forked(self) -> None:
        """A child has no threads but the one that forked."""
        self._reset()
        self._working.release()

    def offer(self, merges: Iterable[Merge]) -> None:
        """The thread goes on with these merges, unless it does so already."""
        for merge in merges:
            if not merge.shared and self.enabled and merge.cost >= LEAST:
                merge.shared = True
                self._offered.put(ref(merge))
                self._start()

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._run, args=(self._offered,), name=THREAD, daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # there are too many threads, or the process ends
                self.enabled = False

    def _run(self, offered: SimpleQueue[ReferenceType[Merge]]) -> None:
        while True:
            reference = offered.get()
            if not self._advanced(reference):
                offered.put(reference)

    def _advanced(self, reference: ReferenceType[Merge]) -> bool:
        """Reads a chunk; whether there is nothing left to do. An error is that of the tick which needs the merge."""
        with self._working:
            merge = reference()
            try:
                return merge is None or merge.work(CHUNK) > 0
            except MemoryError:
                return True


background: Final = Background()
