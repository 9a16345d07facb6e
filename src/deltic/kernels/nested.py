"""Nested values as their canonical bytes, and back: one pass over a type's nodes for each value. The form itself is in `canonical.py`.

A type is a table of its nodes in preorder, NODE words for each: an ARRAY and its elements, a MAP as an ARRAY of STRUCTs, a STRUCT and its
fields. A node's values are a column of Arrow: `trace/nested.py` makes the tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, address_of, copy_bytes, load, load_byte, load_int32, load_unaligned, prefetch, store

KIND, WIDTH, END, VALIDITY, BIT, OFFSETS, DATA, SLOTS, NULLS, SIZE, NODE = range(11)
"""Of a node: its kind, the bytes of a value, the node after its last part; then of its column.

Written: the addresses of its validity (0 without NULL), of its offsets and its values, and the bit of the first value in a bitmap.
Read: where its validity, its offsets and its values begin in the results; how many values and how many NULLs it has, and bytes of texts.
And how many words they are.
"""
INTEGER, FLOAT, BITS, TEXT, STRUCT, LIST, VOID = range(7)
"""Kinds. An INTEGER has any width; a DECIMAL is one of 16 bytes."""
FRAME = 4
"""Words of a value that is being written or read: its node, its position in the column, the next part, and the end of the parts."""
NULL, VALUE, ENDED, ESCAPE = 1, 2, 0, 0xFF
DAMAGED, TWICE = -1, -2
AHEAD = 8
"""How many values ahead memory is requested."""
_SIGN = -(1 << 63)
_INFINITE, _NAN, _INFINITE4, _NAN4 = 0x7FF0 << 48, 0x7FF8 << 48, 0x7F80 << 48, 0x7FC0 << 48
"""Bits of DOUBLE, and of FLOAT in the upper half of a word."""


@part
def _bit(address: int, position: int) -> bool:
    return (load_byte(address + (position >> 3)) >> (position & 7)) & 1 != 0


@part
def _put(out: Any, target: int, byte: int) -> None:
    """One byte; `target` is not negative, which saves the check for it."""
    out[np.uint64(target)] = byte


@part
def reversed_bytes(word: int) -> int:
    """The word with its bytes in the other order."""
    w = np.uint64(word)
    w = (w & np.uint64(0x00FF00FF00FF00FF)) << np.uint64(8) | (w >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    w = (w & np.uint64(0x0000FFFF0000FFFF)) << np.uint64(16) | (w >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    return np.int64(w << np.uint64(32) | w >> np.uint64(32))


@part
def leading(source: int, width: int) -> int:
    """A number of up to 8 bytes in Arrow's order, at the upper end of a word."""
    if width == 4:
        return load_int32(source) << 32
    if width == 8:
        return load_unaligned(source)
    word = 0
    for i in range(width):
        word |= load_byte(source + i) << (8 * (8 - width + i))
    return word


@part
def _copy_word(target: int, word: int, width: int, scratch: int) -> None:
    """The first bytes of a word in memory."""
    store(scratch, 0, word)
    if width == 4:
        copy_bytes(target, scratch, 4)
    elif width == 8:
        copy_bytes(target, scratch, 8)
    else:
        copy_bytes(target, scratch, width)


@part
def _ordered(word: int, width: int, kind: int, signed: bool, seen: int) -> int:
    """The word of a number, at its upper end, as bits that sort like it. Counts -0.0 at `seen`."""
    if kind == INTEGER:
        return word ^ _SIGN
    if word == _SIGN:
        store(seen, 0, load(seen, 0) + 1)
        if not signed:
            word = 0
    if word & ~_SIGN > (_INFINITE if width == 8 else _INFINITE4):
        word = _NAN if width == 8 else _NAN4
    return ~word if word & _SIGN else word ^ _SIGN


@part
def _text(source: int, length: int, out: int, scratch: int) -> int:
    """Writes a text; returns where it ends."""
    copied = 0
    for i in range(length):
        if load_byte(source + i) == 0:
            copy_bytes(out, source + copied, i + 1 - copied)
            out += i + 1 - copied
            _copy_word(out, ESCAPE, 1, scratch)
            out, copied = out + 1, i + 1
    copy_bytes(out, source + copied, length - copied)
    out += length - copied
    _copy_word(out, ENDED, 1, scratch)
    return out + 1


