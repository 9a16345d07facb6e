"""A batch whose words are there only once they are verified."""

from __future__ import annotations

import numpy as np

from deltic.trace.batch import Batch
from deltic.trace.guard import PAGE_WORDS, Guard
from deltic.trace.spine import Spine

UNREAD = 7_777_777_777


class Verified:
    """A batch whose pages have their words only once they are verified; those of the index too."""

    def __init__(self, batch: Batch) -> None:
        self.columns = [np.full(len(batch), UNREAD) for _ in batch.columns]
        self.weights = [np.full(len(batch), UNREAD) for _ in batch.weights]
        index = np.full(len(batch.index), UNREAD)
        self.pages: list[int] = []

        def copy(source: np.ndarray, target: np.ndarray, pages: list[int]) -> None:
            for page in pages:
                target[page * PAGE_WORDS : (page + 1) * PAGE_WORDS] = source[page * PAGE_WORDS : (page + 1) * PAGE_WORDS]

        def rows(pages: list[int]) -> None:
            self.pages += pages
            for source, target in zip((*batch.columns, *batch.weights), (*self.columns, *self.weights), strict=True):
                copy(source, target, pages)

        self.guard = Guard(batch.columns, index, len(batch), lambda pages: copy(batch.index, index, pages), rows)
        self.batch = Batch.trusted(self.columns, self.weights, index, guard=self.guard)

    @property
    def spine(self) -> Spine:
        return Spine.over(len(self.columns), 1, [self.batch])
