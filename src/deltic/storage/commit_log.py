"""CommitLog: the epochs of a state's writer that are durable in its log and not yet in manifests.

They are kept in memory too, so that only the next writer ever reads the log. The log is two files: while the epochs of one are folded, the
other takes the next ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from deltic.errors import StateError
from deltic.storage.fold import fold
from deltic.storage.local import LocalFolder
from deltic.storage.log_file import BEGIN, MOST_BYTES, LogWriter, Mark, has_room
from deltic.storage.logged_epoch import LoggedEpoch
from deltic.storage.manifest import Change
from deltic.storage.reading import OpenFiles
from deltic.storage.state import State

LARGEST_BYTES: Final = MOST_BYTES >> 3
"""A larger epoch is committed by a manifest: writing it twice would cost more than the syncs that a log saves."""
MOST_EPOCHS: Final = 1 << 14
"""So many are folded, however small."""
_log = logging.getLogger(__name__)

Logged = Sequence[tuple[LoggedEpoch, bytes]]
"""Epochs, each with what it encodes to."""
Adopt = Callable[[Change], Change]
"""Adds merges to the first change of a fold."""


class _Round:
    """The epochs of one file since it was last folded. The file is created with the first epoch."""

    def __init__(self, create: Callable[[], LogWriter]) -> None:
        self._create = create
        self.writer: LogWriter | None = None
        self._base = 0
        """The epoch before the first one."""
        self.end: Mark = BEGIN
        """Where the record of the next epoch begins."""
        self._marks: list[Mark] = []
        """Where the record of each epoch begins."""
        self._torn = False
        """Whether a record may be in the file that is not among the epochs."""
        self.epochs: list[LoggedEpoch] = []

    def written(self, logged: Logged) -> list[Mark]:
        """Makes epochs durable, which `add` then adds; returns where their records begin."""
        writer = self.cut()
        if not self.epochs:
            self._base = logged[0][0].epoch - 1
        self._torn = True
        del self._marks[len(self.epochs) :]
        marks = writer.write(self._base, [(epoch.epoch, content) for epoch, content in logged])
        writer.sync()
        return marks

    def add(self, logged: Logged, marks: Sequence[Mark]) -> None:
        assert self.writer is not None
        self._marks += marks
        self.epochs += [epoch for epoch, _ in logged]
        self.end, self._torn = self.writer.end, False

    def forget_after(self, epoch: int) -> None:
        if self.epochs and self.epochs[-1].epoch > epoch:
            kept = max(0, epoch - self.epochs[0].epoch + 1)
            self._torn = True
            self.end = self._marks[kept]
            del self._marks[kept:], self.epochs[kept:]

    def cut(self) -> LogWriter:
        """The writer of the file, which has the epochs and nothing else."""
        if self.writer is None:
            assert not self.epochs, "a file with epochs is closed, and would be replaced"
            self.writer = self._create()
        if self._torn:
            self.writer.cut(self.end)
            self._torn = False
        return self.writer

    def restart(self) -> list[LoggedEpoch]:
        """Begins again once all epochs, which it returns, are in manifests. Until the writer has done so, too, the file counts as torn."""
        epochs, torn = self.epochs, self._torn
        if self.writer is not None:
            self._torn, self.end, self.epochs, self._marks = True, BEGIN, [], []  # all before the next call, where an interrupt may come
            self.writer.restart()
            self._torn = torn  # a record of a failed append is still to be removed
        return epochs

    def close(self) -> None:
        """Deletes the file unless it has epochs that could not be folded."""
        if self.writer is not None:
            with suppress(OSError):
                self.cut()
            self.writer.close(delete=not self.epochs)
            self.writer = None


class CommitLog:
    """The log of an open state. Not thread-safe, except that epochs may be read, appended and forgotten while `fold_begun` runs."""

    def __init__(self, state: State) -> None:
        assert state.logs and isinstance(state.folder, LocalFolder)
        self._state, self._folder = state, state.folder
        self._files = _Round(lambda: state.new_log(0)), _Round(lambda: state.new_log(1))
        self._rounds: tuple[_Round, ...] = self._files[:1]
        """The oldest first; the last one takes the next epochs."""

    @property
    def epochs(self) -> list[LoggedEpoch]:
        """All, in order. O(epochs)."""
        return [epoch for each in self._rounds for epoch in each.epochs]

    def after(self, epoch: int) -> list[LoggedEpoch]:
        """The epochs after this one, in order. O(their number)."""
        last = self._rounds[-1].epochs
        if last and last[0].epoch <= epoch + 1:
            return last[max(0, epoch + 1 - last[0].epoch) :]
        return [each for each in self.epochs if each.epoch > epoch]

    @property
    def is_empty(self) -> bool:
        return not any(each.epochs for each in self._rounds)

    @property
    def is_left(self) -> bool:
        """Whether it is closed with epochs that are not in manifests: the next writer finds them."""
        return not self.is_empty and all(each.writer is None for each in self._files)

    def has_room(self, sizes: Sequence[int]) -> bool:
        """Whether so many epochs of these sizes fit."""
        last = self._rounds[-1]
        return len(last.epochs) + len(sizes) <= MOST_EPOCHS and has_room(last.end, sizes)

    def append(self, logged: Logged) -> None:
        """Makes the next epochs durable with one sync. There must be room.

        Raises StateError, and none is in the log; StateTakenOver if a newer writer has the folder, which may have found some of them.
        """
        self._state.check_owner()
        last = self._rounds[-1]
        try:
            marks = last.written(logged)
        except OSError as error:
            with suppress(OSError):  # at once, if the disk permits: else before the next record or manifest
                last.cut()
            raise self._folder.log_failure(error) from None
        self._state.check_newest()  # a newer writer that opened the folder since may have read the log before the records were durable
        last.add(logged, marks)

    def forget_after(self, epoch: int) -> None:
        """Removes the epochs after this one: the calls that appended them have failed."""
        for each in self._rounds:
            each.forget_after(epoch)

    def fold(self, files: OpenFiles, adopt: Adopt) -> None:
        """Turns all epochs into manifests. Raises StateError; what is not in manifests then stays in the log."""
        self._state.check_process()
        if self.is_left:
            raise StateError(f"the commit log of {self._state.root} is closed", remedy="open the folder again, which folds it")
        if all(each.writer is None for each in self._files):
            return
        self._ready()
        for each in self._rounds:
            self._fold(each, files, adopt)
        self.end_fold()
        self._state.collect()

    def begin_fold(self) -> bool:
        """Ends the file that has been written, for `fold_begun`, so that the next epochs are in the other one; False without epochs."""
        if self.is_empty:
            return False
        self._ready()
        if len(self._rounds) == 1:  # else a fold has failed, and the older file is still to be folded
            self._rounds = (*self._rounds, *(each for each in self._files if each not in self._rounds))
        return True

    def fold_begun(self, files: OpenFiles, adopt: Adopt) -> float:
        """Turns the epochs of the file that has ended into manifests; returns as `fold.fold`. Raises StateError. Deletes nothing."""
        return self._fold(self._rounds[0], files, adopt)

    def end_fold(self) -> list[LoggedEpoch]:
        """Removes the epochs that are in manifests, and returns them."""
        folded: list[LoggedEpoch] = []
        for each in self._rounds:
            if each.epochs and each.epochs[-1].epoch > self._state.epoch:
                break
            folded += each.restart()
            self._rounds = self._rounds[1:] or self._rounds
        return folded

    def close(self) -> None:
        """Deletes the files, except those with epochs that could not be folded; none of an inherited state.

        A failure is logged: the next writer deletes them.
        """
        for each in () if self._state.inherited else self._files:
            try:
                each.close()
            except OSError as error:
                _log.warning("the commit log of %s is left to its next writer: %s", self._state.root, self._folder.log_failure(error))

    def cut(self) -> None:
        """Removes from the files what failed appends have left there: before a manifest of which it does not know. O(1) after none."""
        try:
            for each in self._files:
                if each.writer is not None:
                    each.cut()
        except OSError as error:
            raise self._folder.log_failure(error) from None

    def _ready(self) -> None:
        """Removes from state and files what failed commits have left there."""
        self._state.recover()
        self.cut()

    def _fold(self, each: _Round, files: OpenFiles, adopt: Adopt) -> float:
        """One file at a time: the next one continues its manifests, which must be durable before."""
        return fold(self._state, each.epochs, files, adopt) if each.epochs else 1.0
