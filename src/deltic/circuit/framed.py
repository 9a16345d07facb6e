"""Values over frames, from all entries that any of them may hold: sums by differences of running sums, first rows by ranges of 2^k rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from deltic.circuit.ties import order_of_ties
from deltic.trace.consolidate import consolidate, overflow
from deltic.trace.probe import first_of_each
from deltic.trace.rows import Rows
from deltic.trace.strings import StringTable

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


def exact_ranks(groups: Sequence[Words], texts: Mapping[int, bool], strings: StringTable) -> list[np.ndarray]:
    """As `dense_ranks`, with strings in the order of their bytes. texts: the words that are string ids → whether they descend."""
    words = tuple(np.concatenate(columns) for columns in zip(*groups, strict=True))
    if not any(bool(strings.exceeds_prefix(words[text]).any()) for text in texts):
        return dense_ranks(groups)
    rows = consolidate(Rows(words, (np.ones(len(words[0]), np.int64),))).columns
    order = order_of_ties(np.zeros(len(rows[0]), np.int64), rows, tuple(texts.items()), strings)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    ranks = dense_ranks([rows, words])[1]
    return np.split(place[ranks], np.cumsum([len(group[0]) for group in groups])[:-1])


def least_of_each(groups: np.ndarray, words: Words, texts: Mapping[int, bool], strings: StringTable) -> np.ndarray:
    """The position of the least row of each group, in the order of the groups."""
    order = np.lexsort((exact_ranks([words], texts, strings)[0], groups))
    return order[first_of_each(groups[order])]


def frame_leasts(places: np.ndarray, ranks: np.ndarray, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """The least rank of the entries whose places are from low to high, -1 if there are none: O((entries + frames) · log of a frame).

    >>> frame_leasts(np.array([3, 1, 2, 7]), np.array([5, 4, 6, 0]), np.array([1, 2, 4]), np.array([9, 3, 6])).tolist()
    [0, 5, -1]
    """
    order = np.argsort(places, kind="stable")
    table, ordered = ranks[order], places[order]  # the least of the 2^k entries from each on
    begins, ends = np.searchsorted(ordered, lows, "left"), np.searchsorted(ordered, highs, "right")
    powers = np.frexp((ends - begins).astype(np.float64))[1] - 1
    powers[ends <= begins] = -1
    least = np.full(len(lows), -1)
    for power in range(int(powers.max(initial=-1)) + 1):
        chosen = np.flatnonzero(powers == power)
        least[chosen] = np.minimum(table[begins[chosen]], table[ends[chosen] - (1 << power)])
        table = np.minimum(table[: -(1 << power)], table[1 << power :])
    return least


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
