"""StateReader: reads a state folder at one of its retained epochs, concurrently with its writer."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

from deltic.errors import CorruptState, StateError
from deltic.purity import shown
from deltic.storage.folder import StateFolder, open_folder
from deltic.storage.history import chain, committed_epochs, epochs_in, folded, stored_manifest
from deltic.storage.leases import LEASE_S, Lease
from deltic.storage.manifest import Manifest, StoredManifest
from deltic.storage.names import MANIFESTS


def no_state(root: str) -> StateError:
    """The error for a folder without a state."""
    return StateError(
        f"{root} is not a state folder", expected=f"a folder that contains {MANIFESTS}/", remedy="pass the folder that was used as state"
    )


def checked_epoch(epoch: object) -> int:
    """An epoch from a user. Raises StateError if it is not an integer."""
    if not isinstance(epoch, int) or isinstance(epoch, bool):
        raise StateError(f"invalid epoch {shown(epoch)}", expected="an integer, or None for the last epoch")
    return epoch


class StateReader:
    """Takes no lock and no generation; a lease keeps the epoch's files while it is open. Not thread-safe."""

    manifest: Manifest

    def __init__(self, folder: StateFolder, lease: Lease | None, manifest: Manifest, *, shares: bool = False) -> None:
        """Use `open`. shares: the lease is that of another reader."""
        self.folder, self.manifest = folder, manifest
        self._lease, self._shares = lease, shares

    @classmethod
    def open(cls, root: str | os.PathLike[str], epoch: int | None = None, *, lease_s: float | None = LEASE_S) -> StateReader:
        """Opens a state at `epoch`, by default the last one.

        lease_s: how long files are kept for a reader that dies; None takes no lease, for read-only folders and those without a writer.
        Raises StateError if there is no state, or the epoch is not retained; CorruptState.
        """
        folder = open_folder(root)
        while True:
            newest = _newest(folder)
            chosen = newest.epoch if epoch is None else checked_epoch(epoch)
            _check(folder, chosen, newest)
            if lease_s is None:
                return cls(folder, None, _manifest(folder, chosen))
            lease = Lease(folder, chosen, lease_s)
            try:
                # A writer that dropped the epoch meanwhile may not have seen the lease; one that drops it from now on sees it.
                newest = _newest(folder)
                if epoch is not None or chosen >= newest.oldest:
                    _check(folder, chosen, newest)
                    return cls(folder, lease, _manifest(folder, chosen))
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
        """The readable epochs: those that the writer retains, and all from the reader's own on."""
        newest = _newest(self.folder)
        return range(newest.oldest if self._lease is None else min(newest.oldest, self._lease.epoch), newest.epoch + 1)

    def at(self, epoch: int) -> StateReader:
        """A reader of another epoch, for as long as this one is open: under the same lease, which keeps that epoch too.

        Raises StateError if the epoch cannot be read.
        """
        epoch, newest, lease = checked_epoch(epoch), _newest(self.folder), self._lease
        if lease is None or not lease.epoch <= epoch <= newest.epoch:
            _check(self.folder, epoch, newest)
        if lease is not None and epoch < lease.epoch:
            before = lease.epoch
            lease.move(epoch)
            try:
                _check(self.folder, epoch, _newest(self.folder))  # as in `open`
            except BaseException:
                lease.move(before)
                raise
        return StateReader(self.folder, lease, _manifest(self.folder, epoch), shares=True)

    def manifest_at(self, epoch: int) -> Manifest:
        """The state after another epoch. Raises StateError if it is not retained. The lease keeps no epoch before its own."""
        if checked_epoch(epoch) == self.epoch:
            return self.manifest
        if self._lease is None or epoch < self._lease.epoch:
            _check(self.folder, epoch, _newest(self.folder))
        return _manifest(self.folder, epoch)

    def close(self) -> None:
        """Releases the lease, unless it is that of another reader."""
        if self._lease is not None and not self._shares:
            self._lease.release()
        self._lease = None

    def leave(self) -> None:
        """Lets the lease expire: for a process that cannot know whether others still read."""
        if self._lease is not None and not self._shares:
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
            # A writer that retains nothing has committed again and deleted the manifest.
    raise no_state(folder.root)


def _check(folder: StateFolder, epoch: int, newest: StoredManifest) -> None:
    if not newest.oldest <= epoch <= newest.epoch:
        raise StateError(
            f"epoch {epoch} of the state folder {folder.root} is not readable",
            expected=f"an epoch from {newest.oldest} to {newest.epoch}",
            remedy="choose one of these, or omit the epoch to read the last one",
        )


def _manifest(folder: StateFolder, epoch: int) -> Manifest:
    epochs = epochs_in(folder)
    return folded(chain(folder, epochs[0], epoch, lambda stored: stored.epoch <= epoch))
