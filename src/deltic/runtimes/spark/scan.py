"""Views in a state folder, read where no session is: by key or whole, shard by shard, and epoch by epoch.

Everything is found through the notes of a manifest. Nothing here writes, but for the leases that keep an epoch's files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from deltic.connectors.fitting import fit
from deltic.errors import UnknownName
from deltic.runtimes.durable.strings import StateStrings
from deltic.schema import Field, Schema, Type
from deltic.storage.dictionary import Dictionary
from deltic.storage.reader import StateReader
from deltic.storage.reading import OpenFiles, Shelved
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.encoding import Layout, decode, encode
from deltic.trace.partition import partition
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.share import Share
from deltic.trace.strings import StringTable

BATCH_ROWS: Final = 1 << 16
"""How many rows become one Arrow table at most."""

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StoredView:
    """A view as the notes of a manifest describe it.

    stored: its fields as they lie. order: the position in the user's schema of each. key: how many leading ones rows are found by.
    partition: the stored words whose hash gives a row's shard; () is the home shard, None any shard.
    """

    name: str
    arrangement: str
    stored: Schema
    order: tuple[int, ...]
    key: int
    partition: tuple[int, ...] | None
    widths: tuple[int, int]
    seed: int

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
        return StoredView(name, entry["arrangement"], Schema(fields), tuple(entry["order"]), entry["key"], home, widths, notes["seed"])

    @property
    def schema(self) -> Schema:
        """In the user's order."""
        return Schema(tuple(self.stored[self.order.index(i)] for i in range(len(self.order))))

    @property
    def leading(self) -> tuple[Field, ...]:
        """The fields that rows are found by."""
        return self.stored.fields[: self.key]

    def decoded(self, words: Sequence[np.ndarray], names: Collection[str], strings: StringTable) -> pa.Table:
        """The named columns of rows, in the stored order."""
        wanted = [(f, at) for f, at in zip(self.stored, Layout.of(self.stored).slices, strict=True) if f.name in names]
        return pa.table([decode(words[at], f, strings) for f, at in wanted], names=[f.name for f, _ in wanted])

    def key_words(self, keys: Sequence[Key], strings: StringTable) -> list[np.ndarray]:
        """The words of keys of one length."""
        where = f"a key of view {self.name}"
        columns = zip(zip(*keys, strict=True), self.leading, strict=False)
        return [word for values, f in columns for word in encode(fit(list(values), f, where), f, strings)]

    def homes(self, keys: Sequence[Key] | None, shards: int) -> list[int]:
        """The shards on which rows of these keys, or any rows, can be."""
        if self.partition == ():
            return [0]
        if keys is None or self.partition is None:
            return list(range(shards))
        words = self.key_words(keys, StringTable(self.seed)) if keys else []
        if keys and max(self.partition) >= len(words):
            return list(range(shards))
        rows = Rows(words, [np.ones(len(keys), np.int64)]) if keys else Rows.empty(1, 1)
        return [shard for shard, part in enumerate(partition(rows, self.partition, shards)) if len(part)] if keys else []


class ViewScan:
    """The content of a view at the reader's epoch."""

    def __init__(self, reader: StateReader, view: str) -> None:
        self._reader = reader
        self.view = StoredView.of(reader.manifest.notes, view)

    @cached_property
    def shards(self) -> int:
        return self._reader.manifest.shards

    def read(self, shard: int, keys: Sequence[Key] | None = None) -> Iterator[tuple[Sequence[np.ndarray], np.ndarray, StringTable]]:
        """(words, weights, strings) of a shard's rows, some at a time. keys: of rows to look up; without it all are read."""
        view, manifest = self.view, self._reader.manifest
        shares = {view.arrangement: Share(shard, manifest.shards, view.partition)} if view.partition else {}
        widths = {view.arrangement: view.widths}
        shelf = Shelved(OpenFiles(self._reader.root), manifest.files, manifest.shelves[shard], widths, shares=shares)
        spine = shelf[view.arrangement]
        names = shelf.names(view.arrangement)
        strings = file_strings(view.seed, [shelf.file(name).dictionary() for name in sorted(names, reverse=True)])
        if keys is None:
            found: Rows = spine.scan(Counters()).verified()
        else:
            words = view.key_words(keys, strings)
            _, columns, weights = probe(spine, words, range(view.widths[0]), Counters())
            rows = Rows(columns, weights)
            found = consolidate(shares[view.arrangement].of(rows) if shares else rows)
        for start in range(0, len(found), BATCH_ROWS):
            cut = slice(start, start + BATCH_ROWS)
            yield [c[cut] for c in found.columns], found.weights[0][cut], strings


def file_strings(seed: int, dictionaries: Sequence[Dictionary]) -> StringTable:
    """The strings of some files."""
    return StringTable(seed, StateStrings(dictionaries))
