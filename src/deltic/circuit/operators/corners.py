"""The change of any function of a trace at a time in nested scopes: its mixed difference over the corners of that time.

With A(t) the sum of all changes at times ≤ t in the product order, out(t) = Σ ± f(A(c)) over the corners c of t: each coordinate of c,
the epoch included, is either t's or the one before, and the sign is minus for each that is the one before. For one scope that is
f(e, i) − f(e − 1, i) − f(e, i − 1) + f(e − 1, i − 1). No trace of the output is needed (docs/theory.md, Operators at nested times).
A corner is a set of bits: bit 0 for the epoch, bit 1 + k for scope k, 1 where the coordinate is t's. So is the class of a change at
t′ ≤ t: 1 where t′ has the coordinate of t; it counts in the corners that contain its class.
A key that is looked at now has to be looked at again at now ∨ t′ for every t′ ≰ now in its history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.due import split_by_time
from deltic.circuit.scopes import Nest, ScopedTrace
from deltic.trace.probe import first_of_each, probe
from deltic.trace.rows import Rows

Words = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """Changes at times ≤ now under some keys: which key, words, weights, and the class of each."""

    source: np.ndarray
    columns: Words
    weights: Words
    classes: np.ndarray

    def at(self, corner: int) -> np.ndarray:
        """Positions of the changes that count in the corner."""
        found: np.ndarray = np.flatnonzero(self.classes | corner == corner)
        return found


def corners(nest: Nest) -> Iterator[tuple[int, int]]:
    """(corner, sign) for the corners of now at which anything may be: none lies before the first iteration, or before what is filled."""
    coordinates = (0 if nest.backfill else 1, *nest.time)
    must = sum(1 << k for k, coordinate in enumerate(coordinates) if coordinate == 0)
    for corner in range(1 << len(coordinates)):
        if corner & must == must:
            yield corner, -1 if (len(coordinates) - corner.bit_count()) % 2 else 1


def look(trace: ScopedTrace, keys: Words, columns: Sequence[int], nest: Nest) -> KeyHistory:
    """The history of the keys, whose words are the first of the trace's rows, up to now; what comes later is put off, by key."""
    width = trace.past.columns - trace.depth
    wanted = (*columns, *range(width, width + trace.depth))
    parts = []
    for bit, spine in enumerate((trace.past, trace.added)):
        if spine.batches:
            source, found, weights = probe(spine, keys, wanted, nest.counters)
            words, times = found[: len(columns)], found[len(columns) :]
            now, later = split_by_time(times, nest.time)
            for time, at in later:
                nest.postpone(time, _keys_at(keys, source[at][first_of_each(source[at])]))
            part = KeyHistory(source, words, weights, _classes(times, nest, bit))
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


def _classes(times: Words, nest: Nest, epoch: int) -> np.ndarray:
    """The class of changes at `times`; in scopes deeper than the trace's they are at iteration 0."""
    now = nest.time
    deeper = sum(2 << k for k in range(len(times), len(now)) if now[k] == 0)
    classes: np.ndarray = np.full(len(times[0]), epoch | deeper, np.int64)
    for k, time in enumerate(times):
        classes |= (time == now[k]).astype(np.int64) << np.int64(1 + k)
    return classes


def _keys_at(keys: Words, at: np.ndarray) -> Rows:
    return Rows([word[at] for word in keys], (np.ones(len(at), np.int64),))


def _taken(part: KeyHistory, at: np.ndarray) -> KeyHistory:
    return KeyHistory(part.source[at], tuple(c[at] for c in part.columns), tuple(w[at] for w in part.weights), part.classes[at])
