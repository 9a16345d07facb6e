"""Counters of the work of an operator; readers and operators add to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Sums over calls.

    rows_in, rows_out: rows that an operator read and returned.
    touched: rows and index entries that kernels inspected in traces.
    batches: batches read, counted once per call.
    seconds: time spent.
    """

    rows_in: int = 0
    rows_out: int = 0
    touched: int = 0
    batches: int = 0
    seconds: float = 0.0

    def __iadd__(self, other: Counters) -> Counters:
        self.rows_in += other.rows_in
        self.rows_out += other.rows_out
        self.touched += other.touched
        self.batches += other.batches
        self.seconds += other.seconds
        return self


def summed(parts: Sequence[Mapping[str, Counters]]) -> Mapping[str, Counters]:
    """The sums over all parts, such as shards, by name. The parts are not changed; a single one is returned as it is."""
    if len(parts) == 1:
        return parts[0]
    total: dict[str, Counters] = {}
    for part in parts:
        for name, counters in part.items():
            total[name] = total.get(name, Counters())
            total[name] += counters
    return total
