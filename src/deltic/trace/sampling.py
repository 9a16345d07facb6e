"""Estimates of how many values a column of a trace has, by a sample of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from deltic.trace.spine import Spine

SAMPLE: Final = 8192
"""The rows of a sample."""


class Sample:
    """Rows of a trace, a spine for each shard, drawn at random: the same ones in each call.

    O(SAMPLE). Does not verify mapped pages, since a wrong estimate does no harm.
    """

    def __init__(self, spines: Sequence[Spine]) -> None:
        batches = [batch for spine in spines for batch in spine.batches]
        self.rows = sum(batch.length for batch in batches)
        all_rows = self.rows <= SAMPLE
        drawn = np.arange(self.rows) if all_rows else np.unique(np.random.default_rng(0).integers(0, self.rows, SAMPLE))
        starts = np.cumsum([0, *(batch.length for batch in batches)])
        self._parts = [
            (batch, drawn[(drawn >= start) & (drawn < end)] - start) for batch, start, end in zip(batches, starts, starts[1:], strict=False)
        ]

    def values(self, words: slice) -> int:
        """The estimated number of values of a column that has these words, at least 1.

        The smoothed jackknife of first order (Haas et al. 1995, Duj1), exact if the sample is all rows.
        """
        columns = [
            np.concatenate([batch.columns[place][rows] for batch, rows in self._parts] or [np.empty(0, np.int64)])
            for place in range(words.start, words.stop)
        ]
        order = np.lexsort(columns)
        ordered = [column[order] for column in columns]
        is_first = np.ones(len(order) + 1, bool)  # of equal ones, which are next to each other, or past the last
        is_first[1:-1] = np.logical_or.reduce([column[1:] != column[:-1] for column in ordered])
        counts = np.diff(np.flatnonzero(is_first)) if len(order) else np.empty(0, np.int64)
        sampled, distinct, single = int(counts.sum()), len(counts), int((counts == 1).sum())
        if sampled == self.rows:
            return max(1, distinct)
        return max(1, round(sampled * distinct / (sampled - single + single * sampled / self.rows)))
