"""Columns converted at once where every value fits, and value by value only around those that do not.

A Conversion has two ways that agree: `fast` takes a whole array, and raises or gives the right values; `slow` judges one value.
Where `fast` raises, the array is halved until the trouble is among a few values. O(n) if all fit; each misfit adds O(log n) of it.
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
    """fast: raises pa.ArrowException for an array that it does not know how to convert as a whole. slow: None is NULL."""

    target: pa.DataType
    fast: Callable[[pa.Array], pa.Array]
    slow: Callable[[pa.Scalar[Any]], object | Fault]

    def column(self, array: pa.Array) -> ParsedColumn:
        """The values, and the rows of `array` that have none."""
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
            found = self.slow(scalar) if scalar.is_valid else None
            if isinstance(found, Fault):
                faults[start + i] = found
                found = None
            values.append(found)
        return pa.array(values, self.target)
