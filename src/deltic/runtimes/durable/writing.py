"""Writing: the batches that a tick appends to a shard become one file; small existing batches are merged into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from deltic.circuit.nodes import Dataflow
from deltic.runtimes.durable.outcome import Outcome
from deltic.storage.dictionary import Dictionary, named
from deltic.storage.files import Content, Origin, write_file
from deltic.storage.manifest import SegmentRef
from deltic.storage.merging import own_rows, small_merge
from deltic.storage.reading import OpenFiles, ShardArrangements
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.merge import merge
from deltic.trace.strings import StringTable


def write_shard(
    circuit: Dataflow,
    arrangements: ShardArrangements,
    appended: Mapping[str, Batch],
    counters: Mapping[str, Counters],
    strings: StringTable,
    *,
    root: str,
    origin: Origin,
    shards: int,
    filled: bool,
    files: OpenFiles | None = None,
) -> Outcome:
    """Writes and syncs the file, if there is anything to write.

    filled: this is a backfill, whose batches are the first ones. files: the open files, if this process will read what is written.
    O(rows appended), with the rewriting of small batches amortised. Raises StateError, WeightOverflow.
    """
    contents: list[Content] = []
    views: list[tuple[str, int]] = []
    dropped: list[SegmentRef] = []
    for name, batch in sorted(appended.items()):
        spec = circuit.arrangements[name]
        if spec.ephemeral:
            if spec.view is not None:
                views.append((name, len(batch)))
                contents.append(Content(name, batch, spec.strings, "change"))
            continue
        merged, replaced = (batch, []) if filled else _merged(batch, arrangements, name, spec.partition, shards)
        contents += [Content(name, merged, spec.strings)] if len(merged) else []
        dropped += replaced
        if spec.view is not None:
            views.append((name, len(batch)))
            contents += [Content(name, batch, spec.strings, "change")] if replaced else []
    if not contents:
        return Outcome(origin.shard, None, (), dropped, views, counters)
    ids = [named(content.batch, content.strings) for content in contents if content.strings]
    dictionary = Dictionary.of(strings.export(np.concatenate(ids))) if ids else Dictionary.empty()
    ref = write_file(root, origin, contents, dictionary)
    if files is not None:
        files.remember(ref, contents, dictionary)
    added = [(content.arrangement, len(content.batch)) for content in contents if content.role == "batch"]
    return Outcome(origin.shard, ref, added, dropped, views, counters)


def _merged(
    batch: Batch, arrangements: ShardArrangements, name: str, partition: tuple[int, ...] | None, shards: int
) -> tuple[Batch, Sequence[SegmentRef]]:
    """The batch merged with the stored ones that are due for it, and these."""
    segments = arrangements.segments(name)
    chosen = small_merge([*(s.rows for s in segments), len(batch)])
    replaced = [segments[i] for i in chosen if i < len(segments)]
    if not replaced:
        return batch, []
    return merge([*(own_rows(arrangements.file(s.file).batch(name), s, partition, shards) for s in replaced), batch]), replaced
