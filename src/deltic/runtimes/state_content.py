"""The arrangements of a state folder at one epoch, for queries without a session."""

from __future__ import annotations

from deltic.runtimes.durable.strings import StateStrings, identity_of
from deltic.runtimes.stored_view import StoredView, changes_of_last_tick, check_readable
from deltic.storage.reader import StateReader
from deltic.storage.reading import OpenFiles, ShardArrangements
from deltic.trace.share import Share
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable


class StateContent:
    """The reader must stay open."""

    def __init__(self, reader: StateReader) -> None:
        self._reader, self._files = reader, OpenFiles(reader.root)

    def spines(self, arrangement: str) -> list[Spine]:
        """An arrangement, a spine for each shard; files from before a resharding also contain rows of others."""
        manifest = self._reader.manifest
        described = manifest.program.arrangements[arrangement]
        widths = {arrangement: (described.columns, described.weights)}
        opened = []
        for shard in range(manifest.shards):
            shares = {arrangement: Share(shard, manifest.shards, described.partition)} if described.partition else {}
            arrangements = ShardArrangements(self._files, manifest.files, manifest.shard_states[shard], widths, shares=shares)
            opened.append(arrangements[arrangement])
        return opened

    def stream(self, view: str) -> list[Spine]:
        """A view over streams: its rows of the last tick. Raises StateError if that is not retained."""
        return StoredView(self._reader, view)._spines(self._reader.manifest, range(self._reader.manifest.shards))[0]

    def check_readable(self, relation: str) -> None:
        """Raises FailedView for a view that has errors."""
        if relation in self._reader.manifest.program.views:
            check_readable(StoredView(self._reader, relation))

    def strings(self) -> StringTable:
        """A table with the strings of all files, and of the last tick."""
        manifest = self._reader.manifest
        is_older = manifest.program.has_streams and manifest.last_tick < manifest.epoch and manifest.last_tick in self._reader.epochs()
        files = {**manifest.files, **changes_of_last_tick(self._reader)[1]} if is_older else manifest.files
        dictionaries = [self._files[files[name]].dictionary() for name in sorted(files, reverse=True)]
        return StringTable(identity_of(manifest.notes), StateStrings(dictionaries))
