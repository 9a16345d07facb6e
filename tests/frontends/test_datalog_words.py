"""Bit operations of Datalog on u64."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import deltic

PROGRAM = """
    input relation A(n: s64, x: u64, y: u64, by: u8)
    output relation R(n: s64, conjunction: u64, disjunction: u64, difference: u64, inverse: u64, up: u64, down: u64)
    R(n, x & y, x | y, x ^ y, ~x, x << by, x >> by) :- A(n, x, y, by).
"""
MASK = (1 << 64) - 1


def test_words_of_64_bits() -> None:
    random = Random(1)
    words = [0, 1, MASK, 1 << 63, (1 << 63) - 1, 1 << 32, (1 << 32) - 1, *(random.getrandbits(64) for _ in range(20))]
    counts = [0, 1, 31, 32, 33, 63, 64, 7, *(random.randrange(64) for _ in range(20))]
    rows = [(n, x, random.choice(words), counts[n % len(counts)]) for n, x in enumerate(words * 3)]
    with deltic.Session() as session:
        session.datalog(PROGRAM)
        session.apply({"A": [{"n": n, "x": Decimal(x), "y": Decimal(y), "by": by, "_weight": 1} for n, x, y, by in rows]})
        expected = [(n, x & y, x | y, x ^ y, ~x & MASK, (x << by) & MASK, x >> by) for n, x, y, by in rows]
        assert sorted(tuple(map(int, row.values())) for row in session.view("R").rows()) == expected
