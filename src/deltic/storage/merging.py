"""Merges: which batches of an arrangement are merged, and the pure function that merges them.

Tiered by rows with ratio 12: tier 0 has batches of up to 256 rows, tier t up to 256 · 12^t. As soon as a tier has twelve batches, they
are merged. A row is written once per tier: 2.7 times over a thousand ticks, 4.1 over ten thousand, and an arrangement has 18 batches
on average and at most 11 per tier (ratio 4: 3.8, 5.3 and 10; ratio 16: 2.7, 3.7 and 23). From a million rows on, the whole arrangement
is also merged when the other batches have twice the rows of the largest, so that cancelled rows take at most twice the space of live ones.
The tick's own task does merges below 16k rows, and those with a batch that cancels at least half of the rows; larger ones run beside the
ticks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np

from deltic.storage.dictionary import Dictionary
from deltic.storage.files import FileRef, Origin
from deltic.storage.folder import folder_at
from deltic.storage.layout import Words
from deltic.storage.manifest import Manifest, SegmentRef
from deltic.storage.reading import OpenFiles, shaped
from deltic.storage.streamed_file import FileShape, StreamedFile
from deltic.trace.batch import Batch
from deltic.trace.cuts import common_cuts
from deltic.trace.merge import merge
from deltic.trace.partition import partition as partitioned
from deltic.trace.streamed_index import StreamedIndex

RATIO: Final = 12
BASE_ROWS: Final = 256
TICK_ROWS: Final = 1 << 14
"""The tick's task does merges of fewer rows."""
PART_BYTES: Final = 1 << 25
"""Of the batches that are merged, and of the result, about so much is in memory at a time."""
STALE_ROWS: Final = 1 << 20
STALE: Final = 2
"""An arrangement of at least STALE_ROWS rows is merged as a whole when its other batches have STALE times the rows of the largest."""


def tier(rows: int) -> int:
    """
    >>> [tier(n) for n in (1, 256, 257, 3072, 3073)]
    [0, 0, 1, 1, 2]
    """
    level, capacity = 0, BASE_ROWS
    while capacity < rows:
        level, capacity = level + 1, capacity * RATIO
    return level


def due(rows: Sequence[int]) -> list[int]:
    """The positions of the batches to merge now, in order; [] if none.

    These are the batches of the lowest tier with twelve or more, and those of a higher tier if the result would be its twelfth.

    >>> due([1000, *[10] * 12]), due([*[200] * 12, *[2000] * 11]) == list(range(23)), due([10] * 11)
    ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], True, [])
    """
    tiers: dict[int, list[int]] = defaultdict(list)
    for position, count in enumerate(rows):
        tiers[tier(count)].append(position)
    full = [level for level in sorted(tiers) if len(tiers[level]) >= RATIO]
    if not full:
        return []
    chosen = list(tiers[full[0]])
    while True:
        above = [i for i in tiers[tier(sum(rows[i] for i in chosen))] if i not in chosen]
        if len(above) < RATIO - 1:
            return sorted(chosen)
        chosen += above


def small_merge(rows: Sequence[int]) -> list[int]:
    """`due` for merges that the tick's task does: of fewer than 16k rows."""
    small = [i for i, count in enumerate(rows) if count < TICK_ROWS]
    chosen = [small[i] for i in due([rows[i] for i in small])]
    return chosen if sum(rows[i] for i in chosen) < TICK_ROWS else []


def stale(rows: Sequence[int]) -> bool:
    """Whether the other batches outweigh the largest so much that all should be merged.

    >>> stale([1_000_000, 1_000_000, 900_000]), stale([1_000_000, 1_000_000, 1_000_000]), stale([1, 1, 1])
    (False, True, False)
    """
    return sum(rows) >= STALE_ROWS and sum(rows) - max(rows) >= STALE * max(rows)


def large_merges(manifest: Manifest) -> list[tuple[SegmentRef, ...]]:
    """Groups of batches to merge beside the ticks, each of one arrangement of one shard."""
    groups = []
    for shard_state in manifest.shard_states:
        for segments in shard_state.values():
            rows = [segment.rows for segment in segments]
            chosen = range(len(rows)) if stale(rows) else due(rows)
            if sum(segments[i].rows for i in chosen) >= TICK_ROWS:
                groups.append(tuple(segments[i] for i in chosen))
    return groups


def own_rows(batch: Batch, segment: SegmentRef, partition: Sequence[int] | None, shards: int) -> Batch:
    """The rows of a segment's batch that belong to its shard; the batch itself if the segment is not ranged. O(rows).

    partition: the columns whose hash determines a row's shard among `shards`.
    """
    if not segment.ranged:
        return batch
    assert partition, f"arrangement {segment.arrangement} is not partitioned by its rows"
    rows = partitioned(batch.verified(), partition, shards)[segment.shard]
    return batch if len(rows) == len(batch) else Batch.trusted(rows.columns, rows.weights)


