"""Links: the manifests that the retained epochs need, each sound or broken, and what the broken ones make unreadable.

The walk is that of opening (state.py): from the newest manifest back to a whole one that no retained epoch precedes. So whatever prevents
opening, or reading a single epoch, is a broken link here. Manifests before that one are garbage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from deltic.errors import CorruptState
from deltic.storage.folder import StateFolder
from deltic.storage.history import stored_manifest
from deltic.storage.manifest import Manifest, StoredManifest, manifest_name

_MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Link:
    """The manifests of epochs `first` to `last`: one that was read, or a range that is missing. problem: None if it is sound."""

    first: int
    last: int
    stored: StoredManifest | None
    problem: str | None = None

    @property
    def whole(self) -> bool:
        return self.stored is not None and self.stored.whole is not None


@dataclass(frozen=True, slots=True)
class Gap:
    """Epochs `first` to `last`, unreadable because of broken links. later: what still works."""

    first: int
    last: int
    broken: tuple[Link, ...]
    later: str


def links_of(folder: StateFolder, epochs: Sequence[int], newest: int, floor: int) -> list[Link]:
    """The links, ascending and without gaps. epochs: those with manifests. newest: the last one committed. floor: the first one needed."""
    return list(_descending(folder, epochs, newest, floor))[::-1]


def _descending(folder: StateFolder, epochs: Sequence[int], newest: int, floor: int) -> Iterator[Link]:
    above, link = newest + 1, None
    for epoch in reversed(epochs):
        if epoch + 1 < above and not _follows(link, epoch):
            yield Link(epoch + 1, above - 1, None, _MISSING)
        yield (link := _read(folder, epoch))
        above = epoch
        if link.whole and epoch <= floor:
            return
    if above > floor:
        yield Link(floor, above - 1, None, _MISSING)
    elif link is not None and link.problem is None:  # its predecessor is not listed
        yield Link(above - 1, above - 1, None, _MISSING)


def _follows(link: Link | None, epoch: int) -> bool:
    """Whether the manifest of a link is the next one after that of the epoch: a fold has left out the epochs between."""
    return link is not None and link.stored is not None and link.stored.parent[0] == epoch


def _read(folder: StateFolder, epoch: int) -> Link:
    try:
        stored = stored_manifest(folder, epoch)
    except CorruptState as error:
        return Link(epoch, epoch, None, error.message)
    if epoch == 0 and stored.whole is None:
        return Link(epoch, epoch, None, "the first manifest does not hold the whole state")
    return Link(epoch, epoch, stored)


def states_of(links: Iterable[Link]) -> tuple[list[Manifest], list[Gap]]:
    """The states that can be read, ascending, and the gaps between them."""
    states: list[Manifest] = []
    gaps: list[Gap] = []
    pending: list[Link] = []
    manifest: Manifest | None = None
    opens = True
    for link in links:
        link, manifest = _followed(link, manifest)
        if manifest is None:
            pending.append(link)
            continue
        if pending:
            opens = opens and not gaps and pending[0].problem == _MISSING and len(pending) == 1 and link.whole
            gaps.append(_gap(pending, "the state can be opened" if opens else "later epochs can be read, but the state cannot be written"))
            pending = []
        states.append(manifest)
    if pending:
        gaps.append(_gap(pending, "the state cannot be opened"))
    return states, gaps


def _followed(link: Link, manifest: Manifest | None) -> tuple[Link, Manifest | None]:
    """(the link, broken if it does not follow its predecessor; the state after it)."""
    if link.stored is None or manifest is None:
        return link, None if link.stored is None else link.stored.whole
    try:
        return link, link.stored.onto(manifest)
    except CorruptState as error:
        return Link(link.first, link.last, link.stored, error.message), None


def _gap(pending: Sequence[Link], later: str) -> Gap:
    return Gap(pending[0].first, pending[-1].last, tuple(link for link in pending if link.problem is not None), later)


def link_name(link: Link) -> str:
    """The name of its first manifest."""
    return manifest_name(link.first)
