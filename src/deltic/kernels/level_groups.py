"""Instructions of level programs over groups: sums to rows, and weights to weights."""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import part
from deltic.kernels.instructions import (
    DECLINED,
    DISTINCT,
    DONE,
    ENTRY_MEAN,
    EXCEPT,
    EXCEPT_ALL,
    FULL,
    HEADER,
    INTERSECT,
    RESULT,
    RESULT_COUNT,
    RESULT_DECIMAL,
    RESULT_EXTREME,
    RESULT_JOINED,
    RESULT_MEAN,
    RESULT_QUOTIENT,
    RESULT_ROUNDED_MEAN,
    ROWS,
    SPINE,
    SPINE_BATCHES,
    allot,
    borrow,
    set_empty,
)
from deltic.kernels.level_rows import LOW_HALF, sum_weights
from deltic.kernels.linked import call
from deltic.kernels.memory import WORD_MIN, Words, load, store
from deltic.kernels.wide import is_within

HALF = 1 << 31
LARGEST = 2**63 - 1
"""The bits of a word but the sign."""


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
def joined(sums: Words, slot: int, limbs: int) -> tuple[bool, int, int]:
    """(whether a decimal fits 128 bits, its high word, its low word), from its limbs of 32 bits."""
    low, high, carry, fits = np.int64(0), np.int64(0), np.int64(0), True
    for i in range(limbs - 1):
        limb = sums[slot + limbs - 1 - i]
        total = limb + carry
        fits &= ((total ^ limb) & (total ^ carry)) >= 0
        digit, carry = total & LOW_HALF, total >> 32
        if i < 2:
            low |= digit << 32 * i
        else:
            high |= digit << 32 * (i - 2)
    limb = sums[slot]
    top = limb + carry
    fits &= ((top ^ limb) & (top ^ carry)) >= 0
    if limbs == 2:
        return fits, top >> 32, low | top << 32
    return fits and -HALF <= top < HALF, high | top << 32, low


@part
def mean(high: int, low: int, count: int) -> int:
    """The word of a DOUBLE: high · 2^32 + low, which is exact, over a count other than 0."""
    number = np.empty(1, np.float64)
    number[0] = np.float64((high << 32) + low)
    if number[0] != 0:
        number[0] /= np.float64(count)
    word = np.int64(number.view(np.int64)[0])
    return word if word >= 0 else word ^ LARGEST


@part
def render(code: Words, at: int, results: int, sums: Words, words: Words, number: Words, entries: Words) -> bool:
    """words = the words of the results of one group with these sums; False where one does not fit. number: two words of scratch."""
    c = 0
    for _ in range(results):
        kind, slot, counted, nullable = code[at], code[at + 1], code[at + 2], code[at + 3] != 0
        if kind == RESULT_EXTREME:
            c += slot
            at += RESULT
            continue
        exists = kind == RESULT_COUNT or not nullable or sums[counted] != 0
        if kind in (RESULT_DECIMAL, RESULT_QUOTIENT):
            if kind == RESULT_DECIMAL:
                fits, high, low = joined(sums, slot, code[at + 4])
                fits = fits and is_within(high, low, code[at + 5], code[at + 6])
            else:
                exists = sums[counted] != 0
                fits = call(entries[ENTRY_MEAN], (sums, slot, code[at + 4], sums[counted], code, at + 8, number)) == 0 and (
                    exists or nullable
                )
                high, low = number[0], number[1]
            if not fits and (exists or not nullable):
                return False
            if code[at + 7]:
                words[c], words[c + 1] = (high, low ^ WORD_MIN) if exists else (WORD_MIN, 0)
                c += 1
            else:
                words[c] = low if exists else WORD_MIN
            c += 1
            at += RESULT
            continue
        at += RESULT
        if kind in (RESULT_MEAN, RESULT_ROUNDED_MEAN):
            high, low = np.int64(0), sums[slot]
            if kind == RESULT_ROUNDED_MEAN:
                high, low = sums[slot] + (sums[slot + 1] >> 32), sums[slot + 1] & LOW_HALF
            if sums[counted] == 0:
                if not nullable:
                    return False
                words[c] = WORD_MIN
            elif not -HALF // 2 < high < HALF // 2:
                return False
            else:
                words[c] = mean(high, low, sums[counted])
            c += 1
            continue
        value = sums[slot]
        if kind == RESULT_JOINED:
            high, low = sums[slot], sums[slot + 1]
            high += low >> 32
            if exists and not -HALF <= high < HALF:
                return False
            value = (high << 32) + (low & LOW_HALF)
        if nullable:
            words[c] = np.int64(exists)
            c += 1
            value = value if exists else 0
        words[c] = value
        c += 1
    return True


@part
def aggregate(code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """out, change, words of the key, weights, spine, words of the results, whether an empty group has a row, results, each: the rows of the
    groups before and after."""
    out, change, key, weights, spine = code[at], code[at + 1], code[at + 2], code[at + 3], code[at + 4]
    width, always, results = code[at + 5], code[at + 6] != 0, code[at + 7]
    at += 8
    n = registers[change + ROWS]
    if spines[SPINE * spine + SPINE_BATCHES] < 0 or (always and spines[SPINE * spine + SPINE_BATCHES] == 0):
        return DECLINED
    if n == 0:
        set_empty(registers, out)
        return DONE
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
    old, new, number = np.empty(width, np.int64), np.empty(width, np.int64), np.zeros(2, np.int64)
    rows = 0
    for i in range(n):
        for w in range(weights):
            x, y = load(table[w], i), load(registers[change + HEADER + key + w], i)
            total = x + y
            if ((total ^ x) & (total ^ y)) < 0:
                return DECLINED
            before[w], after[w] = x, total
        existed, exists = always or before[0] != 0, always or after[0] != 0
        if not existed:
            before[:] = 0
        if not exists:
            after[:] = 0
        if not render(code, at, results, before, old, number, entries) or not render(code, at, results, after, new, number, entries):
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
