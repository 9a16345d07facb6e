"""The kernel that evaluates scalar expressions over rows: the operations of a `filter` or `compute` instruction of a level program.

Operations work on *lanes*. A lane holds a value for each row of a block: its word, a state (NULL, PRESENT or FAILED), and the high word of
a decimal of more than 18 digits. In the table of lanes these are addresses. That of the states is 0 if all values are present, that of the
high words if the value is its word alone. The value of a row that is not present is any word. A row fails where SQL raises an error. SQL
ignores one that fails in a branch that it does not take: so operations pass failures on, and what reads the rows declines if one is left.

An operation is five words: its opcode, the lane that it sets, and three operands, lanes unless its description says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from deltic.kernels.compiler import kernel, part
from deltic.kernels.like import NO_TEXT, text_matches
from deltic.kernels.memory import WORD_MIN, Words, load, product_overflows, store
from deltic.kernels.quotients import DIGITS as DIVIDED
from deltic.kernels.quotients import quotient

VALUE, STATE, HIGH, LANE = range(4)
"""Words of a lane in the table. And how many they are."""

NULL, PRESENT, FAILED = range(3)

OPERATION = 5
"""Words of an operation."""
BLOCK = 256
"""Rows for which all operations run before the next rows: their lanes stay in the processor's cache."""

PLAIN, MARKED, FLAGGED, WIDE, WIDE_MARKED, CONSTANT_VALUE, TEXT, NOTHING = range(8)
"""A column of the input, by the position of its first word: never NULL; with the marker of NULL; with a flag before it; of two words.
A constant: its word and its high word. The id of a text, by its number. NULL."""
ADD, SUBTRACT, MULTIPLY, REMAINDER, QUOTIENT, FIT = range(16, 22)
"""Of integers, which fail outside 64 bits, and towards zero. FIT: fails outside as many bits as the second operand says."""
EQUAL, LESS, LESS_EQUAL, SAME = range(22, 26)
NOT, AND, OR, IS_PRESENT, CHOOSE, COALESCE = range(32, 38)
"""CHOOSE: a condition, the value if it is TRUE, the value if not."""
ADD_WIDE, SUBTRACT_WIDE, MULTIPLY_WIDE, FIT_WIDE, EQUAL_WIDE, LESS_WIDE, LESS_EQUAL_WIDE = range(40, 47)
"""Of decimals, which fail outside 127 bits. FIT_WIDE: fails with more than 38 digits."""
YEAR, MONTH, DAY = range(48, 51)
LIKE = 51
"""Of a text, and the place of a pattern (`like.py`) after the operations."""
DIVIDE_WIDE = 52
"""Of decimals, and the place of the operands of `quotients.quotient` after the operations. Fails by 0, and where it does not fit."""
KEEP, PUT, PUT_MARKED, PUT_FLAGGED, PUT_WIDE, PUT_WIDE_MARKED, PUT_STATE, PUT_VALUE, PUT_LIMB, PUT_ROUNDED = range(56, 66)
"""They read the lane. KEEP: the rows for which it is TRUE. The others write it to the columns of the output from the second operand on:
the last four as measures, in which NULL is 0, the limb that the third operand names, of the value or of it rounded to a double."""

UPPER = 4
"""The limb with the sign of a number of one word."""
LOW_HALF = 0xFFFFFFFF
DIGITS = 38
"""The most digits of a decimal."""
BOUND_HIGH, BOUND_LOW = 10**DIGITS >> 64, 10**DIGITS & (2**64 - 1)
"""10^38, whose low word has no sign bit."""


def _high_product(typing: Any, left: Any, right: Any) -> Any:
    """The high word of the product of two unsigned words."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)

    return types.int64(types.int64, types.int64), generate


high_product = cast(Callable[[int, int], int], intrinsic(_high_product))


@part
def below(left: int, right: int) -> bool:
    """Whether an unsigned word is less than another."""
    return (left ^ WORD_MIN) < (right ^ WORD_MIN)


@part
def own(lanes: int, room: int, block: int, lane: int, which: int) -> int:
    """The address of the lane's own words, which the table then has."""
    address = room + 8 * block * (LANE * lane + which)
    store(lanes, LANE * lane + which, address)
    return np.int64(address)


