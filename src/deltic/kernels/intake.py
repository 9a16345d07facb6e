"""The kernel that copies frames from Arrow's C data interface into words, all columns of fixed width in one call.

A column is COLUMN words of a plan: its KIND, the bytes of an integer, the position of its first word in a row, what NULL is, the least and
the greatest value (of WIDE, pairs of words; of others, one), and whether -0.0 is written as 0.0. Words are those of `trace/encoding.py`.
"""

from __future__ import annotations

from deltic.kernels.compiler import kernel, part
from deltic.kernels.floats import ordered
from deltic.kernels.memory import WORD_MIN, Words, load, load_byte, load_int32, load_unaligned, store

LENGTH, NULLS, OFFSET, BUFFERS_COUNT, CHILDREN_COUNT, BUFFERS, CHILDREN, DICTIONARY, RELEASE, PRIVATE, ARROW_ARRAY = range(11)
"""Words of an ArrowArray. And how many they are."""
KIND, WIDTH, PLACE, NULL, LEAST, LEAST_LOW, MOST, MOST_LOW, ZERO, COLUMN = range(10)
"""Words of a column. And how many they are."""
BYTES, INTEGER, BITS, FLOAT, DOUBLE, NARROW, WIDE = range(7)
"""Kinds: BYTES are not copied; a decimal is one word or two."""
REFUSED, MARKED, FLAGGED = range(3)
"""What NULL is: refused, the marker in the first word, or 0 in a flag before the value."""
NOT_PLAIN = -1
UNMARKED = -1
"""In place of an op: nothing is written but the columns."""


@part
def integer(data: int, position: int, width: int) -> int:
    """The integer of `width` bytes at a position of a buffer."""
    place = data + width * position
    if width == 8:
        return load_unaligned(place)
    if width == 4:
        return load_int32(place)
    word = load_byte(place) if width == 1 else load_byte(place) | load_byte(place + 1) << 8
    sign = 1 << (8 * width - 1)
    return (word ^ sign) - sign


@part
def bit(bits: int, position: int) -> int:
    return (load_byte(bits + (position >> 3)) >> (position & 7)) & 1


@part
def widened(word: int) -> int:
    """The bits of a FLOAT as those of the DOUBLE of the same value."""
    exponent, fraction = (word >> 23) & 0xFF, word & 0x7FFFFF
    sign = WORD_MIN if word < 0 else 0
    if exponent == 0xFF:
        return sign | 0x7FF << 52 | fraction << 29
    if exponent == 0:
        if fraction == 0:
            return sign
        exponent = 1
        while fraction & 0x800000 == 0:
            fraction <<= 1
            exponent -= 1
        fraction &= 0x7FFFFF
    return sign | (exponent + 896) << 52 | fraction << 29


@part
def has_nulls(validity: int, first: int, n: int) -> bool:
    missing = 0
    for i in range(first, first + n):
        missing |= ~bit(validity, i)
    return missing & 1 != 0


@part
def longs(data: int, n: int, target: int, least: int, most: int) -> bool:
    """Copies integers of 8 bytes; False if one is out of bounds."""
    fits = True
    for i in range(n):
        word = load_unaligned(data + 8 * i)
        fits &= (word >= least) & (word <= most)
        store(target, i, word)
    return fits


@part
def ints(data: int, n: int, target: int, least: int, most: int) -> bool:
    """Copies integers of 4 bytes; False if one is out of bounds."""
    fits = True
    for i in range(n):
        word = load_int32(data + 4 * i)
        fits &= (word >= least) & (word <= most)
        store(target, i, word)
    return fits


@part
def decimals(data: int, n: int, target: int, least: int, most: int) -> bool:
    """Copies decimals of one word; False if one is out of bounds."""
    fits = True
    for i in range(n):
        word = load_unaligned(data + 16 * i)
        fits &= (load_unaligned(data + 16 * i + 8) == word >> 63) & (word >= least) & (word <= most)
        store(target, i, word)
    return fits


@part
def value(plan: Words, c: int, data: int, position: int) -> tuple[bool, int, int]:
    """(whether a value is within its bounds, its first word, its second)"""
    kind, word, low = plan[c + KIND], 0, 0
    if kind == WIDE:
        word, low = load_unaligned(data + 16 * position + 8), load_unaligned(data + 16 * position) ^ WORD_MIN
        above = word > plan[c + LEAST] or (word == plan[c + LEAST] and low >= plan[c + LEAST_LOW])
        below = word < plan[c + MOST] or (word == plan[c + MOST] and low <= plan[c + MOST_LOW])
        return above and below, word, low
    if kind == INTEGER:
        word = integer(data, position, plan[c + WIDTH])
    elif kind == BITS:
        word = bit(data, position)
    elif kind == NARROW:
        word = load_unaligned(data + 16 * position)
        if load_unaligned(data + 16 * position + 8) != word >> 63:
            return False, word, low
    else:
        word = load_unaligned(data + 8 * position) if kind == DOUBLE else widened(load_int32(data + 4 * position))
        word = ordered(word)
        if plan[c + ZERO] and word == -1:
            word = 0
    return plan[c + LEAST] <= word <= plan[c + MOST], word, low


