"""The change of any function of a trace at a time in nested scopes: its mixed difference over the corners of that time.

With A(t) the sum of all changes at times ≤ t in the product order, out(t) = Σ ± f(A(c)) over the corners c of t: each coordinate of c,
the epoch included, is that of t or the one before, and each that is the one before contributes a factor −1. For one scope that is
f(e, i) − f(e − 1, i) − f(e, i − 1) + f(e − 1, i − 1). No trace of the output is needed (docs/theory.md, Operators at nested times).
A corner is a bit set: bit 0 for the epoch, bit 1 + k for scope k, 1 if the coordinate is that of t. So is the class of a change at t′ ≤ t:
1 if t′ has the coordinate of t. A change counts in the corners that contain its class.
A key that is read at time t required be read again at t ∨ t′ for every t′ ≰ t in its history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.due import split_by_time
from deltic.circuit.scopes import ScopeContext, ScopedTrace
from deltic.trace.probe import first_of_each, probe
from deltic.trace.rows import Rows

Words = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """Changes at times ≤ now under some keys. source: the position of each change's key. classes: the class of each change."""

    source: np.ndarray
    columns: Words
    weights: Words
    classes: np.ndarray

    def counted(self, corner: int) -> np.ndarray:
        """Positions of the changes that count in the corner."""
        positions: np.ndarray = np.flatnonzero(self.classes | corner == corner)
        return positions


def corners(scopes: ScopeContext) -> Iterator[tuple[int, int]]:
    """(corner, sign) for the corners of the current time, except those before the first iteration or, in a backfill, the first epoch."""
    coordinates = (0 if scopes.backfill else 1, *scopes.time)
    required = sum(1 << k for k, coordinate in enumerate(coordinates) if coordinate == 0)
    for corner in range(1 << len(coordinates)):
        if corner & required == required:
            yield corner, -1 if (len(coordinates) - corner.bit_count()) % 2 else 1


def look(trace: ScopedTrace, keys: Words, columns: Sequence[int], scopes: ScopeContext) -> KeyHistory:
    """The history of the keys, the first words of the trace's rows, up to now. Keys with later changes are postponed."""
    width = trace.past.columns - trace.depth
    read = (*columns, *range(width, width + trace.depth))
    parts = []
    for bit, spine in enumerate((trace.past, trace.added)):
        if spine.batches:
            source, matches, weights = probe(spine, keys, read, scopes.counters)
            words, times = matches[: len(columns)], matches[len(columns) :]
            now, later = split_by_time(times, scopes.time)
            for time, positions in later:
                scopes.postpone(time, _keys_at(keys, source[positions][first_of_each(source[positions])]))
            part = KeyHistory(source, words, weights, _classes(times, scopes, bit))
            parts.append(part if now is None else _taken(part, now))
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, np.int64)
    if not parts:
        return KeyHistory(none, (none,) * len(columns), (none,) * trace.past.weights, none)
    a, b = parts
    return KeyHistory(
        np.concatenate((a.source, b.source)),
        tuple(np.concatenate(pair) for pair in zip(a.columns, b.columns, strict=True)),
        tuple(np.concatenate(pair) for pair in zip(a.weights, b.weights, strict=True)),
        np.concatenate((a.classes, b.classes)),
    )


def _classes(times: Words, scopes: ScopeContext, epoch: int) -> np.ndarray:
    """The class of changes at `times`; in scopes deeper than the trace's they are at iteration 0."""
    now = scopes.time
    deeper = sum(2 << k for k in range(len(times), len(now)) if now[k] == 0)
    classes: np.ndarray = np.full(len(times[0]), epoch | deeper, np.int64)
    for k, time in enumerate(times):
        classes |= (time == now[k]).astype(np.int64) << np.int64(1 + k)
    return classes


def _keys_at(keys: Words, positions: np.ndarray) -> Rows:
    return Rows([word[positions] for word in keys], (np.ones(len(positions), np.int64),))


def _taken(part: KeyHistory, positions: np.ndarray) -> KeyHistory:
    columns, weights = (tuple(word[positions] for word in words) for words in (part.columns, part.weights))
    return KeyHistory(part.source[positions], columns, weights, part.classes[positions])
