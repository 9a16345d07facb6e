"""Views in a state folder, read where no session is: by key or whole, shard by shard, and epoch by epoch.

Everything is found through the notes of a manifest. Nothing here writes, but for the leases that keep an epoch's files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import takewhile
from typing import Any, Final

import numpy as np
import pyarrow as pa

from deltic.connectors.fitting import fit
from deltic.errors import UnknownName
from deltic.runtimes.durable.strings import HASH_VERSION, StateStrings, identity_of
from deltic.schema import STRING, Field, Schema, Type
from deltic.storage.dictionary import Dictionary
from deltic.storage.reader import StateReader
from deltic.storage.reading import OpenFiles, Shelved
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.encoding import Layout, decode, encode
from deltic.trace.identity import Identity
from deltic.trace.merge import merge
from deltic.trace.partition import partition
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.share import Share
from deltic.trace.spine import Spine
from deltic.trace.strings import HashedStrings, StringTable

BATCH_ROWS: Final = 1 << 16
"""How many rows become one Arrow table at most."""

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StoredView:
    """A view as the notes of a manifest describe it.

    stored: its fields as they lie. order: the position in the user's schema of each. key: how many leading ones rows are found by.
    partition: the stored words whose hash gives a row's shard; () is the home shard, None any shard. identity: None if
    another version of Deltic made the string ids.
    """

    name: str
    arrangement: str
    stored: Schema
    order: tuple[int, ...]
    key: int
    partition: tuple[int, ...] | None
    widths: tuple[int, int]
    identity: Identity | None

    @staticmethod
    def of(notes: Mapping[str, Any], view: str) -> StoredView:
        """Raises UnknownName, which lists the views there are."""
        views = {name.lower(): name for name in notes.get("views", {})}
        if (name := views.get(view.lower())) is None:
            near = get_close_matches(view.lower(), views, 1)
            raise UnknownName(
                f"the state has no view {view}",
                expected=f"one of {', '.join(views.values())}" if views else "a state with a materialized view",
                remedy=f"did you mean {views[near[0]]}?" if near else None,
            )
        entry = notes["views"][name]
        found = notes["arrangements"][entry["arrangement"]]
        fields = tuple(Field(column, Type.parse(sql), nullable) for column, sql, nullable in entry["fields"])
        home = None if found["partition"] is None else tuple(found["partition"])
        widths = (found["columns"], found["weights"])
        identity = None if notes.get("hash") != HASH_VERSION else identity_of(notes)
        return StoredView(name, entry["arrangement"], Schema(fields), tuple(entry["order"]), entry["key"], home, widths, identity)

    @property
    def schema(self) -> Schema:
        """In the user's order."""
        return Schema(tuple(self.stored[self.order.index(i)] for i in range(len(self.order))))

    @property
    def leading(self) -> tuple[Field, ...]:
        """The fields that rows are found by; of a state of another version, those before the first string."""
        fields = self.stored.fields[: self.key]
        return fields if self.identity is not None else tuple(takewhile(lambda f: f.type != STRING, fields))

    def decoded(self, words: Sequence[np.ndarray], names: Collection[str], strings: StringTable) -> pa.Table:
        """The named columns of rows, in the stored order."""
        wanted = [(f, at) for f, at in zip(self.stored, Layout.of(self.stored).slices, strict=True) if f.name in names]
        return pa.table([decode(words[at], f, strings) for f, at in wanted], names=[f.name for f, _ in wanted])

    def key_words(self, keys: Sequence[Key], strings: StringTable) -> list[np.ndarray]:
        """The words of keys of one length."""
        where = f"a key of view {self.name}"
        columns = zip(zip(*keys, strict=True), self.leading, strict=False)
        return [word for values, f in columns for word in encode(fit(list(values), f, where), f, strings)]

    def homes(self, keys: Sequence[Key] | None, shards: int) -> list[tuple[int, ...]]:
        """The shards on which rows of these keys, or any rows, can be; those together that must be read together.

        Where no hash says on which shard a row is, it may be there on one and be taken away on another.
        """
        if self.partition is None:
            return [tuple(range(shards))]
        if not self.partition:
            return [(0,)]
        every: list[tuple[int, ...]] = [(shard,) for shard in range(shards)]
        if not keys:
            return every if keys is None else []
        words = self.key_words(keys, HashedStrings(self.identity))
        if max(self.partition) >= len(words):
            return every
        parts = partition(Rows(words, [np.ones(len(keys), np.int64)]), self.partition, shards)
        return [home for home, part in zip(every, parts, strict=True) if len(part)]


class ViewScan:
    """The content of a view at the reader's epoch."""

    def __init__(self, reader: StateReader, view: str) -> None:
        self._reader = reader
        self.view = StoredView.of(reader.manifest.notes, view)

    @cached_property
    def shards(self) -> int:
        return self._reader.manifest.shards

    def read(
        self, shards: Sequence[int], keys: Sequence[Key] | None = None
    ) -> Iterator[tuple[Sequence[np.ndarray], np.ndarray, StringTable]]:
        """(words, weights, strings) of the rows of shards, some at a time. keys: of rows to look up; without it all are read."""
        view, files = self.view, OpenFiles(self._reader.root)
        shelves = [self._shelf(files, shard) for shard in shards]
        names = sorted({name for shelf in shelves for name in shelf.names(view.arrangement)}, reverse=True)
        strings = file_strings(view.identity, [files[self._reader.manifest.files[name]].dictionary() for name in names])
        spines = [shelf[view.arrangement] for shelf in shelves]
        if keys is None:
            found: Rows = merge([spine.scan(Counters()).verified() for spine in spines])
        else:
            words = view.key_words(keys, strings)
            parts = [self._probed(spine, words, shard) for shard, spine in zip(shards, spines, strict=True)]
            found = consolidate(Rows.concat(parts))
        for start in range(0, len(found), BATCH_ROWS):
            cut = slice(start, start + BATCH_ROWS)
            yield [c[cut] for c in found.columns], found.weights[0][cut], strings

    def _probed(self, spine: Spine, words: Sequence[np.ndarray], shard: int) -> Rows:
        _, columns, weights = probe(spine, words, range(self.view.widths[0]), Counters())
        share = self._share(shard)
        return Rows(columns, weights) if share is None else share.of(Rows(columns, weights))

    def _share(self, shard: int) -> Share | None:
        """Which rows are the shard's: a file from before the number of shards changed has others' as well."""
        return Share(shard, self.shards, self.view.partition) if self.view.partition else None

    def _shelf(self, files: OpenFiles, shard: int) -> Shelved:
        manifest, name, share = self._reader.manifest, self.view.arrangement, self._share(shard)
        shares = {} if share is None else {name: share}
        return Shelved(files, manifest.files, manifest.shelves[shard], {name: self.view.widths}, shares=shares)


def file_strings(identity: Identity | None, dictionaries: Sequence[Dictionary]) -> StringTable:
    """The strings of some files."""
    return StringTable(identity, StateStrings(dictionaries))
