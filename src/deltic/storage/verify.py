"""Verifying a state folder: every byte of every manifest, of every file that a retained epoch names, and every record of a commit log.

Each defect says what is wrong and what it makes unreadable. Nothing is repaired: a checksum detects damage, but cannot undo it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from deltic.errors import CorruptState
from deltic.storage.files import DataFile, FileRef
from deltic.storage.folder import StateFolder, open_folder
from deltic.storage.generations import marked_epoch
from deltic.storage.history import epochs_in, stored_manifest
from deltic.storage.layout import Role
from deltic.storage.leases import LEASE_S, lease_of, oldest_leased
from deltic.storage.links import Gap, link_name, links_of, states_of
from deltic.storage.log_file import base_of, records
from deltic.storage.logged_epoch import logged_epochs, logs_of
from deltic.storage.manifest import LAST_EPOCH, Manifest, SegmentRef
from deltic.storage.reader import no_state

MOST_READS: Final = 5


@dataclass(frozen=True, slots=True)
class StateDefect:
    """file: a manifest, a data file or a commit log. problem: what is wrong with it. lost: what is unreadable because of it."""

    file: str
    problem: str
    lost: str


@dataclass(slots=True)
class VerifyProgress:
    """Counts of what has been verified so far."""

    manifests: int = 0
    files: int = 0
    bytes: int = 0


@dataclass(slots=True)
class _Need:
    """The use of a file: the first and the last epoch that need it, and the batches that they read."""

    ref: FileRef
    first: int
    last: int
    rows: set[tuple[str, Role, int]] = field(default_factory=set)


def verify(
    root: str | os.PathLike[str],
    checked: VerifyProgress,
    *,
    lease_s: float | None = LEASE_S,
    on_file: Callable[[VerifyProgress], None] = lambda _: None,
) -> Iterator[StateDefect]:
    """Yields each defect; at least one if the state cannot be opened, or opens at an older epoch. O(bytes).

    checked: is updated as files are verified. on_file: called after each file. lease_s: as in StateReader.open. Raises
    StateError if there is no state, or a newer format.
    """
    folder = open_folder(root)
    with ExitStack() as stack:
        logs = _logs(folder)  # before the manifests are listed, since a writer may fold them meanwhile
        epochs, newest, floor = _extent(folder)
        if lease_s is not None:
            stack.callback(lease_of(folder, floor, lease_s).release)
            epochs, newest, _ = _extent(folder)
        links = links_of(folder, epochs, newest, floor)
        checked.manifests += sum(link.stored is not None or link.first in epochs for link in links)
        states, gaps = states_of(links)
        for gap in gaps:
            yield from _gap_defects(gap)
        needs = _Needs(states, newest, floor)
        for need in needs.by_file.values():
            yield from _file(folder, need, needs)
            checked.files, checked.bytes = checked.files + 1, checked.bytes + need.ref.size_bytes
            on_file(checked)
        reached, manifest = newest, states[-1] if states and states[-1].epoch == newest else None
        for name, content in logs.items():
            try:
                reached = _reached(name, content, reached, newest, manifest)
            except CorruptState as error:
                yield _defect(name, error.message, f"the epochs after {newest} that are in the log; no writer can open the state")
                reached = LAST_EPOCH  # a log that continues this one has no defect of its own
            checked.files, checked.bytes = checked.files + 1, checked.bytes + len(content)
            on_file(checked)


def _logs(folder: StateFolder) -> dict[str, bytes]:
    """The commit logs; see `logs_of`. Of a writer that goes on meanwhile, they are read until no file
    has begun a new round meanwhile, or MOST_READS times."""
    logs = logs_of(folder)
    for _ in range(MOST_READS):
        before, logs = logs, logs_of(folder)
        if [*map(base_of, before.values())] == [*map(base_of, logs.values())]:
            break
    return logs


def _reached(name: str, content: bytes, reached: int, newest: int, manifest: Manifest | None) -> int:
    """Verifies a log; returns its last epoch, or that of the logs before. newest: the last epoch that has a manifest. manifest: of that
    epoch, if it can be read: what the records must agree with. Raises CorruptState."""
    if manifest is None:
        epochs = [record.epoch for record in records(content, name, newest)]
    else:
        epochs = [logged.epoch for logged in logged_epochs(content, name, manifest, reached)]
    return max([reached, *epochs[-1:]])


def _extent(folder: StateFolder) -> tuple[list[int], int, int]:
    """(the epochs that have manifests, the last committed one, the first one that must be readable)."""
    marked = marked_epoch(folder)  # before the manifests are listed, since a writer may commit meanwhile
    if not (epochs := epochs_in(folder)) and marked is None:
        raise no_state(folder.root)
    newest = max([*epochs[-1:], *([] if marked is None else [marked])])
    try:
        oldest = stored_manifest(folder, newest).oldest
    except CorruptState:
        oldest = epochs[0] if epochs else newest
    leased = oldest_leased(folder, clear=False)
    return epochs, newest, oldest if leased is None else min(oldest, leased)


def _gap_defects(gap: Gap) -> Iterator[StateDefect]:
    for link in gap.broken:
        problem = f"{link.problem}, with all up to epoch {link.last}" if link.first < link.last else link.problem
        yield _defect(link_name(link), problem or "", f"{_epochs(gap.first, gap.last)}; {gap.later}")


class _Needs:
    """By file: the readable epochs from `floor` on that need it."""

    def __init__(self, states: Sequence[Manifest], newest: int, floor: int) -> None:
        self.by_file: dict[str, _Need] = {}
        self.names: dict[str, str] = {}
        self._last = newest
        for manifest in states:
            if manifest.epoch >= floor:
                self._add(manifest)
        for name in states[-1].files if states else ():
            if name not in self.by_file:
                self.by_file[name] = _Need(states[-1].files[name], states[-1].epoch, states[-1].epoch)

    def _add(self, manifest: Manifest) -> None:
        self.names.update({arrangement: f"{kind} {name}" for arrangement, (kind, name) in manifest.program.called.items()})
        for segment in manifest.segments():
            self._need(manifest, segment, "batch")
        for segment in manifest.views:
            self._need(manifest, segment, "change")

    def _need(self, manifest: Manifest, segment: SegmentRef, role: Role) -> None:
        need = self.by_file.get(segment.file)
        if need is None:
            need = self.by_file[segment.file] = _Need(manifest.files[segment.file], manifest.epoch, manifest.epoch)
        need.last = manifest.epoch
        need.rows.add((segment.arrangement, role, segment.rows))

    def lost(self, need: _Need, arrangements: Iterable[str]) -> str:
        """What the loss of these arrangements makes unreadable, in words."""
        what = ", ".join(sorted({self.names.get(name, "inner state of views") for name in arrangements}))
        when = f"at {_epochs(need.first, need.last)}"
        return f"{what}, {when}" + (", the last" if need.last == self._last else ", not at the last")


def _epochs(first: int, last: int) -> str:
    return f"epoch {first}" if first == last else f"epochs {first} to {last}"


def _defect(file: str, problem: str, lost: str) -> StateDefect:
    """A defect whose problem does not repeat the file's name."""
    return StateDefect(file, problem.removeprefix(file).lstrip(": ").removeprefix("is "), lost)


