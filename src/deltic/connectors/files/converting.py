"""Converts a column as a whole if every value is valid, and value by value only near invalid ones.

A Conversion has two functions that agree: `fast` converts a whole array or raises; `slow` converts one value or returns a fault. If
`fast` raises, the array is halved until a few values remain. Cost: O(n) if all are valid; each invalid value adds O(log n) conversions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from deltic.connectors.files.portions import Fault, ParsedColumn

_FEW: Final = 32


@dataclass(frozen=True, slots=True)
class Conversion:
    """fast: raises pa.ArrowException for an array that it cannot convert as a whole. slow: a value, None for NULL, or a Fault."""

    target: pa.DataType
    fast: Callable[[pa.Array], pa.Array]
    slow: Callable[[pa.Scalar[Any]], object | Fault]

    def column(self, array: pa.Array) -> ParsedColumn:
        """The values, and the faults by row of `array`."""
        parts: list[pa.Array] = []
        faults: dict[int, Fault] = {}
        left = [(0, len(array))]
        while left:
            start, length = left.pop()
            part = array.slice(start, length)
            try:
                parts.append(self.fast(part))
            except pa.ArrowException:
                if length <= _FEW:
                    parts.append(self._each(part, start, faults))
                else:
                    half = length // 2
                    left += [(start + half, length - half), (start, half)]
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
