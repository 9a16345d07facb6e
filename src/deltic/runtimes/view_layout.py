"""ViewLayout: the storage layout of a view, from the description of the program."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa

from deltic.connectors.fitting import fit
from deltic.errors import DataError
from deltic.runtimes.durable.strings import HASH_VERSION
from deltic.runtimes.sought import SoughtValues
from deltic.schema import Field, Schema
from deltic.storage.program import ProgramDescription
from deltic.trace.encoding import Layout, decode, encode
from deltic.trace.identity import Identity
from deltic.trace.partition import partition
from deltic.trace.rows import Rows
from deltic.trace.strings import HashedStrings, StringTable

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ViewLayout:
    """The storage layout of a view.

    stored: its fields in stored order. order: the position of each in the user's schema. key: the number of leading fields to look up
    rows by. partition: the stored words whose hash determines a row's shard; () is the home shard, None any shard. identity: None if the
    string ids are of another version of Deltic. ephemeral: it is a stream, whose content is the change of the epoch.
    """

    name: str
    arrangement: str
    stored: Schema
    order: tuple[int, ...]
    key: int
    partition: tuple[int, ...] | None
    widths: tuple[int, int]
    identity: Identity | None
    ephemeral: bool = False

    @staticmethod
    def of(program: ProgramDescription, view: str) -> ViewLayout:
        """The layout of a view. Raises UnknownName, which lists the existing views."""
        name, entry = program.view(view)
        arrangement = program.arrangements[entry.arrangement]
        identity = program.identity if program.hash_version == HASH_VERSION else None
        widths = (arrangement.columns, arrangement.weights)
        stored, ephemeral = Schema(entry.fields), arrangement.ephemeral
        return ViewLayout(name, entry.arrangement, stored, entry.order, entry.key, arrangement.partition, widths, identity, ephemeral)

    @property
    def schema(self) -> Schema:
        """The schema in the user's order."""
        return Schema(tuple(self.stored[self.order.index(i)] for i in range(len(self.order))))

    @property
    def leading(self) -> tuple[Field, ...]:
        """The fields by which rows are looked up; in a state of another version, those before the first string."""
        fields = self.stored.fields[: self.key]
        return fields if self.identity is not None else tuple(takewhile(lambda f: not f.type.has_bytes, fields))

    def check_sought(self, sought: SoughtValues) -> None:
        """Raises DataError for strings that cannot be looked up, since their ids are those of another version."""
        strings = [self.stored[i].name for i in sought.fields if self.stored[i].type.has_bytes]
        if strings and self.identity is None:
            message = f"view {self.name} cannot be looked up by {', '.join(strings)}: another version of Deltic has written the state"
            raise DataError(message, expected="columns without strings", remedy="select the rows of to_arrow()")

    def decoded(self, words: Sequence[np.ndarray], names: Collection[str], strings: StringTable) -> pa.Table:
        """The named columns of rows, in the stored order."""
        fields = [(f, part) for f, part in zip(self.stored, Layout.of(self.stored).slices, strict=True) if f.name in names]
        return pa.table([decode(words[part], f, strings) for f, part in fields], names=[f.name for f, _ in fields])

    def key_words(self, keys: Sequence[Key], strings: StringTable) -> list[np.ndarray]:
        """The words of keys of one length."""
        where = f"a key of view {self.name}"
        columns = zip(zip(*keys, strict=True), self.leading, strict=False)
        return [word for values, f in columns for word in encode(fit(list(values), f, where), f, strings)]

    def homes(self, keys: Sequence[Key] | None, shards: int) -> list[tuple[int, ...]]:
        """The shards that may have rows of these keys (None: any rows), grouped by those that must be read together.

        Without a partition a row may have been added on one shard and removed on another.
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
