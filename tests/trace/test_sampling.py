"""The number of values of a column, estimated by a sample."""

from __future__ import annotations

import numpy as np
import pytest

from deltic.trace.consolidate import consolidate
from deltic.trace.rows import Rows
from deltic.trace.sampling import SAMPLE, Sample
from deltic.trace.spine import Spine


def trace(*columns: np.ndarray) -> Spine:
    return Spine.of(consolidate(Rows(columns, (np.ones(len(columns[0]), np.int64),))))


def test_values_of_few_rows_are_counted() -> None:
    n = 1000
    sample = Sample([trace(np.arange(n) % 7, np.arange(n)), trace(np.arange(n) % 9 + 100, np.arange(n))])
    assert (sample.rows, sample.values(slice(0, 1)), sample.values(slice(1, 2)), sample.values(slice(0, 2))) == (2 * n, 16, n, 2 * n)
    assert Sample([]).values(slice(0, 1)) == 1


@pytest.mark.parametrize("values", [1, 3, 1000, 50_000, 500_000])
def test_values_of_many_rows_are_estimated(values: int) -> None:
    n = 500_000
    column = np.random.default_rng(1).permutation(np.arange(n) % values)
    sample = Sample([trace(column, np.arange(n))])
    assert values / 2 <= sample.values(slice(0, 1)) <= values * 2
    assert sum(len(rows) for _, rows in sample._parts) <= SAMPLE
