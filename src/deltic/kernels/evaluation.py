"""The kernel that runs the operations of `scalars.py` over rows: lanes are read from columns, set from each other, and written."""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.lane_operations import divide_wide, like, operate, text_word
from deltic.kernels.lanes import high_of, own, state_of
from deltic.kernels.memory import WORD_MIN, Words, load, store
from deltic.kernels.scalars import (
    CONSTANT_VALUE,
    DIVIDE_WIDE,
    FAILED,
    FLAGGED,
    HIGH,
    KEEP,
    LANE,
    LIKE,
    LOW_HALF,
    MARKED,
    NOTHING,
    NULL,
    OPERATION,
    PLAIN,
    PRESENT,
    PUT,
    PUT_FLAGGED,
    PUT_MARKED,
    PUT_ROUNDED,
    PUT_STATE,
    PUT_VALUE,
    PUT_WIDE,
    STATE,
    TEXT,
    TEXT_WORD,
    UPPER,
    VALUE,
    WIDE_MARKED,
)


@part
def read(op: int, target: int, a: int, b: int, lanes: int, room: int, block: int, columns: Words, state: Words, start: int, m: int) -> None:
    """Sets a lane from columns, or to a constant."""
    entry = LANE * target
    store(lanes, entry + STATE, 0)
    store(lanes, entry + HIGH, 0)
    if op in (CONSTANT_VALUE, TEXT, NOTHING):
        values = own(lanes, room, block, target, VALUE)
        word = state[a] if op == TEXT else a
        for i in range(m):
            store(values, i, word)
        if op == CONSTANT_VALUE and b != a >> 63:
            high = own(lanes, room, block, target, HIGH)
            for i in range(m):
                store(high, i, b)
        if op == NOTHING:
            states = own(lanes, room, block, target, STATE)
            for i in range(m):
                store(states, i, NULL)
        return
    first = columns[a] + 8 * start
    if op == FLAGGED:
        store(lanes, entry + VALUE, columns[a + 1] + 8 * start)
        store(lanes, entry + STATE, first)
        return
    if op in (MARKED, WIDE_MARKED):
        states = own(lanes, room, block, target, STATE)
        present = True
        for i in range(m):
            is_present = load(first, i) != WORD_MIN
            present &= is_present
            store(states, i, np.int64(is_present))
        if present:
            store(lanes, entry + STATE, 0)
    if op in (PLAIN, MARKED):
        store(lanes, entry + VALUE, first)
        return
    store(lanes, entry + HIGH, first)
    values, low = own(lanes, room, block, target, VALUE), columns[a + 1] + 8 * start
    for i in range(m):
        store(values, i, load(low, i) ^ WORD_MIN)


@part
def keep_rows(lane: int, lanes: int, start: int, m: int, positions: int, kept: int) -> int:
    """Appends the positions of the rows for which the lane is TRUE; returns how many there are now, or -1 if a row fails."""
    values, states = load(lanes, LANE * lane + VALUE), load(lanes, LANE * lane + STATE)
    for i in range(m):
        state = state_of(states, i)
        if state == FAILED:
            return -1
        if state == PRESENT and load(values, i) == 1:
            store(positions, kept, start + i)
            kept += 1
    return kept


@part
def is_present(states: int, m: int, least: int) -> bool:
    """Whether no row fails, and with `least` = PRESENT none is NULL."""
    fits = True
    for i in range(m if states != 0 else 0):
        fits &= load(states, i) != FAILED and load(states, i) >= least
    return fits


