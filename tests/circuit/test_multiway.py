"""The multiway join against brute force, its naive form, and the work that it does."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from multiway_queries import SHAPES, Running, brute_force, difference, random_change, random_query

TICKS = 6


def check(seed: int, shape: str | None = None) -> None:
    """A random query over random changes, whose first ticks load; the operator and its naive form say what brute force says."""
    rng = random.Random(seed)
    query = random_query(rng, shape)
    running = Running(query, rng)
    few = len(query.atoms) > 4
    domain, rows = (3, 4) if few else (rng.choice((2, 4, 8)), rng.choice((1, 5, 12)))
    before = brute_force(query, running.content)
    for number in range(TICKS):
        changes = {
            relation: random_change(rng, content, running.arity[relation], domain, rows)
            for relation, content in running.content.items()
            if rng.random() < 0.8
        }
        expected = running.said(replace(running.operator, naive=True), changes)
        found = running.tick(changes)
        after = brute_force(query, running.content)
        assert found == difference(after, before), f"seed {seed}, {shape}: tick {number}"
        assert expected == found
        before = after


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_what_brute_force_gives(shape: str) -> None:
    for seed in range(12):
        check(seed, shape)
