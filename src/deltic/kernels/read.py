"""Kernels that read a spine: all its batches in one call, for many keys.

The directory is that of `merge.py`. Keys are a table of `width` columns of n words: the leading `width` columns of the rows sought.
Keys are read in blocks and, for each batch, in phases: the buckets of all keys of the block, then their rows, then the weights of the
matches. Each phase prefetches the cache lines of the next one, so that memory serves many keys at a time, and drops absent keys without
branches.
Every kernel counts what it inspected: index entries, rows compared and rows added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.index import BASE, BEFORE, BUCKETS, INDEX_HEADER, SHIFT, SHIFT_BITS, bucket_of, by_second, indexed_word, one_word_each
from deltic.kernels.memory import WORD_MIN, Words, choose, load, prefetch, store
from deltic.kernels.merge import BATCH_INDEX, BATCH_ROWS, DIRECTORY_HEADER

BLOCK = 128
EXPANSION = 512
LARGE = 1 << 14
"""Batches of fewer rows are in the processor's cache, where prefetching costs more than it saves."""

MANY = 16
"""More rows of one key than are in two cache lines."""

TOUCHED, OVERFLOW, MATCHES, REPORT = range(4)
"""Words of a reader's report: what was inspected; whether a weight left 64 bits; rows in the hits, or written. And how many they are."""

HIT_KEY, HIT_BATCH, HIT_START, HIT_END, HIT = range(5)
"""Columns of a hit: the key, the number of the batch, and its rows [start, end) that begin with the key. And how many columns that are."""


@part
def _seen(column: int, row: int, trail: int) -> int:
    return load(column, row)


@part
def _noted(column: int, row: int, trail: int) -> int:
    count = load(trail, 0) + 1
    store(trail, 0, count)
    store(trail, count, row)
    return load(column, row)


@part
def place_of(word: int, least: int, most: int, low: int, high: int) -> int:
    """Where a word would be in the sorted rows [low, high), from `least` to `most`, which differ, if words grew evenly."""
    share = np.float64(np.uint64(word) - np.uint64(least)) / np.float64(np.uint64(most) - np.uint64(least))
    return min(low + np.int64(share * np.float64(high - 1 - low)), high - 1)


Look = Callable[[int, int, int], int]
Search = Callable[[int, int, int, int, int], tuple[int, int, int]]


def _searched_by(look: Look) -> Search:
    """`equal_range`, which reads a word of a column by `look(column, row, trail)`."""

    @part
    def not_below(column: int, low: int, high: int, guess: int, word: int, trail: int) -> tuple[int, int]:
        """(the first row of the sorted column[low:high] that is not below `word`, the words compared), searched from `guess` outwards."""
        step, touched = 1, 1
        if look(column, guess, trail) < word:
            below = guess
            while below + step < high and look(column, below + step, trail) < word:
                below += step
                step *= 2
                touched += 1
            above = min(below + step, high)
        else:
            above = guess
            while above - step >= low and look(column, above - step, trail) >= word:
                above -= step
                step *= 2
                touched += 1
            below = max(above - step, low - 1)
        while below + 1 < above:
            middle = (below + above) >> 1
            touched += 1
            less = look(column, middle, trail) < word
            below, above = choose(less, middle, below), choose(less, above, middle)
        return above, touched

    @part
    def equal_range(column: int, low: int, high: int, word: int, trail: int) -> tuple[int, int, int]:
        """(first, last + 1) of `word` in the sorted column[low:high], which is not empty, and the words compared.

        The search starts where the word would be if words grew evenly, and costs the logarithm of the distance from there.
        """
        least, most = look(column, low, trail), look(column, high - 1, trail)
        if word < least or word > most:
            return low, low, 2
        if least == most:
            return low, high, 2
        guess = place_of(word, least, most, low, high)
        start, touched = not_below(column, low, high, guess, word, trail)
        if start == high or look(column, start, trail) != word:
            return start, start, touched + 3
        end = start + 1
        step = 1
        while end + step <= high and look(column, end + step - 1, trail) == word:
            end += step
            step *= 2
            touched += 1
        last = min(end + step - 1, high)
        while end < last:
            middle = (end + last) >> 1
            touched += 1
            equal = look(column, middle, trail) == word
            end, last = choose(equal, middle + 1, end), choose(equal, last, middle)
        return start, end, touched + 3

    return cast("Search", equal_range)


