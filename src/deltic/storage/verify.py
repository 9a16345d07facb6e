"""Verifying a state folder: every byte of every manifest, and of every file that a retained epoch names.

Each finding says what is wrong, and what can no longer be read because of it. Nothing is repaired: a block's checksum tells that it is
wrong, not what it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from deltic.errors import CorruptState
from deltic.storage.files import DataFile, FileRef
from deltic.storage.folder import Folder, open_folder
from deltic.storage.history import epochs_in, stored_manifest
from deltic.storage.layout import Role
from deltic.storage.leases import LEASE_S, Lease
from deltic.storage.manifest import Json, Manifest, SegmentRef, Stored, manifest_name
from deltic.storage.reader import no_state


@dataclass(frozen=True, slots=True)
class Finding:
    """file: a manifest or a data file. problem: what is wrong with it. lost: what can no longer be read."""

    file: str
    problem: str
    lost: str


@dataclass(slots=True)
class Checked:
    """What has been verified so far."""

    manifests: int = 0
    files: int = 0
    bytes: int = 0


@dataclass(slots=True)
class _Need:
    """Who needs a file: the first and the last epoch, and for which batches."""

    ref: FileRef
    first: int
    last: int
    rows: set[tuple[str, Role, int]] = field(default_factory=set)


def verify(
    root: str | os.PathLike[str],
    checked: Checked,
    *,
    lease_s: float | None = LEASE_S,
    told: Callable[[Checked], None] = lambda _: None,
) -> Iterator[Finding]:
    """Every finding, as it is found. O(bytes).

    checked: counts what has been read. told: called after each file. lease_s: as in StateReader.open. Raises StateError if there is no
    state, or a newer format.
    """
    folder = open_folder(root)
    if not (epochs := epochs_in(folder)):
        raise no_state(folder.root)
    with ExitStack() as stack:
        if lease_s is not None:
            stack.callback(Lease(folder, epochs[0], lease_s).release)
            epochs = epochs_in(folder)
        history = _History(epochs[-1])
        for epoch in range(epochs[0], epochs[-1] + 1):
            yield from history.read(folder, epoch)
            checked.manifests += 1
        yield from history.unreadable()
        for need in history.needs.values():
            yield from _file(folder, need, history)
            checked.files, checked.bytes = checked.files + 1, checked.bytes + need.ref.size_bytes
            told(checked)


class _History:
    """Folds the manifests as far as they hold together, and notes who needs which file."""

    def __init__(self, last: int) -> None:
        self.needs: dict[str, _Need] = {}
        self.names: dict[str, str] = {}
        self._last = last
        self._manifest: Manifest | None = None
        self._states: list[tuple[Stored, Manifest]] = []
        self._broken: list[tuple[int, str]] = []
        self._gap: list[int] = []

    def read(self, folder: Folder, epoch: int) -> Iterator[Finding]:
        """Takes the next manifest; what was broken is told once it is known up to where nothing can be read."""
        try:
            stored = stored_manifest(folder, epoch)
            if self._manifest is None and stored.whole is None:
                self._gap.append(epoch)
                return
            following = stored.onto(self._manifest) if self._manifest is not None else stored.whole
        except CorruptState as error:
            self._manifest = None
            self._gap.append(epoch)
            self._broken.append((epoch, error.message))
            return
        yield from self._gap_ended()
        self._manifest = following
        if following is not None:
            self._states.append((stored, following))

    def unreadable(self) -> Iterator[Finding]:
        """What is broken up to the end. Then `needs` and `names` are there."""
        yield from self._gap_ended()
        if self._states:
            oldest = self._states[-1][0].oldest
            for _, manifest in self._states:
                if manifest.epoch >= oldest:
                    self._take(manifest)

    def _gap_ended(self) -> Iterator[Finding]:
        if self._broken:
            last = self._gap[-1]
            end = "; the state cannot be opened" if last == self._last else "; the state can be read at later epochs, not written to"
            for epoch, problem in self._broken:
                yield _finding(manifest_name(epoch), problem, f"{_epochs(self._gap[0], last)}{end}")
        self._broken, self._gap = [], []

    def _take(self, manifest: Manifest) -> None:
        self.names.update(_names(manifest.notes))
        for segment in manifest.segments():
            self._need(manifest, segment, "batch")
        for segment in manifest.views:
            self._need(manifest, segment, "change")

    def _need(self, manifest: Manifest, segment: SegmentRef, role: Role) -> None:
        need = self.needs.get(segment.file)
        if need is None:
            need = self.needs[segment.file] = _Need(manifest.files[segment.file], manifest.epoch, manifest.epoch)
        need.last = manifest.epoch
        need.rows.add((segment.arrangement, role, segment.rows))

    def lost(self, need: _Need, arrangements: Iterable[str]) -> str:
        """In words."""
        what = ", ".join(sorted({self.names.get(name, "state that views are made from") for name in arrangements}))
        when = f"at {_epochs(need.first, need.last)}"
        return f"{what}, {when}" + (", the last" if need.last == self._last else ", not at the last")


def _names(notes: Mapping[str, Json]) -> dict[str, str]:
    """What users call an arrangement."""
    return {
        **{entry["arrangement"]: f"table {name}" for name, entry in notes.get("tables", {}).items()},
        **{entry["arrangement"]: f"view {name}" for name, entry in notes.get("views", {}).items()},
    }


def _epochs(first: int, last: int) -> str:
    return f"epoch {first}" if first == last else f"epochs {first} to {last}"


def _finding(file: str, problem: str, lost: str) -> Finding:
    """With a problem that does not say again in which file it is."""
    return Finding(file, problem.removeprefix(file).lstrip(": ").removeprefix("is "), lost)


def _file(folder: Folder, need: _Need, history: _History) -> Iterator[Finding]:
    folder.forget_data(need.ref.name)
    try:
        file = DataFile(folder.root, need.ref)
    except CorruptState as error:
        yield _finding(need.ref.name, error.message, history.lost(need, (name for name, _, _ in need.rows)))
        return
    for place in file.directory.segments:
        try:
            file.batch(place.arrangement, place.role).verified()
        except CorruptState as error:
            yield _finding(need.ref.name, error.message, history.lost(need, [place.arrangement]))
    try:
        file.dictionary().verified()
    except CorruptState as error:
        places = file.directory.segments
        named = [place.arrangement for place in places if place.strings] or [place.arrangement for place in places]
        yield _finding(need.ref.name, error.message, history.lost(need, named))
    yield from _promised(file, need, history)


def _promised(file: DataFile, need: _Need, history: _History) -> Iterator[Finding]:
    """Whether the batches are in the file that manifests say are, with as many rows."""
    there = {(place.arrangement, place.role): place.rows for place in file.directory.segments}
    for arrangement, role, rows in sorted(need.rows):
        found = there.get((arrangement, role))
        if found is None and role == "change":
            found = there.get((arrangement, "batch"))
        if found != rows:
            problem = f"the manifest says {rows} rows of {arrangement}, the file has {'none' if found is None else found}"
            yield Finding(file.name, problem, history.lost(need, [arrangement]))
