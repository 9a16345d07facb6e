"""Appending: the batches that an epoch adds to a shard become one file; small existing batches are merged into them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from deltic.errors import WeightOverflow
from deltic.storage.dictionary import Dictionary, named
from deltic.storage.files import Content, DataFile, FileRef, Origin, write_file
from deltic.storage.manifest import SegmentRef
from deltic.storage.merging import TICK_ROWS, own_rows, small_merge
from deltic.storage.reading import OpenFiles
from deltic.trace.batch import Batch
from deltic.trace.merge import cancels, merge

Words = npt.NDArray[np.int64]


class AppendedBatch(NamedTuple):
    """What an epoch adds to an arrangement. strings: the columns that hold string ids.

    batch: None for a stream, which keeps nothing. change: of a view in this epoch; None if the arrangement is not a view's, or unchanged.
    """

    arrangement: str
    strings: tuple[int, ...]
    batch: Batch | None
    change: Batch | None


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """file: None if there was nothing to write. added, views: (arrangement, rows) in it. dropped: batches that were merged."""

    file: FileRef | None
    added: Sequence[tuple[str, int]]
    dropped: Sequence[SegmentRef]
    views: Sequence[tuple[str, int]]


class StoredBatches(Protocol):
    """A shard's stored batches."""

    def segments(self, arrangement: str) -> Sequence[SegmentRef]: ...

    def file(self, name: str) -> DataFile: ...


def append_to_shard(
    appended: Iterable[AppendedBatch],
    stored: StoredBatches | None,
    dictionary_of: Callable[[Words, Sequence[SegmentRef]], Dictionary],
    partitions: Callable[[str], tuple[int, ...] | None],
    *,
    root: str,
    origin: Origin,
    shards: int,
    files: OpenFiles | None = None,
    synced: bool = True,
) -> WrittenFile:
    """Writes the file, if there is anything to write, and syncs it unless `synced` is false.

    stored: None if these batches are the first ones. dictionary_of: the strings with these ids, some of which are only in the files of
    these segments. partitions: by arrangement the columns whose hash determines a row's shard. files: the open files, if this process will
    read what is written. O(rows appended), with the rewriting of small batches amortised. Raises StateError.
    """
    contents: list[Content] = []
    views: list[tuple[str, int]] = []
    dropped: list[SegmentRef] = []
    for each in appended:
        merged, replaced = each.batch, list[SegmentRef]()
        if stored is not None and each.batch is not None:
            merged, replaced = _merged(each.batch, stored, each.arrangement, partitions, shards)
        if merged is not None and len(merged):
            contents.append(Content(each.arrangement, merged, each.strings))
        dropped += replaced
        if each.change is not None:
            views.append((each.arrangement, len(each.change)))
            contents += [Content(each.arrangement, each.change, each.strings, "change")] if merged is not each.change else []
    if not contents:
        return WrittenFile(None, (), dropped, views)
    ids = [named(content.batch, content.strings) for content in contents if content.strings]
    dictionary = dictionary_of(np.concatenate(ids), dropped) if ids else Dictionary.empty()
    ref = write_file(root, origin, contents, dictionary, synced=synced)
    if files is not None:
        files.remember(ref, contents, dictionary)
    return WrittenFile(ref, [(c.arrangement, len(c.batch)) for c in contents if c.role == "batch"], dropped, views)


def _merged(
    batch: Batch, stored: StoredBatches, name: str, partitions: Callable[[str], tuple[int, ...] | None], shards: int
) -> tuple[Batch, list[SegmentRef]]:
    """The batch merged with the stored ones that are due for it, and these: with all if it cancels most of their rows.

    The sum of some rows in those batches may be beyond 64 bits though that in all of them is not. Then it is merged with all, if they are
    small, or stays apart.
    """
    segments = stored.segments(name)
    rows = [*(s.rows for s in segments), len(batch)]
    removes = cancels(batch, sum(s.rows for s in segments))
    everything = range(len(rows)) if removes or sum(rows) < TICK_ROWS else ()
    for chosen in (everything,) if removes else (small_merge(rows), everything):
        replaced = [segments[i] for i in chosen if i < len(segments)]
        if not replaced:
            break
        batches = [own_rows(stored.file(s.file).batch(name), s, partitions(name), shards) for s in replaced]
        with suppress(WeightOverflow):
            return merge([*batches, batch]), replaced
    return batch, []