equal_range: Final = _searched_by(_seen)
noted_range: Final = _searched_by(_noted)
"""The same search; it also notes the rows whose words it reads: in trail[0] how many, and behind it each."""
MOST_NOTED: Final = 256
"""Rows that `noted_range` notes, at most: four searches by doubling or halving steps in fewer than 2^63 rows, and both ends."""


@part
def list_key(key: int, start: int, end: int, column: int, large: bool, listed: int, hits: Words, low: Words, high: Words) -> int:
    """Lists a key with its rows [start, end), of which `column` is read next; returns 0 if there are none, else 1."""
    hits[listed] = key
    low[listed] = start
    high[listed] = end
    if large:
        prefetch(column, start)
        prefetch(column, end - 1)
    return np.int64(start < end)


@part
def seek_buckets(index: int, column: int, large: bool, key: int, first: int, count: int, hits: Words, low: Words, high: Words) -> int:
    """Lists the keys first + hits[h] whose bucket is not empty, with its rows [low[h], high[h]); returns how many.

    column: the one that is read next of these rows.
    """
    base = np.uint64(load(index, BASE))
    shift = np.uint64(load(index, SHIFT))
    buckets = np.uint64(load(index, BUCKETS))
    if large:
        for i in range(count):
            bucket = bucket_of(load(key, first + i), base, shift, buckets)
            prefetch(index, INDEX_HEADER + bucket)
    listed = 0
    for i in range(count):
        word = load(key, first + i)
        bucket = bucket_of(word, base, shift, buckets)
        start = load(index, INDEX_HEADER + bucket)
        end = load(index, INDEX_HEADER + bucket + 1)
        if word == WORD_MIN:
            start, end = 0, load(index, BEFORE)
        listed += list_key(i, start, end, column, large, listed, hits, low, high)
    return listed


@part
def seek_second(
    index: int,
    leading: int,
    column: int,
    rows: int,
    large: bool,
    keys: Words,
    width: int,
    first: int,
    count: int,
    hits: Words,
    low: Words,
    high: Words,
) -> tuple[int, int]:
    """As seek_buckets where the index is of the second column: (how many keys, words compared). All listed rows have the leading word.

    rows: of the batch. column: the second.
    """
    base = np.uint64(load(index, BASE))
    shift = np.uint64(load(index, SHIFT) & SHIFT_BITS)
    buckets = np.uint64(load(index, BUCKETS))
    before, most = load(index, BEFORE), indexed_word(index)
    if large and width > 1:
        for i in range(count):
            bucket = bucket_of(load(keys[1], first + i), base, shift, buckets)
            prefetch(index, INDEX_HEADER + bucket)
    listed = touched = 0
    for i in range(count):
        word = load(keys[0], first + i)
        start = end = 0
        if word != most:
            if before > 0:
                start, end, compared = equal_range(leading, 0, before, word, 0)
                touched += compared
        elif width > 1:
            bucket = bucket_of(load(keys[1], first + i), base, shift, buckets)
            start = load(index, INDEX_HEADER + bucket)
            end = load(index, INDEX_HEADER + bucket + 1)
        else:
            start, end = before, rows
        listed += list_key(i, start, end, column, large, listed, hits, low, high)
    return listed, touched


@part
def prefetch_places(column: int, key: int, first: int, listed: int, hits: Words, low: Words, high: Words) -> None:
    """Requests the words with which the searches of `narrow` begin, for keys with many rows."""
    for h in range(listed):
        start, end = low[h], high[h]
        if end - start > MANY:
            word, least, most = load(key, first + hits[h]), load(column, start), load(column, end - 1)
            if least < word < most:
                prefetch(column, place_of(word, least, most, start, end))


