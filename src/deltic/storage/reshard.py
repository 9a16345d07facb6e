"""Resharding: the same state in another number of shards, without writing any data.

A row's shard is its hash modulo the number of shards. So the rows of shard i of n lie, among m shards, in those congruent to i modulo
gcd(n, m): each of these lists the batches of i, and selects its own rows when it scans (merging.own_rows) until a merge has written them
separately. If m divides n there is only one such shard, and nothing is ranged.

For replicated arrangements, every shard lists the batches of shard 0; those of the other shards are dropped.

A batch can be redistributed only as a whole. It is torn if some of its shards have merged their part of it and others have not; the latter
must merge theirs first, or rows would be duplicated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import gcd
from typing import Final

from deltic.errors import StateError
from deltic.storage.manifest import Manifest, SegmentRef, ShardState

SPREAD: Final = "spread"
"""The note of the number of shards under which state without a partition was filled; resharding removes it."""

Partitions = Mapping[str, tuple[int, ...] | None]
"""By arrangement: the columns whose hash determines a row's shard; () if all rows are in shard 0, None if they may be in any."""


def partitions(manifest: Manifest) -> Partitions:
    """The partition of each arrangement that has rows. Raises StateError if the program's description does not record it."""
    result: dict[str, tuple[int, ...] | None] = {}
    for name in sorted({name for shard_state in manifest.shard_states for name in shard_state}):
        spec = manifest.program.arrangements.get(name)
        if spec is None or spec.old:
            raise StateError(
                f"the state has {manifest.shards} shards, but does not record how the rows of arrangement {name} are partitioned",
                expected="a state that this version of Deltic has written to",
                remedy=f"open it once with {manifest.shards} shards and run its program, then with the new number",
            )
        result[name] = spec.partition
    return result


def replicated(manifest: Manifest) -> frozenset[str]:
    """The arrangements of which every shard has all rows."""
    return frozenset(name for name, spec in manifest.program.arrangements.items() if spec.replicated)


def superfluous(manifest: Manifest) -> tuple[SegmentRef, ...]:
    """The segments that resharding drops: those of replicated arrangements in shards other than 0."""
    everywhere = replicated(manifest)
    return tuple(s for s in manifest.segments() if s.shard and s.arrangement in everywhere)


def torn(manifest: Manifest) -> Iterator[tuple[SegmentRef, ...]]:
    """Groups of batches to merge before resharding, each of one arrangement of one shard."""
    listed = Counter((s.arrangement, s.file) for s in manifest.segments() if s.ranged)
    for shard_state in manifest.shard_states:
        for segments in shard_state.values():
            group = [s for s in segments if s.ranged and listed[s.arrangement, s.file] < manifest.shards // s.ranged]
            if group:
                yield tuple(group)


def resharded(manifest: Manifest, shards: int) -> Manifest:
    """The same rows in another number of shards. Nothing may be torn. O(segments · shards)."""
    spread, everywhere = partitions(manifest), replicated(manifest)
    shard_states: list[dict[str, dict[str, SegmentRef]]] = [defaultdict(dict) for _ in range(shards)]
    for segment in manifest.segments():
        if segment.arrangement in everywhere:
            listed = _copied(segment, shards)
        else:
            listed = _moved(segment, spread[segment.arrangement], manifest.shards, shards)
        for moved in listed:
            shard_states[moved.shard][moved.arrangement][moved.file] = moved
    complete: tuple[ShardState, ...] = tuple(
        {name: tuple(refs.values()) for name, refs in shard_state.items()} for shard_state in shard_states
    )
    uses = Counter(segment.file for shard_state in complete for segments in shard_state.values() for segment in segments)
    named = uses.keys() | {segment.file for segment in manifest.views}
    return replace(
        manifest, shard_states=complete, uses=dict(uses), files={name: ref for name, ref in manifest.files.items() if name in named}
    )


def _copied(segment: SegmentRef, new: int) -> Iterator[SegmentRef]:
    """A batch of a replicated arrangement, as `new` shards list it."""
    return (replace(segment, shard=shard) for shard in range(new) if not segment.shard)


def _moved(segment: SegmentRef, partition: tuple[int, ...] | None, old: int, new: int) -> Iterator[SegmentRef]:
    """A batch of a partitioned arrangement, as `new` shards list it."""
    if not partition:
        yield replace(segment, shard=segment.shard % new)
        return
    modulus = gcd(segment.ranged or old, new)
    ranged = 0 if modulus == new else modulus
    for shard in range(segment.shard % modulus, new, modulus):
        yield replace(segment, shard=shard, ranged=ranged)
