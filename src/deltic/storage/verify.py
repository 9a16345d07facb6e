"""Verifying a state folder: every byte of every manifest, and of every file that a retained epoch names.

Each finding says what is wrong, and what can no longer be read because of it. Nothing is repaired: a block's checksum tells that it is
wrong, not what it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from deltic.errors import CorruptState
from deltic.storage.files import DataFile, FileRef
from deltic.storage.folder import StateFolder, open_folder
from deltic.storage.generations import marked_epoch
from deltic.storage.history import epochs_in, stored_manifest
from deltic.storage.layout import Role
from deltic.storage.leases import LEASE_S, Lease, oldest_leased
from deltic.storage.links import Gap, link_name, links_of, states_of
from deltic.storage.manifest import Manifest, SegmentRef
from deltic.storage.reader import no_state


@dataclass(frozen=True, slots=True)
class StateDefect:
    """file: a manifest or a data file. problem: what is wrong with it. lost: what can no longer be read."""

    file: str
    problem: str
    lost: str


@dataclass(slots=True)
class VerifyProgress:
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
    checked: VerifyProgress,
    *,
    lease_s: float | None = LEASE_S,
    told: Callable[[VerifyProgress], None] = lambda _: None,
) -> Iterator[StateDefect]:
    """Every finding, as it is found; there is one if the state cannot be opened, or opens at an older epoch. O(bytes).

    checked: counts what has been read. told: called after each file. lease_s: as in StateReader.open. Raises StateError if there is no
    state, or a newer format.
    """
    folder = open_folder(root)
    with ExitStack() as stack:
        epochs, newest, floor = _extent(folder)
        if lease_s is not None:
            stack.callback(Lease(folder, floor, lease_s).release)
            epochs, newest, _ = _extent(folder)
        links = links_of(folder, epochs, newest, floor)
        checked.manifests += sum(link.stored is not None or link.first in epochs for link in links)
        states, gaps = states_of(links)
        for gap in gaps:
            yield from _gap_findings(gap)
        needs = _Needs(states, newest, floor)
        for need in needs.by_file.values():
            yield from _file(folder, need, needs)
            checked.files, checked.bytes = checked.files + 1, checked.bytes + need.ref.size_bytes
            told(checked)


def _extent(folder: StateFolder) -> tuple[list[int], int, int]:
    """(the epochs that have manifests, the last one committed, the first one that must be readable)."""
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


def _gap_findings(gap: Gap) -> Iterator[StateDefect]:
    for link in gap.broken:
        problem = f"{link.problem}, with all up to epoch {link.last}" if link.first < link.last else link.problem
        yield _finding(link_name(link), problem or "", f"{_epochs(gap.first, gap.last)}; {gap.later}")


class _Needs:
    """Which file is needed by which epochs, of those from `floor` on that can be read."""

    def __init__(self, states: Sequence[Manifest], newest: int, floor: int) -> None:
        self.by_file: dict[str, _Need] = {}
        self.names: dict[str, str] = {}
        self._last = newest
        for manifest in states:
            if manifest.epoch >= floor:
                self._take(manifest)
        for name in states[-1].files if states else ():
            if name not in self.by_file:
                self.by_file[name] = _Need(states[-1].files[name], states[-1].epoch, states[-1].epoch)

    def _take(self, manifest: Manifest) -> None:
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
        """In words."""
        what = ", ".join(sorted({self.names.get(name, "state that views are made from") for name in arrangements}))
        when = f"at {_epochs(need.first, need.last)}"
        return f"{what}, {when}" + (", the last" if need.last == self._last else ", not at the last")


def _epochs(first: int, last: int) -> str:
    return f"epoch {first}" if first == last else f"epochs {first} to {last}"


def _finding(file: str, problem: str, lost: str) -> StateDefect:
    """With a problem that does not say again in which file it is."""
    return StateDefect(file, problem.removeprefix(file).lstrip(": ").removeprefix("is "), lost)


def _file(folder: StateFolder, need: _Need, needs: _Needs) -> Iterator[StateDefect]:
    folder.forget_data(need.ref.name)
    try:
        file = DataFile(folder.root, need.ref)
    except CorruptState as error:
        yield _finding(need.ref.name, error.message, needs.lost(need, (name for name, _, _ in need.rows)))
        return
    sound = []
    for place in file.directory.segments:
        try:
            file.verify_batch(place)
            sound.append(place)
        except CorruptState as error:
            yield _finding(need.ref.name, error.message, needs.lost(need, [place.arrangement]))
    try:
        file.dictionary().verified()
    except CorruptState as error:
        places = file.directory.segments
        named = [place.arrangement for place in places if place.strings] or [place.arrangement for place in places]
        yield _finding(need.ref.name, error.message, needs.lost(need, named))
        sound = []
    for place in sound:
        try:
            file.verify_strings(place)
        except CorruptState as error:
            yield _finding(need.ref.name, error.message, needs.lost(need, [place.arrangement]))
    yield from _promised(file, need, needs)


def _promised(file: DataFile, need: _Need, needs: _Needs) -> Iterator[StateDefect]:
    """Whether the batches are in the file that manifests say are, with as many rows."""
    there = {(place.arrangement, place.role): place.rows for place in file.directory.segments}
    for arrangement, role, rows in sorted(need.rows):
        found = there.get((arrangement, role))
        if found is None and role == "change":
            found = there.get((arrangement, "batch"))
        if found != rows:
            problem = f"the manifest says {rows} rows of {arrangement}, the file has {'none' if found is None else found}"
            yield StateDefect(file.name, problem, needs.lost(need, [arrangement]))
