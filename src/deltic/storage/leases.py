"""Leases: a reader's claim that it still needs an epoch, so that no writer deletes the epoch's files.

A lease is an object in `leases/` that names an epoch and its expiry time by the reader's clock; readers renew it. Writers read leases only
before they delete, and remove expired ones. The clocks' difference must be much smaller than the length of a lease.
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
from typing import Final

from deltic.errors import StateError
from deltic.reentrant import ReentrantEvent
from deltic.storage.folder import StateFolder
from deltic.storage.names import LEASES

LEASE_S: Final = 300.0
LEASE_THREAD: Final = "deltic-lease"
_RENEWALS: Final = 4
_LEASE: Final = re.compile(r"[0-9A-Za-z]+\.json")
_log = logging.getLogger(__name__)


class Lease:
    """Keeps `epoch` and all after it readable until `release`. A thread renews it four times per `length_s`.

    In a process that was forked from the one that took it, `release` does nothing.
    """

    def __init__(self, folder: StateFolder, epoch: int, length_s: float = LEASE_S) -> None:
        """Raises StateError if it cannot be written."""
        self.epoch = epoch
        self._folder, self._length_s = folder, length_s
        self._name = f"{LEASES}/{secrets.token_hex(8)}.json"
        self._writing = Lock()
        """So that the thread does not write what `move` has replaced."""
        self._released = ReentrantEvent()
        self._process = os.getpid()
        self._write()
        self._thread = threading.Thread(target=self._renew, name=LEASE_THREAD, daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Ends the lease; a second call does nothing."""
        if self._process == os.getpid() and not self._released.is_set():
            self._released.set()
            self._thread.join()
            self._folder.delete([self._name])

    def move(self, epoch: int) -> None:
        """Keeps this epoch and all after it readable instead. Raises StateError if it cannot be written; then nothing has changed."""
        before, self.epoch = self.epoch, epoch
        try:
            self._write()
        except BaseException:
            self.epoch = before
            raise

    def leave(self) -> None:
        """Stops renewing, and lets the lease expire: others may still need its files."""
        self._released.set()
        self._thread.join()

    def _write(self) -> None:
        with self._writing:
            expires_us = time.time_ns() // 1000 + int(self._length_s * 1e6)
            self._folder.put(self._name, json.dumps({"epoch": self.epoch, "expires": expires_us}).encode())

    def _renew(self) -> None:
        while not self._released.wait(self._length_s / _RENEWALS):
            try:
                self._write()
            except StateError as error:
                _log.warning("the lease of epoch %d of %s could not be renewed: %s", self.epoch, self._folder.root, error)


def oldest_leased(folder: StateFolder, *, clear: bool = True) -> int | None:
    """The oldest epoch that a reader holds; None if there is none. clear: delete expired and damaged leases."""
    now_us = time.time_ns() // 1000
    held: list[int] = []
    expired: list[str] = []
    for name in (f"{LEASES}/{name}" for name in folder.names(LEASES) if _LEASE.fullmatch(name)):
        if (content := folder.read(name)) is None:
            continue
        epoch, expires_us = _read(content)
        if expires_us > now_us:
            held.append(epoch)
        else:
            expired.append(name)
    if clear:
        folder.delete(expired)
    return min(held, default=None)


def _read(stored: bytes) -> tuple[int, int]:
    """(epoch, expiry in µs); a damaged lease reads as expired."""
    try:
        lease = json.loads(stored)
        return int(lease["epoch"]), int(lease["expires"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return 0, 0
