"""The life of a state folder, interrupted at every step: the folders that a kill leaves, and those that a power failure could leave.

`python tests/support/crashes.py FOLDER STRIDE LIFE` kills real processes: for each STRIDE-th step it forks a process, which runs the
life in its own folder below FOLDER and kills itself at that step.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, field, replace
from hashlib import sha256
from itertools import count
from pathlib import Path
from unittest.mock import patch

from deltic import disk
from deltic.errors import DelticError, StateError
from deltic.storage import log_file
from deltic.storage.commit_log import CommitLog
from deltic.storage.leases import LEASE_THREAD
from deltic.storage.log_file import SECTOR, LogWriter
from deltic.storage.manifest import Change
from deltic.storage.merging import merge_segments
from deltic.storage.program import ArrangementDescription
from deltic.storage.reading import OpenFiles
from deltic.storage.state import State
from stored import append, keys_of, logged_epoch


class PowerLoss(BaseException):
    """Raised to stop at a step."""


@dataclass
class CommitRecord:
    """A writer. committed: keys whose commit returned. trying: the pending ones, in order. linked: whether the manifest of the first has
    its name, or a log its record. doubtful: those whose commit failed, although they may be durable until the next one is committed."""

    committed: list[int] = field(default_factory=list)
    trying: tuple[int, ...] = ()
    linked: bool = False
    doubtful: tuple[int, ...] = ()

    def step(self, step: str, path: str) -> None:
        linked = step in ("link:after", "put:after") and Path(path).parent.name == "manifests"
        if linked or (step == "append:after" and Path(path).parent.name == "log"):
            self.linked = True

    def allows(self, keys: list[int]) -> bool:
        """Whether a state may have these keys: of a group, any of the first ones."""
        pending = self.trying if self.linked else ()
        prefixes = [group[:n] for group in (self.doubtful, pending) for n in range(len(group) + 1)]
        return any(keys == sorted([*self.committed, *prefix]) for prefix in prefixes)


LOG_BYTES = 2 * SECTOR
"""The length of the first logs of a life."""


def live(root: Path | str, record: CommitRecord) -> None:
    """Opens a state, commits, merges, collects garbage, closes, opens again, commits: all operations of `disk` occur."""
    for keys in ((0, 1, 2), (3, 4)):
        state = State.open(root, retain=0, whole_every=2)
        try:
            for key in keys:
                _commit(state, key, record)
            _merge(state)
            _commit(state, keys[-1] + 10, record)
            state.sweep()
        finally:
            state.close()


def live_with_a_log(root: Path | str, record: CommitRecord) -> None:
    """As `live`, with epochs in a commit log: alone and in groups; folded together, one by one, while others are appended, and by the next
    writer, from one file and from both. The log grows."""
    with _logs_of(LOG_BYTES):
        _live_with_a_log(root, record)


@contextmanager
def _logs_of(size: int) -> Iterator[None]:
    before, log_file.FIRST_BYTES = log_file.FIRST_BYTES, size  # type: ignore[misc]
    try:
        yield
    finally:
        log_file.FIRST_BYTES = before  # type: ignore[misc]


def _live_with_a_log(root: Path | str, record: CommitRecord) -> None:
    for keys, retain in (((0, 1, 2), 0), ((3, 4), 10), ((5, 6), 0)):
        state = State.open(root, retain=retain, whole_every=2, logs=True, facts=FACTS)
        try:
            log, files = CommitLog(state), OpenFiles(state.root)
            for key in keys:
                _log(state, log, record, key)
            if keys[0] < 5:
                record.linked = False
                log.fold(files, lambda change: change)
                _commit(state, keys[0] + 10, record)
            _log(state, log, record, *range(keys[0] + 20, keys[-1] + 21))
            _refuse(log, record, 77, 78)
            _log(state, log, record, keys[0] + 30, keys[0] + 40)
            if keys[0] == 3:
                log.fold(files, lambda change: change)
            if keys[0] > 0:
                _log_while_folding(state, log, record, keys[0], ends=keys[0] == 3)
            log.close()
        finally:
            state.close()


def fail(log: CommitLog, record: CommitRecord, *keys: int) -> None:
    """A group whose append fails."""
    record.trying, record.linked, record.doubtful = (), False, keys
    with failing_log():
        try:
            _append(log, log.epochs[-1].epoch, keys)
        except StateError:
            return
    raise AssertionError("the append has not failed")


@contextmanager
def failing_log() -> Iterator[None]:
    """Records of commit logs are written, and neither synced nor removed: the disk fails."""
    failure = OSError(5, "Input/output error")
    with patch.object(LogWriter, "sync", side_effect=failure), patch.object(LogWriter, "cut", side_effect=failure):
        yield


def _log_while_folding(state: State, log: CommitLog, record: CommitRecord, key: int, *, ends: bool) -> None:
    """Epochs before, during and after folds of those before, and appends that fail. ends: else no fold writes, and both files are left."""
    files = OpenFiles(state.root)
    _log(state, log, record, key + 50)
    assert log.begin_fold()
    fail(log, record, 79, 89)
    if ends:  # what has failed is all that the other file has
        log.fold_begun(files, lambda change: change)
        log.end_fold()
        state.collect()
        _log(state, log, record, key + 60)
        assert log.begin_fold()
    _log(state, log, record, key + 70)
    _refuse(log, record, 76, 86)
    if ends:
        log.fold_begun(files, lambda change: change)
        _log(state, log, record, key + 80, key + 90)
        log.end_fold()
        state.collect()
    _log(state, log, record, key + 91)


FACTS = {"arrangements": {"a": ArrangementDescription(1, 1).json()}, "tables": {}, "views": {}}
"""The notes of a state with one arrangement."""


def _log(state: State, log: CommitLog, record: CommitRecord, *keys: int) -> None:
    """An epoch for each key, as one group."""
    record.trying, record.linked = keys, False
    _append(log, log.epochs[-1].epoch if log.epochs else state.epoch, keys)
    record.committed += keys
    record.trying = record.doubtful = ()


def _append(log: CommitLog, last: int, keys: Sequence[int]) -> None:
    epochs = [logged_epoch(epoch, key) for epoch, key in enumerate(keys, last + 1)]
    log.append([(epoch, epoch.encoded()) for epoch in epochs])


def _refuse(log: CommitLog, record: CommitRecord, *keys: int) -> None:
    """A group whose commit fails after its records are durable: none may reappear once the next one is committed."""
    record.trying, record.linked = keys, False
    last = log.epochs[-1].epoch
    _append(log, last, keys)
    log.forget_after(last)
    record.trying, record.doubtful = (), keys


def _commit(state: State, key: int, record: CommitRecord) -> None:
    record.trying, record.linked = (key,), False
    append(state, key)
    record.committed.append(key)
    record.trying = ()


def _merge(state: State) -> None:
    segments = tuple(state.manifest.segments())
    with state.merging() as origin:
        ref, segment = merge_segments(state.root, state.manifest.files, segments, origin, part_bytes=1)
    assert ref is not None and segment is not None
    state.commit(Change((ref,), (segment,), segments))


def defect_of(root: Path | str, record: CommitRecord) -> str | None:
    """Opens the folder and continues: None if no commit is lost, nothing else is visible, and no garbage remains."""
    try:
        with _logs_of(LOG_BYTES):
            state = State.open(root, retain=0)
            try:
                return _defect(state, record)
            finally:
                state.close()
    except DelticError as error:
        return str(error)


def _defect(state: State, record: CommitRecord) -> str | None:
    if not record.allows(keys := keys_of(state)):
        return f"the state has {keys}; {record}"
    append(state, 99)
    state.sweep()
    if keys_of(state) != [*keys, 99]:
        return f"a new commit turns {keys} into {keys_of(state)}"
    staged = [path.name for path in Path(state.root).rglob("*.staged")] if state.folder.local else []
    staged += state.folder.names("log")
    strays = set(state.folder.names("data")) - set(state.manifest.files)
    return f"left over: {staged} {strays}" if staged or strays else None


@contextmanager
def watching(at: Callable[[str, str], None]) -> Iterator[None]:
    """`at` is called at every step but those of the leases of readers that earlier lives left: their threads renew them."""

    def of_this_life(step: str, path: str) -> None:
        if threading.current_thread().name != LEASE_THREAD:
            at(step, path)

    before, disk.at = disk.at, of_this_life
    try:
        yield
    finally:
        disk.at = before


Life = Callable[[Path | str, CommitRecord], None]


def steps_of_a_life(root: Path | str, life: Life = live) -> list[str]:
    """The names of all steps, in order."""
    steps: list[str] = []
    with watching(lambda step, path: steps.append(f"{step} {Path(path).parent.name}")):
        life(root, CommitRecord())
    return steps


def live_until(root: Path | str, number: int, record: CommitRecord, stop: Callable[[], None], life: Life = live) -> None:
    """Runs the life up to the step with this number, and stops there."""
    left = count(number, -1)

    def at(step: str, path: str) -> None:
        record.step(step, path)
        if next(left) == 0:
            stop()

    with watching(at):
        life(root, record)


@dataclass
class Image:
    """A folder that a power failure could leave after a step. files: path below the root → content; None for a folder."""

    step: str
    record: CommitRecord
    files: dict[str, bytes | None]

    def put(self, root: Path) -> None:
        root.mkdir(parents=True)
        for name, content in sorted(self.files.items()):
            if content is None:
                (root / name).mkdir(parents=True, exist_ok=True)
            else:
                (root / name).write_bytes(content)


class Disk:
    """A simulated disk that keeps synced data, updated at each step of the real one. Each distinct content that it could keep is an image.

    Names that no sync of their folder has made durable may be present or not: `late` has neither new names nor deletions, `early` has both,
    `fewest` only deletions, `most` only new names, `alone` only the newest one. Each has a file's content if it was synced, else half
    of it. What is written into a file is on the disk when it is synced; before that, all of it, either half of it, or nothing.
    """

    def __init__(self, root: Path, record: CommitRecord) -> None:
        self._root, self._record = root, record
        self._serials = count()
        self._serial: dict[int, int] = {}
        """inode → the current file: a file system reuses the numbers of deleted files."""
        self._synced: dict[int, bytes] = {}
        self._names: dict[str, dict[str, int | None]] = {}
        """folder → its entries: a file, or None for a folder."""
        self.images: list[Image] = []
        self._seen: set[str] = set()

    def at(self, step: str, path: str) -> None:
        self._record.step(step, path)
        if step == "write:after":
            self._serial[os.stat(path).st_ino] = next(self._serials)
        elif step in ("sync:after", "overwrite:after", "data-sync:after"):  # what is overwritten may reach the disk at once
            self._synced[self._serial[os.stat(path).st_ino]] = Path(path).read_bytes()
        elif step == "folder-sync:after" and Path(path).is_relative_to(self._root.parent):
            self._names[path] = self._early(path)
        if step == "append:after":
            self._keep_torn(step, path)
        elif step.endswith(":after"):
            self._keep(step, path)

    def _keep_torn(self, step: str, path: str) -> None:
        serial, written = self._serial[os.stat(path).st_ino], Path(path).read_bytes()
        synced = self._synced[serial]
        before = synced + bytes(len(written) - len(synced))
        changed = [i for i in range(0, len(written), SECTOR) if written[i : i + SECTOR] != before[i : i + SECTOR]]
        half = (changed[0] + changed[-1]) // 2 // SECTOR * SECTOR + SECTOR if changed else 0
        for part, content in enumerate((synced, written, written[:half] + before[half:], before[:half] + written[half:])):
            self._synced[serial] = content
            self._keep(f"{step}, part {part}", path)
        self._synced[serial] = synced

    def _early(self, folder: str) -> dict[str, int | None]:
        return {e.name: None if e.is_dir() else self._serial.get(e.inode(), -1) for e in os.scandir(folder)}

    def _late(self, folder: str) -> dict[str, int | None]:
        return self._names.get(folder, {})

    def _fewest(self, folder: str) -> dict[str, int | None]:
        return {name: item for name, item in self._late(folder).items() if name in self._early(folder)}

    def _most(self, folder: str) -> dict[str, int | None]:
        return {**self._late(folder), **self._early(folder)}

    def _alone(self, folder: str, path: str) -> dict[str, int | None]:
        return {**self._late(folder), **{name: item for name, item in self._early(folder).items() if f"{folder}/{name}" == path}}

    def _keep(self, step: str, path: str) -> None:
        kinds = {"late": self._late, "early": self._early, "fewest": self._fewest, "most": self._most}
        if step == "link:after":
            kinds["alone"] = lambda folder: self._alone(folder, path)
        for kind, listing in kinds.items():
            there = self._root.name in listing(str(self._root.parent))
            image = Image(f"{kind} after {step} {path}", self._copied(), self._tree(listing, self._root) if there else {})
            record = astuple(image.record)
            known = json.dumps([record, {name: None if c is None else sha256(c).hexdigest() for name, c in image.files.items()}])
            if known not in self._seen:
                self._seen.add(known)
                self.images.append(image)

    def _copied(self) -> CommitRecord:
        return replace(self._record, committed=list(self._record.committed))

    def _tree(self, listing: Callable[[str], dict[str, int | None]], folder: Path) -> dict[str, bytes | None]:
        files: dict[str, bytes | None] = {}
        for name, serial in listing(str(folder)).items():
            where = str((folder / name).relative_to(self._root))
            if serial is None:
                files[where] = None
                files |= self._tree(listing, folder / name)
            else:
                files[where] = self._synced[serial] if serial in self._synced else self._half(folder / name)
        return files

    def _half(self, path: Path) -> bytes:
        with suppress(FileNotFoundError):
            content = path.read_bytes()
            return content[: len(content) // 2]
        return b""


def images_of_a_life(root: Path, life: Life = live) -> list[Image]:
    """All images that a power failure could leave."""
    record = CommitRecord()
    kept = Disk(root, record)
    with watching(kept.at):
        life(root, record)
    return kept.images


def _kill_at_each(folder: Path, stride: int, life: Life) -> None:
    for number in range(0, len(steps_of_a_life(folder / "whole", life)), stride):
        root = folder / str(number)
        if not os.fork():
            _live_and_be_killed(root, number, life)
        _, status = os.wait()
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def _live_and_be_killed(root: Path, number: int, life: Life) -> None:
    record = CommitRecord()

    def stop() -> None:
        root.with_suffix(".json").write_text(json.dumps(astuple(record)))
        os.kill(os.getpid(), signal.SIGKILL)

    live_until(root, number, record, stop, life)


if __name__ == "__main__":
    _kill_at_each(Path(sys.argv[1]), int(sys.argv[2]), {"live": live, "live_with_a_log": live_with_a_log}[sys.argv[3]])
