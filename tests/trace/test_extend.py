"""extend against its naive form, on spines of several batches, small and large."""

from __future__ import annotations

import random

import numpy as np
import pytest

from deltic.errors import WeightOverflow
from deltic.trace import propose
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.extend import HIGH, LOW, PLAIN, WHOLE, Directories, Extended, Measured, extend
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

EXTREMES = (-(2**63), -(2**63) + 1, -1, 0, 2**32 - 1, 2**63 - 1)


def random_spine(rng: np.random.Generator, columns: int, weights: int, rows: list[int], domain: int) -> Spine:
    """Batches of these sizes; every second one cancels half of the one before it."""
    spine = Spine(columns, weights)
    before = consolidate(Rows.empty(columns, weights))
    for number, n in enumerate(rows):
        words = [np.where(rng.random(n) < 0.02, rng.choice(EXTREMES, n), rng.integers(0, domain, n)) for _ in range(columns)]
        weighed = [rng.integers(-3, 4, n) for _ in range(weights)]
        if number % 2 and len(before):
            again = rng.permutation(len(before))[: len(before) // 2]
            words = [np.concatenate((word, column[again])) for word, column in zip(words, before.columns, strict=True)]
            weighed = [np.concatenate((w, -column[again])) for w, column in zip(weighed, before.weights, strict=True)]
        before = consolidate(Rows(words, weighed))
        spine = spine.appended(before)
    return spine


def wanted_of(rng: random.Random, spines: list[Spine], leaves: list[bool], summed: bool) -> list[Measured]:
    if not any(leaves):
        return []
    expected: list[Measured] = []
    for _ in range(rng.randint(1, 3)):
        factors = [rng.randrange(spine.weights) if leaf else -1 for spine, leaf in zip(spines, leaves, strict=True)]
        kinds = rng.choice(((PLAIN,), (HIGH, LOW))) if summed else (PLAIN,)
        expected += [(kind, *factors) for kind in kinds]
    return expected


def joined(result: Extended, expected: list[Measured]) -> list[list[int]]:
    """The weights, limbs joined."""
    weights = [weight.tolist() for weight in result.weights]
    out = []
    for place, (kind, *_) in enumerate(expected):
        if kind == LOW:
            out.append([(high << 32) + low for high, low in zip(weights[place - 1], weights[place], strict=True)])
        elif kind != HIGH:
            out.append(weights[place])
    return out


def by_prefix(result: Extended, expected: list[Measured]) -> dict[int, tuple[int, ...]]:
    """The weights of each prefix; limbs may cancel though neither is 0."""
    rows = zip(result.source.tolist(), zip(*joined(result, expected), strict=True), strict=True)
    return {source: weights for source, weights in rows if any(weights)}


def check(seed: int, rows: list[int], domain: int) -> int:
    """Returns the number of rows."""
    rng = random.Random(seed)
    numbers = np.random.default_rng(seed)
    spines, keys, n = [], [], rng.choice((1, 3, 200))
    for _ in range(rng.randint(1, 4)):
        width = rng.choice((0, 1, 1, 1, 2)) if n < 100 else rng.choice((1, 2))
        spines.append(random_spine(numbers, width + rng.choice((1, 1, 2)), rng.randint(1, 2), rows, domain))
        source = spines[-1].batches[0].columns
        keys.append(
            [np.where(numbers.random(n) < 0.8, numbers.choice(column, n), numbers.integers(-1, domain, n)) for column in source[:width]]
        )
    leaves = [len(key) + 1 == spine.columns for spine, key in zip(spines, keys, strict=True)]
    summed = all(leaves) and rng.random() < 0.5
    expected = wanted_of(rng, spines, leaves, summed)
    changes = [consolidate(random_spine(numbers, s.columns, s.weights, [5], domain).scan(Counters())) for s in spines]
    directories = Directories(list(zip(spines, changes, strict=True)))
    versions = [rng.choice(pair) for pair in directories.versions]
    result = extend(directories, versions, keys, n, expected, summed, Counters())
    naive = propose.extend(directories, versions, keys, n, expected, summed, Counters())
    if summed:
        assert by_prefix(result, expected) == by_prefix(naive, expected), f"seed {seed}"
    else:
        assert (result.source.tolist(), result.words.tolist()) == (naive.source.tolist(), naive.words.tolist()), f"seed {seed}"
        assert joined(result, expected) == joined(naive, expected)
    return len(result.source)


def test_small_spines_equal_the_naive_form() -> None:
    assert sum(check(seed, [30, 20, 5, 5, 1], 6) > 0 for seed in range(80)) > 50


def test_large_spines_equal_the_naive_form() -> None:
    assert sum(check(seed, [40_000, 20_000, 300, 40, 5], 150) > 0 for seed in range(12)) > 6


def test_whole_words_multiply_and_overflow() -> None:
    spine = Spine(2, 1)
    spine = spine.appended(consolidate(Rows((np.array([1, 1, 2]), np.array([5, -7, 2**62])), (np.array([1, 2, 4]),))))
    directories = Directories([(spine, None)])
    ((version, _),) = directories.versions
    result = extend(directories, [version], [[np.array([1, 3])]], 2, [(WHOLE, 0)], True, Counters())
    assert (result.source.tolist(), result.weights[0].tolist()) == ([0], [5 - 14])
    with pytest.raises(WeightOverflow):
        extend(directories, [version], [[np.array([2])]], 1, [(WHOLE, 0)], True, Counters())


def test_words_that_cancel_are_omitted_if_weights_are_wanted() -> None:
    spine = Spine(2, 1)
    for weight in (2, -2):
        spine = spine.appended(consolidate(Rows((np.array([1, 1]), np.array([5, 6])), (np.array([weight, 1]),))))
    directories = Directories([(spine, None)])
    ((version, _),) = directories.versions
    key = [[np.array([1])]]
    assert extend(directories, [version], key, 1, [(PLAIN, 0)], False, Counters()).words.tolist() == [6]
    assert extend(directories, [version], key, 1, [], False, Counters()).words.tolist() == [5, 6]
