"""Writing: the batches that a tick appends to a shard, as storage appends them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deltic.circuit.nodes import Dataflow
from deltic.runtimes.durable.outcome import Outcome
from deltic.storage.appending import AppendedBatch, Words, append_to_shard
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import Origin
from deltic.storage.manifest import SegmentRef
from deltic.storage.reading import OpenFiles, ShardArrangements
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.strings import StringTable


def appended_to(circuit: Dataflow, batches: Mapping[str, Batch]) -> list[AppendedBatch]:
    """The batches of a tick, by arrangement. Those of streams that are no views are left out: nothing keeps them."""
    result = []
    for name, batch in sorted(batches.items()):
        spec = circuit.arrangements[name]
        if spec.view is not None or not spec.ephemeral:
            result.append(AppendedBatch(name, spec.strings, None if spec.ephemeral else batch, None if spec.view is None else batch))
    return result


def write_shard(
    circuit: Dataflow,
    arrangements: ShardArrangements,
    batches: Mapping[str, Batch],
    counters: Mapping[str, Counters],
    strings: StringTable,
    *,
    root: str,
    origin: Origin,
    shards: int,
    filled: bool,
    files: OpenFiles | None = None,
) -> Outcome:
    """Writes and syncs the file, if there is anything to write; see `append_to_shard`.

    filled: this is a backfill, whose batches are the first ones. files: the open files, if this process will read what is written.
    """

    def dictionary_of(ids: Words, _: Sequence[SegmentRef]) -> Dictionary:
        return Dictionary.of(strings.export(ids))

    written = append_to_shard(
        appended_to(circuit, batches),
        None if filled else arrangements,
        dictionary_of,
        lambda name: circuit.arrangements[name].partition,
        root=root,
        origin=origin,
        shards=shards,
        files=files,
    )
    return Outcome(origin.shard, written.file, written.added, written.dropped, written.views, counters)
