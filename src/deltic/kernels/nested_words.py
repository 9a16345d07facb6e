"""Kernels that read numbers in nested values as words: fields of STRUCTs, and the elements of ARRAYs. The bytes are those of `nested.py`.

Values are found by the ids of their bytes. The strings are five words of the runner's state: the addresses of slots, ids, starts and arena
(`text.py`), and the number of slots less one, in the order of STRINGS_… . A kernel returns REFUSED where a `step` may raise: an id is
absent, bytes are damaged, a value is NULL that may not be.

A path says how a field is read, from the begin of a value: steps of two words, an opcode and its operand. Each step but READ and ENTER
skips a part.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.instructions import STRINGS
from deltic.kernels.memory import WORD_MIN, Words, load, load_byte, load_unaligned, store
from deltic.kernels.nested import ENDED, NULL, VALUE, leading, reversed_bytes, text_end
from deltic.kernels.text import find, request

STRINGS_SLOTS, STRINGS_MASK, STRINGS_IDS, STRINGS_STARTS, STRINGS_ARENA = range(STRINGS, STRINGS + 5)

SKIP_NUMBER, SKIP_TEXT, SKIP_NUMBERS, SKIP_STRUCT, ENTER, READ = range(6)
"""Steps: past a number of so many bytes, a text, a list of numbers of so many bytes; into a STRUCT that is skipped, whose fields are the
next so many steps; into one in which the field is; and the number of so many bytes that is read."""
STEP = 2
"""Words of a step."""

PLAIN, MARKED, FLAGGED = range(3)
"""How a value is written: one word that is not NULL; with the marker of NULL; after a flag."""
BOOLEAN, DECIMAL = 0, 16
"""Instead of a width in bytes, or as one."""
REFUSED = -1
NONE = -1
"""The address of a NULL."""
NOWHERE = 0
"""The address of what is damaged."""


@part
def width_of(width: int) -> int:
    """In bytes."""
    return 1 if width == BOOLEAN else width


@part
def number(source: int, width: int) -> int:
    """The word of a number."""
    if width == BOOLEAN:
        return np.int64(load_byte(source) != 0)
    if width == DECIMAL:  # of one word, so that the other eight bytes are its sign
        return reversed_bytes(load_unaligned(source + 8))
    return reversed_bytes(leading(source, width)) - (np.int64(1) << (8 * width - 1))


@part
def put(form: int, targets: Words, first: int, i: int, address: int, width: int) -> bool:
    """Writes the number at an address, or NULL, to row i of the columns from `first` on; False if it may not be."""
    if address == NONE:
        if form == PLAIN:
            return False
        store(targets[first], i, WORD_MIN if form == MARKED else 0)
        if form == FLAGGED:
            store(targets[first + 1], i, 0)
        return True
    word = number(address, width)
    if form == FLAGGED:
        store(targets[first], i, 1)
        store(targets[first + 1], i, word)
        return True
    store(targets[first], i, word)
    return form == PLAIN or word != WORD_MIN


@part
def entry_of_id(state: Words, id_: int) -> int:
    """The entry of an id, -1 if there is none."""
    slots, ids = state[STRINGS_SLOTS], state[STRINGS_IDS]
    return load(slots, find(slots, state[STRINGS_MASK], ids, id_)) - 1


@part
def request_ahead(state: Words, ids: int, i: int, n: int) -> None:
    """Requests the memory of later values."""
    slots, mask = state[STRINGS_SLOTS], state[STRINGS_MASK]
    request(i, n, ids, slots, mask, state[STRINGS_IDS], state[STRINGS_STARTS], state[STRINGS_ARENA])


@part
def numbers_end(source: int, end: int, width: int) -> tuple[int, int]:
    """(the address after a list of numbers, or NOWHERE; how many elements it has)."""
    count = 0
    while source < end:
        tag = load_byte(source)
        source += 1
        if tag == ENDED:
            return source, count
        if tag == VALUE:
            source += width
        elif tag != NULL:
            return NOWHERE, 0
        count += 1
    return NOWHERE, 0


@part
def located(code: Words, first: int, steps: int, source: int, end: int) -> int:
    """The address of the number at the end of a path, NONE if it is NULL, NOWHERE if the bytes are damaged."""
    k = 0
    while k < steps:
        step, operand = code[first + STEP * k], code[first + STEP * k + 1]
        k += 1
        if source >= end:
            return NOWHERE
        tag = load_byte(source)
        source += 1
        if tag == NULL:
            if step in (ENTER, READ):
                return NONE
            if step == SKIP_STRUCT:
                k += operand
            continue
        if tag != VALUE:
            return NOWHERE
        if step == READ:
            return source if source + width_of(operand) <= end else NOWHERE
        if step == SKIP_NUMBER:
            source += operand
        elif step == SKIP_TEXT:
            source = text_end(source, end) + 1
        elif step == SKIP_NUMBERS:
            source, _ = numbers_end(source, end, operand)
            if source == NOWHERE:
                return NOWHERE
    return NOWHERE


@kernel("int64(int64[::1], int64, int64, int64[::1], int64, int64, int64[::1])")
def read_fields(state: Words, ids: int, n: int, code: Words, first: int, fields: int, targets: Words) -> int:
    """Writes the words of fields of n STRUCTs. Of each field the code has from word `first` on: its form, steps, and these.

    Returns 0 or REFUSED.
    """
    starts, arena = state[STRINGS_STARTS], state[STRINGS_ARENA]
    for i in range(n):
        request_ahead(state, ids, i, n)
        id_, begin, end = load(ids, i), np.int64(NONE), np.int64(NONE)
        if id_ != WORD_MIN:
            entry = entry_of_id(state, id_)
            if entry < 0:
                return REFUSED
            begin, end = arena + load(starts, entry), arena + load(starts, entry + 1)
        at, target = first, 0
        for _ in range(fields):
            form, steps = code[at], code[at + 1]
            source = located(code, at + 2, steps, begin, end) if begin != NONE else np.int64(NONE)
            at += 2 + STEP * steps
            if source == NOWHERE or not put(form, targets, target, i, source, code[at - 1]):
                return REFUSED
            target += 2 if form == FLAGGED else 1
    return 0


@kernel("int64(int64[::1], int64, int64, int64, int64, int64, int64)")
def count_elements(state: Words, ids: int, n: int, width: int, outer: int, begins: int, counts: int) -> int:
    """Writes where the elements of n ARRAYs of numbers begin, or NONE, and how many rows each gives; returns the sum, or REFUSED.

    outer: whether an ARRAY without elements, or NULL, gives a row.
    """
    starts, arena, size, total = state[STRINGS_STARTS], state[STRINGS_ARENA], width_of(width), 0
    for i in range(n):
        request_ahead(state, ids, i, n)
        id_, begin, count = load(ids, i), np.int64(NONE), 0
        if id_ != WORD_MIN:
            entry = entry_of_id(state, id_)
            if entry < 0:
                return REFUSED
            begin, end = arena + load(starts, entry), arena + load(starts, entry + 1)
            after, count = numbers_end(begin, end, size)
            if after != end:
                return REFUSED
        if count == 0:
            begin, count = np.int64(NONE), outer
        store(begins, i, begin)
        store(counts, i, count)
        total += count
    return total


@kernel("int64(int64, int64, int64, int64, int64, int64, int64[::1])")
def read_elements(begins: int, counts: int, n: int, width: int, form: int, positions: int, targets: Words) -> int:
    """Writes the words of the elements that `count_elements` has found, and at `positions`, if that is not 0, their positions.

    Returns 0 or REFUSED.
    """
    row, size = 0, width_of(width)
    for i in range(n):
        source, count = load(begins, i), load(counts, i)
        for k in range(count):
            address = np.int64(NONE)
            if source != NONE:
                if load_byte(source) == VALUE:
                    address = source + 1
                    source += size
                source += 1
            if positions != 0:
                store(positions, row, k if source != NONE else WORD_MIN)
            if not put(form, targets, 0, row, address, width):
                return REFUSED
            row += 1
    return 0
