"""Small batches, dictionaries and epochs for the tests of storage."""

from __future__ import annotations

import numpy as np

from deltic.storage.appending import AppendedBatch
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import Content, DataFile, write_file
from deltic.storage.logged_epoch import LoggedEpoch, LoggedShard
from deltic.storage.manifest import Change, SegmentRef
from deltic.storage.state import State
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.rows import Rows


def batch_of(*rows: tuple[int, ...], weights: int = 1) -> Batch:
    """A batch of rows whose last `weights` values are the weights."""
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    return consolidate(Rows(columns[:-weights], columns[-weights:]))


def dictionary_of(**strings: int) -> Dictionary:
    """From bytes to ids, as keywords."""
    texts = [text.encode() for text in sorted(strings, key=strings.__getitem__)]
    offsets = np.cumsum([0, *map(len, texts)])
    return Dictionary(np.array(sorted(strings.values()), np.int64), offsets, np.frombuffer(b"".join(texts), np.uint8))


def as_rows(batch: Rows) -> list[tuple[int, ...]]:
    return list(zip(*(c.tolist() for c in (*batch.columns, *batch.weights)), strict=True))


def append(state: State, key: int, *, drop: tuple[SegmentRef, ...] = ()) -> SegmentRef:
    """One epoch of a state that appends a row to arrangement a."""
    ref = write_file(state.root, state.origin(0, 0), [Content("a", batch_of((key, 1)))], dictionary_of(**{f"key{key}": key}))
    segment = SegmentRef(0, "a", ref.name, 1)
    state.commit(Change((ref,), (segment,), drop, notes={"last": key}))
    return segment


def logged_epoch(epoch: int, key: int, *, at_us: int = 0) -> LoggedEpoch:
    """An epoch for a commit log that appends a row to arrangement a."""
    appended = AppendedBatch("a", (), batch_of((key, 1)), None)
    return LoggedEpoch(epoch, at_us, {"last": key}, (LoggedShard(0, (appended,), Dictionary.empty()),))


def keys_of(state: State) -> list[int]:
    """The rows of arrangement a, every file read and verified anew."""
    keys = []
    for segment in state.manifest.segments():
        file = DataFile(state.root, state.manifest.files[segment.file])
        file.verify()
        keys += [row[0] for row in as_rows(file.batch("a"))]
    return sorted(keys)
