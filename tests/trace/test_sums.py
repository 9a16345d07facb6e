"""Exact sums against fractions: any order, any weights, deletions cancel exactly, one rounding at the end."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from deltic.errors import CorruptState
from deltic.kernels import floats, warm_up
from deltic.schema import decimal
from deltic.trace.sums import (
    NAN,
    NEGATIVE_INFINITY,
    POSITIVE_INFINITY,
    bit_counts,
    decimal_limbs,
    divide_decimal,
    float_limbs,
    join64,
    join_decimal,
    normalise_limbs,
    product_limbs,
    round_limbs,
    split64,
)

LAW = settings(deadline=None)
WORD = 2**63
LARGEST = 1.7976931348623157e308
TINY = 5e-324
warm_up()  # from here on a kernel refuses arrays that it was not declared for

finite = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [0.0, -0.0, TINY, -TINY, 2.0**-1022, LARGEST, -LARGEST, 1.0, -1.0, 0.1, 2.0**53, 1 + 2.0**-52]
)
weights = st.sampled_from([1, -1, 2, -3, 2**31, 2**32 - 1, 2**62, -(2**62), WORD - 1, -WORD]) | st.integers(-WORD, WORD - 1)
Terms = list[tuple[float, int]]
terms = st.lists(st.tuples(finite, weights), max_size=12)


def limbs_of(values: Terms) -> tuple[list[int], list[int], list[int]]:
    x, w = np.array([x for x, _ in values], np.float64), np.array([w for _, w in values], np.int64)
    row, position, limb = float_limbs(x, w)
    return row.tolist(), position.tolist(), limb.tolist()


def total(values: Terms) -> Fraction:
    return sum((Fraction(x) * w for x, w in values), Fraction(0))


def nearest(number: Fraction) -> float:
    """Python's own division of integers rounds half to even, subnormals too."""
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def rounded(values: Terms) -> float:
    _, position, limb = limbs_of(values)
    return float(round_limbs(np.array([0, len(limb)]), np.array(position, np.int64), np.array(limb, np.int64))[0])


@LAW
@given(st.integers(2, 4), st.data())
def test_limbs_of_a_product_of_doubles_are_exact(factors: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.tuples(*[finite] * factors, weights), max_size=12))
    columns = [np.array([each[i] for each in values], np.float64) for i in range(factors)]
    row, position, limb = product_limbs(columns, np.array([each[-1] for each in values], np.int64))
    sums = [Fraction(0)] * len(values)
    for r, p, d in zip(row.tolist(), position.tolist(), limb.tolist(), strict=True):
        assert -34 * factors <= p < 1000
        sums[r] += d * Fraction(2) ** (32 * p)
    assert sums == [math.prod(map(Fraction, each)) for each in values]


def test_products_with_factors_that_are_not_finite_have_no_limbs() -> None:
    odd = np.array([math.nan, math.inf, -math.inf, 2.0])
    row, _, _ = product_limbs([odd, odd[::-1].copy()], np.ones(4, np.int64))
    assert len(row) == 0


@LAW
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@given(data=st.data())
def test_bits_are_those_of_two_s_complement(dtype: type[np.signedinteger], data: st.DataObject) -> None:
    width = 8 * np.dtype(dtype).itemsize
    values = data.draw(st.lists(st.integers(-(1 << width - 1), (1 << width - 1) - 1), max_size=9))
    row, position, weight = bit_counts(np.array(values, dtype), np.arange(len(values)))
    sums = [0] * len(values)
    for r, p in zip(row.tolist(), position.tolist(), strict=True):
        sums[r] += 1 << p
    assert sums == [value % (1 << width) for value in values]
    assert weight.tolist() == row.tolist()


@LAW
@given(terms)
def test_limbs_are_exactly_the_product(values: Terms) -> None:
    row, position, limb = limbs_of(values)
    sums = [Fraction(0)] * len(values)
    for r, p, d in zip(row, position, limb, strict=True):
        assert d != 0 and abs(d) < 2**32
        sums[r] += d * Fraction(2) ** (32 * p)
    assert sums == [Fraction(x) * w for x, w in values]
    assert all(row.count(r) <= 5 for r in row)


