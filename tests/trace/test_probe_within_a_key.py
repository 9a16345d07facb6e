"""Rows with one leading word are found by their other words, however these are distributed, in logarithmic time."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

ROWS = 4_000
LEAST, MOST = -(2**63), 2**63 - 1
SPREADS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "even": lambda rng: np.arange(ROWS),
    "even_and_far": lambda rng: np.append(np.arange(ROWS - 2), [LEAST, MOST]),
    "random": lambda rng: rng.integers(LEAST, MOST, ROWS),
    "exponential": lambda rng: (np.exp(rng.random(ROWS) * 43) * rng.choice((-1, 1), ROWS)).astype(np.int64),
    "repeated": lambda rng: rng.choice((LEAST, -1, 0, 1, 7, MOST), ROWS),
    "one": lambda rng: np.full(ROWS, 5),
}


@pytest.mark.parametrize("name", SPREADS)
def test_rows_are_found_by_their_second_word(name: str) -> None:
    rng = np.random.default_rng(1)
    words = SPREADS[name](rng).astype(np.int64)
    batch = consolidate(Rows((np.zeros(ROWS, np.int64), words, np.arange(ROWS)), (np.ones(ROWS, np.int64),)))
    near = np.concatenate([words[:200], words[:200] - 1, words[:200] + 1, [LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST]])
    source, (matches,), _ = probe(Spine.of(batch), (np.zeros(len(near), np.int64), near), (1,), Counters())
    assert (matches == near[source]).all()
    assert np.bincount(source, minlength=len(near)).tolist() == [int((words == word).sum()) for word in near]


@pytest.mark.parametrize(
    ("name", "bound"), [("even", 16), ("random", 24), ("even_and_far", 8 * math.log2(ROWS)), ("exponential", 8 * math.log2(ROWS))]
)
def test_a_row_costs_at_most_the_logarithm(name: str, bound: float) -> None:
    words = SPREADS[name](np.random.default_rng(1)).astype(np.int64)
    batch = consolidate(Rows((np.zeros(ROWS, np.int64), words), (np.ones(ROWS, np.int64),)))
    counters = Counters()
    probe(Spine.of(batch), (np.zeros(ROWS, np.int64), words), (1,), counters)
    assert counters.touched <= bound * ROWS
