"""Waits that Ctrl-C, another signal handler, or a fork can make neither endless nor another error."""

from __future__ import annotations

import os
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

L = TypeVar("L")


class ReentrantEvent:
    """As threading.Event, which a signal handler may set, and whose methods a handler may leave by an exception.

    A threading.Event holds a lock while it is set or cleared, and while a wait begins. A handler that runs just then and sets it waits for
    its own thread; if it raises, as Ctrl-C does, the lock may stay locked, so that all others wait. What is called here is atomic.
    """

    __slots__ = ("_made", "_wake")

    def __init__(self) -> None:
        self._made = False
        self._wake: SimpleQueue[None] = SimpleQueue()

    def is_set(self) -> bool:
        return self._made

    def set(self) -> None:
        self._made = True
        if self._wake.empty():  # else there is what wakes the next one that waits
            self._wake.put(None)

    def clear(self) -> None:
        """While no thread waits. A `set` at the same time may be lost, or end a wait: look after this, and again after the wait."""
        self._made, self._wake = False, SimpleQueue()

    def wait(self, seconds: float | None = None) -> bool:
        """Returns when it is set, or after `seconds`; whether it is set."""
        if not self._made:
            try:
                with suppress(Empty):
                    self._wake.get(timeout=seconds)
            finally:
                if self._made:
                    self._wake.put(None)  # type: ignore[unreachable]  # another thread has set it; for the next one that waits
        return self._made


def start(thread: Thread) -> None:
    """Starts a thread; it may run, or not, if this is interrupted. Raises RuntimeError if there may be no more threads."""
    try:
        thread.start()
    except RuntimeError as error:
        if isinstance(error.__context__, KeyboardInterrupt):  # of the wait in it, which then releases a lock twice
            raise error.__context__ from None
        raise


def free_after_fork(lock: L) -> L:
    """A Lock or RLock of the whole process, which the child of a fork finds free: it has no other thread that could release it."""
    if hasattr(os, "register_at_fork"):  # not on Windows
        kind: Any = lock
        os.register_at_fork(after_in_child=kind._at_fork_reinit)  # as the standard library does
    return lock