@LAW
@given(terms)
@example([(LARGEST, 2), (LARGEST, -1)])
@example([(LARGEST, 1), (2.0**969, 1)])
@example([(LARGEST, 1), (2.0**970, 1)])
@example([(1.0, 1), (2.0**-53, 1)])
@example([(1.0, 1), (2.0**-53, 1), (TINY, 1)])
@example([(1 + 2.0**-52, 1), (2.0**-53, 1)])
@example([(2.0**-1022, 1), (TINY, -1)])
@example([(LARGEST, WORD - 1), (-LARGEST, WORD - 1), (TINY, 1)])
def test_a_sum_is_correctly_rounded(values: Terms) -> None:
    assert rounded(values) == nearest(total(values))


@LAW
@given(st.lists(finite, max_size=40))
def test_equal_to_fsum(values: list[float]) -> None:
    try:
        expected = math.fsum(values)
    except OverflowError:
        assume(False)
    assert rounded([(x, 1) for x in values]) == expected


@LAW
@given(terms, st.randoms())
def test_order_does_not_matter_and_deletions_cancel(values: Terms, random: object) -> None:
    deleted = [(x, -w) for x, w in values if w != -WORD]
    kept: Terms = [(0.1, 3), (TINY, -1)]
    changes = [*(t for t in values if t[1] != -WORD), *kept, *deleted]
    random.shuffle(changes)  # type: ignore[attr-defined]
    _, position, limb = limbs_of(changes)
    sums: dict[int, int] = {}
    for p, d in zip(position, limb, strict=True):
        sums[p] = sums.get(p, 0) + d
    _, position, limb = limbs_of(kept)
    assert {p: d for p, d in sums.items() if d} == {p: d for p, d in zip(position, limb, strict=True) if d}
    assert rounded(changes) == nearest(total(kept))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([(math.nan, 1), (1.0, 1)], math.nan),
        ([(math.inf, 2), (-5.0, 1)], math.inf),
        ([(-math.inf, 1)], -math.inf),
        ([(math.inf, 1), (-math.inf, 1)], math.nan),
        ([(math.inf, 1), (math.inf, -1), (0.5, 1)], 0.5),
        ([(math.nan, 7), (math.nan, -7), (-math.inf, 1)], -math.inf),
        ([(-0.0, 1)], 0.0),
        ([(math.nan, 0)], 0.0),
        ([], 0.0),
    ],
)
def test_nan_and_infinities_are_counted(values: Terms, expected: float) -> None:
    assert struct.pack("d", rounded(values)) == struct.pack("d", expected)


def test_positions_of_nan_and_infinities() -> None:
    payload = struct.unpack("d", b"\x01\x00\x00\x00\x00\x00\xf0\xff")[0]
    row, position, limb = limbs_of([(math.nan, 2), (math.inf, -3), (-math.inf, WORD - 1), (payload, 1)])
    assert (row, position) == ([0, 1, 2, 3], [NAN, POSITIVE_INFINITY, NEGATIVE_INFINITY, NAN])
    assert limb == [2, -3, WORD - 1, 1]


@LAW
@given(st.lists(terms, max_size=5))
def test_groups_are_rounded_independently(groups: list[Terms]) -> None:
    parts = [limbs_of(values) for values in groups]
    starts = np.cumsum([0, *(len(limb) for _, _, limb in parts)])
    position = np.array([p for _, ps, _ in parts for p in ps], np.int64)
    limb = np.array([d for _, _, ds in parts for d in ds], np.int64)
    position.flags.writeable = limb.flags.writeable = False
    assert round_limbs(starts, position, limb).tolist() == [nearest(total(values)) for values in groups]


extremes = st.integers(-WORD, WORD - 1) | st.sampled_from([WORD - 1, -WORD, 2**36, -(2**36), 2**36 - 1, 0])


@LAW
@given(st.lists(st.tuples(st.integers(-34, 34) | st.sampled_from([NAN, POSITIVE_INFINITY, NEGATIVE_INFINITY]), extremes), max_size=12))
def test_normalising_keeps_the_number_and_makes_limbs_small(rows: list[tuple[int, int]]) -> None:
    positions, limbs = (np.array([r[i] for r in rows], np.int64) for i in (0, 1))
    row, position, limb = normalise_limbs(positions, limbs)
    own = dict(enumerate(zip(positions.tolist(), limbs.tolist(), strict=True)))
    after = {(r, p): d for r, (p, d) in own.items()}
    for r, p, d in zip(row.tolist(), position.tolist(), limb.tolist(), strict=True):
        after[r, p] = after.get((r, p), 0) + d
    for r, (p, d) in own.items():
        if p >= NAN:
            assert after.pop((r, p)) == d
            continue
        moved = after.pop((r, p + 1), 0)
        left = after.pop((r, p))
        assert left + (moved << 32) == d
        assert abs(left) < 2**36 and abs(moved) <= 2**31
    assert not after


