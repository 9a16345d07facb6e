"""The kernel that copies a frame of integers from Arrow's C data interface into words, all columns in one call."""

from __future__ import annotations

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, load, load_byte, load_int32, load_unaligned, store

LENGTH, NULLS, OFFSET, BUFFERS_COUNT, CHILDREN_COUNT, BUFFERS, CHILDREN, DICTIONARY, RELEASE, PRIVATE, ARROW_ARRAY = range(11)
"""Words of an ArrowArray. And how many they are."""
NOT_PLAIN = -1


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
def integers(array: int, start: int, width: int, n: int, target: int) -> bool:
    """Copies a column; False if it has NULLs, or may have some."""
    buffers = load(array, BUFFERS)
    if load(array, NULLS) != 0 and load(buffers, 0) != 0:
        return False
    data, start = load(buffers, 1), start + load(array, OFFSET)
    for i in range(n):
        store(target, i, integer(data, start + i, width))
    return True


@kernel("int64(int64, int64[::1], int64[::1], int64, int64, int64)")
def copy_frame(frame: int, widths: Words, flags: Words, target: int, op: int, ordinal: int) -> int:
    """Writes pending rows: the words of each column, the op, ordinals from `ordinal` on, and the last column as weights, one after another.

    frame: the address of the ArrowArray of a struct with the columns and the weights. widths: bytes of an integer of each column. flags: 1
    for a column whose value has a flag before it. Returns NOT_PLAIN if there are NULLs, or weights of 0.
    """
    n, start, columns, children = load(frame, LENGTH), load(frame, OFFSET), len(widths), load(frame, CHILDREN)
    if load(frame, NULLS) > 0 or load(frame, CHILDREN_COUNT) != columns + 1:
        return NOT_PLAIN
    for c in range(columns):
        if flags[c]:
            for i in range(n):
                store(target, i, 1)
            target += 8 * n
        if not integers(load(children, c), start, widths[c], n, target):
            return NOT_PLAIN
        target += 8 * n
    for i in range(n):
        store(target, i, op)
        store(target, n + i, ordinal + i)
    target += 16 * n
    if not integers(load(children, columns), start, 8, n, target):
        return NOT_PLAIN
    for i in range(n):
        if load(target, i) == 0:
            return NOT_PLAIN
    return n
