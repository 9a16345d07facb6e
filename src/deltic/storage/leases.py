"""Leases: a reader's claim that it still needs an epoch, so that no writer deletes the epoch's files.

A lease is an object in `leases/` that names an epoch and its expiry time by the reader's clock; readers renew it. Writers read leases only
before they delete, and remove expired ones. The clocks' difference must be much smaller than the length of a lease.

A lease that is shared was written while its epoch was readable, so that others may open epochs that it keeps.

A reader that needs its own epoch alone says so: then a fold of the commit log may leave out epochs after it.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import threading
import time
from threading import Lock
from typing import Final, NamedTuple

from deltic.errors import StateError
from deltic.reentrant import ReentrantEvent, start
from deltic.storage.folder import StateFolder
from deltic.storage.names import LEASES

LEASE_S: Final = 300.0
LEASE_THREAD: Final = "deltic-lease"
_RENEWALS: Final = 4
_LEASE: Final = re.compile(r"[0-9A-Za-z]+\.json")
_log = logging.getLogger(__name__)


class Lease:
    """Keeps `epoch` and all after it readable until `release`. A thread renews it four times per `length_s`.

    follows: whether folds must leave each epoch after it, too; without it they may leave some out, which are not readable then.

    In a process that was forked from the one that took it, `release` does nothing.
    """

    def __init__(self, folder: StateFolder, epoch: int, length_s: float = LEASE_S, *, follows: bool = True) -> None:
        """Raises StateError if it cannot be written, or no thread can be started."""
        self.epoch, self._follows = epoch, follows
        self._folder, self.length_s = folder, length_s
        self._name = f"{LEASES}/{secrets.token_hex(8)}.json"
        self._writing = Lock()
        """So that the thread does not write what `move` has replaced."""
        self._released = ReentrantEvent()
        self._shared, self._process = False, os.getpid()
        self._write()
        self._thread = threading.Thread(target=self._renew, name=LEASE_THREAD, daemon=True)
        try:
            start(self._thread)
        except BaseException as error:
            self._released.set()  # also for a thread that an interrupt has left running
            folder.delete([self._name])
            if not isinstance(error, RuntimeError):
                raise
            raise StateError(
                f"a lease of {folder.root} cannot be renewed: {error}", expected="a limit on threads that leaves room"
            ) from None

    def release(self) -> None:
        """Ends the lease; a second call does nothing."""
        if self._process == os.getpid() and not self._released.is_set():
            self._released.set()
            self._thread.join()
            self._folder.delete([self._name])

    def share(self) -> None:
        """Lets others rely on it; its epoch must have been readable after it was written. A failure is logged."""
        self._shared = True
        self._rewrite()

    def follow(self) -> None:
        """Lets folds that have not begun leave each epoch after it. Raises StateError if it cannot be written."""
        self._follows = True
        self._write()

    def move(self, epoch: int) -> None:
        """Keeps this epoch, which must be readable then, and all after it readable instead.

        Raises StateError if it cannot be written; then nothing has changed.
        """
        before, self.epoch = self.epoch, epoch
        try:
            self._write()
        except BaseException:
            self.epoch = before
            raise

    def leave(self) -> None:
        """Shares it, stops renewing, and lets it expire: others may still need its files."""
        self._released.set()
        self._thread.join()
        self.share()

    def _write(self) -> None:
        with self._writing:
            expires_us = time.time_ns() // 1000 + int(self.length_s * 1e6)
            shared, alone = {"shared": True} if self._shared else {}, {} if self._follows else {"follows": False}
            self._folder.put(self._name, json.dumps({"epoch": self.epoch, "expires": expires_us, **shared, **alone}).encode())

    def _renew(self) -> None:
        while not self._released.wait(self.length_s / _RENEWALS):
            self._rewrite()

    def _rewrite(self) -> None:
        try:
            self._write()
        except StateError as error:
            _log.warning("the lease of epoch %d of %s could not be renewed: %s", self.epoch, self._folder.root, error)


def lease_of(folder: StateFolder, epoch: int, length_s: float, *, follows: bool = True) -> Lease:
    """A lease for a reader that can do without. Raises StateError, which says how."""
    try:
        return Lease(folder, epoch, length_s, follows=follows)
    except StateError as error:
        remedy = "deltic.open(folder, lease=False), and --no-lease of a command, read without a lease and write nothing"
        raise StateError(f"no lease can be taken: {error.message}", expected=error.expected, remedy=remedy) from error


def oldest_leased(folder: StateFolder, *, clear: bool = True, following: bool = False) -> int | None:
    """The oldest epoch that a reader holds; None if there is none. clear: delete expired and damaged leases.

    following: of those readers that need each epoch after it, too.
    """
    now_us = time.time_ns() // 1000
    leases = _stored(folder)
    if clear:
        folder.delete([name for name, lease in leases.items() if lease.expires_us <= now_us])
    living = [lease for lease in leases.values() if lease.expires_us > now_us]
    return min((lease.epoch for lease in living if lease.follows or not following), default=None)


def shared_leases(folder: StateFolder, epoch: int) -> set[str]:
    """The names of the shared leases that keep an epoch."""
    now_us = time.time_ns() // 1000
    return {name for name, lease in _stored(folder).items() if lease.shared and lease.epoch <= epoch and lease.expires_us > now_us}


class _StoredLease(NamedTuple):
    epoch: int
    expires_us: int
    shared: bool = False
    follows: bool = True


def _stored(folder: StateFolder) -> dict[str, _StoredLease]:
    """All leases by name."""
    while True:
        names = [f"{LEASES}/{name}" for name in folder.names(LEASES) if _LEASE.fullmatch(name)]
        contents = {name: content for name in names if (content := folder.read(name)) is not None}
        # One that has been released meanwhile may have been followed by one that the listing lacks.
        if len(contents) == len(names):
            return {name: _read(content) for name, content in contents.items()}


def _read(stored: bytes) -> _StoredLease:
    """A damaged lease reads as expired."""
    try:
        lease = json.loads(stored)
        return _StoredLease(int(lease["epoch"]), int(lease["expires"]), lease.get("shared") is True, lease.get("follows") is not False)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return _StoredLease(0, 0)
