"""Certified: numbers of groups as pairs of doubles with a bound of their error, which says whether a rounded result is certain.

A number is high + low, with |low| at most half a unit in the last place of high, which gives 106 bits. The algorithms and their bounds are
those of Joldes, Muller and Popescu, Tight and rigorous error bounds for basic building blocks of double-word arithmetic, ACM Transactions
on Mathematical Software 44(2), 2017. What leaves the range in which they hold has an infinite error, so NumPy's warnings say nothing: they
are to be switched off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from deltic.trace.sums import halves

Floats = np.ndarray
LEAST: Final = 2.0**-400
GREATEST: Final = 2.0**400
RELATIVE: Final = 2.0**-100
"""More than the error of a product, a quotient or a root (15 · 2^-106 at most), and of computing the bound."""
MORE: Final = 1 + 2.0**-20
"""What a computed bound is multiplied by, for the errors of computing it."""


@dataclass(frozen=True, slots=True)
class Certified:
    """high, low, error: float64[n]. The number is within `error` of high + low; that is infinite or NaN where nothing is known."""

    high: Floats
    low: Floats
    error: Floats

    @staticmethod
    def of(integers: np.ndarray) -> Certified:
        """Exactly these integers, int64[n], of up to 62 bits.

        >>> number = Certified.of(np.array([3, 2**60 + 1]))
        >>> number.high.tolist(), number.low.tolist(), number.error.tolist()
        ([3.0, 1.152921504606847e+18], [0.0, 1.0], [0.0, 0.0])
        """
        high = integers.astype(np.float64)
        fits = np.abs(high) < 2.0**62
        low = np.where(fits, integers - np.where(fits, high, 0.0).astype(np.int64), 0).astype(np.float64)
        return Certified(high, low, np.where(fits, 0.0, np.inf))

    def scaled(self, exponents: np.ndarray) -> Certified:
        """Times 2^exponents."""
        return _in_range(*(np.ldexp(part, exponents) for part in (self.high, self.low, self.error)))

    def take(self, places: np.ndarray) -> Certified:
        return Certified(self.high[places], self.low[places], self.error[places])

    def put(self, places: np.ndarray, numbers: Certified) -> None:
        """Replaces those at these places."""
        self.high[places], self.low[places], self.error[places] = numbers.high, numbers.low, numbers.error

    def __neg__(self) -> Certified:
        return Certified(-self.high, -self.low, self.error)

    def __add__(self, other: Certified) -> Certified:
        high, low = _two_sum(self.high, other.high)
        above, below = _two_sum(self.low, other.low)
        carried, first = _two_sum(low, above)
        high, low = _two_sum(high, carried)
        rest, second = _two_sum(below, low)
        return _in_range(*_two_sum(high, rest), (self.error + other.error + np.abs(first) + np.abs(second)) * MORE)

    def __sub__(self, other: Certified | int) -> Certified:
        return self + -_number(other)

    def __mul__(self, other: Certified) -> Certified:
        high, low = _two_product(self.high, other.high)
        high, low = _fast_two_sum(high, low + (self.high * other.low + self.low * other.high))
        error = np.abs(self.high) * other.error + np.abs(other.high) * self.error + self.error * other.error
        exact = (self.low == 0) & (other.low == 0)
        return _in_range(high, low, _at_least(error * MORE, self, other) + np.where(exact, 0.0, RELATIVE * np.abs(high)))

    def __rmul__(self, other: int) -> Certified:
        return _number(other) * self

    def __truediv__(self, other: Certified) -> Certified:
        """An infinite error where the divisor may be 0."""
        first = self.high / other.high
        high, low = _two_product(other.high, first)
        high, more = _fast_two_sum(high, other.low * first)
        high, low = _fast_two_sum(high, more + low)
        high, low = _fast_two_sum(first, ((self.high - high) + (self.low - low)) / other.high)
        least = np.abs(other.high) * (1 - 2.0**-50) - other.error
        error = _at_least((self.error + np.abs(high) * other.error) / least * MORE, self, other)
        error += np.where(high == 0, 0.0, RELATIVE * np.abs(high))
        return _in_range(high, low, np.where(least > 0, error, np.inf))

    def sqrt(self) -> Certified:
        """An infinite error where the number may be negative."""
        root = np.sqrt(self.high)
        square, rest = _two_product(root, root)
        high, low = _fast_two_sum(root, (((self.high - square) - rest) + self.low) / (2 * root))
        least = self.high * (1 - 2.0**-50) - self.error
        error = self.error / np.sqrt(least) * MORE + RELATIVE * high
        zero = (self.high == 0) & (self.error == 0)
        known = _in_range(high, low, np.where(least > 0, error, np.inf))
        return Certified(*(np.where(zero, 0.0, part) for part in (known.high, known.low, known.error)))

    def rounded(self) -> tuple[Floats, np.ndarray]:
        """(the nearest doubles, ties to even, zeros positive; where this is certain)."""
        error = np.where(self.error == 0, 0.0, self.error * MORE + np.abs(self.low) * 2.0**-51)  # of the sums with low, too
        least, greatest = self.high + (self.low - error), self.high + (self.low + error)
        return greatest + 0.0, least == greatest


def _number(value: Certified | int) -> Certified:
    return Certified.of(np.array([value])) if isinstance(value, int) else value


def _at_least(error: Floats, one: Certified, other: Certified) -> Floats:
    """The error, which must not be rounded to 0 unless both numbers are exact."""
    return np.where((one.error == 0) & (other.error == 0), error, np.maximum(error, LEAST))


def _in_range(high: Floats, low: Floats, error: Floats) -> Certified:
    size = np.abs(high)
    return Certified(high, low, np.where((size <= GREATEST) & ((size >= LEAST) | (size == 0)), error, np.inf))


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """(a + b rounded, the rest)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _fast_two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """As `_two_sum`, for |a| ≥ |b|."""
    total = a + b
    return total, b - (total - a)


def _two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """(a · b rounded, the rest)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