@part
def _scalar(nodes: int, i: int, out: int, signed: bool, scratch: int) -> int:
    """Writes a value that is no STRUCT or LIST; returns where it ends."""
    kind, width, data = load(nodes, KIND), load(nodes, WIDTH), load(nodes, DATA)
    if kind == TEXT:
        offsets = load(nodes, OFFSETS) + 4 * i
        start = load_int32(offsets)
        return _text(data + start, load_int32(offsets + 4) - start, out, scratch)
    if kind == BITS:
        _copy_word(out, 1 if _bit(data, load(nodes, BIT) + i) else 0, 1, scratch)
    elif width == 16:
        _copy_word(out, reversed_bytes(load_unaligned(data + 16 * i + 8) ^ _SIGN), 8, scratch)
        _copy_word(out + 8, reversed_bytes(load_unaligned(data + 16 * i)), 8, scratch)
    else:
        word = _ordered(leading(data + width * i, width), width, kind, signed, scratch + 8)
        _copy_word(out, reversed_bytes(word), width, scratch)
    return out + width


@part
def _write_numbers(node: int, i: int, out: int, signed: bool, scratch: int) -> int:
    """Writes the elements of value i of a LIST of numbers, and the byte after them; returns where it ends."""
    child, offsets = node + 8 * NODE, load(node, OFFSETS) + 4 * i
    validity, bit = load(child, VALIDITY), load(child, BIT)
    for k in range(load_int32(offsets), load_int32(offsets + 4)):
        valid = validity == 0 or _bit(validity, bit + k)
        _copy_word(out, VALUE if valid else NULL, 1, scratch)
        out += 1
        if valid:
            out = _scalar(child, k, out, signed, scratch)
    _copy_word(out, ENDED, 1, scratch)
    return out + 1


@part
def _written(nodes: int, i: int, out: int, signed: bool, stack: int, scratch: int) -> int:
    """Writes value i of the first node; returns where it ends. scratch: two words, the second for the number of -0.0."""
    node, frame = nodes, stack
    while True:
        kind = load(node, KIND)
        if kind == STRUCT:
            store(frame, 0, node)
            store(frame, 1, i)
            store(frame, 2, node + 8 * NODE)
            store(frame, 3, nodes + 8 * NODE * load(node, END))
            frame += 8 * FRAME
        elif kind == LIST and load(node + 8 * NODE, KIND) <= BITS:
            out = _write_numbers(node, i, out, signed, scratch)
        elif kind == LIST:
            offsets = load(node, OFFSETS) + 4 * i
            store(frame, 0, node)
            store(frame, 2, load_int32(offsets))
            store(frame, 3, load_int32(offsets + 4))
            frame += 8 * FRAME
        else:
            out = _scalar(node, i, out, signed, scratch)
        while True:
            if frame == stack:
                return out
            top = frame - 8 * FRAME
            parent, following = load(top, 0), load(top, 2)
            is_list = load(parent, KIND) == LIST
            if following == load(top, 3):
                if is_list:
                    _copy_word(out, ENDED, 1, scratch)
                    out += 1
                frame = top
                continue
            if is_list:
                node, i = parent + 8 * NODE, following
                store(top, 2, following + 1)
            else:
                node, i = following, load(top, 1)
                store(top, 2, nodes + 8 * NODE * load(following, END))
            validity = load(node, VALIDITY)
            valid = load(node, KIND) != VOID and (validity == 0 or _bit(validity, load(node, BIT) + i))
            _copy_word(out, VALUE if valid else NULL, 1, scratch)
            out += 1
            if valid:
                break


