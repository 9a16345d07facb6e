"""Ranges of a trace by the leading word: results are right, and no page of a mapped batch is read before it is verified."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from deltic.trace.batch import Batch
from deltic.trace.between import between, first_after
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.guard import PAGE_WORDS
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from stored import as_rows
from verified import Verified

LEAST, GREATEST = (int(bound) for bound in (np.iinfo(np.int64).min, np.iinfo(np.int64).max))


def batch_of(rows: list[tuple[int, int]]) -> Batch:
    leading = np.array([word for word, _ in rows], np.int64)
    return consolidate(Rows([leading, np.arange(len(rows)) % 3], [np.array([weight for _, weight in rows], np.int64)]))


def random_rows(rng: random.Random, kind: str, count: int) -> list[tuple[int, int]]:
    words = {
        "dense": lambda: rng.randrange(40),
        "sparse": lambda: rng.randrange(-(2**62), 2**62),
        "far": lambda: rng.choice((LEAST, GREATEST, 3, 5, rng.randrange(1000))),
        "equal": lambda: 5,
        "flag": lambda: int(rng.random() < 0.7),
    }
    return [(words[kind](), rng.choice((-1, 1, 2))) for _ in range(count)]


KINDS = ("dense", "sparse", "far", "equal", "flag")


def ranges(rng: random.Random, words: list[int]) -> Iterator[tuple[int, int]]:
    near = [*words, *(word + step for word in words for step in (-1, 1) if LEAST < word < GREATEST), LEAST, GREATEST, 0]
    for _ in range(12):
        after, until = sorted((rng.choice(near), rng.choice(near)))
        yield after, until


@pytest.mark.parametrize("kind", KINDS)
def test_a_guard_verifies_the_buckets_of_a_range_and_no_more(kind: str) -> None:
    rng = random.Random(kind)
    for count in (1, 40, 6 * PAGE_WORDS):
        whole = batch_of([(word, 1) for word, _ in random_rows(rng, kind, count)])
        for after, until in ranges(rng, whole.columns[0][:: max(1, len(whole) // 9)].tolist()):
            verified = Verified(whole)
            start, end = verified.guard.between(after, until)
            inside = np.flatnonzero((whole.columns[0] > after) & (whole.columns[0] <= until))
            assert not len(inside) or start <= inside[0] <= inside[-1] < end
            assert np.array_equal(verified.columns[0][start:end], whole.columns[0][start:end])
            if kind == "sparse":  # some rows of the first and the last bucket, and the pages that they lie in
                assert len({*verified.pages}) <= (len(inside) + 60) // PAGE_WORDS + 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_guard_verifies_the_first_rows_after_a_word(kind: str) -> None:
    rng = random.Random(kind)
    for count in (1, 40, 6 * PAGE_WORDS):
        whole = batch_of([(word, 1) for word, _ in random_rows(rng, kind, count)])
        for after, _ in ranges(rng, whole.columns[0][:: max(1, len(whole) // 9)].tolist()):
            verified, expected = Verified(whole), rng.choice((1, 1, 5, 5000))
            start, end = verified.guard.after(after, expected)
            inside = np.flatnonzero(whole.columns[0] > after)[:expected]
            assert not len(inside) or start <= inside[0] <= inside[-1] < end
            assert np.array_equal(verified.columns[0][start:end], whole.columns[0][start:end])


def test_verified_pages_are_not_verified_again() -> None:
    verified = Verified(batch_of([(word, 1) for word in range(5 * PAGE_WORDS)]))
    verified.guard.between(100, 200)
    verified.guard.after(100, 5)
    assert verified.pages == [0]
    verified.guard.everything()
    assert sorted(verified.pages) == list(range(len(verified.batch) // PAGE_WORDS))
    assert verified.guard.between(100, 2000)[1] > 2000 and len(verified.pages) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_ranges_of_a_trace_are_those_of_its_sum(kind: str) -> None:
    rng = random.Random(kind)
    for _ in range(6):
        batches = [batch_of(random_rows(rng, kind, rng.choice((1, 5, 60)))) for _ in range(4)]
        batches.append(Batch.trusted(batches[0].columns, [-batches[0].weights[0]]))
        parts = [Verified(batch).batch if rng.random() < 0.5 else batch for batch in batches]
        whole = as_rows(consolidate(Rows.concat(batches)))
        for after, until in ranges(rng, [word for word, *_ in whole[:9]]):
            spine = Spine.over(2, 1, parts)
            assert as_rows(between(spine, after, until, Counters())) == [row for row in whole if after < row[0] <= until]
            assert first_after(spine, after, Counters()) == next((row[0] for row in whole if row[0] > after), None)


def test_the_first_after_a_word_costs_as_much_as_what_cancels_before_it() -> None:
    rows = batch_of([(word, 1) for word in range(100_000)])
    counters = Counters()
    assert first_after(Spine.over(2, 1, [rows]), 500, counters) == 501 and counters.touched == 1
    cancelling = Batch.trusted([column[:2_000] for column in rows.columns], [-rows.weights[0][:2_000]])
    assert first_after(Spine.over(2, 1, [rows, cancelling]), 500, counters := Counters()) == 2_000
    assert counters.touched < 3 * 4_000 and counters.batches < 60
    assert first_after(Spine.over(2, 1, [rows]), 99_999, Counters()) is None
