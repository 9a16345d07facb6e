"""The readers of a spine: lookup, probe, first and ranked. Each is one kernel call over all its batches, for n keys at once.

keys: one int64[n] for each leading column sought; none for the one empty key, with which every row begins.
Each adds to `counters` what it inspected (index entries, rows compared or added) and the batches read.
They raise WeightOverflow if a sum of weights over batches leaves 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deltic.kernels import ordered, read
from deltic.kernels import ranked as ranks
from deltic.kernels.memory import Words
from deltic.kernels.table import addresses, block
from deltic.trace.consolidate import overflow
from deltic.trace.counters import Counters
from deltic.trace.spine import Spine


def _count(keys: Sequence[Words]) -> int:
    return len(keys[0]) if keys else 1


def first_of_each(source: Words) -> Words:
    """The positions of the first of each run of equal words in ascending words, such as the keys that `probe` returns.

    >>> first_of_each(np.array([0, 0, 2, 3, 3])).tolist()
    [0, 2, 3]
    """
    begins = np.ones(len(source), bool)
    np.not_equal(source[1:], source[:-1], out=begins[1:])
    return begins.nonzero()[0]


def lookup(spine: Spine, keys: Sequence[Words], counters: Counters) -> tuple[Words, ...]:
    """int64[n] per weight: the weights summed over all rows whose leading columns equal key i, 0 if there are none.

    O(n · log state + rows added).
    """
    n = _count(keys)
    spine.expect(keys)
    batches, directory = spine.view
    words, target = block(spine.weights, n)
    report = np.zeros(read.REPORT, np.int64)
    outcome = read.lookup(directory, len(batches), spine.columns, spine.weights, addresses(keys, n), len(keys), n, target, report)
    if outcome < 0:
        raise overflow("adding the weights of a key")
    counters.touched += int(report[read.TOUCHED])
    counters.batches += len(batches)
    spine.count_sought(n)
    return tuple(words)


def probe(
    spine: Spine, keys: Sequence[Words], columns: Sequence[int], counters: Counters
) -> tuple[Words, tuple[Words, ...], tuple[Words, ...]]:
    """Every stored row whose leading columns equal key i: (its key i, ascending; the requested columns; all weights), int64[m] each.

    The rows of one key come batch by batch, in order within each; they are not consolidated. O(n · log state + m).
    """
    n = _count(keys)
    spine.expect(keys)
    batches, directory = spine.view
    width = spine.columns + spine.weights
    hit_words, hits = block(read.HIT, n * len(batches))
    report = np.zeros(read.REPORT, np.int64)
    count = read.seek(directory, len(batches), spine.columns, spine.weights, addresses(keys, n), len(keys), n, hits, report)
    needed = np.array([*columns, *range(spine.columns, width)], np.int64)
    words, target = block(1 + len(needed), int(report[read.MATCHES]))
    read.expand(directory, 2 + width, hits, count, needed, len(needed), target)
    counters.touched += int(report[read.TOUCHED])
    counters.batches += len(batches)
    spine.count_sought(n)
    del hit_words
    out = tuple(words)
    return out[0], out[1 : 1 + len(columns)], out[1 + len(columns) :]


def first(
    spine: Spine, prefixes: Sequence[Words], starts: Sequence[Words] | None, limit: int, counters: Counters
) -> tuple[Words, tuple[Words, ...], tuple[Words, ...]]:
    """The first rows of each prefix i, in order: (i, ascending; all columns; all weights summed over the batches), int64[m] each.

    A row counts if its weight 0 is positive, for that many copies; a prefix ends with the row that reaches `limit` copies. starts: the
    least values, inclusive, of the columns after the prefix; rows before them cost nothing, while cancelled rows are skipped one by one.
    O(n · (log state + rows skipped)).
    """
    starts = starts or ()
    n = _count((*prefixes, *starts))
    spine.expect(prefixes)
    batches, directory = spine.view
    keys, begins = addresses(prefixes, n), addresses(starts, n)
    parts: list[Words] = []
    done, room = 0, _room(spine, n * limit)
    while done < n or not parts:
        words, target = block(1 + spine.columns + spine.weights, room)
        report = np.zeros(read.REPORT, np.int64)
        done = ordered.first(
            directory,
            len(batches),
            spine.columns,
            spine.weights,
            keys,
            len(prefixes),
            begins,
            len(starts),
            done,
            n,
            limit,
            target,
            room,
            report,
        )
        if report[read.OVERFLOW]:
            raise overflow("adding the weights of a row")
        parts.append(words[:, : report[read.MATCHES]])
        counters.touched += int(report[read.TOUCHED])
        room *= 2
    counters.batches += len(batches)
    spine.count_sought(n)
    out = tuple(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1))
    return out[0], out[1 : 1 + spine.columns], out[1 + spine.columns :]


def _room(spine: Spine, copies: int) -> int:
    """For how many first rows there is room, so that they are read once unless they are many."""
    width = spine.columns + 2
    rows = copies if copies * width <= ordered.MOST_WORDS else min(copies, spine.rows)
    return max(min(rows, ordered.MOST_WORDS // width), 1)


def ranked(
    spine: Spine, prefixes: Sequence[Words], starts: Sequence[Words], places: tuple[Words, Words, Words], counters: Counters
) -> tuple[tuple[Words, ...], Words, tuple[Words, ...]]:
    """The rows at two ranks of each prefix i: (the columns after the prefix of the lower, the copies before it, those of the higher).

    A row counts for as many copies as its weight 0, summed over the batches, which must not be negative. starts: the values of those
    columns at which to start. places: the copies of rows before each start, and the two ranks, from 0, the lower first; the prefix has
    more copies.
    O(n · (log state + rows between the start and the ranks)).
    """
    spine.expect(prefixes)
    n, width = len(places[0]), len(starts)
    batches, directory = spine.view
    words, target = block(2 * width + 1, n)
    report = np.zeros(read.REPORT, np.int64)
    keys, begins, where = addresses(prefixes, n), addresses(starts, n), addresses(places, n)
    done = ranks.ranked(directory, len(batches), spine.columns, spine.weights, keys, len(prefixes), begins, width, n, where, target, report)
    if report[read.OVERFLOW]:
        raise overflow("adding the weights of a row")
    assert done == n, "a rank is past the last row"
    counters.touched += int(report[read.TOUCHED])
    counters.batches += len(batches)
    spine.count_sought(n)
    return tuple(words[:width]), words[width], tuple(words[width + 1 :])
