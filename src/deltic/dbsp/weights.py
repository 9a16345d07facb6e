"""Weights: exact signed 64-bit integers. Overflow raises an error that names row and operator; nothing wraps."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, TypeVar

from deltic.errors import CircuitError, WeightOverflow

Entry = TypeVar("Entry", bound=Hashable)

GREATEST: Final = 2**63 - 1
LEAST: Final = -(2**63)
ENTRY: Final = "hashable rows, such as tuples, with integer weights"


def checked(weight: int, row: object, operator: str) -> int:
    """The weight itself. Raises WeightOverflow if it does not fit 64 bits, CircuitError if it is not an integer.

    >>> checked(2**63 - 1, "a", "plus")
    9223372036854775807
    """
    if not isinstance(weight, int):
        raise CircuitError(f"{operator}: the weight {weight!r} of row {row!r} is not an integer", expected=ENTRY)
    if LEAST <= weight <= GREATEST:
        return weight
    raise WeightOverflow(
        f"{operator}: the weight {weight} of row {row!r} exceeds 64 bits",
        expected=f"a weight from {LEAST} to {GREATEST}",
        remedy="apply distinct before operators that multiply weights",
    )


def summed(entries: Iterable[tuple[Entry, int]], operator: str) -> dict[Entry, int]:
    """The nonzero sum of the weights of each entry. Raises WeightOverflow, independent of the order of the entries.

    >>> summed([("a", 1), ("b", 2), ("a", -1)], "plus")
    {'b': 2}
    """
    sums: dict[Entry, int] = {}
    for entry, weight in entries:
        try:
            sums[entry] = sums.get(entry, 0) + weight
        except TypeError as error:  # unhashable entry, or weight that cannot be added
            raise CircuitError(f"{operator}: {entry!r} with weight {weight!r}: {error}", expected=ENTRY) from error
    return {entry: checked(weight, entry, operator) for entry, weight in sums.items() if weight}