@part
def values(plan: Words, c: int, data: int, first: int, validity: int, bits: int, n: int, target: int, following: int) -> bool:
    """Copies values one by one. first, bits: the positions of the first in its buffers. following: how far it is to the next word."""
    flagged, wide = plan[c + NULL] == FLAGGED, plan[c + KIND] == WIDE
    for i in range(n):
        if validity and not bit(validity, bits + i):
            store(target, i, 0 if flagged else WORD_MIN)
            if flagged or wide:
                store(target + following, i, 0)
            continue
        fits, word, low = value(plan, c, data, first + i)
        if not fits:
            return False
        if flagged:
            store(target, i, 1)
            store(target + following, i, word)
            continue
        store(target, i, word)
        if wide:
            store(target + following, i, low)
    return True


@part
def column(array: int, start: int, n: int, plan: Words, c: int, target: int, following: int) -> bool:
    """Copies a column from row `start` on; False if it has a value that the table refuses."""
    kind, buffers, first = plan[c + KIND], load(array, BUFFERS), start + load(array, OFFSET)
    validity = load(buffers, 0) if load(array, NULLS) != 0 else 0
    if validity and not has_nulls(validity, first, n):
        validity = 0
    if validity and plan[c + NULL] == REFUSED:
        return False
    if kind == BYTES:
        return True
    data, least, most = load(buffers, 1), plan[c + LEAST], plan[c + MOST]
    if data == 0 or load(array, DICTIONARY) != 0:
        return False
    if validity or kind in (BITS, FLOAT, DOUBLE, WIDE) or (kind == INTEGER and plan[c + WIDTH] < 4):
        return values(plan, c, data, first, validity, first, n, target, following)
    if plan[c + NULL] == FLAGGED:
        for i in range(n):
            store(target, i, 1)
        target += following
    if kind == NARROW:
        return decimals(data + 16 * first, n, target, least, most)
    if plan[c + WIDTH] == 4:
        return ints(data + 4 * first, n, target, least, most)
    return longs(data + 8 * first, n, target, least, most)


@part
def weights(array: int, start: int, n: int, target: int) -> bool:
    """Copies the weights; False if one is 0 or NULL."""
    buffers, first = load(array, BUFFERS), start + load(array, OFFSET)
    if load(array, NULLS) != 0 and load(buffers, 0) != 0 and has_nulls(load(buffers, 0), first, n):
        return False
    data, full = load(buffers, 1) + 8 * first, True
    for i in range(n):
        weight = load_unaligned(data + 8 * i)
        full &= weight != 0
        store(target, i, weight)
    return full


@kernel("int64(int64, int64[::1], int64, int64, int64, int64, int64, int64, int64, int64)")
def copy_frame(
    frame: int, plan: Words, target: int, marks: int, weighing: int, total: int, row: int, op: int, weighted: int, ordinal: int
) -> int:
    """Writes rows `row` to `row` + n of `total` pending rows: their columns, the op, ordinals from `ordinal` on, and weights.

    frame: the address of the ArrowArray of a struct, with the columns of the plan first; if `weighted`, the weights follow them, which else
    are 1. target: the address of the pending rows, word after word; marks: that of their ops, which the ordinals follow; weighing: that of
    their weights. Returns n; or NOT_PLAIN if the frame has values that the table refuses, or weights of 0.
    """
    n, start, children, columns = load(frame, LENGTH), load(frame, OFFSET), load(frame, CHILDREN), len(plan) // COLUMN
    if load(frame, NULLS) != 0 or load(frame, CHILDREN_COUNT) < columns + weighted:
        return NOT_PLAIN
    target, following = target + 8 * row, 8 * total
    for i in range(columns):
        c = i * COLUMN
        if not column(load(children, i), start, n, plan, c, target + following * plan[c + PLACE], following):
            return NOT_PLAIN
    if op == UNMARKED:
        return n
    marks, weighing = marks + 8 * row, weighing + 8 * row
    for i in range(n):
        store(marks, i, op)
        store(marks + following, i, ordinal + i)
    if weighted:
        return n if weights(load(children, columns), start, n, weighing) else NOT_PLAIN
    for i in range(n):
        store(weighing, i, 1)
    return n


@kernel("int64(int64, int64, int64, int64, int64[::1], int64[::1])")
def read_operations(offsets: int, text: int, size: int, n: int, names: Words, codes: Words) -> int:
    """Writes the code of each of n strings that are one of the names; returns how many, before one that is none.

    offsets: the address of n + 1 int32 offsets in `size` bytes of text. names: of each name of six letters its first four bytes, its last
    four, and its code.
    """
    for i in range(n):
        start, end, code = load_int32(offsets + 4 * i), load_int32(offsets + 4 * i + 4), -1
        if start < 0 or end > size or end - start != 6:
            return i
        head, tail = load_int32(text + start), load_int32(text + start + 2)
        for k in range(0, len(names), 3):
            if names[k] == head and names[k + 1] == tail:
                code = names[k + 2]
        if code < 0:
            return i
        codes[i] = code
    return n
