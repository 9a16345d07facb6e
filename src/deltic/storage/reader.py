"""StateReader: a state folder at one of its retained epochs, beside whoever writes to it."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

from deltic.errors import CorruptState, StateError
from deltic.storage.folder import StateFolder, open_folder
from deltic.storage.history import chain, committed_epochs, epochs_in, folded, stored_manifest
from deltic.storage.leases import LEASE_S, Lease
from deltic.storage.manifest import Manifest, StoredManifest
from deltic.storage.names import MANIFESTS


def no_state(root: str) -> StateError:
    """The error of a folder that is none of ours."""
    return StateError(
        f"{root} is not a state folder", expected=f"a folder with {MANIFESTS}/ in it", remedy="name the folder that was given as state"
    )


class StateReader:
    """Takes no lock and no generation; a lease keeps the epoch's files while it is open. Not for two threads at once."""

    manifest: Manifest

    def __init__(self, folder: StateFolder, lease: Lease | None, manifest: Manifest) -> None:
        """Use `open`."""
        self.folder, self.manifest = folder, manifest
        self._lease = lease

    @classmethod
    def open(cls, root: str | os.PathLike[str], epoch: int | None = None, *, lease_s: float | None = LEASE_S) -> StateReader:
        """Opens a state at `epoch`, or the last one.

        lease_s: how long files are kept for a reader that dies; None to take no lease, where nobody writes or the folder is read-only.
        Raises StateError if there is no state, or the epoch is not retained; CorruptState.
        """
        folder = open_folder(root)
        while True:
            newest = _newest(folder)
            wanted = newest.epoch if epoch is None else epoch
            _check(folder, wanted, newest)
            if lease_s is None:
                return cls(folder, None, _manifest(folder, wanted))
            lease = Lease(folder, wanted, lease_s)
            try:
                # A writer that has dropped the epoch meanwhile may not have seen the lease; one that drops it from now on has.
                newest = _newest(folder)
                if epoch is not None or wanted >= newest.oldest:
                    _check(folder, wanted, newest)
                    return cls(folder, lease, _manifest(folder, wanted))
            except BaseException:
                lease.release()
                raise
            lease.release()

    @property
    def root(self) -> str:
        return self.folder.root

    @property
    def epoch(self) -> int:
        return self.manifest.epoch

    def epochs(self) -> range:
        """Those that can be read: of the writer's retained ones, and of those from the reader's own on."""
        newest = _newest(self.folder)
        return range(newest.oldest if self._lease is None else min(newest.oldest, self._lease.epoch), newest.epoch + 1)

    def manifest_at(self, epoch: int) -> Manifest:
        """The state after another epoch. Raises StateError if it is not retained. The lease keeps no epoch before its own."""
        if epoch == self.epoch:
            return self.manifest
        if self._lease is None or epoch < self._lease.epoch:
            _check(self.folder, epoch, _newest(self.folder))
        return _manifest(self.folder, epoch)

    def close(self) -> None:
        """Lets the files go."""
        if self._lease is not None:
            self._lease.release()
            self._lease = None

    def leave(self) -> None:
        """Lets the files go when the lease ends by its own time: for a process that cannot know whether others read on."""
        if self._lease is not None:
            self._lease.leave()
            self._lease = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _newest(folder: StateFolder) -> StoredManifest:
    while epochs := committed_epochs(folder):
        try:
            return stored_manifest(folder, epochs[-1])
        except CorruptState:
            if committed_epochs(folder)[-1:] == epochs[-1:]:
                raise
            # A writer that retains nothing has gone on, and taken the manifest away.
    raise no_state(folder.root)


def _check(folder: StateFolder, epoch: int, newest: StoredManifest) -> None:
    if not newest.oldest <= epoch <= newest.epoch:
        raise StateError(
            f"the state folder {folder.root} has no epoch {epoch} to read",
            expected=f"epochs {newest.oldest} to {newest.epoch} are readable",
            remedy="name one of these, or none for the last",
        )


def _manifest(folder: StateFolder, epoch: int) -> Manifest:
    epochs = epochs_in(folder)
    return folded(chain(folder, epochs[0], epoch, lambda stored: stored.epoch <= epoch))