@part
def put(op: int, lane: int, first: int, lanes: int, outs: Words, start: int, m: int) -> bool:
    """Writes a lane as a value of a row. False if a row fails, or is NULL where no NULL is allowed."""
    values, states, high = load(lanes, LANE * lane + VALUE), load(lanes, LANE * lane + STATE), load(lanes, LANE * lane + HIGH)
    if not is_present(states, m, PRESENT if op in (PUT, PUT_WIDE) else NULL):
        return False
    out = outs[first] + 8 * start
    if op in (PUT, PUT_MARKED):
        for i in range(m):
            store(out, i, load(values, i) if states == 0 or load(states, i) == PRESENT else WORD_MIN)
        return True
    second = outs[first + 1] + 8 * start
    for i in range(m):
        is_there = states == 0 or load(states, i) == PRESENT
        word = load(values, i) if is_there else 0
        if op == PUT_FLAGGED:
            store(out, i, np.int64(is_there))
            store(second, i, word)
        else:
            store(out, i, high_of(high, values, i) if is_there else WORD_MIN)
            store(second, i, word ^ WORD_MIN if is_there else 0)
    return True


@part
def limb_of(op: int, value: int, high: int, limb: int) -> int:
    """Limb 0 is the lowest. The highest one, which has the sign, is 3, or UPPER of a number of one word."""
    if op == PUT_ROUNDED:
        rounded = np.float64(value)
        upper = np.floor(rounded / 4294967296.0)
        return np.int64(upper) if limb == UPPER else np.int64(rounded - upper * 4294967296.0)
    if limb == UPPER:
        return value >> 32
    if limb == 3:
        return high >> 32
    if limb == 2:
        return high & LOW_HALF
    if limb == 1:
        return value >> 32 & LOW_HALF
    return value & LOW_HALF


@part
def put_measure(op: int, lane: int, first: int, limb: int, lanes: int, outs: Words, start: int, m: int) -> bool:
    """Writes a lane as a word of a measure. False if a row fails."""
    values, states, high = load(lanes, LANE * lane + VALUE), load(lanes, LANE * lane + STATE), load(lanes, LANE * lane + HIGH)
    if not is_present(states, m, NULL):
        return False
    out = outs[first] + 8 * start
    for i in range(m):
        is_there = states == 0 or load(states, i) == PRESENT
        if op == PUT_STATE:
            store(out, i, np.int64(is_there))
        elif not is_there:
            store(out, i, 0)
        elif op == PUT_VALUE:
            store(out, i, load(values, i))
        else:
            store(out, i, limb_of(op, load(values, i), high_of(high, values, i), limb))
    return True


@kernel("int64(int64[::1], int64, int64, int64, int64, int64, int64[::1], int64[::1], int64[::1], int64, int64)")
def evaluate(
    code: Words,
    first: int,
    count: int,
    lanes: int,
    lane_count: int,
    block: int,
    columns: Words,
    outs: Words,
    state: Words,
    n: int,
    positions: int,
) -> int:
    """Runs `count` operations, from word `first` of the code on, over n rows.

    lanes: the address of the table of lanes, which is followed by room for `block` rows of each. columns, outs: the addresses of the
    columns of the input and the output. state: the runner's, with the ids of texts. positions: where KEEP writes. Returns how many rows
    were kept, or -1 if the caller must decline.
    """
    room, kept = lanes + 8 * LANE * lane_count, np.int64(0)
    for start in range(0, n, block):
        m = min(block, n - start)
        for k in range(count):
            at = first + OPERATION * k
            op, target, a, b, c = code[at], code[at + 1], code[at + 2], code[at + 3], code[at + 4]
            if op <= NOTHING:
                read(op, target, a, b, lanes, room, block, columns, state, start, m)
            elif op == LIKE:
                like(target, a, code, first + OPERATION * count + b, state, lanes, room, block, m)
            elif op == DIVIDE_WIDE:
                divide_wide(target, a, b, code, first + OPERATION * count + c, lanes, room, block, m)
            elif op == TEXT_WORD:
                text_word(target, a, b, state, lanes, room, block, m)
            elif op < KEEP:
                operate(op, target, a, b, c, lanes, room, block, m)
            elif op == KEEP:
                kept = keep_rows(target, lanes, start, m, positions, kept)
                if kept < 0:
                    return -1
            elif op < PUT_STATE:
                if not put(op, target, a, lanes, outs, start, m):
                    return -1
            elif not put_measure(op, target, a, b, lanes, outs, start, m):
                return -1
    return kept