@part
def narrow(column: int, key: int, large: bool, first: int, listed: int, hits: Words, low: Words, high: Words) -> tuple[int, int]:
    """Keeps those of the listed keys whose word is among their rows, with these rows: (how many, words compared).

    Up to four rows are compared without branches, since they could not be predicted. A word with many rows often repeats in successive
    keys: the result of its last search is used again.
    """
    if large:
        prefetch_places(column, key, first, listed, hits, low, high)
    touched = kept = 0
    last_word = last_start = last_end = 0
    last_low = last_high = -1
    for h in range(listed):
        i = hits[h]
        word = load(key, first + i)
        start, end = low[h], high[h]
        rows = end - start
        if rows <= 4:
            final = end - 1
            a = load(column, start)
            b = load(column, choose(rows > 1, start + 1, final))
            c = load(column, choose(rows > 2, start + 2, final))
            d = load(column, final)
            two, three, four = np.int64(rows > 1), np.int64(rows > 2), np.int64(rows > 3)
            equal = np.int64(a == word) + (np.int64(b == word) & two) + (np.int64(c == word) & three) + (np.int64(d == word) & four)
            start += np.int64(a < word) + (np.int64(b < word) & two) + (np.int64(c < word) & three) + (np.int64(d < word) & four)
            end = start + equal
            touched += rows
        elif word == last_word and start == last_start and end == last_end and last_low >= 0:
            start, end = last_low, last_high
            touched += 1
        else:
            last_word, last_start, last_end = word, start, end
            start, end, compared = equal_range(column, start, end, word, 0)
            last_low, last_high = start, end
            touched += compared
        hits[kept] = i
        low[kept] = start
        high[kept] = end
        kept += np.int64(start < end)
    return kept, touched


@part
def seek_block(
    directory: Words, entry: int, keys: Words, width: int, first: int, count: int, hits: Words, low: Words, high: Words
) -> tuple[int, int]:
    """Lists the keys first + hits[h] that one batch has, with their rows [low[h], high[h]): (how many, what was inspected)."""
    if width == 0:
        for i in range(count):
            hits[i], low[i], high[i] = i, 0, directory[entry + BATCH_ROWS]
        return count, 0
    rows, index = directory[entry + BATCH_ROWS], directory[entry + BATCH_INDEX]
    large, touched = rows >= LARGE, 2 * count
    leading, second = directory[entry + DIRECTORY_HEADER], directory[entry + DIRECTORY_HEADER + 1]
    if by_second(index):
        known = 1
        listed, compared = seek_second(index, leading, second, rows, large, keys, width, first, count, hits, low, high)
        touched += compared
    else:
        known = np.int64(one_word_each(index))
        listed = seek_buckets(index, second if known else leading, large, keys[0], first, count, hits, low, high)
    for c in range(known, width):
        column = directory[entry + DIRECTORY_HEADER + c]
        if large and c > known:
            for h in range(listed):
                prefetch(column, low[h])
                prefetch(column, high[h] - 1)
        listed, compared = narrow(column, keys[c], large, first, listed, hits, low, high)
        touched += compared
    return listed, touched


@kernel("int64(int64[::1], int64, int64, int64, int64[::1], int64, int64, int64[::1], int64[::1])")
def lookup(
    directory: Words, batches: int, columns: int, weights: int, keys: Words, width: int, n: int, target: Words, report: Words
) -> int:
    """target[w][i] = the sum of weight w over all rows that begin with key i; returns -1 on overflow, else 0."""
    stride = DIRECTORY_HEADER + columns + weights
    hits = np.empty(BLOCK, np.int64)
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
            entry = b * stride
            listed, inspected = seek_block(directory, entry, keys, width, first, count, hits, low, high)
            touched += inspected
            for w in range(weights):
                column = directory[entry + DIRECTORY_HEADER + columns + w]
                out = target[w] + 8 * first
                if directory[entry + BATCH_ROWS] >= LARGE:
                    for h in range(listed):
                        prefetch(column, low[h])
                for h in range(listed):
                    i = hits[h]
                    total = load(out, i)
                    for row in range(low[h], high[h]):
                        word = load(column, row)
                        partial = total + word
                        if ((partial ^ total) & (partial ^ word)) < 0:
                            wraps[w, i] += 1 if word > 0 else -1
                            wrapped = True
                        total = partial
                    store(out, i, total)
            for h in range(listed):
                touched += high[h] - low[h]
        if wrapped:
            for w in range(weights):
                for i in range(count):
                    if wraps[w, i] != 0:
                        return -1
    report[TOUCHED] = touched
    return 0


