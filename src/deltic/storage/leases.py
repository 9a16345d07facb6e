"""Leases: a reader's word that it still needs an epoch, so that no writer takes the epoch's files away.

A lease is an object in `leases/` that names an epoch and the time at which it ends unless it is renewed, by the reader's clock. Writers
look at them only when there is something to delete, and clear away those that have ended; clocks may differ by much less than a
lease's length.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import threading
import time
from typing import Final

from deltic.errors import StateError
from deltic.storage.folder import StateFolder
from deltic.storage.names import LEASES

LEASE_S: Final = 300.0
_RENEWALS: Final = 4
_LEASE: Final = re.compile(r"[0-9A-Za-z]+\.json")
_log = logging.getLogger(__name__)


class Lease:
    """Keeps `epoch` and all after it readable until `release`. Renewed by a thread, four times in its length."""

    def __init__(self, folder: StateFolder, epoch: int, length_s: float = LEASE_S) -> None:
        """Raises StateError if it cannot be written."""
        self.epoch = epoch
        self._folder, self._length_s = folder, length_s
        self._name = f"{LEASES}/{secrets.token_hex(8)}.json"
        self._released = threading.Event()
        self._write()
        self._thread = threading.Thread(target=self._renew, name="deltic-lease", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Lets the files go; a second time does nothing."""
        if not self._released.is_set():
            self._released.set()
            self._thread.join()
            self._folder.delete([self._name])

    def leave(self) -> None:
        """Renews no more, and lets the lease end by its own time: others may still need what it keeps."""
        self._released.set()
        self._thread.join()

    def _write(self) -> None:
        expires_us = time.time_ns() // 1000 + int(self._length_s * 1e6)
        self._folder.put(self._name, json.dumps({"epoch": self.epoch, "expires": expires_us}).encode())

    def _renew(self) -> None:
        while not self._released.wait(self._length_s / _RENEWALS):
            try:
                self._write()
            except StateError as error:
                _log.warning("the lease of epoch %d of %s could not be renewed: %s", self.epoch, self._folder.root, error)


def oldest_leased(folder: StateFolder, *, clear: bool = True) -> int | None:
    """The oldest epoch that a reader holds; None if there is none. clear: delete leases that have ended, or that are damaged."""
    now_us = time.time_ns() // 1000
    held: list[int] = []
    ended: list[str] = []
    for name in (f"{LEASES}/{name}" for name in folder.names(LEASES) if _LEASE.fullmatch(name)):
        if (found := folder.read(name)) is None:
            continue
        epoch, expires_us = _read(found)
        if expires_us > now_us:
            held.append(epoch)
        else:
            ended.append(name)
    if clear:
        folder.delete(ended)
    return min(held, default=None)


def _read(stored: bytes) -> tuple[int, int]:
    """(epoch, end in µs). What is no lease has ended long ago."""
    try:
        found = json.loads(stored)
        return int(found["epoch"]), int(found["expires"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return 0, 0
