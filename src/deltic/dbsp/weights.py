"""Weights: exact signed integers of 64 bits. What leaves them is an error that names row and operator, never a wrap."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, TypeVar

from deltic.errors import CircuitError, WeightOverflow

Entry = TypeVar("Entry", bound=Hashable)

GREATEST: Final = 2**63 - 1
LEAST: Final = -(2**63)
ENTRY: Final = "rows that can be hashed, such as tuples, with integers as weights"


def checked(weight: int, row: object, operator: str) -> int:
    """The weight itself; WeightOverflow if it does not fit 64 bits.

    >>> checked(2**63 - 1, "a", "plus")
    9223372036854775807
    """
    if not isinstance(weight, int):
        raise CircuitError(f"{operator}: the weight {weight!r} of the row {row!r} is no integer", expected=ENTRY)
    if LEAST <= weight <= GREATEST:
        return weight
    raise WeightOverflow(
        f"{operator}: the weight {weight} of the row {row!r} leaves 64 bits",
        expected=f"a weight from {LEAST} to {GREATEST}",
        remedy="apply distinct before what multiplies weights",
    )


def summed(entries: Iterable[tuple[Entry, int]], operator: str) -> dict[Entry, int]:
    """The sum of the weights of each entry, without those that come to 0. Raises WeightOverflow, whatever the order of the entries.

    >>> summed([("a", 1), ("b", 2), ("a", -1)], "plus")
    {'b': 2}
    """
    sums: dict[Entry, int] = {}
    for entry, weight in entries:
        try:
            sums[entry] = sums.get(entry, 0) + weight
        except TypeError as error:  # as Python's dicts and numbers say it
            raise CircuitError(f"{operator}: {entry!r} with the weight {weight!r}: {error}", expected=ENTRY) from error
    return {entry: checked(weight, entry, operator) for entry, weight in sums.items() if weight}
