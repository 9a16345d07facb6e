"""Certified numbers: the exact results of random expressions are within the bound, and aggregates by them are the exact ones."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.circuit import results
from deltic.circuit.certified import Certified

OF_ONE = ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "skewness", "kurtosis")
OF_TWO = ("covar_pop", "covar_samp", "corr", "regr_sxx", "regr_syy", "regr_sxy", "regr_slope", "regr_intercept", "regr_r2")
Pair = tuple[Certified, Fraction]


def number(rng: Random) -> Pair:
    """Integers of up to 64 bits, scaled."""
    bits, exponent = rng.choice([3, 30, 53, 61, 63]), rng.choice([0, 0, 0, 0, 0, -60, 40, 90, 380, 1000])
    word = rng.randint(-(2**bits), 2**bits - 1)
    return Certified.of(np.array([word])).scaled(np.array([exponent])), word * Fraction(2) ** exponent


def combined(rng: Random, one: Pair, other: Pair) -> Pair:
    (a, x), (b, y) = one, other
    match rng.choice("+-*/"):
        case "+":
            return a + b, x + y
        case "-":
            return a - b, x - y
        case "*":
            return a * b, x * y
        case _:
            return a / b, x / y if y else Fraction(0)


def test_the_exact_result_is_within_the_bound() -> None:
    rng, known, rounded = Random(7), 0, 0
    with np.errstate(all="ignore"):
        for _ in range(4_000):
            values = [number(rng) for _ in range(4)]
            while len(values) > 1:
                values.append(combined(rng, values.pop(rng.randrange(len(values))), values.pop(rng.randrange(len(values)))))
            ((value, exact),) = values
            double, certain = value.rounded()
            if math.isfinite(value.error[0]):
                known += 1
                assert abs(Fraction(value.high[0]) + Fraction(value.low[0]) - exact) <= Fraction(value.error[0])
            if certain[0]:
                rounded += 1
                assert double[0] == float(exact)
            root = value.sqrt()
            if math.isfinite(root.error[0]) and exact >= 0:
                low, high = (Fraction(root.high[0]) + Fraction(root.low[0]) + sign * Fraction(root.error[0]) for sign in (-1, 1))
                assert max(low, Fraction(0)) ** 2 <= exact <= high**2
    assert known > 1_000 and rounded > 1_000


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_estimated_aggregates_are_the_exact_ones(monkeypatch: pytest.MonkeyPatch, offset: float) -> None:
    """With NULL, NaN, groups of one row and of equal values; few are left to be computed one by one."""
    rng, n, left, groups = np.random.default_rng(3), 3_000, 0, 0
    finished = results._finished

    def counted(result: results.Result, finish: object, sums: results.Words, digits: object, places: np.ndarray) -> list[results.Value]:
        nonlocal left, groups
        left, groups = left + len(places), groups + len(sums[0])
        return finished(result, finish, sums, digits, places)  # type: ignore[arg-type]

    monkeypatch.setattr(results, "_finished", counted)
    x = offset + rng.random(n) * 10.0 ** rng.integers(-3, 3, n)
    y = np.where(rng.random(n) < 0.5, 3 * x + 1, rng.integers(-9, 9, n))
    x[::150], y[:40] = math.nan, 5.0
    rows = pa.table({"g": rng.integers(0, 400, n), "x": pa.array(x, mask=rng.random(n) < 0.05), "y": y})
    query = ", ".join([*(f"{name}(x) AS {name}" for name in OF_ONE), *(f"{name}(y, x) AS {name}" for name in OF_TWO)])
    views = []
    for least in (1, 10**9):
        monkeypatch.setattr(results, "ESTIMATED", least)
        with deltic.Session() as session:
            session.sql(f"CREATE TABLE t (g BIGINT, x DOUBLE, y DOUBLE); CREATE MATERIALIZED VIEW v AS SELECT g, {query} FROM t GROUP BY g")
            for part in (rows, rows.slice(0, 500)):
                with session.transaction() as tx:
                    tx.insert("t", part)
            views.append(sorted(repr(row) for row in session.view("v").rows()))
        if least == 1:
            assert left < 0.3 * groups
    assert views[0] == views[1]
