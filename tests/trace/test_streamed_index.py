from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deltic.kernels.memory import WORD_MIN
from deltic.trace.consolidate import consolidate
from deltic.trace.cuts import common_cuts
from deltic.trace.rows import Rows
from deltic.trace.soundness import index_is_right
from deltic.trace.streamed_index import StreamedIndex

WORDS = st.one_of(st.just(WORD_MIN), st.integers(-20, 20), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(WORDS, max_size=80), st.lists(st.integers(0, 80), max_size=5), st.integers(0, 120))
def test_the_index_is_that_of_the_whole_batch(words: list[int], cuts: list[int], flagged: int) -> None:
    """flagged: how many more rows have the same leading word."""
    leading = np.array([*words, *[30] * flagged], np.int64)
    rows = len(leading)
    batch = consolidate(Rows([leading, np.arange(rows) * 37 % 1009], [np.ones(rows, np.int64)]))
    streamed = StreamedIndex([batch.columns], len(batch))
    bounds = sorted({0, len(batch), *(min(cut, len(batch)) for cut in cuts)})
    slices = [[column[first:end] for column in batch.columns] for first, end in itertools.pairwise(bounds)]
    parts = [part for columns in slices for part in streamed.add(columns)]
    index = np.concatenate([*parts, *streamed.end()])
    assert index.tolist() == batch.index.tolist()
    assert len(index) == streamed.words
    assert index_is_right(batch)


TABLE = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), unique=True, max_size=20).map(sorted)


@given(st.lists(TABLE, min_size=1, max_size=4), st.integers(1, 5))
def test_cuts_are_at_the_same_rows(tables: list[list[tuple[int, int]]], step: int) -> None:
    columns = [[np.array([row[c] for row in table], np.int64) for c in range(2)] for table in tables]
    cuts = list(common_cuts(columns, [len(table) for table in tables], lambda _, row: row + step))
    parts = [[row for table, (start, end) in zip(tables, cut, strict=True) for row in table[start:end]] for cut in cuts]
    assert sorted(row for part in parts for row in part) == sorted(row for table in tables for row in table)
    assert all(max(before) < min(after) for before, after in itertools.pairwise(parts))
    assert all(max(end - start for start, end in cut) == step for cut in cuts[:-1])
    assert all(end - start <= step for cut in cuts for start, end in cut)
