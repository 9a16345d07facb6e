"""StoredView: a view in a state folder, read where no session is. All that is needed stands in the state's notes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from deltic.errors import UnknownName
from deltic.runtimes.durable.strings import StateStrings
from deltic.schema import Field, Schema, Type
from deltic.storage.manifest import Manifest
from deltic.storage.reader import StateReader
from deltic.storage.reading import OpenFiles, Shelved
from deltic.trace.counters import Counters
from deltic.trace.encoding import Layout
from deltic.trace.merge import merge
from deltic.trace.reading import Reader
from deltic.trace.share import Share
from deltic.trace.strings import StringTable


class StoredView:
    """The view at the reader's epoch, which must stay open. Raises UnknownName if the state has no such view."""

    def __init__(self, reader: StateReader, view: str) -> None:
        self._reader, self._files = reader, OpenFiles(reader.root)
        self.name, entry = _entry(reader.manifest, view)
        self._arrangement: str = entry["arrangement"]
        stored = Schema(tuple(Field(name, Type.parse(sql), nullable) for name, sql, nullable in entry["fields"]))
        self._width = Layout.of(stored).width
        self._columns = Reader(stored, entry["order"])

    @property
    def schema(self) -> Schema:
        """Columns in the order of the query."""
        return self._columns.schema

    def to_arrow(self, shard: int | None = None) -> pa.Table:
        """The content, or one shard's part of it; a row that is there w times stands w times. O(rows)."""
        manifest = self._reader.manifest
        parts, shelves = [], []
        for i in range(manifest.shards) if shard is None else (shard,):
            shelves.append(self._shelved(manifest, i))
            parts.append(shelves[-1][self._arrangement].scan(Counters()))
        dictionaries = {name: shelf.file(name).dictionary() for shelf in shelves for name in shelf.names(self._arrangement)}
        return self._columns.content(merge(parts), self._strings(dictionaries))

    def changes(self, epoch: int | None = None) -> pa.Table:
        """What an epoch did to the view (by default the reader's), with `_weight`. Raises StateError if it is not retained."""
        manifest = self._reader.manifest if epoch is None else self._reader.manifest_at(epoch)
        files = [self._files[manifest.files[s.file]] for s in manifest.views if s.arrangement == self._arrangement]
        change = merge([file.change(self._arrangement) for file in files]) if files else None
        return self._columns.changes(change, self._strings({file.name: file.dictionary() for file in files}))

    def _shelved(self, manifest: Manifest, shard: int) -> Shelved:
        name = self._arrangement
        segments = {name: manifest.shelves[shard].get(name, ())}
        partition = manifest.notes["arrangements"][name]["partition"]
        shares = {name: Share(shard, manifest.shards, tuple(partition))} if partition else {}
        return Shelved(self._files, manifest.files, segments, {name: (self._width, 1)}, shares=shares)

    def _strings(self, dictionaries: dict[str, Any]) -> StringTable:
        return StringTable(None, StateStrings([dictionaries[name] for name in sorted(dictionaries)]))


def _entry(manifest: Manifest, view: str) -> tuple[str, Any]:
    views = manifest.notes.get("views", {})
    for name, entry in views.items():
        if name.lower() == view.lower():
            return name, entry
    raise UnknownName(f"the state has no view {view}", expected=f"one of {', '.join(views)}" if views else "a state with a view in it")
