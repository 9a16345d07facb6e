"""deltic.open: reads a state folder, concurrently with its writer."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self
from weakref import WeakValueDictionary

from deltic.errors import StateError
from deltic.runtimes.stored_view import StoredView
from deltic.runtimes.view_errors import is_errors
from deltic.storage.leases import LEASE_S
from deltic.storage.program import ProgramDescription
from deltic.storage.reader import StateReader, checked_epoch


class ReadOnlyState:
    """A state folder, read-only. Returned by `deltic.open`; use it in a `with` block. Not thread-safe.

    It reads the epoch that was the last one when it was opened, unless another is given.
    """

    def __init__(self, reader: StateReader) -> None:
        """Use `deltic.open`."""
        self._newest = reader
        self._readers = WeakValueDictionary({reader.epoch: reader})
        """By epoch, those that views read with."""
        self._closed = False

    @property
    def root(self) -> str:
        """The folder, or its URL."""
        return self._newest.root

    @property
    def epoch(self) -> int:
        """The epoch that is read by default."""
        return self._newest.epoch

    @property
    def epochs(self) -> range:
        """The epochs that can be read now, including those committed since this was opened."""
        self._check_open()
        return self._newest.epochs()

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the views, in order of creation."""
        return tuple(name for name in self.program.views if not is_errors(name))

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self.program.tables)

    @property
    def program(self) -> ProgramDescription:
        """The description of the state's program."""
        return self._newest.manifest.program

    def view(self, name: str, epoch: int | None = None) -> StoredView:
        """A view at an epoch; readable until this is closed. name: in any case.

        Raises UnknownName if there is no such view then, StateError if the epoch cannot be read.
        """
        self._check_open()
        return StoredView(self._reader(self.epoch if epoch is None else checked_epoch(epoch)), name)

    def close(self) -> None:
        """Releases the files. Closing again has no effect."""
        self._closed = True
        for reader in list(self._readers.values()):
            reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ReadOnlyState({self.root!r}, epoch {self.epoch})"

    def _reader(self, epoch: int) -> StateReader:
        if (reader := self._readers.get(epoch)) is None:
            reader = self._readers[epoch] = self._newest.at(epoch)
        return reader

    def _check_open(self) -> None:
        if self._closed:
            raise StateError(f"the handle of {self.root} is closed", remedy="open it again with deltic.open")


def open(folder: str | os.PathLike[str], *, epoch: int | None = None, lease: bool = True) -> ReadOnlyState:
    """Opens a state folder, or its URL, for reading. No session is required, and a writer may continue concurrently.

    epoch: a retained epoch; by default the last. lease: whether a file in `leases/` keeps the writer from deleting files that are read;
    without it nothing is written, for a folder that is read-only or has no writer.
    Raises StateError if there is no state, or the epoch cannot be read; CorruptState.
    """
    return ReadOnlyState(StateReader.open(folder, epoch, lease_s=LEASE_S if lease else None))
