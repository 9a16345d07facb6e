"""Converts a column as a whole if every value is valid, and value by value only near invalid ones.

A Conversion has two functions that agree: `fast` converts a whole array or raises; `slow` converts one value or returns a fault. If
`fast` raises, the array is halved until a few values remain. Cost: O(n) if all are valid; each invalid value adds O(log n) conversions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa

from deltic.connectors.files.portions import Fault, ParsedColumn

T = TypeVar("T")
_FEW: Final = 32


def by_halves(length: int, fast: Callable[[int, int], T], slow: Callable[[int, int], T]) -> list[T]:
    """What `fast` returns for the range from 0 to `length`, or for parts of it, in order; `slow`, for the few values where it raises."""
    parts: list[T] = []
    ranges = [(0, length)]
    while ranges:
        start, end = ranges.pop()
        try:
            parts.append(fast(start, end))
        except pa.ArrowException:
            if end - start <= _FEW:
                parts.append(slow(start, end))
            else:
                middle = (start + end) // 2
                ranges += [(middle, end), (start, middle)]
    return parts


@dataclass(frozen=True, slots=True)
class Conversion:
    """fast: raises pa.ArrowException for an array that it cannot convert as a whole. slow: a value, None for NULL, or a Fault."""

    target: pa.DataType
    fast: Callable[[pa.Array], pa.Array]
    slow: Callable[[pa.Scalar[Any]], object | Fault]

    def column(self, array: pa.Array) -> ParsedColumn:
        """The values, and the faults by row of `array`."""
        faults: dict[int, Fault] = {}
        parts = by_halves(
            len(array), lambda start, end: self.fast(array[start:end]), lambda start, end: self._each(array[start:end], start, faults)
        )
        return ParsedColumn(parts[0] if len(parts) == 1 else pa.concat_arrays(parts), faults)

    def _each(self, part: pa.Array, start: int, faults: dict[int, Fault]) -> pa.Array:
        values: list[object] = []
        for i, scalar in enumerate(part):
            value = self.slow(scalar) if scalar.is_valid else None
            if isinstance(value, Fault):
                faults[start + i] = value
                value = None
            values.append(value)
        return pa.array(values, self.target)