@LAW
@given(st.lists(extremes, max_size=10))
def test_limbs_of_any_size_round_as_their_sum(limbs: list[int]) -> None:
    positions = np.arange(len(limbs)) % 3 + 2
    expected = sum((d * Fraction(2) ** (32 * int(p)) for p, d in zip(positions, limbs, strict=True)), Fraction(0))
    assert round_limbs(np.array([0, len(limbs)]), positions, np.array(limbs, np.int64)).tolist() == [nearest(expected)]


@LAW
@given(st.lists(st.tuples(extremes, st.integers(-1000, 1000)), max_size=12))
@example([(WORD - 1, 1000), (WORD - 1, 24)])
def test_sums_of_bigint(rows: list[tuple[int, int]]) -> None:
    high, low = split64(np.array([x for x, _ in rows], np.int64))
    assert all(0 <= d < 2**32 for d in low.tolist())
    w = np.array([w for _, w in rows], np.int64)
    number, overflow = join64(*(np.array([int((limb * w).sum())], np.int64) for limb in (high, low)))
    expected = sum(x * w for x, w in rows)
    assert overflow.tolist() == [not -WORD <= expected < WORD]
    assert overflow[0] or number.tolist() == [expected]


@LAW
@given(extremes, extremes)
@example(WORD - 1, WORD - 1)
@example(-WORD, -WORD)
@example(2**31 - 1, 2**32 - 1)
@example(2**31 - 1, 2**32)
@example(-(2**31), -1)
def test_join64_of_any_limbs(high: int, low: int) -> None:
    number, overflow = join64(np.array([high]), np.array([low]))
    expected = (high << 32) + low
    assert overflow.tolist() == [not -WORD <= expected < WORD]
    assert overflow[0] or number.tolist() == [expected]


def as_decimal(number: int, scale: int) -> Decimal:
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def up_to(precision: int) -> st.SearchStrategy[int]:
    limit = 10**precision - 1
    return st.sampled_from([0, 1, -1, limit, -limit]) | st.integers(-limit, limit)


@LAW
@given(st.sampled_from([1, 9, 18, 19, 28, 38]), st.data())
def test_sums_of_decimals(precision: int, data: st.DataObject) -> None:
    numbers = data.draw(st.lists(up_to(precision), max_size=12))
    small = st.integers(-(2**26), 2**26)  # 12 of them keep each limb below 2^63
    w = data.draw(st.lists(small, min_size=len(numbers), max_size=len(numbers)))
    array = pa.array([Decimal(0), *(as_decimal(n, 1) for n in numbers)], pa.decimal128(precision, 1)).slice(1)
    limbs = decimal_limbs(array)
    assert len(limbs) == (2 if precision <= 18 else 4)
    sums = [np.array([int((limb * np.array(w, np.int64)).sum())], np.int64) for limb in limbs]
    expected = sum(n * k for n, k in zip(numbers, w, strict=True))
    for result in {precision, min(38, precision + 10), 38}:
        value, overflow = join_decimal(sums, decimal(result, 1))
        assert value.type == pa.decimal128(result, 1)
        assert overflow.tolist() == [abs(expected) >= 10**result]
        assert value.to_pylist() == [Decimal(0) if overflow[0] else as_decimal(expected, 1)]


@LAW
@given(st.lists(extremes, min_size=4, max_size=4), st.sampled_from([2, 4]))
@example([WORD - 1] * 4, 4)
@example([-WORD] * 4, 4)
@example([0, 0, 0, 0], 4)
def test_decimals_from_any_limbs(limbs: list[int], count: int) -> None:
    expected = sum(d << (32 * i) for i, d in enumerate(reversed(limbs[:count])))
    value, overflow = join_decimal([np.array([d]) for d in limbs[:count]], decimal(38, 0))
    assert overflow.tolist() == [abs(expected) >= 10**38]
    assert value.to_pylist() == [Decimal(0) if overflow[0] else as_decimal(expected, 0)]


def half_up(number: Fraction) -> int:
    magnitude = math.floor(abs(number) + Fraction(1, 2))
    return -magnitude if number < 0 else magnitude


