"""Where buckets have many rows a guard verifies what a search of them reads, and no row more; the search reads no other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from deltic.kernels import read, table
from deltic.trace.batch import Batch
from deltic.trace.between import between, first_after
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.guard import PAGE_WORDS, WIDE
from deltic.trace.probe import lookup, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from verified import Verified

ROWS = 200_000
Columns = list[np.ndarray]
LEAST = int(np.iinfo(np.int64).min)


def with_outliers(random: np.random.Generator) -> Columns:
    words = np.arange(ROWS) * 1000 + random.integers(0, 1000, ROWS)
    words[0], words[-1] = -(10**17), 10**17
    return [words, random.integers(0, 9, ROWS)]


def lognormal(random: np.random.Generator) -> Columns:
    return [(random.lognormal(0, 4, ROWS) * 1e6).astype(np.int64), random.integers(0, 2**40, ROWS)]


def few_leading(random: np.random.Generator) -> Columns:
    return [random.integers(0, 7, ROWS), random.integers(0, 150, ROWS), random.permutation(ROWS)]


def flagged(random: np.random.Generator) -> Columns:
    """The second column is indexed, and is uneven; a third of the rows come before those that are indexed."""
    words = random.integers(0, 10**6, ROWS)
    words[:3] = 10**17
    return [(np.arange(ROWS) % 3 > 0).astype(np.int64), words, random.permutation(ROWS)]


def with_nulls(random: np.random.Generator) -> Columns:
    return [np.where(random.random(ROWS) < 0.3, LEAST, 10 ** random.integers(0, 17, ROWS)), random.permutation(ROWS)]


SHAPES = (with_outliers, lognormal, few_leading, flagged, with_nulls)


def batch_of(shape: Callable[[np.random.Generator], Columns], seed: int) -> Batch:
    return consolidate(Rows(shape(np.random.default_rng(seed)), [np.ones(ROWS, np.int64)]))


def keys_of(batch: Batch, width: int, count: int, random: np.random.Generator) -> Columns:
    """Keys that are there, others near them, and the least and greatest words; some twice."""
    rows = np.sort(random.integers(0, len(batch), count))
    keys = [column[rows] for column in batch.columns[:width]]
    keys[-1] = keys[-1] + random.choice([0, 0, 0, 1, -1], count)
    edges = np.array([LEAST, -LEAST - 1, 0, 10**17])
    columns = [np.append(key, edges) for key in keys]
    order = np.lexsort(columns[::-1])
    return [np.ascontiguousarray(column[order]) for column in columns]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES)
def test_readers_find_what_is_there_and_read_only_what_is_verified(shape: Callable[[np.random.Generator], Columns], seed: int) -> None:
    batch, random = batch_of(shape, seed), np.random.default_rng(100 + seed)
    for width in range(1, len(batch.columns) + 1):
        hidden, plain = Verified(batch), Spine.of(batch)
        for count in (1, 30, 700):
            keys = keys_of(batch, width, count, random)
            assert lookup(hidden.spine, keys, Counters())[0].tolist() == lookup(plain, keys, Counters())[0].tolist()
        keys = keys_of(batch, width, 3, random)
        found, expected = (probe(spine, keys, (0, 1), Counters()) for spine in (hidden.spine, plain))
        assert [part.tolist() for part in (found[0], *found[1])] == [part.tolist() for part in (expected[0], *expected[1])]


@pytest.mark.parametrize("shape", [with_outliers, few_leading, flagged])
def test_a_row_of_a_wide_bucket_costs_a_logarithm_of_pages(shape: Callable[[np.random.Generator], Columns]) -> None:
    batch = batch_of(shape, 7)
    random = np.random.default_rng(7)
    for row in random.integers(0, len(batch), 10).tolist():
        hidden = Verified(batch)
        keys = [column[row : row + 1] for column in batch.columns]
        assert lookup(hidden.spine, keys, Counters())[0].tolist() == [1]
        assert 0 < len(set(hidden.pages)) <= 24 < len(batch) // PAGE_WORDS // 10


@pytest.mark.parametrize("shape", SHAPES)
def test_ranges_of_words_verify_their_rows_and_a_logarithm(shape: Callable[[np.random.Generator], Columns]) -> None:
    batch, random = batch_of(shape, 8), np.random.default_rng(8)
    leading = batch.columns[0]
    for _ in range(12):
        start = int(random.integers(0, len(batch) - 600))
        after, until = int(leading[start]), int(leading[start + 500])
        hidden, plain = Verified(batch), Spine.of(batch)
        found, expected = (between(spine, after, until, Counters()) for spine in (hidden.spine, plain))
        assert [column.tolist() for column in found.columns] == [column.tolist() for column in expected.columns]
        assert len(set(hidden.pages)) <= 2 * (20 + WIDE // PAGE_WORDS) + len(found) // PAGE_WORDS
        hidden = Verified(batch)
        assert first_after(hidden.spine, after, Counters()) == first_after(plain, after, Counters())


def test_notes_have_room() -> None:
    """Also where words grow so unevenly that a search takes all of its steps."""
    words = np.unique(np.append(2 ** np.arange(62), np.arange(WIDE)))
    for word in (0, 1, 5, WIDE - 1, WIDE, 2**40, 2**61, 2**62):
        low, high, known, key = np.array([0]), np.array([len(words)]), np.array([0]), np.array([word])
        trail = np.zeros(1 + read.MOST_NOTED, np.int64)
        arrays = (table.address(array) for array in (known, low, high, trail))
        noted = read.inspect(table.addresses([words], len(words)), table.addresses([key], 1), 1, 1, *arrays)
        assert 0 < noted <= read.MOST_NOTED // 2
        start, end = (int(np.searchsorted(words, word, side)) for side in ("left", "right"))
        assert (int(low[0]), int(high[0])) == (start, end) if start < end else low[0] == high[0]
