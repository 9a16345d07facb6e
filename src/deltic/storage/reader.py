"""StateReader: reads a state folder at one of its retained epochs, concurrently with its writer."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from deltic.errors import CorruptState, StateError
from deltic.purity import shown
from deltic.storage.folder import StateFolder, open_folder
from deltic.storage.history import chain, committed_epochs, epochs_in, folded, stored_manifest
from deltic.storage.leases import LEASE_S, Lease, lease_of, shared_leases
from deltic.storage.manifest import Change, Manifest, StoredManifest
from deltic.storage.names import MANIFESTS

T = TypeVar("T")


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

    def __init__(self, folder: StateFolder, lease: Lease | None, manifest: Manifest, *, borrows: bool = False) -> None:
        """Use `open`. borrows: the lease is that of another reader."""
        self.folder, self.manifest = folder, manifest
        self._lease, self._borrows = lease, borrows

    @classmethod
    def open(
        cls,
        root: str | os.PathLike[str],
        epoch: int | None = None,
        *,
        lease_s: float | None = LEASE_S,
        oldest: bool = False,
        follows: bool = True,
    ) -> StateReader:
        """Opens a state at `epoch`, by default the last one: one that the writer retains, or that a shared lease keeps.

        oldest: by default the oldest one that the writer retains, so that the lease keeps all of these.
        lease_s: how long files are kept for a reader that dies; None takes no lease, for read-only folders and those without a writer.
        follows: whether the lease keeps each epoch after its own, too, as in Lease.
        Raises StateError if there is no state, or the epoch is not readable; CorruptState.
        """
        return cls._opened(open_folder(root), epoch, lease_s, oldest=oldest, follows=follows)

    @classmethod
    def _opened(
        cls, folder: StateFolder, epoch: int | None, lease_s: float | None, *, oldest: bool = False, follows: bool = True
    ) -> StateReader:
        while True:
            newest = _newest(folder)
            chosen = (newest.oldest if oldest else newest.epoch) if epoch is None else checked_epoch(epoch)
            keepers = _keepers(folder, chosen, newest)
            if lease_s is None:
                return cls(folder, None, manifest_at(folder, chosen))
            lease = lease_of(folder, chosen, lease_s, follows=follows)
            try:
                # A writer that dropped the epoch meanwhile may not have seen the lease; one that drops it from now on sees it. So does one
                # that deletes what another lease has kept until now.
                if keepers & shared_leases(folder, chosen) if keepers else chosen >= _newest(folder).oldest:
                    manifest = manifest_at(folder, chosen)
                    if manifest.last_tick < chosen and manifest.program.has_streams:
                        _keep_last_tick(folder, lease, manifest.last_tick)
                    return cls(folder, lease, manifest)
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
        """The readable epochs: those that the writer retains, and all from the reader's own on.

        Without these if a fold has left some of them out, which had begun before the reader opened, or does not follow; its own epoch stays
        readable.
        """
        newest = _newest(self.folder)
        if self._lease is None or self._lease.epoch >= newest.oldest:
            return range(newest.oldest, newest.epoch + 1)
        leased = self._lease.epoch
        between = sum(leased <= epoch < newest.oldest for epoch in epochs_in(self.folder))
        return range(leased if between == newest.oldest - leased else newest.oldest, newest.epoch + 1)

    def at(self, epoch: int) -> StateReader:
        """A reader of another epoch, for as long as this one is open: under the same lease, which keeps that epoch too.

        Raises StateError if the epoch cannot be read.
        """
        epoch, lease = checked_epoch(epoch), self._lease
        if lease is not None and lease.epoch <= epoch <= _newest(self.folder).epoch:
            return StateReader(self.folder, lease, self._at(epoch, manifest_at), borrows=True)
        with StateReader._opened(self.folder, epoch, None if lease is None else lease.length_s) as opened:
            if lease is not None and epoch < lease.epoch:
                assert opened._lease is not None
                lease.move(opened._lease.epoch)  # only now, when the epoch is kept: others rely on a lease that is shared
            return StateReader(self.folder, lease, opened.manifest, borrows=True)

    def manifest_at(self, epoch: int) -> Manifest:
        """The state after another epoch. Raises StateError if it is not retained. The lease keeps no epoch before its own."""
        return self.manifest if checked_epoch(epoch) == self.epoch else self._at(epoch, manifest_at)

    def change_at(self, epoch: int) -> Change:
        """What another epoch has changed. Raises as `manifest_at`. O(change)."""
        return self._at(checked_epoch(epoch), stored_manifest).change

    def _at(self, epoch: int, read: Callable[[StateFolder, int], T]) -> T:
        if self._lease is None or epoch < self._lease.epoch:
            _check(self.folder, epoch, _newest(self.folder))
        try:
            return read(self.folder, epoch)
        except CorruptState:
            if epoch in (epochs := self.epochs()):
                raise
            raise _unreadable(self.folder, epoch, epochs) from None

    def close(self) -> None:
        """Releases the lease, unless it is that of another reader."""
        if self._lease is not None and not self._borrows:
            self._lease.release()
        self._lease = None

    def follow(self) -> None:
        """Keeps each epoch after its own, too, from now on. Raises StateError."""
        if self._lease is not None:
            self._lease.follow()

    def share(self) -> None:
        """Lets others open the epochs that the lease keeps."""
        if self._lease is not None:
            self._lease.share()

    def leave(self) -> None:
        """Shares the lease, and lets it expire: for a process that cannot know whether others still read."""
        if self._lease is not None and not self._borrows:
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


def _keepers(folder: StateFolder, epoch: int, newest: StoredManifest) -> set[str]:
    """The shared leases that keep an epoch; none if the writer retains it. Raises StateError if nothing keeps it."""
    keepers = shared_leases(folder, epoch) if epoch < newest.oldest else set[str]()
    if not keepers or epoch not in epochs_in(folder):  # a fold that had begun before the lease may have left it out
        _check(folder, epoch, newest)
    return keepers


def _keep_last_tick(folder: StateFolder, lease: Lease, tick: int) -> None:
    """Moves a lease to the last tick of its epoch, unless that is not readable any more."""
    epoch = lease.epoch
    lease.move(tick)
    if tick < _newest(folder).oldest and not shared_leases(folder, tick):
        lease.move(epoch)


def _check(folder: StateFolder, epoch: int, newest: StoredManifest) -> None:
    if not newest.oldest <= epoch <= newest.epoch:
        raise _unreadable(folder, epoch, range(newest.oldest, newest.epoch + 1))


def _unreadable(folder: StateFolder, epoch: int, epochs: range) -> StateError:
    return StateError(
        f"epoch {epoch} of the state folder {folder.root} is not readable",
        expected=f"an epoch from {epochs[0]} to {epochs[-1]}",
        remedy="choose one of these, or omit the epoch to read the last one",
    )


def manifest_at(folder: StateFolder, epoch: int) -> Manifest:
    """The state after a retained epoch. Reads the manifests from the last whole one on."""
    epochs = epochs_in(folder)
    return folded(chain(folder, epochs[0], epoch, lambda stored: stored.epoch <= epoch))
