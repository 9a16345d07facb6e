"""LoggedEpoch: an epoch as the commit log holds it: what it appends to each arrangement, with the strings, and the notes it changes.

So replaying it computes nothing: neither the program nor its functions are needed. A record's content is the length of a JSON object, the
object, and then, each from a multiple of 8, the words of the batches and the dictionaries.

    {"at", "notes", "shards": [[shard, [[arrangement, kind, rows, columns, weights, strings]…], [strings, bytes]]…]}

Kinds: 0 a batch, 1 a batch that is also the change of a view, 2 the change of a view that keeps nothing.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from deltic.errors import CorruptState
from deltic.storage.appending import AppendedBatch
from deltic.storage.dictionary import NULL_ID, Dictionary, Words, named
from deltic.storage.folder import StateFolder
from deltic.storage.layout import MOST_COLUMNS
from deltic.storage.log_file import LogRecord, base_of, owner_of, records
from deltic.storage.manifest import LAST_US, MOST_SHARDS, Manifest
from deltic.storage.names import LOG
from deltic.storage.parsing import REMEDY, Json, Malformed, count, counts, items, mapping, member, parsed, reading, string
from deltic.storage.program import ArrangementDescription
from deltic.trace.batch import Batch
from deltic.trace.guard import PAGE_WORDS
from deltic.trace.soundness import RowOrder

_LENGTH: Final = struct.Struct("<Q")
_BATCH, _VIEW, _STREAM = range(3)
_JSON: Final = json.JSONEncoder(separators=(",", ":"))
_LITTLE_ENDIAN: Final = sys.byteorder == "little"


class LoggedShard(NamedTuple):
    """What an epoch appends to one shard. dictionary: all strings that the batches name."""

    shard: int
    appended: tuple[AppendedBatch, ...]
    dictionary: Dictionary


class LoggedEpoch(NamedTuple):
    """at_us: the commit time. notes: as in Change. shards: those that the epoch changes."""

    epoch: int
    at_us: int
    notes: Mapping[str, Json]
    shards: tuple[LoggedShard, ...]

    def encoded(self) -> bytes:
        """The content of its record. O(bytes)."""
        shards = []
        words: list[Any] = []
        for shard in self.shards:
            entries = []
            for each in shard.appended:
                batch = each.change if each.batch is None else each.batch
                assert batch is not None
                kind = _STREAM if each.batch is None else _BATCH if each.change is None else _VIEW
                entries.append([each.arrangement, kind, batch.length, *batch.shape, each.strings])
                words += batch.words if _LITTLE_ENDIAN else [array.astype("<i8") for array in batch.words]
            dictionary = shard.dictionary
            shards.append([shard.shard, entries, [len(dictionary), dictionary.text.nbytes]])
            if len(dictionary):
                words += [dictionary.ids, dictionary.offsets, dictionary.text, bytes(-dictionary.text.nbytes % 8)]
        text = _JSON.encode({"at": self.at_us, "notes": dict(self.notes), "shards": shards}).encode()
        return b"".join((_LENGTH.pack(len(text)), text, bytes(-len(text) % 8), *words))


def decoded(record: LogRecord, arrangements: Mapping[str, ArrangementDescription], shards: int, name: str) -> LoggedEpoch:
    """The epoch of a record of a state with these arrangements. Raises CorruptState unless all of it is valid."""
    with reading(f"{name}: the record of epoch {record.epoch} at byte {record.offset}"):
        if len(record.content) < _LENGTH.size:
            raise Malformed("expected a length")
        size = count(_LENGTH.unpack_from(record.content)[0], "its length", len(record.content) - _LENGTH.size)
        body = parsed(bytes(record.content[_LENGTH.size : _LENGTH.size + size]))
        words = _Words(record.content, _LENGTH.size + size + -size % 8)
        entries = items(member(body, "shards"), "shards")
        parts = tuple(_shard(entry, words, arrangements, shards) for entry in entries)
        if len({part.shard for part in parts}) < len(parts):
            raise Malformed("a shard occurs twice")
        return LoggedEpoch(record.epoch, count(member(body, "at"), "at", LAST_US), mapping(member(body, "notes"), "notes"), parts)


def logs_of(folder: StateFolder) -> dict[str, bytes]:
    """The content of each file of the commit logs, by name; those that continue others come after them."""
    names = [f"{LOG}/{name}" for name in folder.names(LOG) if owner_of(name) is not None] if folder.local else []
    contents = {name: content for name in names if (content := folder.read(name)) is not None}
    return dict(sorted(contents.items(), key=lambda log: base_of(log[1])))


def logged_epochs(content: bytes, name: str, manifest: Manifest, reached: int = -1) -> list[LoggedEpoch]:
    """The epochs of a log that a state lacks. manifest: its newest. reached: the last epoch of the logs before. Raises CorruptState."""
    whole = records(content, name, manifest.epoch)
    if whole and whole[0].base > max(manifest.epoch, reached):
        raise CorruptState(
            f"{name} continues epoch {whole[0].base}, but the last manifest is that of epoch {manifest.epoch}", remedy=REMEDY
        )
    arrangements = manifest.program.arrangements
    return [decoded(record, arrangements, manifest.shards, name) for record in whole if record.epoch > manifest.epoch]


class _Words:
    """Takes arrays from a record, one after another; they are copied, since the log is overwritten."""

    def __init__(self, content: memoryview, start: int) -> None:
        self._content, self._next = content, start

    def words(self, n: int) -> Words:
        return np.frombuffer(self._bytes(8 * n), "<i8").astype(np.int64)

    def text(self, n: int) -> Any:
        return np.frombuffer(self._bytes(n + -n % 8), np.uint8)[:n].copy()

    def _bytes(self, n: int) -> memoryview:
        start, self._next = self._next, self._next + n
        if self._next > len(self._content):
            raise Malformed("its words end early")
        return self._content[start : self._next]


def _shard(entry: Json, words: _Words, arrangements: Mapping[str, ArrangementDescription], shards: int) -> LoggedShard:
    match entry:
        case [number, list(entries), [strings, text]]:
            shard = count(number, "a shard", min(shards, MOST_SHARDS) - 1)
            appended = tuple(_appended(each, words, arrangements) for each in entries)
            if len({each.arrangement for each in appended}) < len(appended):
                raise Malformed("an arrangement occurs twice")
            n, size = count(strings, "strings"), count(text, "bytes")
            dictionary = _dictionary(words.words(n), words.words(n + 1), words.text(size)) if n else Dictionary.empty()
            _check_strings(appended, dictionary)
            return LoggedShard(shard, appended, dictionary)
    raise Malformed("shards: expected a number, batches and strings")


def _appended(entry: Json, words: _Words, arrangements: Mapping[str, ArrangementDescription]) -> AppendedBatch:
    match entry:
        case [name, kind, rows, columns, weights, strings] if string(name, "an arrangement") in arrangements:
            described = arrangements[name]
            widths = count(columns, "columns", MOST_COLUMNS), count(weights, "weights", MOST_COLUMNS)
            if widths != (described.columns, described.weights) or not widths[1]:
                raise Malformed(f"{name} has {widths[0]} columns and {widths[1]} weights")
            n = count(rows, "rows")
            arrays = [words.words(n) for _ in range(sum(widths))]
            batch = _checked(Batch.trusted(arrays[: widths[0]], arrays[widths[0] :]), name)
            places = counts(strings, "strings", widths[0] - 1)
            if count(kind, "kind", _STREAM) != _BATCH and described.view is None:
                raise Malformed(f"{name} is not a view's")
            return AppendedBatch(name, places, None if kind == _STREAM else batch, None if kind == _BATCH else batch)
    raise Malformed("shards: expected the arrangements of the state")


def _checked(batch: Batch, name: str) -> Batch:
    if len(batch) and not RowOrder(batch).check(range(-(-len(batch) // PAGE_WORDS))):
        raise Malformed(f"rows of {name} are out of order, or without weight")
    return batch


def _dictionary(ids: Words, offsets: Words, text: Any) -> Dictionary:
    if ids[0] == NULL_ID or not (ids[1:] > ids[:-1]).all():
        raise Malformed("the ids of strings are out of order")
    if offsets[0] != 0 or offsets[-1] != len(text) or not (offsets[1:] >= offsets[:-1]).all():
        raise Malformed("the offsets of strings are not within their text")
    return Dictionary(ids, offsets, text)


def _check_strings(appended: Sequence[AppendedBatch], dictionary: Dictionary) -> None:
    for each in appended:
        batch = each.change if each.batch is None else each.batch
        assert batch is not None
        if not dictionary.find(named(batch, each.strings))[0].all():
            raise Malformed(f"{each.arrangement} has strings that the record lacks")
