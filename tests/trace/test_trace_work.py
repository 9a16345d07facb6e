"""Work, not time: readers touch O(log n + matches) rows."""

from __future__ import annotations

import numpy as np
import pytest

from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.probe import first, lookup, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

N = 1_000_000


@pytest.fixture(scope="module")
def spine() -> Spine:
    """1M rows of (group of 10, number), with some thousands of changes appended after."""
    spine = Spine(2, 1)
    spine = spine.appended(Batch.trusted([np.arange(N) // 10, np.arange(N)], [np.ones(N, np.int64)]))
    rng = np.random.default_rng(0)
    for _ in range(30):
        number = rng.integers(0, N, 1000)
        spine = spine.appended(consolidate(Rows([number // 10, number], [np.ones(1000, np.int64)])))
    return spine


@pytest.mark.parametrize("key", [0, 12_345, 99_999, -5, 10**9])
def test_one_key_touches_a_few_rows(spine: Spine, key: int) -> None:
    levels = len(spine.batches)
    assert levels <= 30  # nobody sought between the appends, so small batches are many
    keys = [np.array([key])]
    matches = 0
    for reader in (lookup, lambda *a: probe(a[0], a[1], [1], a[2]), lambda *a: first(a[0], a[1], None, 1000, a[2])):
        counters = Counters()
        reader(spine, keys, counters)
        matches = len(probe(spine, keys, [0], Counters())[0])
        assert counters.touched <= levels * 24 + 2 * matches
        assert counters.batches == levels
    assert (matches >= 10) == (0 <= key < N // 10)


def test_a_heavy_prefix_costs_a_logarithm() -> None:
    """All rows in one group: the second column is searched, not scanned."""
    spine = Spine.of(Batch.trusted([np.zeros(N, np.int64), np.arange(N)], [np.ones(N, np.int64)]))
    counters = Counters()
    assert lookup(spine, [np.array([0]), np.array([777_777])], counters)[0].tolist() == [1]
    _, columns, _ = first(spine, [np.array([0])], [np.array([500_000])], 3, counters)
    assert columns[1].tolist() == [500_000, 500_001, 500_002]
    assert counters.touched <= 200


def test_a_repeated_heavy_prefix_is_searched_once() -> None:
    """Two heavy words are in one bucket of the index, since a third one is far away."""
    half = N // 2
    leading, second = np.repeat([0, 1, 1 << 40], [half, half, 1]), np.append(np.tile(np.arange(half), 2), 0)
    spine = Spine.of(Batch.trusted([leading, second], [np.ones(N + 1, np.int64)]))
    sought, touched = np.arange(0, half + 100, half // 100), []
    for heavy in (np.zeros(len(sought), np.int64), np.arange(len(sought)) % 2):
        counters = Counters()
        (weights,) = lookup(spine, [heavy, sought], counters)
        assert weights.tolist() == (sought < half).tolist()
        touched.append(counters.touched)
    again, alternating = touched
    assert alternating - again >= 20 * len(sought)
    assert again <= 28 * len(sought)


def test_deleting_the_first_row_again_and_again_does_not_degrade() -> None:
    """The minimum of a group is deleted 20,000 times; the search for the next one, from the old one on, stays cheap."""
    n = 50_000
    spine = Spine(2, 1)
    spine = spine.appended(Batch.trusted([np.zeros(n, np.int64), np.arange(n)], [np.ones(n, np.int64)]))
    group, least, worst = np.array([0]), np.array([0]), 0
    for step in range(2000):
        counters = Counters()
        _, columns, _ = first(spine, [group], [least], 1, counters)
        worst = max(worst, counters.touched)
        assert columns[1][0] == 10 * step
        deleted = columns[1][0] + np.arange(10)
        spine = spine.appended(Batch.trusted([np.zeros(10, np.int64), deleted], [-np.ones(10, np.int64)]))
        least = deleted[-1:]
    assert worst <= 1000  # a seek in each of some thirty batches, not the rows deleted before
