"""Sums over frames, from all entries that any of them may hold: by differences of running sums, in O((entries + frames) · log)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deltic.trace.consolidate import consolidate, overflow
from deltic.trace.rows import Rows

Words = tuple[np.ndarray, ...]
_SAFE = 2.0**62


def dense_ranks(groups: Sequence[Words]) -> list[np.ndarray]:
    """For the rows of each group their place in the common order of all, word by word: equal rows have equal ranks, from 0."""
    words = [np.concatenate(columns) for columns in zip(*groups, strict=True)]
    varying = [word for word in words if len(word) and (word != word[0]).any()]
    ranks = np.zeros(len(words[0]), np.int64)
    if varying:
        order = np.lexsort(varying[::-1])
        differs = np.zeros(len(order), bool)
        for word in varying:
            differs[1:] |= word[order[1:]] != word[order[:-1]]
        ranks[order] = np.cumsum(differs)
    return np.split(ranks, np.cumsum([len(group[0]) for group in groups])[:-1])


def frame_sums(places: np.ndarray, more: Words, weights: Words, lows: np.ndarray, highs: np.ndarray) -> Rows:
    """(the number of a frame, more) → sums of the weights of the entries whose places are from low to high.

    Entries with equal words `more` are added, others are apart. Raises WeightOverflow.
    """
    if not len(places) or not len(lows):
        return Rows.empty(1 + len(more), len(weights))
    parts = []
    kinds = dense_ranks([more])[0] if more else np.zeros(len(places), np.int64)
    order = np.lexsort((places, kinds))
    kinds = kinds[order]
    bounds = np.searchsorted(kinds, np.arange(int(kinds[-1]) + 2))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        rows = order[begin:end]
        first = np.searchsorted(places[rows], lows, "left")
        last = np.maximum(np.searchsorted(places[rows], highs, "right"), first)
        sums = [_differences(weight[rows], first, last) for weight in weights]
        chosen = np.flatnonzero(np.logical_or.reduce([word != 0 for word in sums]))
        kind = tuple(np.full(len(chosen), word[rows[0]]) for word in more)
        parts.append(Rows((chosen, *kind), [word[chosen] for word in sums]))
    return parts[0] if len(parts) == 1 else consolidate(Rows.concat(parts))


def _differences(weight: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    if float(np.abs(weight.astype(np.float64)).sum()) >= _SAFE:
        raise overflow("adding the rows of frames")
    total = np.zeros(len(weight) + 1, np.int64)
    np.cumsum(weight, out=total[1:])
    sums: np.ndarray = total[last] - total[first]
    return sums


def frame_entries(places: np.ndarray, more: Words, weights: Words, lows: np.ndarray, highs: np.ndarray) -> Rows:
    """The same, where nearly all entries have words of their own: O(entries of all frames)."""
    order = np.argsort(places, kind="stable")
    first = np.searchsorted(places[order], lows, "left")
    counts = np.maximum(np.searchsorted(places[order], highs, "right") - first, 0)
    frames = np.repeat(np.arange(len(lows)), counts)
    entries = order[np.arange(len(frames)) - (np.cumsum(counts) - counts)[frames] + first[frames]]
    return Rows((frames, *(word[entries] for word in more)), [word[entries] for word in weights])


def among(rows: Words, keys: Words) -> np.ndarray:
    """Which rows are among the keys."""
    own, listed = dense_ranks([rows, keys])
    return np.isin(own, listed)
