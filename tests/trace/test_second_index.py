"""Batches most of whose rows share a leading word, as with the flag of a nullable BIGINT, are indexed by their second column."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from deltic.kernels.index import BY_SECOND, SHIFT, SHORT
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.merge import Merge
from deltic.trace.probe import first, lookup, probe
from deltic.trace.rows import Rows
from deltic.trace.soundness import index_is_right
from deltic.trace.spine import Spine

LOW, HIGH = np.iinfo(np.int64).min, np.iinfo(np.int64).max
EXTREMES = (LOW, LOW + 1, -1, 0, 1, HIGH)


def rows(seed: int, count: int, nulls: float, spread: int) -> Batch:
    random = np.random.default_rng(seed)
    flags = (random.random(count) >= nulls).astype(np.int64)
    values = random.integers(-spread, spread, count)
    values[: len(EXTREMES)] = EXTREMES[:count]
    return consolidate(Rows([flags, values * flags, random.integers(0, 3, count)], [random.integers(1, 3, count)]))


def merged(batches: list[Batch]) -> Batch:
    running = Merge(batches)
    while not running.work(500):
        pass
    return running.result()


def assert_found(batch: Batch, spine: Spine) -> None:
    """Lookups and probes by one, two and three words are those of the batch's rows."""
    random = np.random.default_rng(5)
    listed = list(zip(*(part.tolist() for part in (*batch.columns, *batch.weights)), strict=True))
    some = random.integers(0, len(batch), 300)
    sought = {tuple(int(column[i]) for column in batch.columns) for i in some}
    sought |= {(flag, value, 1) for flag in (LOW, -1, 0, 1, 2, HIGH) for value in (*EXTREMES, 2**40)}
    for width in (1, 2, 3):
        sums: dict[tuple[int, ...], int] = defaultdict(int)
        for *words, weight in listed:
            sums[tuple(words[:width])] += weight
        keys = sorted({key[:width] for key in sought})
        columns = [np.array(words) for words in zip(*keys, strict=True)]
        assert lookup(spine, columns, Counters())[0].tolist() == [sums.get(key, 0) for key in keys]
        at, seen, weights = probe(spine, columns, range(3), Counters())
        found: dict[tuple[int, ...], int] = defaultdict(int)
        for i, *row, weight in zip(at.tolist(), *(word.tolist() for word in (*seen, *weights)), strict=True):
            assert tuple(row[:width]) == keys[i]
            found[keys[i]] += weight
        assert found == {key: sums[key] for key in keys if key in sums}
        at, seen, _ = first(spine, columns, None, 1, Counters())
        least = {key: next(tuple(row[:3]) for row in listed if tuple(row[:width]) == key) for key in keys if key in sums}
        assert {keys[i]: row for i, *row in zip(at.tolist(), *(word.tolist() for word in seen), strict=True)} == {
            key: list(row) for key, row in least.items()
        }


@pytest.mark.parametrize("nulls", [0.0, 0.2, 0.49, 0.51, 1.0])
@pytest.mark.parametrize(("count", "spread"), [(1, 5), (SHORT - 1, 5), (SHORT, 9), (3000, 40), (3000, 2**62), (30_000, 2**40)])
def test_readers_find_the_rows_of_a_batch(count: int, spread: int, nulls: float) -> None:
    batch = rows(count, count, nulls, spread)
    assert index_is_right(batch)
    assert_found(batch, Spine.over(3, 1, [batch]))


@pytest.mark.parametrize("nulls", [0.1, 0.6])
@pytest.mark.parametrize("sizes", [(2000, 2000), (3000, 5), (5, 3000), (4000, 600, 70)])
def test_readers_find_the_rows_of_merged_batches(sizes: tuple[int, ...], nulls: float) -> None:
    batches = [rows(seed, count, nulls if seed else 0.0, 2**30) for seed, count in enumerate(sizes)]
    batch = merged(batches)
    assert index_is_right(batch)
    assert_found(batch, Spine.over(3, 1, [batch]))
    assert_found(batch, Spine.over(3, 1, batches))


def test_rows_that_cancel_leave_an_index_that_is_right() -> None:
    batch = rows(1, 2000, 0.1, 2**30)
    present = batch.columns[0] == 1
    gone = Batch.trusted([column[present] for column in batch.columns], [-batch.weights[0][present]])
    left = merged([batch, gone])
    assert set(left.columns[0].tolist()) == {0}
    assert left.index[SHIFT] >= BY_SECOND and index_is_right(left)
    assert_found(left, Spine.over(3, 1, [left]))


def test_a_key_behind_a_flag_costs_what_it_costs_alone() -> None:
    random = np.random.default_rng(1)
    values = np.unique((random.random(1_000_000) ** 3 * 2**60).astype(np.int64))  # unevenly spread
    flags, ones = np.ones(len(values), np.int64), [np.ones(len(values), np.int64)]
    touched = []
    for columns in ([values], [flags, values]):
        counters = Counters()
        lookup(Spine.over(len(columns), 1, [Batch.trusted(columns, ones)]), [column[::999].copy() for column in columns], counters)
        touched.append(counters.touched / len(values[::999]))
    assert touched[1] < 1.5 * touched[0] + 4, touched