@kernel("int64(int64[::1], int64, int64, int64, int64[::1], int64, int64, int64[::1], int64[::1])")
def seek(directory: Words, batches: int, columns: int, weights: int, keys: Words, width: int, n: int, target: Words, report: Words) -> int:
    """Writes a hit for each batch with rows that begin with key i, in order of i.

    target: addresses of HIT columns with room for n * batches. Returns the number of hits; the report has the rows in them.
    """
    stride = DIRECTORY_HEADER + columns + weights
    room = BLOCK * max(batches, 1)
    hits = np.empty(room, np.int64)
    low = np.empty(room, np.int64)
    high = np.empty(room, np.int64)
    positions = np.empty(BLOCK + 1, np.int64)
    borders = np.empty(batches + 1, np.int64)
    touched = total = matches = 0
    for first in range(0, n, BLOCK):
        count = min(BLOCK, n - first)
        listed = 0
        for b in range(batches):
            borders[b] = listed
            more, inspected = seek_block(directory, b * stride, keys, width, first, count, hits[listed:], low[listed:], high[listed:])
            listed += more
            touched += inspected
        borders[batches] = listed
        for i in range(count + 1):
            positions[i] = 0
        for h in range(listed):
            positions[hits[h] + 1] += 1
        positions[0] = total
        for i in range(count):
            positions[i + 1] += positions[i]
        for b in range(batches):
            for h in range(borders[b], borders[b + 1]):
                position = positions[hits[h]]
                positions[hits[h]] += 1
                store(target[HIT_KEY], position, first + hits[h])
                store(target[HIT_BATCH], position, b)
                store(target[HIT_START], position, low[h])
                store(target[HIT_END], position, high[h])
                matches += high[h] - low[h]
        total += listed
    report[TOUCHED] = touched + matches
    report[MATCHES] = matches
    return total


@part
def note_lines(columns: Words, rows: Words, first: int, end: int, far: Words, lines: int) -> int:
    """Lists those of some rows that are in another cache line than the row before; returns how many are listed now."""
    for k in range(first, end):
        near = k > 0 and columns[k] == columns[k - 1] and rows[k] >> 3 == rows[k - 1] >> 3
        far[lines] = k
        lines += np.int64(not near)
    return lines


@part
def request_lines(directory: Words, columns: Words, rows: Words, far: Words, lines: int, column: int) -> None:
    """Requests the listed rows of a column."""
    for i in range(lines):
        k = far[i]
        prefetch(directory[columns[k] + column], rows[k])


@kernel("int64(int64[::1], int64, int64[::1], int64, int64[::1], int64, int64[::1])")
def expand(directory: Words, stride: int, hits: Words, count: int, wanted: Words, outputs: int, target: Words) -> int:
    """target[0] = the key of each row in the hits; target[1 + o] = its column wanted[o] (weights follow the columns). Returns the rows."""
    columns = np.empty(EXPANSION, np.int64)
    rows = np.empty(EXPANSION, np.int64)
    far = np.empty(EXPANSION, np.int64)
    written = filled = lines = h = done = 0
    while h < count or filled > 0:
        if h < count and filled < EXPANSION:
            key, first_column = load(hits[HIT_KEY], h), load(hits[HIT_BATCH], h) * stride + DIRECTORY_HEADER
            start, end = load(hits[HIT_START], h) + done, load(hits[HIT_END], h)
            more = min(end - start, EXPANSION - filled)
            for k in range(more):
                columns[filled + k] = first_column
                rows[filled + k] = start + k
                store(target[0], written + filled + k, key)
            if directory[first_column - DIRECTORY_HEADER + BATCH_ROWS] >= LARGE:
                lines = note_lines(columns, rows, filled, filled + more, far, lines)
            filled += more
            complete = start + more == end
            done = 0 if complete else done + more
            h += np.int64(complete)
            continue
        request_lines(directory, columns, rows, far, lines, wanted[0] if outputs > 0 else 0)
        for o in range(outputs):
            if o + 1 < outputs:
                request_lines(directory, columns, rows, far, lines, wanted[o + 1])
            out = target[1 + o] + 8 * written
            for k in range(filled):
                store(out, k, load(directory[columns[k] + wanted[o]], rows[k]))
        written += filled
        filled = lines = 0
    return written


@kernel("int64(int64[::1], int64[::1], int64, int64, int64, int64, int64, int64)")
def inspect(columns: Words, keys: Words, width: int, n: int, known: int, low: int, high: int, trail: int) -> int:
    """Notes the rows that `seek_block` reads to find n keys in their buckets, rows low[i] … high[i] of one batch, and leaves in low and
    high the rows that begin with a key; returns how many are noted.

    known: by how many words of each key its bucket has been found. trail: zeros with room for MOST_NOTED rows of each word, and one.
    """
    for i in range(n):
        start, end = load(low, i), load(high, i)
        for c in range(load(known, i), width):
            if start < end:
                start, end, _ = noted_range(columns[c], start, end, load(keys[c], i), trail)
        store(low, i, start)
        store(high, i, end)
    return load(trail, 0)
