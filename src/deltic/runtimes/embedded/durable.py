"""The embedded runtime with its state in a folder: a tick runs in this process and writes one file for each shard that changes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from deltic.circuit.operator import Tick
from deltic.circuit.pending import PendingRows
from deltic.errors import DelticError
from deltic.runtimes import RETAINED_EPOCHS
from deltic.runtimes.durable import Durable
from deltic.runtimes.durable.logged import stored_part
from deltic.runtimes.durable.merges import Group, Merged, merge_group
from deltic.runtimes.durable.outcome import PerformedTick
from deltic.runtimes.durable.strings import CurrentStrings
from deltic.runtimes.durable.version import DurableVersion
from deltic.runtimes.durable.writing import write_shard
from deltic.runtimes.embedded.levels import Budget, routed, run_levels
from deltic.storage.files import Origin
from deltic.storage.manifest import Manifest
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.identity import Identity
from deltic.trace.strings import StringTable
from deltic.trace.workers import Workers

_log = logging.getLogger(__name__)

Ran = tuple[list[dict[str, Batch]], list[Mapping[str, Counters]]]
"""What `run_levels` returns."""


class DurableEmbedded(Durable):
    """See Durable, and Embedded."""

    def __init__(
        self, state: str, shards: int | None = None, *, retain: int = RETAINED_EPOCHS, logs: bool = False, threads: int = 1
    ) -> None:
        self.workers = Workers(threads)
        super().__init__(state, shards, retain, logs=logs)

    def _string_table(self, identity: Identity) -> StringTable:
        return StringTable(identity, CurrentStrings(self.dictionaries, lambda: self._state.manifest))

    def _perform(self, version: DurableVersion, changes: Mapping[str, PendingRows], tick: Tick) -> PerformedTick:
        return self._written(version, *self._ran(version, changes, tick), tick)

    def _ran(self, version: DurableVersion, changes: Mapping[str, PendingRows], tick: Tick, budget: Budget | None = None) -> Ran:
        arrived = routed(version.circuit, changes, self.shards, self.workers)
        return run_levels(version.circuit, version.shards, self.strings, arrived, tick, self.workers, budget)

    def _written(
        self, version: DurableVersion, appended: Sequence[Mapping[str, Batch]], counters: Sequence[Mapping[str, Counters]], tick: Tick
    ) -> PerformedTick:
        """Writes what a tick appends. version: without epochs that are in the commit log alone."""
        outcomes = [
            write_shard(
                version.circuit,
                stored_part(version.shards[shard]),
                batches,
                counters[shard],
                self.strings,
                root=self._state.root,
                origin=self._state.origin(shard, 0),
                shards=self.shards,
                filled=tick.fresh is not None,
                files=self._files,
            )
            for shard, batches in enumerate(appended)
        ]
        return PerformedTick(outcomes, {(shard, name): batch for shard, batches in enumerate(appended) for name, batch in batches.items()})

    def _merge(self, manifest: Manifest, groups: Sequence[Group], origin: Origin) -> list[Merged]:
        merged = []
        for group in groups:
            try:
                merged.append(merge_group(self._state.root, manifest, group, origin))
            except DelticError as error:
                _log.warning("a background merge of state failed: %s", error)
        return merged
