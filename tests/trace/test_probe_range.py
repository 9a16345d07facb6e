"""The rows between two cuts under a key, or up to a cut in order: those that a comparison of every row finds."""

from __future__ import annotations

import numpy as np
import pytest

from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.ranges import LAST, ROOM, Cuts, first_before, probe_few, probe_range
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

N = 2_000


def test_rows_between_cuts_and_no_more_than_asked_for() -> None:
    rng = np.random.default_rng(3)
    keys, values = rng.integers(0, 3, N), rng.integers(0, 300, N)
    spine = Spine.of(consolidate(Rows((keys, values, np.arange(N)), (np.ones(N, np.int64),))))
    sought, low = rng.integers(0, 4, 40), rng.integers(-20, 320, 40)
    high = low + rng.integers(-5, 30, 40)  # some end before they start
    given = (spine, (sought,), Cuts.before((low,)), Cuts.after((high,)), (1, 2))
    counters = Counters()
    source, (found, numbers), (weights,) = probe_range(*given, counters)
    expected = {(i, int(row)) for i in range(40) for row in np.flatnonzero((keys == sought[i]) & (values >= low[i]) & (values <= high[i]))}
    assert set(zip(source.tolist(), numbers.tolist(), strict=True)) == expected
    assert len(source) == len(expected) > 200 and (found == values[numbers]).all() and (weights == 1).all()
    few = Counters()
    assert probe_few(*given, few, len(expected) - 1) is None
    assert few.touched == counters.touched - len(expected)
    again = probe_few(*given, few, len(expected))
    assert again is not None and (again[0] == source).all()


def rows(n: int, rng: np.random.Generator, sign: int = 1) -> Rows:
    """(key, low, high) with high ascending as low does not."""
    high = rng.integers(0, 60, n)
    return Rows((rng.integers(0, 3, n), high, high - rng.integers(0, 9, n)), (np.full(n, sign),))


@pytest.mark.parametrize("n", [0, 1, 300, 4 * ROOM])
def test_rows_in_order_up_to_cuts(n: int) -> None:
    """Of several batches, some of whose rows cancel; more rows than there is room for at first."""
    rng = np.random.default_rng(n)
    parts = [rows(n, rng), rows(n // 2, rng), rows(n // 2, rng, -1)]
    gone = parts[0].take(np.arange(n // 4))
    parts.append(Rows(gone.columns, (-gone.weights[0],)))
    spine = Spine.over(3, 1, map(consolidate, parts))
    whole = consolidate(Rows.concat(parts))
    held = list(zip(*(word.tolist() for word in (*whole.columns, *whole.weights)), strict=True))
    sought = 12
    key, start, past, end = (rng.integers(low, high, sought) for low, high in ((0, 4), (-5, 50), (-5, 65), (0, 70)))
    kinds = np.where(np.arange(sought) % 3 == 0, LAST, 0)
    cuts = [(2, Cuts.after((past,))), (1, Cuts((end,), kinds))]
    for ends in (cuts, cuts[:1], []):
        expected = []
        for i in range(sought):
            for row in held:
                if row[0] != key[i] or row[1] < start[i] or row[3] <= 0:
                    continue
                if (ends and row[2] > past[i]) or (len(ends) > 1 and kinds[i] != LAST and row[1] >= end[i]):
                    break
                expected.append((i, *row))
        run, columns, weights = first_before(spine, (key,), (start,), ends, Counters())
        assert list(zip(*(word.tolist() for word in (run, *columns, *weights)), strict=True)) == expected
