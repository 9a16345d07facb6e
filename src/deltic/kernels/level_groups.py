"""Instructions of level programs over groups: sums to rows, and weights to weights."""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import part
from deltic.kernels.instructions import (
    DECLINED,
    DISTINCT,
    DONE,
    EXCEPT,
    EXCEPT_ALL,
    FULL,
    HEADER,
    INTERSECT,
    RESULT,
    RESULT_COUNT,
    RESULT_JOINED,
    ROWS,
    SPINE,
    SPINE_BATCHES,
    allot,
    borrow,
    set_empty,
)
from deltic.kernels.level_rows import LOW_HALF, sum_weights
from deltic.kernels.memory import Words, load, store

HALF = 1 << 31


@part
def reweighed(rule: int, left: int, right: int) -> int:
    """f of the weights, as `weigh` of the operator."""
    if rule == DISTINCT:
        return np.int64(left > 0)
    if rule == EXCEPT:
        return np.int64(left > 0 and right <= 0)
    if rule == EXCEPT_ALL:
        return max(max(left, 0) - max(right, 0), 0)
    if rule == INTERSECT:
        return np.int64(left > 0 and right > 0)
    return max(min(left, right), 0)


@part
def reweigh(code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """out, change, columns, spine, rule: the change of f of the weights of each row."""
    out, change, columns, spine, rule = code[at], code[at + 1], code[at + 2], code[at + 3], code[at + 4]
    weights, n = 1 if rule == DISTINCT else 2, registers[change + ROWS]
    if n == 0:
        set_empty(registers, out)
        return DONE
    if spines[SPINE * spine + SPINE_BATCHES] < 0:
        return DECLINED
    start = borrow(state, weights * n)
    if start == 0 or not allot(registers, out, columns + 1, n, state):
        return FULL
    table = np.empty(weights, np.int64)
    for w in range(weights):
        table[w] = start + 8 * w * n
    own = registers[change + HEADER : change + HEADER + columns]
    if not sum_weights(spine, columns, weights, own, columns, n, table, spines, state, counters, entries):
        return DECLINED
    kept, old, new = 0, np.zeros(2, np.int64), np.zeros(2, np.int64)
    for i in range(n):
        for w in range(weights):
            x, y = load(table[w], i), load(registers[change + HEADER + columns + w], i)
            total = x + y
            if ((total ^ x) & (total ^ y)) < 0:
                return DECLINED
            old[w], new[w] = x, total
        difference = reweighed(rule, new[0], new[1]) - reweighed(rule, old[0], old[1])
        if difference != 0:
            for c in range(columns):
                store(registers[out + HEADER + c], kept, load(registers[change + HEADER + c], i))
            store(registers[out + HEADER + columns], kept, difference)
            kept += 1
    registers[out + ROWS] = kept
    return DONE


@part
def render(code: Words, at: int, results: int, sums: Words, words: Words) -> bool:
    """words = the words of the results of one group with these sums; False on overflow."""
    c = 0
    for _ in range(results):
        kind, slot, counted, flagged = code[at], code[at + 1], code[at + 2], code[at + 3]
        at += RESULT
        value, exists = sums[slot], True
        if kind != RESULT_COUNT:
            exists = flagged == 0 or sums[counted] != 0
        if kind == RESULT_JOINED:
            high, low = sums[slot], sums[slot + 1]
            high += low >> 32
            if exists and not -HALF <= high < HALF:
                return False
            value = (high << 32) + (low & LOW_HALF)
        if flagged != 0:
            words[c] = np.int64(exists)
            c += 1
            value = value if exists else 0
        words[c] = value
        c += 1
    return True


@part
def aggregate(code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """out, change, words of the key, weights, spine, words of the results, results, each: the rows of the groups before and after."""
    out, change, key, weights, spine = code[at], code[at + 1], code[at + 2], code[at + 3], code[at + 4]
    width, results = code[at + 5], code[at + 6]
    at += 7
    n = registers[change + ROWS]
    if n == 0:
        set_empty(registers, out)
        return DONE
    if spines[SPINE * spine + SPINE_BATCHES] < 0:
        return DECLINED
    start = borrow(state, weights * n)
    if start == 0 or not allot(registers, out, key + width + 1, 2 * n, state):
        return FULL
    table = np.empty(weights, np.int64)
    for w in range(weights):
        table[w] = start + 8 * w * n
    groups = registers[change + HEADER : change + HEADER + key]
    if not sum_weights(spine, key, weights, groups, key, n, table, spines, state, counters, entries):
        return DECLINED
    before, after = np.empty(weights, np.int64), np.empty(weights, np.int64)
    old, new = np.empty(width, np.int64), np.empty(width, np.int64)
    rows = 0
    for i in range(n):
        for w in range(weights):
            x, y = load(table[w], i), load(registers[change + HEADER + key + w], i)
            total = x + y
            if ((total ^ x) & (total ^ y)) < 0:
                return DECLINED
            before[w], after[w] = x, total
        existed, exists = before[0] != 0, after[0] != 0
        if not existed:
            before[:] = 0
        if not exists:
            after[:] = 0
        if not render(code, at, results, before, old) or not render(code, at, results, after, new):
            return DECLINED
        differs = existed != exists
        for c in range(width):
            differs |= old[c] != new[c]
        if not differs:
            continue
        if existed:
            emit(registers, out, rows, change, i, key, old, width, -1)
            rows += 1
        if exists:
            emit(registers, out, rows, change, i, key, new, width, 1)
            rows += 1
    registers[out + ROWS] = rows
    return DONE


@part
def emit(registers: Words, out: int, row: int, change: int, group: int, key: int, words: Words, width: int, weight: int) -> None:
    for c in range(key):
        store(registers[out + HEADER + c], row, load(registers[change + HEADER + c], group))
    for c in range(width):
        store(registers[out + HEADER + key + c], row, words[c])
    store(registers[out + HEADER + key + width], row, weight)


__all__ = ["RESULT_JOINED", "aggregate", "reweigh"]