@part
def pass_state(lanes: int, target: int, lane: int) -> None:
    store(lanes, LANE * target + STATE, load(lanes, LANE * lane + STATE))


@part
def both_states(lanes: int, room: int, block: int, target: int, a: int, b: int, m: int) -> None:
    """The states of a strict function of two values."""
    left, right = load(lanes, LANE * a + STATE), load(lanes, LANE * b + STATE)
    if left == 0 or right == 0:
        store(lanes, LANE * target + STATE, left | right)
        return
    states = own(lanes, room, block, target, STATE)
    for i in range(m):
        x, y = load(left, i), load(right, i)
        store(states, i, ((x | y) & FAILED) | (x & y & PRESENT & ~((x | y) >> 1)))


@part
def failing(lanes: int, room: int, block: int, target: int, m: int) -> int:
    """The address of states of the lane that may be written."""
    shared = load(lanes, LANE * target + STATE)
    states = own(lanes, room, block, target, STATE)
    if shared != states:
        for i in range(m):
            store(states, i, load(shared, i) if shared != 0 else PRESENT)
    return states


@part
def fail(states: int, i: int) -> None:
    if load(states, i) == PRESENT:
        store(states, i, FAILED)


@part
def state_of(states: int, i: int) -> int:
    return load(states, i) if states != 0 else PRESENT


@part
def high_of(high: int, value: int, i: int) -> int:
    return load(high, i) if high != 0 else load(value, i) >> 63


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
def compute(op: int, target: int, a: int, b: int, lanes: int, room: int, block: int, m: int) -> None:
    """Sums, differences and products of integers."""
    left, right = load(lanes, LANE * a + VALUE), load(lanes, LANE * b + VALUE)
    both_states(lanes, room, block, target, a, b, m)
    out, outside = own(lanes, room, block, target, VALUE), np.int64(0)
    if op == ADD:
        for i in range(m):
            x, y = load(left, i), load(right, i)
            z = x + y
            outside |= (z ^ x) & (z ^ y)
            store(out, i, z)
    elif op == SUBTRACT:
        for i in range(m):
            x, y = load(left, i), load(right, i)
            z = x - y
            outside |= (x ^ y) & (z ^ x)
            store(out, i, z)
    else:
        for i in range(m):
            x, y = load(left, i), load(right, i)
            outside |= -np.int64(product_overflows(x, y))
            store(out, i, x * y)
    if outside >= 0:
        return
    states = failing(lanes, room, block, target, m)
    for i in range(m):
        x, y, z = load(left, i), load(right, i), load(out, i)
        if op == ADD:
            outside = (z ^ x) & (z ^ y)
        elif op == SUBTRACT:
            outside = (x ^ y) & (z ^ x)
        else:
            outside = -np.int64(product_overflows(x, y))
        if outside < 0:
            fail(states, i)


@part
def divide(op: int, target: int, a: int, b: int, lanes: int, room: int, block: int, m: int) -> None:
    """The quotient towards zero, or the remainder, which has the sign of the dividend. Fails where the divisor is 0."""
    left, right = load(lanes, LANE * a + VALUE), load(lanes, LANE * b + VALUE)
    both_states(lanes, room, block, target, a, b, m)
    out = own(lanes, room, block, target, VALUE)
    for i in range(m):
        x, y = load(left, i), load(right, i)
        if y in (0, -1):  # a processor cannot divide the least integer by -1
            if y == 0 or (op == QUOTIENT and x == WORD_MIN):
                fail(failing(lanes, room, block, target, m), i)
            store(out, i, 0 if op == REMAINDER else -x)
            continue
        quotient = x // y
        rest = x - quotient * y
        if rest != 0 and (x < 0) != (y < 0):
            quotient, rest = quotient + 1, rest - y
        store(out, i, rest if op == REMAINDER else quotient)


