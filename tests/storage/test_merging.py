from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltic.errors import WeightOverflow
from deltic.storage.files import DataFile, Origin
from deltic.storage.manifest import Change, Manifest, SegmentRef
from deltic.storage.merging import RATIO, TICK_ROWS, due, large_merges, merge_segments, own_rows, small_merge, tier
from deltic.trace.partition import partition
from stored import as_rows, batch_of

ORIGIN = Origin(1, 2, 0, 0)
Store = Callable[..., tuple]


def test_a_merge_is_the_sum_whatever_the_order(root: str, store: Store) -> None:
    parts = [store(batch_of((1, 1), (2, 1)), x=1, y=2), store(batch_of((2, -1), (3, 4)), y=2, z=3), store(batch_of((1, 2)), x=1)]
    refs = {ref.name: ref for ref, _ in parts}
    segments = [segment for _, segment in parts]
    results = []
    for order in (segments, segments[::-1]):
        ref, segment = merge_segments(root, refs, order, ORIGIN)
        file = DataFile(root, ref)
        results.append((as_rows(file.batch("a")), file.dictionary().values.to_pylist(), ref.checksum, segment.rows))
        assert (segment.shard, segment.arrangement, segment.file) == (0, "a", ref.name)
    assert results[0] == results[1]
    assert results[0][:2] == ([(1, 3), (3, 4)], [b"x", b"z"])


def test_a_merge_leaves_its_inputs(root: str, store: Store) -> None:
    parts = [store(batch_of((1, 1))), store(batch_of((1, -1)))]
    assert merge_segments(root, {ref.name: ref for ref, _ in parts}, [s for _, s in parts], ORIGIN) == (None, None)
    assert [as_rows(DataFile(root, ref).batch("a")) for ref, _ in parts] == [[(1, 1)], [(1, -1)]]


def test_an_overflow_is_an_error(root: str, store: Store) -> None:
    parts = [store(batch_of((1, 2**62))), store(batch_of((1, 2**62)))]
    with pytest.raises(WeightOverflow):
        merge_segments(root, {ref.name: ref for ref, _ in parts}, [s for _, s in parts], ORIGIN)


def test_tick_tasks_merge_only_what_is_small() -> None:
    assert small_merge([10**6, *[5] * RATIO]) == list(range(1, RATIO + 1))
    assert small_merge([2000] * RATIO) == []
    assert small_merge([TICK_ROWS] * RATIO) == []


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=600))
def test_batches_stay_few_and_rows_are_rewritten_once_per_tier(ticks: list[int]) -> None:
    batches: list[int] = []
    written = 0
    for rows in ticks:
        batches.append(rows)
        while chosen := due(batches):
            merged = sum(batches[i] for i in chosen)
            batches = [count for i, count in enumerate(batches) if i not in chosen] + [merged]
            written += merged
        assert len(batches) <= (RATIO - 1) * (1 + tier(sum(batches)))
    assert sum(batches) == sum(ticks)
    grown = max(sum(1 for rows in ticks if tier(rows) == 0) * 256, 1)
    assert written <= 2 * (1 + tier(sum(ticks))) * sum(ticks) + grown * 2


def test_a_thousand_ticks_are_written_less_than_three_times() -> None:
    """What the bound on the bytes written per byte of change stands on."""
    batches: list[int] = []
    written, most = 0, 0
    for _ in range(1000):
        batches.append(1000)
        chosen = due(batches)
        merged = sum(batches[i] for i in chosen)
        in_tick = 0 < merged < TICK_ROWS
        batches = [count for i, count in enumerate(batches) if i not in chosen] + ([merged] if chosen else [])
        written += merged + (0 if in_tick else 1000)
        most = max(most, len(batches))
    assert written < 2.75 * 1_000_000
    assert most <= 28


def test_merges_drop_rows_of_weight_zero(store: Store) -> None:
    def merged_now(*rows: int) -> bool:
        segments = tuple(SegmentRef(0, "a", f"f{i}", count) for i, count in enumerate(rows))
        return large_merges(Manifest.before(1).after(Change(added=segments), 1)) == [segments]

    assert merged_now(400_000, 400_000, 400_000)
    assert not merged_now(400_000, 400_000, 300_000)
    assert not merged_now(40_000, 40_000, 40_000)


def test_merges_of_ranged_segments_write_whole_ones(root: str, store: Store) -> None:
    whole = batch_of(*((key, 1) for key in range(100)))
    ref, segment = store(whole, x=3)
    parts = partition(whole, [0], 3)
    for shard, part in enumerate(parts):
        ranged = replace(segment, shard=shard, ranged=1)
        file, merged = merge_segments(root, {ref.name: ref}, [ranged], ORIGIN, partition=[0], shards=3)
        assert as_rows(DataFile(root, file).batch("a")) == as_rows(part) == as_rows(own_rows(whole, ranged, [0], 3))
        assert (merged.shard, merged.rows, merged.ranged) == (shard, len(part), 0)
        assert len(DataFile(root, file).dictionary()) == (3 in part.columns[0])
    assert own_rows(whole, segment, None, 3) is whole


def test_large_merges_are_named_from_the_manifest(store: Store) -> None:
    many = batch_of(*((i, 1) for i in range(5000)))
    parts = [store(many, shard=1) for _ in range(RATIO)] + [store(batch_of((1, 1)), arrangement="b") for _ in range(RATIO)]
    manifest = Manifest.before(2).after(Change(tuple(r for r, _ in parts), tuple(s for _, s in parts)), 1)
    assert large_merges(manifest) == [tuple(s for _, s in parts[:RATIO])]
