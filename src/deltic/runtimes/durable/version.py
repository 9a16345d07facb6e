"""DurableVersion: one commit, with the arrangements of a circuit's shards as spines over the state's files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deltic.circuit.nodes import ArrangementSpec, Dataflow
from deltic.runtimes import TickResult
from deltic.runtimes.durable.logged import ArrangementsOfShard, LoggedArrangements, stored_part
from deltic.storage.files import FileRef
from deltic.storage.logged_epoch import LoggedEpoch
from deltic.storage.manifest import KEEP, Manifest, SegmentRef
from deltic.storage.program import ProgramDescription
from deltic.storage.reading import OpenFiles, ShardArrangements
from deltic.trace.batch import Batch
from deltic.trace.share import Share
from deltic.trace.spine import Spine


@dataclass(frozen=True, slots=True)
class DurableVersion:
    """See Committed."""

    circuit: Dataflow
    manifest: Manifest
    shards: tuple[ArrangementsOfShard, ...]
    last: TickResult | None = None
    definitions: object = None

    @property
    def epoch(self) -> int:
        return self.manifest.epoch

    @property
    def notes(self) -> Mapping[str, Any]:
        return self.manifest.notes

    @property
    def program(self) -> ProgramDescription:
        return self.manifest.program

    @property
    def is_logged(self) -> bool:
        """Whether it may have epochs that are not in manifests."""
        return any(isinstance(shard, LoggedArrangements) for shard in self.shards)

    def snapshot(self, arrangement: str) -> list[Spine]:
        return [shard[arrangement] for shard in self.shards]

    def after(self, circuit: Dataflow, manifest: Manifest, files: OpenFiles) -> DurableVersion:
        """The version of another commit and program; unchanged arrangements are reused."""
        shards = manifest.shards
        before = dict(enumerate(map(stored_part, self.shards)))
        opened = (
            shard_arrangements(files, manifest.files, segments, circuit.arrangements, shard, shards, before.get(shard))
            for shard, segments in enumerate(manifest.shard_states)
        )
        return DurableVersion(circuit, manifest, tuple(opened), self.last, self.definitions)

    def logged(
        self,
        epoch: LoggedEpoch,
        batches: Sequence[Mapping[str, Batch]],
        oldest: Callable[[int, int | None], int],
        last: TickResult | None = None,
    ) -> DurableVersion:
        """The version of an epoch that is in the commit log alone, with the result of its tick. batches: by shard and arrangement.

        oldest: as `State.oldest_at`. Raises WeightOverflow.
        """
        keep = epoch.notes[KEEP] if KEEP in epoch.notes else self.manifest.notes.get(KEEP)
        manifest = self.manifest.logged(epoch.epoch, epoch.at_us, epoch.notes, oldest(epoch.epoch, keep))
        ephemeral = self.circuit.ephemeral
        shards = []
        for shard, appended in zip(self.shards, batches, strict=True):
            logged = shard if isinstance(shard, LoggedArrangements) else LoggedArrangements(shard)
            shards.append(logged.appended({name: batch for name, batch in appended.items() if name not in ephemeral}))
        return DurableVersion(self.circuit, manifest, tuple(shards), last, self.definitions)


def shard_arrangements(
    files: OpenFiles,
    refs: Mapping[str, FileRef],
    segments: Mapping[str, Sequence[SegmentRef]],
    specs: Mapping[str, ArrangementSpec],
    shard: int,
    shards: int,
    before: ShardArrangements | None,
) -> ShardArrangements:
    """One shard's arrangements `specs`."""
    widths = {name: (spec.columns, spec.weights) for name, spec in specs.items()}
    shares = {name: Share(shard, shards, spec.partition) for name, spec in specs.items() if spec.partition}
    return ShardArrangements(files, refs, segments, widths, before, shares)
