"""The rows between two cuts under a key: those that a comparison of every row finds, and none if there are more than asked for."""

from __future__ import annotations

import numpy as np

from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.ranges import Cuts, probe_few, probe_range
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
