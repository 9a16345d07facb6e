"""Kernels that bring rows into order and merge equal ones.

A table is an int64 array of the addresses of `columns` key columns followed by `weights` weight columns, each of n words.
Order is lexicographic over the key columns, signed. Inputs are never written to.
Sorting: the leading bits of a row, compressed by each column's range, and the row's number form one unsigned word; these words are radix
sorted; rows with equal bits are sorted in the same way by what follows. O(n) for rows of bounded width.
If all bits of the rows fit, the sorted words are the sorted rows, and the columns are not read again.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, load, store
from deltic.kernels.merge import compare_rows

SMALL = 24
RUN = 64
DIGIT_BITS = 11
FEW, DIGITS = 1 << 12, 3
"""From FEW rows on all bits of a row are sorted at once if they are at most so many digits, which fit one word with the row's number."""

START, END, RANGE = range(3)
"""Words of a range of rows that is yet to be sorted. And how many words that are."""


@part
def insertion_sort(keys: Words, start: int, end: int) -> None:
    """Sorts keys[start:end] (unsigned) in place; for short or nearly sorted runs."""
    for i in range(start + 1, end):
        key = keys[i]
        j = i
        while j > start and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@part
def bit_length(word: int) -> int:
    """Significant bits of an unsigned word."""
    bits = 0
    step = 32
    while step > 0:
        if word >> np.uint64(step):
            word >>= np.uint64(step)
            bits += step
        step >>= 1
    return bits + (1 if word else 0)


@part
def radix_pass(keys: Words, spare: Words, counts: Words, start: int, end: int, idle: int) -> tuple[int, int]:
    """One stable radix pass over keys[start:end] by their highest differing bits; the low `idle` bits are ignored.

    Returns (buckets, rows of the largest bucket), (0, 0) if all are equal; counts[b] is the end of bucket b.
    """
    low = high = keys[start]
    for i in range(start + 1, end):
        key = keys[i]
        low = min(low, key)
        high = max(high, key)
    width = bit_length((high >> np.uint64(idle)) - (low >> np.uint64(idle)))
    if width == 0:
        return 0, 0
    digit = min(DIGIT_BITS, max(4, bit_length(np.uint64(end - start))), width)
    shift = np.uint64(idle + width - digit)
    floor = low >> shift
    buckets = np.int64((high >> shift) - floor) + 1
    for b in range(buckets):
        counts[b] = 0
    for i in range(start, end):
        counts[np.int64((keys[i] >> shift) - floor)] += 1
    position = start
    largest = 0
    for b in range(buckets):
        count = counts[b]
        largest = max(largest, count)
        counts[b] = position
        position += count
    for i in range(start, end):
        b = np.int64((keys[i] >> shift) - floor)
        spare[counts[b]] = keys[i]
        counts[b] += 1
    for i in range(start, end):
        keys[i] = spare[i]
    return buckets, largest


@part
def distribute(keys: Words, spare: Words, n: int, idle: int, digits: int) -> None:
    """Sorts the first n unsigned keys by `digits` digits above their low `idle` bits: one stable pass for each, the lowest first."""
    buckets = 1 << DIGIT_BITS
    mask = np.uint64(buckets - 1)
    counts = np.zeros((digits, buckets), np.int64)
    for i in range(n):
        key = keys[i] >> np.uint64(idle)
        for d in range(digits):
            counts[d, np.int64(key & mask)] += 1
            key >>= np.uint64(DIGIT_BITS)
    source, target = keys, spare
    for d in range(digits):
        position = 0
        for b in range(buckets):
            count = counts[d, b]
            counts[d, b] = position
            position += count
        shift = np.uint64(idle + d * DIGIT_BITS)
        for i in range(n):
            b = np.int64((source[i] >> shift) & mask)
            target[counts[d, b]] = source[i]
            counts[d, b] += 1
        source, target = target, source
    if digits % 2 == 1:
        for i in range(n):
            keys[i] = spare[i]


