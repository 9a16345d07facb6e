"""Kernels that read a spine: all its batches in one call, for many keys.

The directory is that of `merge.py`. Keys are a table of `width` columns of n words: the leading `width` columns of the rows sought.
Keys are taken in blocks and, for each batch, in phases: buckets of all keys of the block, then their rows, then the weights of those
found. A phase asks for the cache lines of the next one, so that the memory works on many keys at a time, and keys that are not there
are dropped from phase to phase without branches.
Every kernel counts what it inspected: index entries, rows compared and rows added.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.index import INDEX_HEADER, one_word_each
from deltic.kernels.memory import WORD_MIN, Words, load, prefetch, store
from deltic.kernels.merge import DIRECTORY_HEADER

BLOCK = 128
EXPANSION = 512
LARGE = 1 << 14
"""Batches of fewer rows lie in the processor's cache, where asking ahead costs more than it gains."""

TOUCHED, OVERFLOW, MATCHES, REPORT = 0, 1, 2, 3
"""Words of a reader's report, and their number."""


@part
def not_below(column: int, low: int, high: int, at: int, word: int) -> tuple[int, int]:
    """(the first place in the sorted column[low:high] that is not below `word`, the words compared), searched from `at` outwards."""
    step, touched = 1, 1
    if load(column, at) < word:
        below = at
        while below + step < high and load(column, below + step) < word:
            below += step
            step *= 2
            touched += 1
        above = min(below + step, high)
    else:
        above = at
        while above - step >= low and load(column, above - step) >= word:
            above -= step
            step *= 2
            touched += 1
        below = max(above - step, low - 1)
    while below + 1 < above:
        middle = (below + above) >> 1
        touched += 1
        if load(column, middle) < word:
            below = middle
        else:
            above = middle
    return above, touched


@part
def equal_range(column: int, low: int, high: int, word: int) -> tuple[int, int, int]:
    """(first, last + 1) of `word` in the sorted column[low:high], which is not empty, and the words compared.

    The search begins where the word would be if they grew evenly, and costs the logarithm of the way from there.
    """
    least, most = load(column, low), load(column, high - 1)
    if word < least or word > most:
        return low, low, 2
    if least == most:
        return low, high, 2
    share = np.float64(np.uint64(word) - np.uint64(least)) / np.float64(np.uint64(most) - np.uint64(least))
    guess = min(low + np.int64(share * np.float64(high - 1 - low)), high - 1)
    start, touched = not_below(column, low, high, guess, word)
    if start == high or load(column, start) != word:
        return start, start, touched + 3
    end = start + 1
    step = 1
    while end + step <= high and load(column, end + step - 1) == word:
        end += step
        step *= 2
        touched += 1
    last = min(end + step - 1, high)
    while end < last:
        middle = (end + last) >> 1
        touched += 1
        if load(column, middle) == word:
            end = middle + 1
        else:
            last = middle
    return start, end, touched + 3


@part
def seek_buckets(index: int, column: int, large: bool, key: int, first: int, count: int, who: Words, low: Words, high: Words) -> int:
    """Lists the keys first + who[h] whose bucket is not empty, with its rows; returns how many. column: what will be read of them first."""
    base = np.uint64(load(index, 1))
    shift = np.uint64(load(index, 2))
    buckets = np.uint64(load(index, 3))
    if large:
        for i in range(count):
            place = min((np.uint64(load(key, first + i)) - base) >> shift, buckets)
            prefetch(index, INDEX_HEADER + np.int64(place))
    found = 0
    for i in range(count):
        word = load(key, first + i)
        bucket = np.int64(min((np.uint64(word) - base) >> shift, buckets))
        start = load(index, INDEX_HEADER + bucket)
        end = load(index, INDEX_HEADER + bucket + 1)
        if word == WORD_MIN:
            start, end = 0, load(index, 0)
        who[found] = i
        low[found] = start
        high[found] = end
        if large:
            prefetch(column, start)
        found += np.int64(start < end)
    return found


@part
def narrow(column: int, key: int, first: int, found: int, who: Words, low: Words, high: Words) -> tuple[int, int]:
    """Keeps of the listed keys those whose word is among their rows, and those rows: (how many, words compared).

    Up to four rows are compared without branches, since nobody can foresee which of them will do. A word with many rows often comes
    several times in a row: it is not searched for again.
    """
    touched = kept = 0
    again_word = again_start = again_end = 0
    again_low = again_high = -1
    for h in range(found):
        i = who[h]
        word = load(key, first + i)
        start, end = low[h], high[h]
        rows = end - start
        if rows <= 4:
            last = end - 1
            a = load(column, start)
            b = load(column, min(start + 1, last))
            c = load(column, min(start + 2, last))
            d = load(column, last)
            two, three, four = np.int64(rows > 1), np.int64(rows > 2), np.int64(rows > 3)
            equal = np.int64(a == word) + (np.int64(b == word) & two) + (np.int64(c == word) & three) + (np.int64(d == word) & four)
            start += np.int64(a < word) + (np.int64(b < word) & two) + (np.int64(c < word) & three) + (np.int64(d < word) & four)
            end = start + equal
            touched += rows
        elif word == again_word and start == again_start and end == again_end and again_low >= 0:
            start, end = again_low, again_high
            touched += 1
        else:
            again_word, again_start, again_end = word, start, end
            start, end, compared = equal_range(column, start, end, word)
            again_low, again_high = start, end
            touched += compared
        who[kept] = i
        low[kept] = start
        high[kept] = end
        kept += np.int64(start < end)
    return kept, touched


