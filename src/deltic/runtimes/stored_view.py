"""StoredView: a view in a state folder, read without a session: whole, by key, shard by shard, and the change of an epoch.

It needs only a manifest, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from deltic.runtimes.durable.strings import StateStrings
from deltic.runtimes.readable_view import ReadableView, listed
from deltic.runtimes.sought import rows_under
from deltic.runtimes.view_errors import NO_ERRORS, errors_of, failed_view, listed_errors
from deltic.runtimes.view_layout import Key, ViewLayout
from deltic.schema import Field, Schema
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import FileRef
from deltic.storage.manifest import Change, Manifest, SegmentRef
from deltic.storage.reader import StateReader
from deltic.storage.reading import OpenFiles, ShardArrangements, shaped
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.identity import Identity
from deltic.trace.merge import merge
from deltic.trace.reading import Reader, copied, total_weight
from deltic.trace.share import Share
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable

BATCH_ROWS: Final = 1 << 16
"""The maximum number of rows that `_scan` yields at once."""


class StoredView(ReadableView):
    """The view at the reader's epoch; the reader must stay open. Raises UnknownName if the state has no such view."""

    def __init__(self, reader: StateReader, view: str) -> None:
        self._reader, self._files = reader, OpenFiles(reader.root)
        self._layout = ViewLayout.of(reader.manifest.program, view)
        self.name = self._layout.name
        self._columns = Reader(self._layout.stored, self._layout.order)
        program, errors = reader.manifest.program, errors_of(self.name)
        self._errors = StoredView(reader, errors) if errors in program.views else None

    @property
    def epoch(self) -> int:
        """The epoch of the view."""
        return self._reader.epoch

    @property
    def _shards(self) -> int:
        """The number of shards of the state."""
        return self._reader.manifest.shards

    @property
    def schema(self) -> Schema:
        """Columns in the order of the query."""
        return self._columns.schema

    @property
    def _leading(self) -> tuple[Field, ...]:
        return self._layout.leading

    def to_arrow(self) -> pa.Table:
        """The content; a row of weight w occurs w times. O(rows)."""
        return self._columns.content(*self._content(range(self._shards)))

    def _count(self) -> int:
        """See ReadableView."""
        return total_weight(self._content(range(self._shards))[0])

    def errors(self) -> pa.Table:
        """See ReadableView; the places are in the definition, which a state does not have."""
        return NO_ERRORS if self._errors is None else listed_errors(self._errors.to_arrow(), {})

    def lookup(self, key: Any, *, by: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """See ReadableView."""
        check_readable(self)
        sought = self._sought(self._layout.stored, key, by)
        self._layout.check_sought(sought)
        matches = []
        for shards in self._layout.homes(sought.keys if sought.is_leading else None, self._shards):
            spines, strings = self._spines(self._reader.manifest, shards)
            batch = sought.rows(spines, strings)
            matches += listed(self._columns.content(batch, strings))
        return matches

    def changes(self, epoch: int | None = None) -> pa.Table:
        """The change of the view in an epoch (by default the reader's), with `_weight`. Raises StateError if it is not retained."""
        manifest = self._reader.manifest
        if epoch is None:
            return self._changed(manifest.views, manifest.files)
        return changes_in(self, self._reader.change_at(epoch))

    def _changed(self, segments: Sequence[SegmentRef], refs: Mapping[str, FileRef]) -> pa.Table:
        parts, dictionaries = self._changes(segments, refs)
        return self._columns.changes(merge(parts) if parts else None, file_strings(None, dictionaries))

    def _changes(
        self, segments: Sequence[SegmentRef], refs: Mapping[str, FileRef], shards: Sequence[int] | None = None
    ) -> tuple[list[Batch], list[Dictionary]]:
        """The changes of the view, by default on all shards, among those of an epoch, and the dictionaries of their files."""
        own = [s for s in segments if s.arrangement == self._layout.arrangement and (shards is None or s.shard in shards)]
        files = [self._files[refs[s.file]] for s in own]
        changes = [shaped(file.change(self._layout.arrangement), self._layout.widths, file.name) for file in files]
        return changes, [file.dictionary() for file in files]

    def _scan(
        self, shards: Sequence[int], keys: Sequence[Key] | None = None
    ) -> Iterator[tuple[Sequence[np.ndarray], np.ndarray, StringTable]]:
        """(words, weights, strings) of the rows of shards, in pieces. keys: those to look up; None reads all rows."""
        batch, strings = self._content(shards, keys)
        for start in range(0, len(batch), BATCH_ROWS):
            cut = slice(start, start + BATCH_ROWS)
            yield [c[cut] for c in batch.columns], batch.weights[0][cut], strings

    def _content(self, shards: Sequence[int], keys: Sequence[Key] | None = None) -> tuple[Batch, StringTable]:
        check_readable(self)
        spines, strings = self._spines(self._reader.manifest, shards)
        if keys is None:
            return merge([spine.scan(Counters()).verified() for spine in spines]), strings
        return rows_under(spines, self._layout.key_words(keys, strings), self._layout.widths[0]), strings

    def _spines(self, manifest: Manifest, shards: Sequence[int]) -> tuple[list[Spine], StringTable]:
        """The view on some shards; of a stream, its change in the last tick."""
        spines, dictionaries = self._files_of(manifest, shards)
        return spines, file_strings(self._layout.identity, dictionaries)

    def _files_of(self, manifest: Manifest, shards: Sequence[int]) -> tuple[list[Spine], list[Dictionary]]:
        """As `_spines`, with the strings of each file."""
        arrangement = self._layout.arrangement
        if self._layout.ephemeral:
            changes, dictionaries = self._changes(*changes_of_last_tick(self._reader), shards)
            content = merge(changes) if changes else Batch.empty(*self._layout.widths)
            return [Spine.of(content)], dictionaries
        opened = [self._arrangements(manifest, shard) for shard in shards]
        names = sorted({name for arrangements in opened for name in arrangements.names(arrangement)}, reverse=True)
        dictionaries = [self._files[manifest.files[name]].dictionary() for name in names]
        return [arrangements[arrangement] for arrangements in opened], dictionaries

    def _arrangements(self, manifest: Manifest, shard: int) -> ShardArrangements:
        """The arrangements of a shard; files from before a resharding also contain rows of others."""
        layout = self._layout
        shares = {layout.arrangement: Share(shard, manifest.shards, layout.partition)} if layout.partition else {}
        return ShardArrangements(
            self._files, manifest.files, manifest.shard_states[shard], {layout.arrangement: layout.widths}, shares=shares
        )


def changes_of_last_tick(reader: StateReader) -> tuple[Sequence[SegmentRef], Mapping[str, FileRef]]:
    """The changes of views in the last tick, and files that have them. Raises StateError if that is not retained."""
    manifest = reader.manifest
    if manifest.last_tick == manifest.epoch:
        return manifest.views, manifest.files
    change = reader.change_at(manifest.last_tick)
    return change.views, {file.name: file for file in change.files}


def check_readable(view: StoredView) -> None:
    """Raises FailedView if the view has errors. O(errors)."""
    if view._errors is not None and (rows := view._errors.to_arrow()).num_rows:
        raise failed_view(view.name, rows, {})


def is_stream(view: StoredView) -> bool:
    """Whether the view has the rows of one epoch alone."""
    return view._layout.ephemeral


def changes_in(view: StoredView, change: Change) -> pa.Table:
    """The change of a view in an epoch that has made this change to the state."""
    return view._changed(change.views, {file.name: file for file in change.files})


def first_rows(view: StoredView, limit: int) -> tuple[pa.Table, int]:
    """(the first rows of the content, in the order of `to_arrow`, and the number of all). Values are decoded for the first rows alone."""
    whole, strings = view._content(range(view._shards))
    words = copied(whole.columns, whole.weights[0])
    return view._columns.table([word[:limit] for word in words], strings), int(whole.weights[0].sum())


def first_changes(view: StoredView, limit: int) -> tuple[pa.Table, int]:
    """As `first_rows`, of the change in the reader's epoch."""
    manifest = view._reader.manifest
    parts, dictionaries = view._changes(manifest.views, manifest.files)
    change = merge(parts) if parts else Batch.empty(*view._layout.widths)
    first = Batch.trusted([column[:limit] for column in change.columns], [weights[:limit] for weights in change.weights])
    return view._columns.changes(first, file_strings(None, dictionaries)), len(change)


def changes_since(view: StoredView, before: StoredView) -> pa.Table:
    """The sum of all changes since the epoch of `before`, whose reader must be open; not of a view of streams. O(rows of both)."""
    assert not is_stream(view)
    spines, dictionaries = view._files_of(view._reader.manifest, range(view._shards))
    spines_before, dictionaries_before = before._files_of(before._reader.manifest, range(before._shards))
    content, content_before = (merge([spine.scan(Counters()).verified() for spine in each]) for each in (spines, spines_before))
    removed = Batch.trusted(content_before.columns, [-weights for weights in content_before.weights])
    strings = file_strings(view._layout.identity, [*dictionaries, *dictionaries_before])
    return view._columns.changes(merge([content, removed]), strings)


def failing_views(reader: StateReader) -> dict[str, int]:
    """The views that have errors, and the number of rows that fail in each. O(errors)."""
    views = {
        view: StoredView(reader, errors_of(view))
        for view in reader.manifest.program.views
        if errors_of(view) in reader.manifest.program.views
    }
    return {view: errors for view, stored in views.items() if (errors := len(stored.to_arrow()))}


def file_strings(identity: Identity | None, dictionaries: Sequence[Dictionary]) -> StringTable:
    """The strings of some files."""
    return StringTable(identity, StateStrings(dictionaries))