def _file(folder: StateFolder, need: _Need, needs: _Needs) -> Iterator[StateDefect]:
    folder.forget_data(need.ref.name)
    try:
        file = DataFile(folder.root, need.ref)
    except CorruptState as error:
        yield _defect(need.ref.name, error.message, needs.lost(need, (name for name, _, _ in need.rows)))
        return
    sound = []
    for place in file.directory.segments:
        try:
            file.verify_batch(place)
            sound.append(place)
        except CorruptState as error:
            yield _defect(need.ref.name, error.message, needs.lost(need, [place.arrangement]))
    try:
        file.dictionary().verified()
    except CorruptState as error:
        places = file.directory.segments
        named = [place.arrangement for place in places if place.strings] or [place.arrangement for place in places]
        yield _defect(need.ref.name, error.message, needs.lost(need, named))
        sound = []
    for place in sound:
        try:
            file.verify_strings(place)
        except CorruptState as error:
            yield _defect(need.ref.name, error.message, needs.lost(need, [place.arrangement]))
    yield from _missing(file, need, needs)


def _missing(file: DataFile, need: _Need, needs: _Needs) -> Iterator[StateDefect]:
    """A defect for each batch that the manifests name and that the file lacks, or has with another number of rows."""
    present = {(place.arrangement, place.role): place.rows for place in file.directory.segments}
    for arrangement, role, rows in sorted(need.rows):
        stored_rows = present.get((arrangement, role))
        if stored_rows is None and role == "change":
            stored_rows = present.get((arrangement, "batch"))
        if stored_rows != rows:
            problem = f"the manifest names {rows} rows of {arrangement}, the file has {'none' if stored_rows is None else stored_rows}"
            yield StateDefect(file.name, problem, needs.lost(need, [arrangement]))