@part
def radix_sort(keys: Words, n: int, spare: Words, counts: Words, idle: int) -> None:
    """Sorts the first n unsigned keys; their low `idle` bits must ascend among equal keys, and are not sorted."""
    pending = np.empty((n // RUN + 2, RANGE), np.int64)
    pending[0, START], pending[0, END] = 0, n
    depth = 1
    while depth > 0:
        depth -= 1
        start, end = pending[depth, START], pending[depth, END]
        if end - start <= RUN:
            insertion_sort(keys, start, end)
            continue
        buckets, largest = radix_pass(keys, spare, counts, start, end, idle)
        if largest <= RUN:
            if buckets > 0:
                insertion_sort(keys, start, end)
            continue
        position = start
        for b in range(buckets):
            stop = counts[b]
            if stop - position > RUN:
                pending[depth, START], pending[depth, END] = position, stop
                depth += 1
            else:
                insertion_sort(keys, position, stop)
            position = stop


@part
def pack(table: Words, columns: int, order: Words, start: int, end: int, keys: Words, idle: int) -> bool:
    """keys[i] = the leading bits of row order[start + i], compressed by range, above `idle` bits with i.

    Returns whether these are all bits of the row.
    """
    count = end - start
    room = 64 - idle
    for i in range(count):
        keys[i] = np.uint64(0)
    for c in range(columns):
        column = table[c]
        low = high = load(column, order[start])
        for i in range(start + 1, end):
            word = load(column, order[i])
            low = min(low, word)
            high = max(high, word)
        floor = np.uint64(low)
        bits = bit_length(np.uint64(high) - floor)
        if bits == 0:
            continue
        if room == 0:
            return False
        width = min(bits, room)
        cut = np.uint64(bits - width)
        grow = np.uint64(width)
        if width == 64:
            for i in range(count):
                keys[i] = np.uint64(load(column, order[start + i])) - floor
        else:
            for i in range(count):
                keys[i] = (keys[i] << grow) | ((np.uint64(load(column, order[start + i])) - floor) >> cut)
        room -= width
        if width < bits:
            return False
    return True


@part
def sort_short(table: Words, columns: int, order: Words, same: Words, start: int, end: int) -> None:
    """Sorts order[start:end] by comparing rows, and marks in `same` each row that equals the one before it."""
    for i in range(start + 1, end):
        row = order[i]
        j = i
        while j > start and compare_rows(table, 0, order[j - 1], table, 0, row, columns) > 0:
            order[j] = order[j - 1]
            j -= 1
        order[j] = row
    for i in range(start + 1, end):
        same[i] = compare_rows(table, 0, order[i - 1], table, 0, order[i], columns) == 0


@part
def sort_rows(table: Words, columns: int, order: Words, same: Words) -> None:
    """Sorts the row numbers `order` by their rows; sets same[i] to whether row order[i] equals row order[i - 1]."""
    n = len(order)
    pending = np.empty((n // SMALL + 2, RANGE), np.int64)
    pending[0, START], pending[0, END] = 0, n
    depth = 1
    keys = np.empty(n if n > SMALL else 0, np.uint64)
    spare = np.empty(n if n > SMALL else 0, np.uint64)
    counts = np.empty(1 << DIGIT_BITS, np.int64)
    while depth > 0:
        depth -= 1
        start, end = pending[depth, START], pending[depth, END]
        count = end - start
        if count <= SMALL:
            sort_short(table, columns, order, same, start, end)
            continue
        idle = bit_length(np.uint64(count - 1))
        exact = pack(table, columns, order, start, end, keys, idle)
        number = np.uint64(idle)
        mask = (np.uint64(1) << number) - np.uint64(1)
        for i in range(count):
            keys[i] = (keys[i] << number) | np.uint64(i)
        radix_sort(keys, count, spare, counts, idle)
        for i in range(count):
            spare[i] = np.uint64(order[start + np.int64(keys[i] & mask)])
        for i in range(count):
            order[start + i] = np.int64(spare[i])
        i = 0
        while i < count:
            stop = i + 1
            while stop < count and keys[stop] >> number == keys[i] >> number:
                stop += 1
            if stop - i > 1:
                if exact:
                    for k in range(start + i + 1, start + stop):
                        same[k] = 1
                else:
                    pending[depth, START], pending[depth, END] = start + i, start + stop
                    if stop - i <= SMALL:
                        sort_short(table, columns, order, same, start + i, start + stop)
                    else:
                        depth += 1
            i = stop


@part
def add_up(column: int, order: Words, mask: int, starts: Words, groups: int, target: int) -> bool:
    """target[g] = the sum of column over the rows order[starts[g]:starts[g + 1]] & mask; False if a sum leaves 64 bits."""
    for g in range(groups):
        total = load(column, order[starts[g]] & mask)
        wraps = 0
        for i in range(starts[g] + 1, starts[g + 1]):
            word = load(column, order[i] & mask)
            partial = total + word
            if ((partial ^ total) & (partial ^ word)) < 0:
                wraps += 1 if word > 0 else -1
            total = partial
        if wraps != 0:
            return False
        store(target, g, total)
    return True


@part
def drop_zeros(target: Words, columns: int, weights: int, starts: Words, groups: int) -> int:
    """Removes the groups whose weights are all 0 from the target weights and from starts; returns how many remain."""
    kept = 0
    for g in range(groups):
        live = False
        for w in range(weights):
            live |= load(target[columns + w], g) != 0
        if live:
            if kept < g:
                starts[kept] = starts[g]
                for w in range(weights):
                    store(target[columns + w], kept, load(target[columns + w], g))
            kept += 1
    return kept


@kernel("int64(int64[::1], int64, int64, int64)")
def sortedness(table: Words, columns: int, weights: int, n: int) -> int:
    """2: rows ascend strictly, none with all weights 0; 1: they ascend; 0: neither."""
    level = 2
    for i in range(1, n):
        order = compare_rows(table, 0, i - 1, table, 0, i, columns)
        if order > 0:
            return 0
        if order == 0:
            level = 1
    for i in range(n):
        live = False
        for w in range(weights):
            live |= load(table[columns + w], i) != 0
        if not live:
            return 1
    return level


@kernel("int64(int64[::1], int64, int64, int64, int64, int64)")
def ranges_ascend(table: Words, columns: int, weights: int, starts: int, ends: int, count: int) -> int:
    """1 if the rows starts[i] … ends[i] ascend strictly and have weights other than 0, for all of `count` ranges; otherwise 0."""
    for r in range(count):
        start, end = load(starts, r), load(ends, r)
        for i in range(start, end):
            if i > start and compare_rows(table, 0, i - 1, table, 0, i, columns) >= 0:
                return 0
            live = False
            for w in range(weights):
                live |= load(table[columns + w], i) != 0
            if not live:
                return 0
    return 1


@part
def measure(table: Words, columns: int, n: int, lows: Words, bits: Words) -> int:
    """lows[c] = the least word of a column, bits[c] = how many bits its words need above that; returns the bits of a row."""
    total = 0
    for c in range(columns):
        low = high = load(table[c], 0)
        for i in range(1, n):
            word = load(table[c], i)
            low = min(low, word)
            high = max(high, word)
        lows[c] = low
        bits[c] = bit_length(np.uint64(high) - np.uint64(low))
        total += bits[c]
    return np.int64(total)


@part
def sort_whole(table: Words, columns: int, lows: Words, bits: Words, n: int) -> Words:
    """Sorts by all bits of the rows as measured. Returns the sorted words: these bits, then the row's number."""
    keys, spare = np.zeros(n, np.uint64), np.empty(n, np.uint64)
    for c in range(columns):
        grow, floor = np.uint64(bits[c]), np.uint64(lows[c])
        for i in range(n):
            keys[i] = (keys[i] << grow) | (np.uint64(load(table[c], i)) - floor)
    idle = bit_length(np.uint64(n - 1))
    number = np.uint64(idle)
    for i in range(n):
        keys[i] = (keys[i] << number) | np.uint64(i)
    distribute(keys, spare, n, idle, (bits.sum() + DIGIT_BITS - 1) // DIGIT_BITS)
    return keys


@part
def ordered(table: Words, columns: int, n: int, ascending: int) -> tuple[Words, Words]:
    """(the numbers of the rows in order, where each group of equal ones starts). ascending: whether the rows are in order already."""
    order = np.empty(n, np.int64)
    same = np.empty(n, np.uint8)
    for i in range(n):
        order[i] = i
        same[i] = 0
    if ascending:
        for i in range(1, n):
            same[i] = compare_rows(table, 0, i - 1, table, 0, i, columns) == 0
    else:
        sort_rows(table, columns, order, same)
    starts = np.empty(n + 1, np.int64)
    groups = 0
    for i in range(n):
        if same[i] == 0:
            starts[groups] = i
            groups += 1
    starts[groups] = n
    return order, starts[: groups + 1]


@part
def starts_of(keys: Words, n: int, shift: int) -> Words:
    """Where each group of equal keys starts, without their low `shift` bits; then n."""
    low = np.uint64(shift)
    starts = np.empty(n + 1, np.int64)
    groups = 0
    for i in range(n):
        if i == 0 or keys[i] >> low != keys[i - 1] >> low:
            starts[groups] = i
            groups += 1
    starts[groups] = n
    return starts[: groups + 1]


@part
def unpack_column(keys: Words, starts: Words, groups: int, shift: int, bits: int, low: int, target: int) -> None:
    """target[g] = low + the `bits` bits of keys[starts[g]] from `shift` on."""
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for g in range(groups):
        store(target, g, np.int64(((keys[starts[g]] >> np.uint64(shift)) & mask) + np.uint64(low)))


@kernel("int64(int64[::1], int64, int64, int64, int64[::1], int64)")
def consolidate(table: Words, columns: int, weights: int, n: int, target: Words, ascending: int) -> int:
    """Writes the sorted rows to target, equal ones merged and those with all weights 0 dropped; returns how many, -1 on weight overflow.

    ascending: whether the rows are sorted already.
    """
    lows, bits = np.empty(columns, np.int64), np.empty(columns, np.int64)
    shift = bit_length(np.uint64(n - 1))
    whole = not ascending and n >= FEW and measure(table, columns, n, lows, bits) <= DIGITS * DIGIT_BITS
    if whole:
        keys = sort_whole(table, columns, lows, bits, n)
        order, mask = keys.view(np.int64), (1 << shift) - 1
        starts = starts_of(keys, n, shift)
    else:
        order, starts = ordered(table, columns, n, ascending)
        keys, mask = order.view(np.uint64), -1
    groups = len(starts) - 1
    for w in range(weights):
        if not add_up(table[columns + w], order, mask, starts, groups, target[columns + w]):
            return -1
    groups = drop_zeros(target, columns, weights, starts, groups)
    for c in range(columns - 1, -1, -1):
        if whole:
            unpack_column(keys, starts, groups, shift, bits[c], lows[c], target[c])
            shift += bits[c]
        else:
            for g in range(groups):
                store(target[c], g, load(table[c], order[starts[g]]))
    return groups
