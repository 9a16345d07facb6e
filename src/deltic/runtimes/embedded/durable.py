"""The embedded runtime with its state in a folder: a tick runs in this process and writes one file for each shard that changes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from deltic.circuit.operator import Tick
from deltic.circuit.pending import PendingRows
from deltic.errors import DelticError
from deltic.runtimes import RETAINED_EPOCHS
from deltic.runtimes.durable import Durable
from deltic.runtimes.durable.merges import Group, Merged, merge_group
from deltic.runtimes.durable.outcome import Performed
from deltic.runtimes.durable.strings import CurrentStrings
from deltic.runtimes.durable.version import DurableVersion
from deltic.runtimes.durable.writing import write_shard
from deltic.runtimes.embedded.levels import routed, run_levels
from deltic.storage.files import Origin
from deltic.storage.manifest import Manifest
from deltic.trace.identity import Identity
from deltic.trace.strings import StringTable

_log = logging.getLogger(__name__)


class DurableEmbedded(Durable):
    """See Durable. One shard is fastest here."""

    def __init__(self, state: str, shards: int | None = None, *, retain: int = RETAINED_EPOCHS) -> None:
        super().__init__(state, shards, retain)

    def _string_table(self, identity: Identity) -> StringTable:
        return StringTable(identity, CurrentStrings(self.dictionaries))

    def _perform(self, version: DurableVersion, changes: Mapping[str, PendingRows], tick: Tick) -> Performed:
        circuit = version.circuit
        arrived = routed(circuit, changes, self.shards)
        appended, counters = run_levels(circuit, version.shards, self.strings, arrived, tick)
        outcomes = [
            write_shard(
                circuit,
                version.shards[shard],
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
        return Performed(outcomes, {(shard, name): batch for shard, batches in enumerate(appended) for name, batch in batches.items()})

    def _merge(self, manifest: Manifest, groups: Sequence[Group], origin: Origin) -> list[Merged]:
        merged = []
        for group in groups:
            try:
                merged.append(merge_group(self._state.root, manifest, group, origin))
            except DelticError as error:
                _log.warning("a background merge of state failed: %s", error)
        return merged
