"""The kernels that write words as the columns of a frame of Arrow's C data interface, and that release such a frame.

The reverse of `intake.py`: a column is the same COLUMN words of a plan. For one of bytes, WIDTH says what is checked of its strings.
A frame is one block of memory, which begins with the function that frees it: the structs of its columns, then their buffers.
"""

from __future__ import annotations

from deltic.kernels.compiler import kernel, part
from deltic.kernels.foreign import ALLOCATE, FREE, call_c, release_callback
from deltic.kernels.intake import (
    ARROW_ARRAY,
    BITS,
    BUFFERS,
    BUFFERS_COUNT,
    BYTES,
    CHILDREN,
    CHILDREN_COUNT,
    COLUMN,
    DICTIONARY,
    DOUBLE,
    FLAGGED,
    INTEGER,
    KIND,
    LEAST,
    LENGTH,
    MOST,
    NARROW,
    NULL,
    NULLS,
    OFFSET,
    PLACE,
    PRIVATE,
    REFUSED,
    RELEASE,
    WIDE,
    WIDTH,
)
from deltic.kernels.memory import WORD_MIN, Words, copy_bytes, load, load_int32, store, store_byte, store_int32
from deltic.kernels.text import UTF8, find, is_utf8

DONE, LEFT, NO_ROOM = range(3)
"""Outcomes; nothing is written but if DONE. LEFT: a value is none of its column's, an id is that of no string, or there are many bytes."""
ALLOCATING, FREEING, SLOTS, MASK, IDS, STARTS, ARENA = range(7)
"""Words of what the kernel uses: the functions for memory, and where the strings are (`Entries.located`)."""
MEMORY, NO_STRINGS = (ALLOCATE, FREE), (0, 0, 0, 0, 0)
LINE = 64
"""Arrow's alignment of buffers, in bytes."""
TEXT_BYTES = 1 << 20
"""The most bytes of strings in a column: the kernel keeps the GIL, so it must not take long."""


@part
def _lines(size: int) -> int:
    return (size + LINE - 1) & ~(LINE - 1)


@part
def _value_bytes(plan: Words, c: int, n: int) -> int:
    """The bytes of the values of a column that is not of bytes."""
    kind = plan[c + KIND]
    if kind == BITS:
        return (n + 7) >> 3
    return n * (16 if kind in (NARROW, WIDE) else 8 if kind == DOUBLE else plan[c + WIDTH])


@part
def _entry(context: Words, id_: int) -> int:
    """The entry of a string; -1 if there is none."""
    position = find(context[SLOTS], context[MASK], context[IDS], id_)
    return load(context[SLOTS], position) - 1


@part
def _text_bytes(words: int, n: int, nullable: bool, context: Words) -> int:
    """The bytes of strings; -1 if one is absent, or if there are many."""
    size = 0
    for i in range(n):
        id_ = load(words, i)
        if id_ == WORD_MIN and nullable:
            continue
        entry = -1 if id_ == WORD_MIN else _entry(context, id_)
        if entry < 0:
            return -1
        size += load(context[STARTS], entry + 1) - load(context[STARTS], entry)
    return size if size <= TEXT_BYTES else -1


@part
def _size(table: Words, n: int, plan: Words, context: Words) -> int:
    """The bytes of all buffers; -1 if strings cannot be written."""
    size = 0
    for c in range(0, len(plan), COLUMN):
        if plan[c + NULL] != REFUSED:
            size += _lines((n + 7) >> 3)
        if plan[c + KIND] == BYTES:
            text = _text_bytes(table[plan[c + PLACE]], n, plan[c + NULL] != REFUSED, context)
            if text < 0:
                return -1
            size += _lines(4 * n + 4) + _lines(text)
        else:
            size += _lines(_value_bytes(plan, c, n))
    return size


@part
def _validity(words: int, none: int, n: int, target: int) -> int:
    """Writes whether each value is there; returns how many are not. none: the word of NULL."""
    missing = 0
    for first in range(0, n, 8):
        bits = 0
        for i in range(first, min(first + 8, n)):
            if load(words, i) == none:
                missing += 1
            else:
                bits |= 1 << (i - first)
        store_byte(target + (first >> 3), bits)
    return missing


@part
def _texts(words: int, n: int, check: int, target: int, data: int, context: Words) -> bool:
    """Writes offsets and bytes; False if a string is none."""
    arena, starts, end = context[ARENA], context[STARTS], 0
    store_int32(target, 0)
    for i in range(n):
        id_ = load(words, i)
        if id_ != WORD_MIN:
            entry = _entry(context, id_)
            start = load(starts, entry)
            length = load(starts, entry + 1) - start
            if check == UTF8 and not is_utf8(arena + start, length):
                return False
            copy_bytes(data + end, arena + start, length)
            end += length
        store_int32(target + 4 * i + 4, end)
    return True


@part
def _bits(words: int, n: int, target: int) -> None:
    for first in range(0, n, 8):
        bits = 0
        for i in range(first, min(first + 8, n)):
            bits |= (1 if load(words, i) > 0 else 0) << (i - first)
        store_byte(target + (first >> 3), bits)