@part
def fit(op: int, target: int, a: int, bits: int, lanes: int, room: int, block: int, m: int) -> None:
    """The value, which fails outside of a range."""
    values, high = load(lanes, LANE * a + VALUE), load(lanes, LANE * a + HIGH)
    store(lanes, LANE * target + VALUE, values)
    store(lanes, LANE * target + HIGH, high)
    pass_state(lanes, target, a)
    half = 1 << (bits & 63) >> 1
    for i in range(m):
        x = load(values, i)
        if op == FIT:
            outside = x < -half or x >= half
        else:
            h = high_of(high, values, i)
            if h < 0:
                h, x = ~h + np.int64(x == 0), -x
            outside = h > BOUND_HIGH or h < 0 or (h == BOUND_HIGH and not below(x, BOUND_LOW))
        if outside:
            fail(failing(lanes, room, block, target, m), i)


@part
def compare(op: int, target: int, a: int, b: int, lanes: int, room: int, block: int, m: int) -> None:
    left, right = load(lanes, LANE * a + VALUE), load(lanes, LANE * b + VALUE)
    both_states(lanes, room, block, target, a, b, m)
    out = own(lanes, room, block, target, VALUE)
    if op == EQUAL:
        for i in range(m):
            store(out, i, np.int64(load(left, i) == load(right, i)))
    elif op == LESS:
        for i in range(m):
            store(out, i, np.int64(load(left, i) < load(right, i)))
    elif op == LESS_EQUAL:
        for i in range(m):
            store(out, i, np.int64(load(left, i) <= load(right, i)))
    else:
        high, other = load(lanes, LANE * a + HIGH), load(lanes, LANE * b + HIGH)
        for i in range(m):
            x, y = load(left, i), load(right, i)
            h, o = high_of(high, left, i), high_of(other, right, i)
            less, same = h < o or (h == o and below(x, y)), h == o and x == y
            store(out, i, np.int64(same if op == EQUAL_WIDE else less if op == LESS_WIDE else less or same))


@part
def same(target: int, a: int, b: int, lanes: int, room: int, block: int, m: int) -> None:
    """Whether both are NULL, or equal."""
    left, right = load(lanes, LANE * a + VALUE), load(lanes, LANE * b + VALUE)
    states, others = load(lanes, LANE * a + STATE), load(lanes, LANE * b + STATE)
    out = own(lanes, room, block, target, VALUE)
    store(lanes, LANE * target + STATE, 0)
    for i in range(m):
        s, o = state_of(states, i), state_of(others, i)
        if (s | o) & FAILED:
            fail(failing(lanes, room, block, target, m), i)
        store(out, i, np.int64(s == o and (s == NULL or load(left, i) == load(right, i))))


@part
def connect(op: int, target: int, a: int, b: int, lanes: int, room: int, block: int, m: int) -> None:
    """AND and OR of three values. What decides on the left hides a failure on the right."""
    left, right = load(lanes, LANE * a + VALUE), load(lanes, LANE * b + VALUE)
    states, others = load(lanes, LANE * a + STATE), load(lanes, LANE * b + STATE)
    out, decides = own(lanes, room, block, target, VALUE), np.int64(op == OR)
    if states == 0 and others == 0:
        store(lanes, LANE * target + STATE, 0)
        for i in range(m):
            x, y = load(left, i), load(right, i)
            store(out, i, x | y if op == OR else x & y)
        return
    result = own(lanes, room, block, target, STATE)
    for i in range(m):
        s, o = state_of(states, i), state_of(others, i)
        value, state = 1 - decides, np.int64(PRESENT)
        if s == PRESENT and load(left, i) == decides:
            value = decides
        elif s == FAILED:
            state = np.int64(FAILED)
        elif o == PRESENT and load(right, i) == decides:
            value = decides
        elif o == FAILED:
            state = np.int64(FAILED)
        elif NULL in (s, o):
            state = np.int64(NULL)
        store(out, i, value)
        store(result, i, state)


