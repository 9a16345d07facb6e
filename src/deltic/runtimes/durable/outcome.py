"""Outcome: the effect of a level, or of the whole circuit, on its shard; and all outcomes of a tick as one change of the state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from deltic.storage.files import FileRef
from deltic.storage.manifest import Change, SegmentRef
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters


@dataclass(frozen=True, slots=True)
class Outcome:
    """file: the file written; None if nothing changed. added, views: (arrangement, rows) in it. dropped: batches that were merged."""

    shard: int
    file: FileRef | None
    added: Sequence[tuple[str, int]]
    dropped: Sequence[SegmentRef]
    views: Sequence[tuple[str, int]]
    counters: Mapping[str, Counters]


@dataclass(frozen=True, slots=True)
class PerformedTick:
    """A tick on all shards, not committed. changes: (shard, view's arrangement) → its change, unless it must be read from a file."""

    outcomes: Sequence[Outcome]
    changes: Mapping[tuple[int, str], Batch]


def change_of(outcomes: Iterable[Outcome], base: Change, unchanged: Collection[str]) -> Change:
    """All outcomes and `base` as one change. unchanged: arrangements of views that were only filled again."""
    files: list[FileRef] = list(base.files)
    added, dropped, views = list(base.added), list(base.dropped), list(base.views)
    for outcome in outcomes:
        if outcome.file is not None:
            name = outcome.file.name
            files.append(outcome.file)
            added += [SegmentRef(outcome.shard, arrangement, name, rows) for arrangement, rows in outcome.added]
            views += [
                SegmentRef(outcome.shard, arrangement, name, rows) for arrangement, rows in outcome.views if arrangement not in unchanged
            ]
        dropped += outcome.dropped
    return Change(tuple(files), tuple(added), tuple(dropped), tuple(views), base.notes)
