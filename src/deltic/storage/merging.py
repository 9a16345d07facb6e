"""Merges: which batches of an arrangement are merged, and the pure function that merges them.

Tiered by rows with ratio 12: tier 0 has batches of up to 256 rows, tier t up to 256 · 12^t. As soon as a tier has twelve batches, they
are merged. A row is written once per tier: 2.7 times over a thousand ticks, 4.1 over ten thousand, and an arrangement has 18 batches
on average and at most 11 per tier (ratio 4: 3.8, 5.3 and 10; ratio 16: 2.7, 3.7 and 23). From a million rows on, the whole arrangement
is also merged when the other batches have twice the rows of the largest, so that cancelled rows take at most twice the space of live ones.
The tick's own task does merges below 16k rows; larger ones run beside the ticks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from deltic.storage.dictionary import Dictionary, named
from deltic.storage.files import Content, FileRef, Origin, write_file
from deltic.storage.manifest import Manifest, SegmentRef
from deltic.storage.reading import OpenFiles, shaped
from deltic.trace.batch import Batch
from deltic.trace.merge import merge
from deltic.trace.partition import partition as partitioned

RATIO: Final = 12
BASE_ROWS: Final = 256
TICK_ROWS: Final = 1 << 14
"""The tick's task does merges of fewer rows."""
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
) -> tuple[FileRef | None, SegmentRef | None]:
    """Writes the sum of batches of one arrangement, with its strings, to a new file; (None, None) if all rows cancel.

    partition, shards: as in `own_rows`, needed for ranged segments; the result is not ranged. The result depends on the set of batches
    only, except for the file's name. Raises WeightOverflow, CorruptState.
    """
    files = OpenFiles(root)
    opened = [files[refs[segment.file]] for segment in segments]
    arrangement = segments[0].arrangement
    strings = opened[0].place(arrangement).strings
    first = opened[0].batch(arrangement)
    batches = [shaped(file.batch(arrangement), (len(first.columns), len(first.weights)), file.name) for file in opened]
    merged = merge([own_rows(batch, segment, partition, shards) for batch, segment in zip(batches, segments, strict=True)])
    if not len(merged):
        return None, None
    union = Dictionary.union([file.dictionary() for file in opened] if strings else [])
    dictionary = union.restrict(named(merged, strings))
    ref = write_file(root, origin, [Content(arrangement, merged, strings)], dictionary)
    return ref, SegmentRef(segments[0].shard, arrangement, ref.name, len(merged))