def merge_segments(
    root: str,
    refs: Mapping[str, FileRef],
    segments: Sequence[SegmentRef],
    origin: Origin,
    *,
    partition: Sequence[int] | None = None,
    shards: int = 1,
    part_bytes: int = PART_BYTES,
) -> tuple[FileRef | None, SegmentRef | None]:
    """Writes the sum of batches of one arrangement, with its strings, to a new file; (None, None) if all rows cancel.

    partition, shards: as in `own_rows`, needed for ranged segments; the result is not ranged. The result depends on the set of batches
    only, except for the file's name. part_bytes: about how much of the batches, and of the result, is in memory at a time.
    Raises WeightOverflow, CorruptState, StateError.
    """
    merge = SegmentMerge(root, refs, segments, (partition, shards), part_bytes)
    parts = merge.parts()
    if (first := next(parts, None)) is None:
        return None, None
    name = origin.new_name()
    with folder_at(root).fill_data(name) as file:
        streamed = StreamedFile(file, merge.shape, merge.index)
        rows = 0
        for part in chain((first,), parts):
            streamed.append(part)
            rows += len(part)
        for strings in merge.strings(streamed.named()):
            streamed.append_strings(strings)
        ref = streamed.end(name)
    return ref, SegmentRef(segments[0].shard, merge.shape.arrangement, name, rows)


class SegmentMerge:
    """The sum of batches of one arrangement, part by part. spread: the partition and the shards."""

    def __init__(
        self,
        root: str,
        refs: Mapping[str, FileRef],
        segments: Sequence[SegmentRef],
        spread: tuple[Sequence[int] | None, int],
        part_bytes: int,
    ) -> None:
        self._segments, self._spread = segments, spread
        files = OpenFiles(root)
        self._files = [files[refs[segment.file]] for segment in segments]
        arrangement = segments[0].arrangement
        strings = self._files[0].place(arrangement).strings
        first = self._files[0].batch(arrangement)
        widths = len(first.columns), len(first.weights)
        self._batches = [shaped(file.batch(arrangement), widths, file.name) for file in self._files]
        self._dictionaries = [file.dictionary() for file in {file.name: file for file in self._files}.values()] if strings else []
        rows = [len(batch) for batch in self._batches]
        self._step = max(1, part_bytes // (8 * sum(widths) * len(segments)))
        self._part_bytes = part_bytes
        self.index = StreamedIndex([batch.columns for batch in self._batches], self._expected(rows))
        """Of the result."""
        count, text = (
            (sum(size) for size in zip(*((len(each), len(each.text)) for each in self._dictionaries), strict=True)) if strings else (0, 0)
        )
        self.shape = FileShape(arrangement, *widths, strings, sum(rows), count, text)

    def _expected(self, rows: Sequence[int]) -> int:
        """About how many rows the result has."""
        shards = self._spread[1]
        return sum(count // shards if segment.ranged else count for count, segment in zip(rows, self._segments, strict=True))

    def parts(self) -> Iterator[Batch]:
        """The rows of the result."""

        def reach(number: int, start: int) -> int:
            batch = self._batches[number]
            if batch.guard is not None:
                batch.guard.rows(start, min(start + self._step + 1, len(batch)))
            return start + self._step

        for cut in common_cuts([batch.columns for batch in self._batches], [len(batch) for batch in self._batches], reach):
            slices = [batch.slice(*rows) for batch, rows in zip(self._batches, cut, strict=True)]
            part = merge([own_rows(each, segment, *self._spread) for each, segment in zip(slices, self._segments, strict=True)])
            if len(part):
                yield part
            for file, rows in zip(self._files, cut, strict=True):
                file.release(self.shape.arrangement, *rows)

    def strings(self, named: Sequence[Words]) -> Iterator[Dictionary]:
        """The strings with these ids, given as ascending runs, in the order of the ids."""
        tables = [*(each.ids for each in self._dictionaries), *named]
        count = max(1, self._part_bytes // (8 * max(len(tables), 1)))
        size = self._part_bytes // max(len(self._dictionaries), 1)

        def reach(number: int, start: int) -> int:
            return self._dictionaries[number].reach(start, count, size) if number < len(self._dictionaries) else start + count

        for cut in common_cuts([[ids] for ids in tables], [len(ids) for ids in tables], reach):
            slices = [each.slice(*rows) for each, rows in zip(self._dictionaries, cut, strict=False)]
            ids = [run[slice(*rows)] for run, rows in zip(named, cut[len(slices) :], strict=True)]
            if any(len(each) for each in ids):
                yield Dictionary.union(slices).restrict(np.concatenate(ids))
