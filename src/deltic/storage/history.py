"""The chain of manifests: reading it back, and when one of them is to hold the whole state.

A whole manifest costs as much as the state has segments and notes, so it is written only when what has been written since the last one
comes to as much: over a long time manifests cost a constant times the changes, and opening reads at most about twice the state's own.
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
"""What reading one more manifest costs when a state is opened, as bytes: on a file system, and on an object store."""
_MANIFEST: Final = re.compile(r"\d{12}\.json")


@dataclass(slots=True)
class WholeManifestSchedule:
    """When the next whole manifest is due.

    every: fewest epochs from one to the next, 0 for each. link_bytes: what one more of the others costs.
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
        """Notes a manifest that was written."""
        if whole:
            self.whole_bytes, self.since_bytes, self.since = size_bytes, 0, 0
        else:
            self.since_bytes += size_bytes
            self.since += 1


def epochs_in(folder: StateFolder) -> list[int]:
    """Those that have manifests, ascending; not all of them are retained."""
    return [epoch_of(name) for name in folder.names(MANIFESTS) if _MANIFEST.fullmatch(name)]


def committed_epochs(folder: StateFolder) -> list[int]:
    """`epochs_in`. Raises CorruptState if the newest manifest is older than the last epoch that was committed."""
    marked = marked_epoch(folder)  # first, since a writer may commit meanwhile
    epochs = epochs_in(folder)
    if marked is not None and marked > max(epochs, default=-1):
        raise CorruptState(
            f"{manifest_name(marked)} is missing, though epoch {marked} was committed",
            remedy=f"{REMEDY}; to go on from {f'epoch {epochs[-1]}' if epochs else 'nothing'}, delete {GENERATIONS}/",
        )
    return epochs


def stored_manifest(folder: StateFolder, epoch: int) -> StoredManifest:
    """Raises CorruptState, also if it is missing, and StateError if its format is newer."""
    name = manifest_name(epoch)
    if (found := folder.read(name)) is None:
        raise CorruptState(f"{name} is missing", remedy=REMEDY)
    if (stored := decode(found, name)).epoch != epoch:
        raise CorruptState(f"{name} says that it is of epoch {stored.epoch}", remedy=REMEDY)
    return stored


def chain(folder: StateFolder, first: int, last: int, until: Callable[[StoredManifest], bool]) -> list[StoredManifest]:
    """The manifests from one that holds the whole state, and that `until` accepts, to `last`; or else from `first`, the oldest one."""
    found: list[StoredManifest] = []
    for epoch in range(last, first - 1, -1):
        found.append(stored_manifest(folder, epoch))
        if found[-1].whole is not None and (epoch == first or until(found[-1])):
            return found[::-1]
    raise CorruptState(f"{manifest_name(first)} does not hold the whole state, and there is none before it", remedy=REMEDY)


def folded(links: Sequence[StoredManifest]) -> Manifest:
    """The state after the last of these, of which the first holds the whole."""
    manifest = links[0].whole
    assert manifest is not None
    for link in links[1:]:
        manifest = link.onto(manifest)
    return manifest