@part
def test(op: int, target: int, a: int, lanes: int, room: int, block: int, m: int) -> None:
    """NOT, or whether a value is not NULL."""
    values, states = load(lanes, LANE * a + VALUE), load(lanes, LANE * a + STATE)
    out = own(lanes, room, block, target, VALUE)
    if op == NOT:
        pass_state(lanes, target, a)
        for i in range(m):
            store(out, i, load(values, i) ^ 1)
        return
    store(lanes, LANE * target + STATE, 0)
    for i in range(m):
        state = state_of(states, i)
        if state == FAILED:
            fail(failing(lanes, room, block, target, m), i)
        store(out, i, np.int64(state == PRESENT))


@part
def choose_value(op: int, target: int, c: int, a: int, b: int, lanes: int, room: int, block: int, m: int) -> None:
    """A value if the condition is TRUE, else the other; of COALESCE, a value unless it is NULL."""
    condition, verdicts = load(lanes, LANE * c + STATE), load(lanes, LANE * c + VALUE)
    values, states, high = load(lanes, LANE * a + VALUE), load(lanes, LANE * a + STATE), load(lanes, LANE * a + HIGH)
    others, other_states, other_high = load(lanes, LANE * b + VALUE), load(lanes, LANE * b + STATE), load(lanes, LANE * b + HIGH)
    out, result = own(lanes, room, block, target, VALUE), own(lanes, room, block, target, STATE)
    store(lanes, LANE * target + HIGH, 0)
    is_wide = high != 0 or other_high != 0
    out_high = own(lanes, room, block, target, HIGH) if is_wide else 0
    present = True
    for i in range(m):
        s = state_of(condition, i)
        chosen = s == PRESENT and (op == COALESCE or load(verdicts, i) == 1)
        state = state_of(states, i) if chosen else state_of(other_states, i)
        if s == FAILED:
            state = np.int64(FAILED)
        present &= state == PRESENT
        store(result, i, state)
        store(out, i, load(values, i) if chosen else load(others, i))
        if is_wide:
            store(out_high, i, high_of(high, values, i) if chosen else high_of(other_high, others, i))
    if present:
        store(lanes, LANE * target + STATE, 0)


@part
def compute_wide(op: int, target: int, a: int, b: int, lanes: int, room: int, block: int, m: int) -> None:
    """Sums, differences and products of decimals."""
    left, right = load(lanes, LANE * a + VALUE), load(lanes, LANE * b + VALUE)
    left_high, right_high = load(lanes, LANE * a + HIGH), load(lanes, LANE * b + HIGH)
    both_states(lanes, room, block, target, a, b, m)
    out, out_high = own(lanes, room, block, target, VALUE), own(lanes, room, block, target, HIGH)
    for i in range(m):
        x, y = load(left, i), load(right, i)
        h, o = high_of(left_high, left, i), high_of(right_high, right, i)
        outside = False
        if op == MULTIPLY_WIDE:
            negative = (h < 0) != (o < 0)
            if h < 0:
                h, x = ~h + np.int64(x == 0), -x
            if o < 0:
                o, y = ~o + np.int64(y == 0), -y
            low, high = x * y, high_product(x, y)
            cross = h * y + o * x
            # One of the high words is 0, or the product leaves 128 bits.
            outside = (h != 0 and o != 0) or high_product(h, y) != 0 or high_product(o, x) != 0 or cross < 0 or high < 0
            high += cross
            outside |= high < 0
            if negative:
                high, low = ~high + np.int64(low == 0), -low
        elif op == SUBTRACT_WIDE:
            low = x - y
            high = h - o - np.int64(below(x, y))
            outside = ((h ^ o) & (high ^ h)) < 0
        else:
            low = x + y
            high = h + o + np.int64(below(low, x))
            outside = ((high ^ h) & (high ^ o)) < 0
        store(out, i, low)
        store(out_high, i, high)
        if outside:
            fail(failing(lanes, room, block, target, m), i)


