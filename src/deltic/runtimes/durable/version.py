"""DurableVersion: one commit, with the arrangements of a circuit's shards as spines over the state's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deltic.circuit.nodes import ArrangementSpec, Dataflow
from deltic.runtimes import TickResult
from deltic.storage.files import FileRef
from deltic.storage.manifest import Manifest, SegmentRef
from deltic.storage.program import ProgramDescription
from deltic.storage.reading import OpenFiles, ShardArrangements
from deltic.trace.share import Share
from deltic.trace.spine import Spine


@dataclass(frozen=True, slots=True)
class DurableVersion:
    """See Committed."""

    circuit: Dataflow
    manifest: Manifest
    shards: tuple[ShardArrangements, ...]
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

    def snapshot(self, arrangement: str) -> list[Spine]:
        return [shard[arrangement] for shard in self.shards]

    def after(self, circuit: Dataflow, manifest: Manifest, files: OpenFiles) -> DurableVersion:
        """The version of another commit and program; unchanged arrangements are reused."""
        shards = manifest.shards
        before = dict(enumerate(self.shards))
        opened = (
            shard_arrangements(files, manifest.files, segments, circuit.arrangements, shard, shards, before.get(shard))
            for shard, segments in enumerate(manifest.shard_states)
        )
        return DurableVersion(circuit, manifest, tuple(opened), self.last, self.definitions)


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