@kernel("void(int64[::1], int64[::1], int64[::1], uint8[::1])")
def write_values(nodes: Words, stack: Words, offsets: Words, out: Any) -> None:
    """Writes the values of the first node to `out`, which has room, and where each begins and ends to `offsets`; NULL has no bytes.

    A value with a -0.0 is written twice. stack: FRAME words for each node.
    """
    scratch = np.zeros(2, np.int64)
    table, frames, memory, start = address_of(nodes), address_of(stack), address_of(scratch), address_of(out)
    validity, bit, end = nodes[VALIDITY], nodes[BIT], start
    offsets[0] = 0
    for i in range(len(offsets) - 1):
        if validity == 0 or _bit(validity, bit + i):
            scratch[1] = 0
            end = _written(table, i, end, False, frames, memory)
            if scratch[1]:
                _copy_word(end, ENDED, 1, memory)
                end = _written(table, i, end + 1, True, frames, memory)
        offsets[i + 1] = end - start


@part
def _skip(nodes: int, node: int, offsets: int, scratch: int) -> None:
    """A NULL of a node, and of the fields in it."""
    end = nodes + 8 * NODE * load(node, END)
    while node < end:
        slot, kind, following = load(node, SLOTS), load(node, KIND), node + 8 * NODE
        store(node, SLOTS, slot + 1)
        store(node, NULLS, load(node, NULLS) + 1)
        if kind == TEXT:
            _copy_word(offsets + 4 * (load(node, OFFSETS) + slot + 1), load(node, SIZE), 4, scratch)
        elif kind == LIST:
            _copy_word(offsets + 4 * (load(node, OFFSETS) + slot + 1), load(following, SLOTS), 4, scratch)
            following = nodes + 8 * NODE * load(node, END)
        node = following


@part
def _set_bit(address: int, position: int, scratch: int) -> None:
    place = address + (position >> 3)
    _copy_word(place, load_byte(place) | 1 << (position & 7), 1, scratch)


@part
def _number(node: int, slot: int, source: int, out: int, scratch: int) -> None:
    """Reads a number or a BOOLEAN."""
    width = load(node, WIDTH)
    target = out + load(node, DATA) + width * slot
    if load(node, KIND) == BITS:
        if load_byte(source) != 0:
            _set_bit(out + load(node, DATA), slot, scratch)
    elif width == 16:
        _copy_word(target, reversed_bytes(load_unaligned(source + 8)), 8, scratch)
        _copy_word(target + 8, reversed_bytes(load_unaligned(source)) ^ _SIGN, 8, scratch)
    else:
        word = reversed_bytes(leading(source, width))
        flipped = ~word if load(node, KIND) == FLOAT and load_byte(source) < 0x80 else word ^ 1 << (8 * width - 1)
        _copy_word(target, flipped, width, scratch)


@part
def text_end(source: int, end: int) -> int:
    """Where the 00 after a text is; `end` if there is none before."""
    while source < end:
        if load_byte(source) == 0:
            if source + 1 == end or load_byte(source + 1) != ESCAPE:
                return source
            source += 1
        source += 1
    return end


@part
def _unescaped(source: int, end: int, target: int) -> int:
    """Copies a text; returns where the copy ends."""
    copied = source
    while source < end:
        if load_byte(source) == 0:
            copy_bytes(target, copied, source + 1 - copied)
            target += source + 1 - copied
            source += 1
            copied = source + 1
        source += 1
    copy_bytes(target, copied, end - copied)
    return target + end - copied


@part
def _read_scalar(node: int, slot: int, source: int, end: int, offsets: int, out: int, scratch: int) -> int:
    """Reads a value that is no STRUCT or LIST; returns where it ends, or DAMAGED."""
    if load(node, KIND) == TEXT:
        last = text_end(source, end)
        if last == end:
            return DAMAGED
        data = out + load(node, DATA)
        size = _unescaped(source, last, data + load(node, SIZE)) - data
        store(node, SIZE, size)
        _copy_word(offsets + 4 * (load(node, OFFSETS) + slot + 1), size, 4, scratch)
        return last + 1
    if load(node, KIND) == VOID or source + load(node, WIDTH) > end:
        return DAMAGED
    _number(node, slot, source, out, scratch)
    return source + load(node, WIDTH)


