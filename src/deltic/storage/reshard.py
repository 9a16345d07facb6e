"""Resharding: the same state in another number of shards, without writing any data.

A row's shard is its hash modulo the number of shards. So the rows of shard i of n lie, among m shards, in those that equal i modulo
gcd(n, m): each of them lists the batches of i, and takes its own rows out of them when it scans (merging.own_rows) until a merge has
written them apart. Where m divides n there is only one such shard, and nothing is ranged.

What every shard has all of is taken from shard 0 by all of them; what the others had is dropped.

A batch can be listed anew only as a whole. One is torn if some of its shards have merged their part of it and others have not; the
latter have to merge theirs first, or rows would come twice.
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
"""The note of the number of shards for which state was filled that lies where it was computed; resharding takes it away."""

Partitions = Mapping[str, tuple[int, ...] | None]
"""By arrangement: the columns whose words say a row's shard; () if all rows are in shard 0, None if they may be anywhere."""


def partitions(manifest: Manifest) -> Partitions:
    """Of the arrangements that have rows, as the description of the program says. Raises StateError if it does not say it."""
    found: dict[str, tuple[int, ...] | None] = {}
    for name in sorted({name for shard_state in manifest.shard_states for name in shard_state}):
        spec = manifest.program.arrangements.get(name)
        if spec is None or spec.old:
            raise StateError(
                f"the state has {manifest.shards} shards, and it does not say how the rows of arrangement {name} are spread over them",
                expected="a state that this version of Deltic has written to",
                remedy=f"open it once with {manifest.shards} shards and run its program, then with the new number",
            )
        found[name] = spec.partition
    return found


def replicated(manifest: Manifest) -> frozenset[str]:
    """The arrangements of which every shard has all rows."""
    return frozenset(name for name, spec in manifest.program.arrangements.items() if spec.replicated)


def superfluous(manifest: Manifest) -> tuple[SegmentRef, ...]:
    """What resharding drops: what shards other than 0 have of what every shard has."""
    everywhere = replicated(manifest)
    return tuple(s for s in manifest.segments() if s.shard and s.arrangement in everywhere)


def torn(manifest: Manifest) -> Iterator[tuple[SegmentRef, ...]]:
    """What has to be merged before the state can be resharded: groups of batches, each of one arrangement of one shard."""
    listed = Counter((s.arrangement, s.file) for s in manifest.segments() if s.ranged)
    for shard_state in manifest.shard_states:
        for segments in shard_state.values():
            mine = [s for s in segments if s.ranged and listed[s.arrangement, s.file] < manifest.shards // s.ranged]
            if mine:
                yield tuple(mine)


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
    made: tuple[ShardState, ...] = tuple(
        {name: tuple(found.values()) for name, found in shard_state.items()} for shard_state in shard_states
    )
    uses = Counter(segment.file for shard_state in made for segments in shard_state.values() for segment in segments)
    named = uses.keys() | {segment.file for segment in manifest.views}
    return replace(manifest, shard_states=made, uses=dict(uses), files={name: ref for name, ref in manifest.files.items() if name in named})


def _copied(segment: SegmentRef, new: int) -> Iterator[SegmentRef]:
    """Where a batch of what every shard has is listed among `new` shards."""
    return (replace(segment, shard=shard) for shard in range(new) if not segment.shard)


def _moved(segment: SegmentRef, partition: tuple[int, ...] | None, old: int, new: int) -> Iterator[SegmentRef]:
    """Where a batch is listed among `new` shards."""
    if not partition:
        yield replace(segment, shard=segment.shard % new)
        return
    modulus = gcd(segment.ranged or old, new)
    ranged = 0 if modulus == new else modulus
    for shard in range(segment.shard % modulus, new, modulus):
        yield replace(segment, shard=shard, ranged=ranged)
