from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltic.errors import CorruptState, StateError, WeightOverflow
from deltic.kernels.memory import WORD_MIN
from deltic.storage import merging
from deltic.storage.dictionary import Dictionary, named
from deltic.storage.files import GUARDED_ROWS, Content, DataFile, Origin, write_file
from deltic.storage.manifest import Change, Manifest, SegmentRef
from deltic.storage.merging import RATIO, TICK_ROWS, due, large_merges, merge_segments, own_rows, small_merge, tier
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.merge import merge
from deltic.trace.partition import partition
from deltic.trace.rows import Rows
from stored import as_rows, batch_of, dictionary_of

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


def _random_batch(rng: np.random.Generator, rows: int, values: int) -> Batch:
    """Rows of three columns, the first of them often NULL, with two weights."""
    first = rng.integers(0, values, rows) * rng.choice([1, 2**40])
    columns = [np.where(rng.random(rows) < 0.1, WORD_MIN, first), rng.integers(0, 5, rows), rng.integers(0, 300, rows)]
    return consolidate(Rows(columns, [rng.integers(-2, 3, rows), rng.integers(0, 2, rows)]))


def _strings(batch: Batch) -> Dictionary:
    return dictionary_of(**{f"string {id}": id for id in named(batch, (2,)).tolist()})


def _stored(root: str, batches: list[Batch]) -> tuple[dict, list[SegmentRef]]:
    refs = [write_file(root, ORIGIN, [Content("a", batch, (2,))], _strings(batch)) for batch in batches]
    return {ref.name: ref for ref in refs}, [SegmentRef(0, "a", ref.name, len(batch)) for ref, batch in zip(refs, batches, strict=True)]


@pytest.mark.parametrize("seed", range(6))
def test_parts_of_any_size_make_the_same_file(root: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    batches = [_random_batch(rng, int(rng.choice([0, 1, 600, 6000])), int(rng.choice([3, 500, 10**6]))) for _ in range(5)]
    batches += [Batch.trusted(batches[-1].columns, [-w for w in batches[-1].weights])] if seed % 2 else []
    refs, segments = _stored(root, [batch for batch in batches if len(batch)])
    whole = merge(batches)
    merged = [merge_segments(root, refs, segments, ORIGIN, part_bytes=size) for size in (1 << 12, 1 << 15, 1 << 25)]
    for ref, segment in merged:
        file = DataFile(root, ref)
        file.verify()
        assert (as_rows(file.batch("a")), segment.rows) == (as_rows(whole), len(whole))
        assert file.dictionary().ids.tolist() == sorted(named(whole, (2,)).tolist())
        assert file.dictionary().values.to_pylist() == [b"string %d" % id for id in file.dictionary().ids]
    assert len({(ref.size_bytes, ref.checksum) for ref, _ in merged}) == 1


def test_no_part_is_larger_than_asked(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    refs, segments = _stored(root, [_random_batch(rng, 20_000, 10**6) for _ in range(4)])
    sizes = []

    def recorded(batches: list[Batch]) -> Batch:
        sizes.append(sum(8 * 5 * len(batch) for batch in batches))
        return merge(batches)

    monkeypatch.setattr(merging, "merge", recorded)
    merge_segments(root, refs, segments, ORIGIN, part_bytes=1 << 16)
    assert max(sizes) <= 1 << 16
    assert len(sizes) < 3 * sum(sizes) / (1 << 16)


@pytest.mark.parametrize("place", [0.1, 0.5, 0.99])
def test_a_damaged_input_leaves_no_file(root: str, place: float) -> None:
    rng = np.random.default_rng(2)
    refs, segments = _stored(root, [_random_batch(rng, 2 * GUARDED_ROWS, 10**6) for _ in range(2)])
    data = Path(root, "data")
    damaged = data / segments[0].file
    with damaged.open("r+b") as file:
        file.seek(int(place * 8 * segments[0].rows) + 4096)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 64]))
    with pytest.raises(CorruptState, match=r"is damaged"):
        merge_segments(root, refs, segments, ORIGIN, part_bytes=1 << 16)
    assert {path.name for path in data.iterdir()} == set(refs)


def test_a_full_disk_leaves_no_file(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    refs, segments = _stored(root, [_random_batch(rng, 5000, 10**6) for _ in range(2)])
    written, pwrite = [], os.pwrite

    def full(descriptor: int, part: memoryview, offset: int) -> int:
        if len(written) > 20:
            raise OSError(28, "No space left on device")
        written.append(len(part))
        return pwrite(descriptor, part, offset)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StateError, match="No space left"):
        merge_segments(root, refs, segments, ORIGIN, part_bytes=1 << 13)
    assert {path.name for path in Path(root, "data").iterdir()} == set(refs)