@part
def _read_numbers(node: int, slot: int, source: int, end: int, offsets: int, out: int, scratch: int) -> int:
    """Reads the elements of value `slot` of a LIST of numbers, and the byte after them; returns where it ends, or DAMAGED."""
    child = node + 8 * NODE
    width, validity, elements = load(child, WIDTH), out + load(child, VALIDITY), load(child, SLOTS)
    while source < end:
        tag = load_byte(source)
        source += 1
        if tag == VALUE:
            if source + width > end:
                return DAMAGED
            _set_bit(validity, elements, scratch)
            _number(child, elements, source, out, scratch)
            source += width
            elements += 1
        elif tag == ENDED:
            store(child, SLOTS, elements)
            _copy_word(offsets + 4 * (load(node, OFFSETS) + slot + 1), elements, 4, scratch)
            return source
        elif tag == NULL:
            store(child, NULLS, load(child, NULLS) + 1)
            elements += 1
        else:
            return DAMAGED
    return DAMAGED


@part
def _read(nodes: int, source: int, end: int, stack: int, offsets: int, out: int, scratch: int) -> int:
    """Reads a value of the first node; returns where it ends, or DAMAGED."""
    node, frame = nodes, stack
    while True:
        slot, kind = load(node, SLOTS), load(node, KIND)
        store(node, SLOTS, slot + 1)
        _set_bit(out + load(node, VALIDITY), slot, scratch)
        if kind == LIST and load(node + 8 * NODE, KIND) <= BITS:
            source = _read_numbers(node, slot, source, end, offsets, out, scratch)
            if source == DAMAGED:
                return DAMAGED
        elif kind in (STRUCT, LIST):
            store(frame, 0, node)
            store(frame, 1, slot)
            store(frame, 2, node + 8 * NODE)
            frame += 8 * FRAME
        else:
            source = _read_scalar(node, slot, source, end, offsets, out, scratch)
            if source == DAMAGED:
                return DAMAGED
        while True:
            if frame == stack:
                return source
            top = frame - 8 * FRAME
            parent, child = load(top, 0), load(top, 2)
            is_list = load(parent, KIND) == LIST
            if not is_list and child == nodes + 8 * NODE * load(parent, END):
                frame = top
                continue
            if source == end:
                return DAMAGED
            tag = load_byte(source)
            source += 1
            if is_list and tag == ENDED:
                _copy_word(offsets + 4 * (load(parent, OFFSETS) + load(top, 1) + 1), load(child, SLOTS), 4, scratch)
                frame = top
                continue
            if not is_list:
                store(top, 2, nodes + 8 * NODE * load(child, END))
            if tag == VALUE:
                node = child
                break
            if tag != NULL:
                return DAMAGED
            _skip(nodes, child, offsets, scratch)


@kernel(
    "int64(int64[::1], int64[::1], int64[::1], uint8[::1], int64, int64, int64[::1], int64[::1], int32[::1], uint8[::1])",
)
def read_values(
    nodes: Words, places: Words, starts: Words, data: Any, partly: int, again: int, begins: Words, stack: Words, offsets: Any, out: Any
) -> int:
    """Reads values from the bytes of entries: value i from data[starts[places[i]]:starts[places[i] + 1]]; it is NULL if places[i] < 0.

    offsets, out: zeros, with room for the columns. partly: whether more fields follow those of the nodes, which are not read. Returns 0;
    DAMAGED; or TWICE if values are written twice: then what is read is of no use, and `begins` has the second writings, to be read `again`.
    """
    scratch = np.zeros(1, np.int64)
    table, frames, memory, first = address_of(nodes), address_of(stack), address_of(scratch), address_of(data)
    positions, columns, entries, bounds = address_of(offsets), address_of(out), address_of(places), address_of(starts)
    result = 0
    for i in range(len(places)):
        if i + AHEAD < len(places) and load(entries, i + AHEAD) >= 0:
            prefetch(first + load(bounds, load(entries, i + AHEAD)), 0)
        entry = load(entries, i)
        if entry < 0:
            _skip(table, table, positions, memory)
            continue
        begin, end = begins[i] if again else load(bounds, entry), first + load(bounds, entry + 1)
        begins[i] = begin
        last = _read(table, first + begin, end, frames, positions, columns, memory)
        if last == DAMAGED:
            return DAMAGED
        if last < end and partly == 0:
            if load_byte(last) != ENDED:
                return DAMAGED
            begins[i] = last + 1 - first
            result = TWICE
    return result