@part
def take_date(op: int, target: int, a: int, lanes: int, room: int, block: int, m: int) -> None:
    """A part of dates, from days since 1970 (Hinnant, chrono-compatible low-level date algorithms)."""
    values = load(lanes, LANE * a + VALUE)
    pass_state(lanes, target, a)
    out = own(lanes, room, block, target, VALUE)
    for i in range(m):
        days = load(values, i) + 719_468
        era = days // 146_097
        of_era = days - era * 146_097
        year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
        of_year = of_era - (365 * year + year // 4 - year // 100)
        month = (5 * of_year + 2) // 153
        if op == DAY:
            word = of_year - (153 * month + 2) // 5 + 1
        else:
            civil = month + 3 if month < 10 else month - 9
            word = civil if op == MONTH else year + 400 * era + np.int64(civil <= 2)
        store(out, i, word)


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


@part
def like(target: int, a: int, code: Words, at: int, state: Words, lanes: int, room: int, block: int, m: int) -> None:
    """Whether texts match the pattern at word `at` of the code. Fails where the strings do not have a text."""
    ids, states = load(lanes, LANE * a + VALUE), load(lanes, LANE * a + STATE)
    store(lanes, LANE * target + HIGH, 0)
    pass_state(lanes, target, a)
    out = own(lanes, room, block, target, VALUE)
    for i in range(m):
        if state_of(states, i) == PRESENT:
            verdict = text_matches(code, at, state, ids, i, m)
            store(out, i, verdict)
            if verdict == NO_TEXT:
                fail(failing(lanes, room, block, target, m), i)


@part
def divide_wide(target: int, a: int, b: int, code: Words, at: int, lanes: int, room: int, block: int, m: int) -> None:
    """Quotients of decimals."""
    left, right = load(lanes, LANE * a + VALUE), load(lanes, LANE * b + VALUE)
    left_high, right_high = load(lanes, LANE * a + HIGH), load(lanes, LANE * b + HIGH)
    both_states(lanes, room, block, target, a, b, m)
    out, out_high, states = (
        own(lanes, room, block, target, VALUE),
        own(lanes, room, block, target, HIGH),
        load(lanes, LANE * target + STATE),
    )
    digits = np.empty(DIVIDED, np.int64)
    for i in range(m):
        if state_of(states, i) != PRESENT:
            continue
        x, y = load(left, i), load(right, i)
        h, o = high_of(left_high, left, i), high_of(right_high, right, i)
        if y == 0 and o == 0:
            fail(failing(lanes, room, block, target, m), i)
            continue
        fits, high, low = quotient(code, at, h, x, o, y, digits)
        store(out, i, low)
        store(out_high, i, high)
        if not fits:
            fail(failing(lanes, room, block, target, m), i)


@part
def operate(op: int, target: int, a: int, b: int, c: int, lanes: int, room: int, block: int, m: int) -> None:
    """Sets a lane from others."""
    store(lanes, LANE * target + HIGH, 0)
    if op <= MULTIPLY:
        compute(op, target, a, b, lanes, room, block, m)
    elif op <= QUOTIENT:
        divide(op, target, a, b, lanes, room, block, m)
    elif op in (FIT, FIT_WIDE):
        fit(op, target, a, b, lanes, room, block, m)
    elif op == SAME:
        same(target, a, b, lanes, room, block, m)
    elif op <= LESS_EQUAL or EQUAL_WIDE <= op <= LESS_EQUAL_WIDE:
        compare(op, target, a, b, lanes, room, block, m)
    elif op in (AND, OR):
        connect(op, target, a, b, lanes, room, block, m)
    elif op in (NOT, IS_PRESENT):
        test(op, target, a, lanes, room, block, m)
    elif op <= COALESCE:
        choose_value(op, target, a, b, c, lanes, room, block, m)
    elif op <= MULTIPLY_WIDE:
        compute_wide(op, target, a, b, lanes, room, block, m)
    else:
        take_date(op, target, a, lanes, room, block, m)


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
