"""The chain of manifests: reading it, and deciding when a manifest holds the whole state.

A whole manifest costs as much as the state has segments and notes. It is written only when the manifests since the last one come to as
much: amortised, manifests cost a constant times the changes, and opening reads at most about twice the size of a whole manifest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from deltic.errors import CorruptState
from deltic.storage.folder import StateFolder
from deltic.storage.generations import marked_epoch
from deltic.storage.manifest import Manifest, StoredManifest, decode, epoch_of, manifest_name
from deltic.storage.names import GENERATIONS, MANIFESTS
from deltic.storage.parsing import REMEDY

LINK_BYTES: Final = 1 << 13
OBJECT_LINK_BYTES: Final = 1 << 16
"""The cost of reading one more manifest on opening, in bytes: on a file system, and on an object store."""
_MANIFEST: Final = re.compile(r"\d{12}\.json")


@dataclass(slots=True)
class WholeManifestSchedule:
    """Says when the next whole manifest is due.

    every: the least number of epochs from one to the next, 0 to write one each time. link_bytes: the cost of reading one more manifest.
    """

    every: int
    link_bytes: int
    whole_bytes: int = 0
    since_bytes: int = 0
    since: int = 0

    @property
    def due(self) -> bool:
        return not self.every or (self.since + 1 >= self.every and self.since_bytes + self.since * self.link_bytes >= self.whole_bytes)

    def wrote(self, size_bytes: int, *, whole: bool) -> None:
        """Records a written manifest."""
        if whole:
            self.whole_bytes, self.since_bytes, self.since = size_bytes, 0, 0
        else:
            self.since_bytes += size_bytes
            self.since += 1


def epochs_in(folder: StateFolder) -> list[int]:
    """The epochs that have manifests, ascending; not all of them are retained."""
    return [epoch_of(name) for name in folder.names(MANIFESTS) if _MANIFEST.fullmatch(name)]


def committed_epochs(folder: StateFolder) -> list[int]:
    """`epochs_in`. Raises CorruptState if the newest manifest is older than the last epoch that was committed."""
    marked = marked_epoch(folder)  # first, since a writer may commit meanwhile
    epochs = epochs_in(folder)
    if marked is not None and marked > max(epochs, default=-1):
        raise CorruptState(
            f"{manifest_name(marked)} is missing, though epoch {marked} was committed",
            remedy=f"{REMEDY}; to continue from {f'epoch {epochs[-1]}' if epochs else 'nothing'}, delete {GENERATIONS}/",
        )
    return epochs


def stored_manifest(folder: StateFolder, epoch: int) -> StoredManifest:
    """The manifest of an epoch. Raises CorruptState, also if it is missing; StateError if its format is newer."""
    name = manifest_name(epoch)
    if (content := folder.read(name)) is None:
        raise CorruptState(f"{name} is missing", remedy=REMEDY)
    if (stored := decode(content, name)).epoch != epoch:
        raise CorruptState(f"{name} is the manifest of epoch {stored.epoch}", remedy=REMEDY)
    return stored


def chain(folder: StateFolder, first: int, last: int, until: Callable[[StoredManifest], bool]) -> list[StoredManifest]:
    """The manifests up to `last`, from the newest whole one that `until` accepts, else from `first`, the oldest."""
    manifests: list[StoredManifest] = []
    epoch = last
    while epoch >= first:
        manifests.append(stored_manifest(folder, epoch))
        if manifests[-1].whole is not None and (epoch == first or until(manifests[-1])):
            return manifests[::-1]
        epoch = manifests[-1].parent[0]  # not always the one before: a fold leaves out what nobody could read when it began
    raise CorruptState(f"{manifest_name(first)} does not hold the whole state, and no manifest precedes it", remedy=REMEDY)


def folded(links: Sequence[StoredManifest]) -> Manifest:
    """The state after the last of these manifests. The first must hold the whole state."""
    manifest = links[0].whole
    assert manifest is not None
    for link in links[1:]:
        manifest = link.onto(manifest)
    return manifest
