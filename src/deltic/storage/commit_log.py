"""CommitLog: the epochs of a state's writer that are durable in its log and not yet in manifests.

They are kept in memory too, so that only the next writer ever reads the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from deltic.storage.fold import fold
from deltic.storage.local import LocalFolder
from deltic.storage.log_file import BEGIN, MOST_BYTES, LogWriter, Mark, has_room
from deltic.storage.logged_epoch import LoggedEpoch
from deltic.storage.manifest import Change
from deltic.storage.reading import OpenFiles
from deltic.storage.state import State

LARGEST_BYTES: Final = MOST_BYTES >> 3
"""A larger epoch is committed by a manifest: writing it twice would cost more than the syncs that a log saves."""
MOST_EPOCHS: Final = 1 << 13
"""So many are folded, however small."""


class CommitLog:
    """The log of an open state. Not thread-safe. The file is created with the first epoch."""

    def __init__(self, state: State) -> None:
        assert state.logs and isinstance(state.folder, LocalFolder)
        self._state, self._folder = state, state.folder
        self._writer: LogWriter | None = None
        self._base = state.epoch
        """The epoch of the manifest that the log continues."""
        self._end: Mark = BEGIN
        """Where the record of the next epoch begins."""
        self._marks: list[Mark] = []
        """Where the record of each epoch begins."""
        self._torn = False
        """Whether a record may be in the file that is not among the epochs."""
        self.epochs: list[LoggedEpoch] = []

    def has_room(self, sizes: Sequence[int]) -> bool:
        """Whether so many epochs of these sizes fit."""
        return len(self.epochs) + len(sizes) <= MOST_EPOCHS and has_room(self._end, sizes)

    def append(self, logged: Sequence[tuple[LoggedEpoch, bytes]]) -> None:
        """Makes the next epochs durable with one sync: each with what it encodes to. There must be room.

        Raises StateError, and none is in the log; StateTakenOver if a newer writer has the folder, which may have found some of them.
        """
        self._state.check_owner()
        with self._folder.logging():
            writer = self._cut()
            if not self.epochs:
                self._base = self._state.epoch
            self._torn = True
            del self._marks[len(self.epochs) :]
            marks = []
            for epoch, content in logged:
                marks.append(writer.end)
                writer.write(epoch.epoch, self._base, content)
            writer.sync()
        self._state.check_newest()  # a newer writer that opened the folder since may have read the log before the records were durable
        self._marks += marks
        self.epochs += [epoch for epoch, _ in logged]
        self._end, self._torn = writer.end, False

    def forget_after(self, epoch: int) -> None:
        """Removes the epochs after this one: the calls that appended them have failed."""
        if self.epochs and self.epochs[-1].epoch > epoch:
            kept = epoch - self.epochs[0].epoch + 1
            self._torn = True
            self._end = self._marks[kept]
            del self._marks[kept:], self.epochs[kept:]

    def fold(self, files: OpenFiles, adopt: Callable[[Change], Change]) -> None:
        """Turns all epochs into manifests. Raises StateError; what is not in manifests then stays in the log."""
        if self._writer is None:
            return
        self._state.recover()
        with self._folder.logging():
            self._cut()
        if self.epochs:
            fold(self._state, self.epochs, files, adopt)
        # All before the next call, where an interrupt may come. Until the writer begins again, the file counts as torn.
        self._torn, self._end, self.epochs, self._marks = True, BEGIN, [], []
        self._writer.restart()
        self._torn = False
        self._state.collect()

    def close(self) -> None:
        """Deletes the file unless it has epochs that could not be folded."""
        if self._writer is not None:
            with self._folder.logging():
                self._writer.close(delete=not self.epochs and not self._torn)
            self._writer = None

    def _cut(self) -> LogWriter:
        """The writer of the file, which has the epochs and nothing else."""
        if self._writer is None:
            self._writer = self._state.new_log()
        if self._torn:
            self._writer.cut(self._end)
            self._torn = False
        return self._writer
