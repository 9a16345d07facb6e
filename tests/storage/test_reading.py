from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from deltic.storage.files import FileRef
from deltic.storage.manifest import SegmentRef
from deltic.storage.reading import OpenFiles, ShardArrangements
from deltic.trace.counters import Counters
from deltic.trace.probe import lookup
from deltic.trace.share import Share
from deltic.trace.spine import Spine
from stored import as_rows, batch_of

Store = Callable[..., tuple[FileRef, SegmentRef]]
WIDTHS = {"a": (1, 1), "none": (2, 1)}


def test_a_spine_has_the_stored_batches() -> None:
    batches = [batch_of((i, 1), (100, 1)) for i in range(20)]
    spine = Spine.over(1, 1, [*batches, batch_of((5, 0))])
    assert spine.batches == tuple(batches)
    assert lookup(spine, [np.array([3, 100, 7000], np.int64)], Counters())[0].tolist() == [1, 20, 0]
    assert len(Spine.over(3, 2, []).scan(Counters())) == 0


def test_arrangements_are_opened_on_demand_and_kept_while_unchanged(root: str, store: Store) -> None:
    parts = [store(batch_of((1, 1), (2, 1)), x=1), store(batch_of((2, -1)), y=2)]
    refs, segments = {ref.name: ref for ref, _ in parts}, tuple(segment for _, segment in parts)
    files = OpenFiles(root)
    arrangements = ShardArrangements(files, refs, {"a": segments}, WIDTHS)
    assert as_rows(arrangements["a"].scan(Counters())) == [(1, 1)]
    assert len(arrangements["none"].batches) == 0
    assert [d.values.to_pylist() for d in sorted(arrangements.dictionaries(), key=lambda d: d.ids[0])] == [[b"x"], [b"y"]]
    same = ShardArrangements(files, refs, {"a": segments}, WIDTHS, arrangements)
    assert same["a"] is arrangements["a"]
    shorter = ShardArrangements(files, refs, {"a": segments[:1]}, WIDTHS, same)
    assert as_rows(shorter["a"].scan(Counters())) == [(1, 1), (2, 1)]


def test_a_shard_scans_its_own_rows_of_a_ranged_segment_whatever_was_open_before(root: str, store: Store) -> None:
    ref, segment = store(batch_of(*((i, 1) for i in range(40))))
    files, refs = OpenFiles(root), {ref.name: ref}
    before: ShardArrangements | None = None
    for shards in (1, 2, 3):
        keys_by_shard = []
        for shard in range(shards):
            listed = replace(segment, shard=shard, ranged=int(shards > 1))
            before = ShardArrangements(files, refs, {"a": (listed,)}, WIDTHS, before, {"a": Share(shard, shards, (0,))})
            keys_by_shard.append([key for key, _ in as_rows(before["a"].scan(Counters()))])
        assert sorted(key for keys in keys_by_shard for key in keys) == list(range(40))
        assert all(keys_by_shard)


def test_files_are_opened_once_until_they_are_released(root: str, store: Store) -> None:
    (one, _), (other, _) = store(batch_of((1, 1))), store(batch_of((2, 1)))
    files = OpenFiles(root)
    opened = files[one]
    assert files[one] is opened
    files.keep([other.name])
    assert files[one] is not opened
