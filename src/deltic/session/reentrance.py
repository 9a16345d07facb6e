"""Reentrance: calls of a session by functions of users that it calls itself while it commits.

A tick is computed from the last commit, and definitions are made from the last ones; what a function commits meanwhile would be lost, or
counted twice. The session's lock does not prevent that: it lets its own thread through, and a thread among which a tick is divided would
wait for it for ever. So functions may read the last commit, and nothing else. Subscribers are called after the commit, and may do anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock, get_ident
from typing import Final, ParamSpec, TypeVar

from deltic.errors import ReentrantCall

P = ParamSpec("P")
T = TypeVar("T")


class _Calling:
    """A commit that may be calling functions. lock: of its session. active: until it has called them."""

    __slots__ = ("active", "lock", "thread")

    def __init__(self, lock: RLock) -> None:
        self.lock, self.thread, self.active = lock, get_ident(), True

    def prevents(self, lock: RLock, thread: int) -> bool:
        """Whether a thread that this commit has called, or that works for it, must not commit.

        An interrupt may have left it active: then its thread no longer holds the lock.
        """
        if not self.active or self.lock is not lock:
            return False
        return thread != self.thread or lock._is_owned()  # type: ignore[attr-defined]  # not in the stubs


_CALLING: Final[ContextVar[tuple[_Calling, ...]]] = ContextVar("deltic_calling", default=())
"""Those by which this thread is called; of several sessions, if functions of one tick another. Threads of a tick inherit it."""


def calling(lock: RLock, run: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `run`, which may call functions of users during a commit, under the lock."""
    call, before = _Calling(lock), _CALLING.get()
    try:
        _CALLING.set((*before, call))
        return run(*args, **kwargs)
    finally:
        call.active = False
        _CALLING.set(before)


def check_not_called(lock: RLock) -> None:
    """Raises ReentrantCall in a function that the session calls while it commits. lock: the session's."""
    if _CALLING.get() and is_called(lock):
        raise ReentrantCall(
            "a function that the session calls while it commits has called the session",
            expected="at most reads of views, tables and queries as of the last commit",
            remedy="commit once the call of the session has returned, or in a subscriber",
        )


def is_called(lock: RLock) -> bool:
    """Whether this thread is in a `calling` of the lock, or works for one that is."""
    calls = _CALLING.get()
    return bool(calls) and any(call.prevents(lock, get_ident()) for call in calls)


@contextmanager
def held(lock: RLock) -> Iterator[None]:
    """The session's lock, for a read that needs it. Raises ReentrantCall where it would wait for itself: in another thread of a commit."""
    if not lock._is_owned():  # type: ignore[attr-defined]  # not in the stubs
        check_not_called(lock)
    with lock:
        yield
