"""Changes that are being gathered. Their strings are nowhere else yet, so what no row needs is freed only while there are none.

Threads that commit again and again may overlap without end. So once memory is to be freed, a thread that would begin waits for those that
have begun, and the last of them frees it. The wait is bounded, since what one of them does may take long, or depend on this thread; after
one in vain, the next comes after SHARE times its length. A thread that gathers changes already, or holds the session's lock, never waits.
"""

from __future__ import annotations

from threading import Lock, RLock, get_ident
from time import monotonic
from typing import Final
from weakref import ReferenceType, ref

from deltic.reentrant import ReentrantEvent
from deltic.runtimes import Runtime
from deltic.session.transaction import PendingChanges

FIRST_S: Final = 0.05
"""In seconds, the first wait; it doubles after each one in vain."""
LONGEST_S: Final = 0.4
SHARE: Final = 20


class Gathering:
    """lock: the session's, under which memory is freed."""

    def __init__(self, runtime: Runtime, lock: RLock) -> None:
        self._runtime, self._session_lock = runtime, lock
        self._lock = Lock()
        self._open_changes: dict[int, tuple[int, ReferenceType[PendingChanges]]] = {}
        """By id(), the thread and the changes that are not committed yet, unless they were abandoned."""
        self._freed = ReentrantEvent()
        """Set once memory has been freed, for those that wait; then replaced."""
        self._wait_s, self._next = FIRST_S, float("-inf")
        """How long the next wait is, and when it may come."""

    def begin(self, changes: PendingChanges) -> PendingChanges:
        """The changes, which have no rows yet; they are gathered until `end`, or until nothing refers to them."""
        freed = self._freed
        if self._open_changes and self._runtime.trim_is_due:
            self._give_way(freed)
        with self._lock:
            open_changes, key = self._open_changes, id(changes)
            open_changes[key] = get_ident(), ref(changes, lambda _: open_changes.pop(key, None))
            return changes

    def end(self, changes: PendingChanges) -> None:
        """The changes are committed, or have failed. Frees memory if no others are being gathered."""
        with self._lock:
            self._open_changes.pop(id(changes), None)
            if self._open_changes:
                return
        if self._runtime.trim_is_due:
            self._trim()

    def _give_way(self, freed: ReentrantEvent) -> None:
        thread, start = get_ident(), monotonic()
        if start < self._next or any(owner == thread for owner, _ in list(self._open_changes.values())):
            return
        if self._session_lock._is_owned():  # type: ignore[attr-defined]  # not in the stubs; those that have begun wait for it
            return
        if not freed.wait(self._wait_s):
            if self._next <= start:  # else another thread has waited in vain at the same time
                self._next = monotonic() + SHARE * self._wait_s
                self._wait_s = min(2 * self._wait_s, LONGEST_S)
            if not self._open_changes:  # the last ones failed
                self._trim()

    def _trim(self) -> None:
        with self._session_lock, self._lock:
            if self._open_changes:
                return
            freed, self._freed = self._freed, ReentrantEvent()
            try:
                self._runtime.trim()
                self._wait_s = FIRST_S
            finally:
                freed.set()