@part
def _integers(words: int, n: int, plan: Words, c: int, target: int) -> bool:
    """False if one is out of bounds that is not NULL."""
    width, least, most, fits = plan[c + WIDTH], plan[c + LEAST], plan[c + MOST], True
    marked = plan[c + NULL] != REFUSED
    for i in range(n):
        word = load(words, i)
        fits &= (word >= least and word <= most) or (marked and word == WORD_MIN)
        if width == 8:
            store(target, i, word)
        elif width == 4:
            store_int32(target + 4 * i, word)
        else:
            for byte in range(width):
                store_byte(target + width * i + byte, word >> (8 * byte))
    return fits


@part
def _values(table: Words, n: int, plan: Words, c: int, target: int) -> bool:
    """Writes the values of a column that is not of bytes; False if one is none of its values."""
    kind, place, nullable = plan[c + KIND], plan[c + PLACE], plan[c + NULL] != REFUSED
    words = table[place]
    if kind == INTEGER:
        return _integers(table[place + 1] if plan[c + NULL] == FLAGGED else words, n, plan, c, target)
    if kind == BITS:
        _bits(words, n, target)
    elif kind == DOUBLE:
        for i in range(n):
            word = load(words, i)
            store(target, i, word ^ ~WORD_MIN if word < 0 else word)
    elif kind == NARROW:
        for i in range(n):
            word = load(words, i)
            if word == WORD_MIN and not nullable:
                return False
            word = 0 if word == WORD_MIN else word
            store(target, 2 * i, word)
            store(target, 2 * i + 1, word >> 63)
    else:
        low = table[place + 1]
        for i in range(n):
            missing = load(words, i) == WORD_MIN
            if missing and not nullable:
                return False
            store(target, 2 * i, 0 if missing else load(low, i) ^ WORD_MIN)
            store(target, 2 * i + 1, 0 if missing else load(words, i))
    return True


@part
def _array(place: int, n: int, nulls: int, count: int, buffers: int, owned: int) -> None:
    """Writes the struct of an array without children."""
    store(place, LENGTH, n)
    store(place, NULLS, nulls)
    store(place, OFFSET, 0)
    store(place, BUFFERS_COUNT, count)
    store(place, CHILDREN_COUNT, 0)
    store(place, BUFFERS, buffers)
    store(place, CHILDREN, 0)
    store(place, DICTIONARY, 0)
    store(place, RELEASE, release_callback())
    store(place, PRIVATE, owned)


@kernel("int64(int64[::1], int64, int64[::1], int64, int64[::1])", nogil=False)
def export_frame(table: Words, n: int, plan: Words, frame: int, context: Words) -> int:
    """Writes the ArrowArray of a struct with the columns of the plan at `frame`; returns the outcome.

    table: the addresses of the words of n rows, one for each word of a row. Whoever receives the frame releases it.
    """
    columns = len(plan) // COLUMN
    size, structs = _size(table, n, plan, context), 8 * (2 + columns * (1 + 3 + ARROW_ARRAY))
    if size < 0:
        return LEFT
    block = call_c(context[ALLOCATING], LINE + _lines(structs) + size)
    if block == 0:
        return NO_ROOM
    store(block, 0, context[FREEING])
    store(block, 1, 0)  # the frame's own buffer: no row of it is NULL
    children = block + 16
    buffers = children + 8 * columns
    arrays = buffers + 24 * columns
    place = _lines(block + structs)
    for i in range(columns):
        c, nulls, validity = COLUMN * i, 0, 0
        words = table[plan[c + PLACE]]
        if plan[c + NULL] != REFUSED:
            nulls = _validity(words, 0 if plan[c + NULL] == FLAGGED else WORD_MIN, n, place)
            validity = place if nulls else 0
            place += _lines((n + 7) >> 3)
        store(buffers, 0, validity)
        store(buffers, 1, place)
        if plan[c + KIND] == BYTES:
            data = place + _lines(4 * n + 4)
            fits = _texts(words, n, plan[c + WIDTH], place, data, context)
            store(buffers, 2, data)
            place = data + _lines(load_int32(place + 4 * n))
        else:
            fits = _values(table, n, plan, c, place)
            place += _lines(_value_bytes(plan, c, n))
        if not fits:
            call_c(context[FREEING], block)
            return LEFT
        _array(arrays, n, nulls, 3 if plan[c + KIND] == BYTES else 2, buffers, 0)
        store(children, i, arrays)
        buffers += 24
        arrays += 8 * ARROW_ARRAY
    _array(frame, n, 0, 1, block + 8, block)
    store(frame, CHILDREN_COUNT, columns)
    store(frame, CHILDREN, children)
    return DONE


@kernel("void(int64)", nogil=False)
def release_frame(frame: int) -> None:
    """Releases the ArrowArray at an address, as its callback does."""
    if load(frame, RELEASE) != 0:
        call_c(load(frame, RELEASE), frame)