@part
def seek_block(
    directory: Words, at: int, keys: Words, width: int, first: int, count: int, who: Words, low: Words, high: Words
) -> tuple[int, int]:
    """Lists the keys first + who[h] that one batch has, with their rows [low[h], high[h]): (how many, what was inspected)."""
    if width == 0:
        for i in range(count):
            who[i], low[i], high[i] = i, 0, directory[at]
        return count, 0
    large = directory[at] >= LARGE
    index = directory[at + 1]
    known = np.int64(one_word_each(index))
    column = directory[at + DIRECTORY_HEADER + known]
    found = seek_buckets(index, column, large, keys[0], first, count, who, low, high)
    touched = 2 * count
    for c in range(known, width):
        column = directory[at + DIRECTORY_HEADER + c]
        if large and c > known:
            for h in range(found):
                prefetch(column, low[h])
        found, compared = narrow(column, keys[c], first, found, who, low, high)
        touched += compared
    return found, touched


@kernel("int64(int64[::1], int64, int64, int64, int64[::1], int64, int64, int64[::1], int64[::1])")
def lookup(
    directory: Words, batches: int, columns: int, weights: int, keys: Words, width: int, n: int, target: Words, report: Words
) -> int:
    """target[w][i] = the sum of weight w over all rows that begin with key i; returns -1 on overflow."""
    stride = DIRECTORY_HEADER + columns + weights
    who = np.empty(BLOCK, np.int64)
    low = np.empty(BLOCK, np.int64)
    high = np.empty(BLOCK, np.int64)
    wraps = np.zeros((weights, BLOCK), np.int64)
    touched = 0
    for first in range(0, n, BLOCK):
        count = min(BLOCK, n - first)
        wrapped = False
        for w in range(weights):
            for i in range(count):
                store(target[w], first + i, 0)
        for b in range(batches):
            at = b * stride
            found, inspected = seek_block(directory, at, keys, width, first, count, who, low, high)
            touched += inspected
            for w in range(weights):
                column = directory[at + DIRECTORY_HEADER + columns + w]
                out = target[w] + 8 * first
                if directory[at] >= LARGE:
                    for h in range(found):
                        prefetch(column, low[h])
                for h in range(found):
                    i = who[h]
                    total = load(out, i)
                    for row in range(low[h], high[h]):
                        word = load(column, row)
                        partial = total + word
                        if ((partial ^ total) & (partial ^ word)) < 0:
                            wraps[w, i] += 1 if word > 0 else -1
                            wrapped = True
                        total = partial
                    store(out, i, total)
            for h in range(found):
                touched += high[h] - low[h]
        if wrapped:
            for w in range(weights):
                for i in range(count):
                    if wraps[w, i] != 0:
                        return -1
    report[TOUCHED] = touched
    return 0


@kernel("int64(int64[::1], int64, int64, int64, int64[::1], int64, int64, int64[::1], int64[::1])")
def seek(directory: Words, batches: int, columns: int, weights: int, keys: Words, width: int, n: int, hits: Words, report: Words) -> int:
    """Writes a hit (key, batch, first row, end) for each batch with rows that begin with key i, in order of i.

    hits: addresses of 4 columns with room for n * batches. Returns the number of hits; report has the rows in them.
    """
    stride = DIRECTORY_HEADER + columns + weights
    room = BLOCK * max(batches, 1)
    who = np.empty(room, np.int64)
    low = np.empty(room, np.int64)
    high = np.empty(room, np.int64)
    places = np.empty(BLOCK + 1, np.int64)
    borders = np.empty(batches + 1, np.int64)
    touched = total = matches = 0
    for first in range(0, n, BLOCK):
        count = min(BLOCK, n - first)
        listed = 0
        for b in range(batches):
            borders[b] = listed
            found, inspected = seek_block(directory, b * stride, keys, width, first, count, who[listed:], low[listed:], high[listed:])
            listed += found
            touched += inspected
        borders[batches] = listed
        for i in range(count + 1):
            places[i] = 0
        for h in range(listed):
            places[who[h] + 1] += 1
        places[0] = total
        for i in range(count):
            places[i + 1] += places[i]
        for b in range(batches):
            for h in range(borders[b], borders[b + 1]):
                place = places[who[h]]
                places[who[h]] += 1
                store(hits[0], place, first + who[h])
                store(hits[1], place, b)
                store(hits[2], place, low[h])
                store(hits[3], place, high[h])
                matches += high[h] - low[h]
        total += listed
    report[TOUCHED] = touched + matches
    report[MATCHES] = matches
    return total


@kernel("int64(int64[::1], int64, int64[::1], int64, int64[::1], int64, int64[::1])")
def expand(directory: Words, stride: int, hits: Words, count: int, wanted: Words, outputs: int, target: Words) -> int:
    """target[0] = the key of each row in the hits; target[1 + o] = its column wanted[o] (weights follow the columns)."""
    places = np.empty(EXPANSION, np.int64)
    rows = np.empty(EXPANSION, np.int64)
    written = filled = h = taken = 0
    while h < count or filled > 0:
        if h < count and filled < EXPANSION:
            key, place = load(hits[0], h), load(hits[1], h) * stride + DIRECTORY_HEADER
            start, end = load(hits[2], h) + taken, load(hits[3], h)
            more = min(end - start, EXPANSION - filled)
            for k in range(more):
                places[filled + k] = place
                rows[filled + k] = start + k
                store(target[0], written + filled + k, key)
            filled += more
            done = start + more == end
            taken = 0 if done else taken + more
            h += np.int64(done)
            continue
        for o in range(outputs):
            out = target[1 + o] + 8 * written
            for k in range(filled):
                store(out, k, load(directory[places[k] + wanted[o]], rows[k]))
        written += filled
        filled = 0
    return written