def average(total: int, count: int, scale: int, result: int) -> int:
    """Spark's: half up to 39 digits after the point, then half up to the result's scale."""
    fine = half_up(Fraction(total * 10 ** (39 - scale), count))
    return half_up(Fraction(fine, 10 ** (39 - result)))


def four_limbs(number: int) -> list[np.ndarray]:
    return [np.array([number >> 96 if i == 3 else (number >> 32 * i) & 0xFFFFFFFF]) for i in (3, 2, 1, 0)]


def divided(total: int, count: int, scale: int, result: tuple[int, int]) -> Decimal | None:
    """None if it overflows."""
    value, overflow = divide_decimal(four_limbs(total), np.array([count]), scale, decimal(*result))
    if abs(total) < 2**95:  # two limbs, also such that are not the least
        for shift in (0, 1, -5):
            two = np.array([(total >> 32) - shift]), np.array([(total & 0xFFFFFFFF) + (shift << 32)])
            same, also = divide_decimal(two, np.array([count]), scale, decimal(*result))
            assert (same.to_pylist(), also.tolist()) == (value.to_pylist(), overflow.tolist())
    value.validate(full=True)
    return None if overflow[0] else value.to_pylist()[0]


counts = st.sampled_from([1, 2, 3, 7, 10, 2**32 - 1, 2**32, 2**32 + 1, 10**18, WORD - 1]) | st.integers(1, WORD - 1)


@LAW
@given(st.integers(1, 38), st.data())
def test_averages_of_decimals(precision: int, data: st.DataObject) -> None:
    scale = data.draw(st.integers(0, precision))
    count = data.draw(counts)
    number = data.draw(up_to(min(38, precision + 10)))
    result = (min(38, precision + 4), min(38, scale + 4))
    expected = average(number, count, scale, result[1])
    quotient = divided(number, count, scale, result)
    assert quotient == (as_decimal(expected, result[1]) if abs(expected) < 10 ** result[0] else None)


@pytest.mark.parametrize(
    ("number", "count", "scale", "result", "expected"),
    [
        (1, 2, 0, (5, 0), "1"),
        (-1, 2, 0, (5, 0), "-1"),
        (1, 3, 2, (9, 6), "0.003333"),
        (2, 3, 2, (9, 6), "0.006667"),
        (1, 20011, 34, (38, 38), "1E-38"),  # 0.4997E-38 becomes 0.5E-38 by the first rounding
        (1, 25000, 34, (38, 38), "0E-38"),
        (10**37, 1, 37, (38, 38), None),
        (10**38, 10, 0, (38, 4), None),
    ],
)
def test_averages_round_half_up_twice(number: int, count: int, scale: int, result: tuple[int, int], expected: str | None) -> None:
    assert divided(number, count, scale, result) == (None if expected is None else Decimal(expected))


def test_averages_of_two_limbs_of_groups_without_rows_and_of_negative_counts() -> None:
    high, low = split64(np.array([-125, 10**18 - 1, 5, 5]))
    value, overflow = divide_decimal((high, low), np.array([2, 1, 0, -1]), 2, decimal(22, 6))
    assert not overflow.any()
    assert value.to_pylist() == [Decimal("-0.625000"), Decimal("9999999999999999.990000"), Decimal("0E-6"), Decimal("-0.050000")]


def test_no_groups() -> None:
    none = np.empty(0, np.int64)
    assert join_decimal((none, none), decimal(9, 2))[0].to_pylist() == []
    assert divide_decimal((none, none), none, 2, decimal(9, 6))[0].to_pylist() == []
    assert round_limbs(np.array([0]), none, none).tolist() == []
    assert [len(part) for part in float_limbs(np.empty(0), none)] == [0, 0, 0]
    for buffer in (None, pa.py_buffer(b"")):
        empty = pa.Array.from_buffers(pa.decimal128(9, 2), 0, [None, buffer])
        assert [len(limb) for limb in decimal_limbs(empty)] == [0, 0]


@pytest.mark.parametrize(
    "position", [floats.LOWEST - 1, floats.LOWEST + floats.ROOM - 1, floats.NAN - 1, floats.NEGATIVE_INFINITY + 1, -(2**63)]
)
def test_a_position_that_no_double_has_is_damage(position: int) -> None:
    with pytest.raises(CorruptState, match="a digit at a position that no DOUBLE has"):
        round_limbs(np.array([0, 2]), np.array([0, position]), np.array([1, 1]))
