"""Parts of the kernel over lanes (`scalars.py`): operations that set a lane from others."""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import part
from deltic.kernels.floats import bits_of, ordered, real_of, unordered
from deltic.kernels.lanes import both_states, fail, failing, high_of, own, pass_state, state_of
from deltic.kernels.like import NO_TEXT, text_matches
from deltic.kernels.memory import WORD_MIN, Words, load, product_overflows, store
from deltic.kernels.nested_words import STRINGS_ARENA, STRINGS_STARTS, entry_of_id, request_ahead
from deltic.kernels.quotients import DIGITS as DIVIDED
from deltic.kernels.quotients import quotient
from deltic.kernels.scalars import (
    ADD,
    ADD_REAL,
    AND,
    BOUND_HIGH,
    BOUND_LOW,
    COALESCE,
    DAY,
    DIVIDE_REAL,
    EQUAL,
    EQUAL_WIDE,
    FAILED,
    FIT,
    FIT_WIDE,
    HIGH,
    IS_PRESENT,
    LANE,
    LESS,
    LESS_EQUAL,
    LESS_EQUAL_WIDE,
    LESS_WIDE,
    MONTH,
    MULTIPLY,
    MULTIPLY_REAL,
    MULTIPLY_WIDE,
    NOT,
    NULL,
    OR,
    PRESENT,
    QUOTIENT,
    REAL,
    REMAINDER,
    SAME,
    SINGLE,
    STATE,
    SUBTRACT,
    SUBTRACT_REAL,
    SUBTRACT_WIDE,
    VALUE,
)
from deltic.kernels.text import prefix_word
from deltic.kernels.wide import below, high_product, is_within, magnitude, negated


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
def compute_real(op: int, target: int, a: int, b: int, lanes: int, room: int, block: int, m: int) -> None:
    """Sums, differences, products and quotients of doubles."""
    left, right = load(lanes, LANE * a + VALUE), load(lanes, LANE * b + VALUE)
    both_states(lanes, room, block, target, a, b, m)
    out = own(lanes, room, block, target, VALUE)
    for i in range(m):
        x, y = real_of(unordered(load(left, i))), real_of(unordered(load(right, i)))
        if op == ADD_REAL:
            z = x + y
        elif op == SUBTRACT_REAL:
            z = x - y
        elif op == MULTIPLY_REAL:
            z = x * y
        else:
            if y == 0.0:
                fail(failing(lanes, room, block, target, m), i)
            z = x / y
        store(out, i, ordered(bits_of(z)))


@part
def round_real(op: int, target: int, a: int, lanes: int, room: int, block: int, m: int) -> None:
    """The double nearest to an integer; of a double the nearest FLOAT."""
    values = load(lanes, LANE * a + VALUE)
    pass_state(lanes, target, a)
    out = own(lanes, room, block, target, VALUE)
    for i in range(m):
        word = load(values, i)
        real = np.float64(word) if op == REAL else np.float64(np.float32(real_of(unordered(word))))
        store(out, i, ordered(bits_of(real)))


@part
def fit(op: int, target: int, a: int, least: int, greatest: int, lanes: int, room: int, block: int, m: int) -> None:
    """The value, which fails outside of a range."""
    values, high = load(lanes, LANE * a + VALUE), load(lanes, LANE * a + HIGH)
    store(lanes, LANE * target + VALUE, values)
    store(lanes, LANE * target + HIGH, high)
    pass_state(lanes, target, a)
    for i in range(m):
        x = load(values, i)
        if op == FIT:
            outside = x < least or x > greatest
        else:
            h = high_of(high, values, i)
            outside = not is_within(h, x, BOUND_HIGH, BOUND_LOW)
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
            h, x = magnitude(h, x)
            o, y = magnitude(o, y)
            low, high = x * y, high_product(x, y)
            cross = h * y + o * x
            # One of the high words is 0, or the product leaves 128 bits.
            outside = (h != 0 and o != 0) or high_product(h, y) != 0 or high_product(o, x) != 0 or cross < 0 or high < 0
            high += cross
            outside |= high < 0
            if negative:
                high, low = negated(high, low)
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
def text_word(target: int, a: int, word: int, state: Words, lanes: int, room: int, block: int, m: int) -> None:
    """A word by which texts sort. Fails where the strings do not have a text."""
    ids, starts, arena = load(lanes, LANE * a + VALUE), state[STRINGS_STARTS], state[STRINGS_ARENA]
    store(lanes, LANE * target + HIGH, 0)
    pass_state(lanes, target, a)
    out = own(lanes, room, block, target, VALUE)
    for i in range(m):
        request_ahead(state, ids, i, m)
        entry = np.int64(-1) if load(ids, i) == WORD_MIN else entry_of_id(state, load(ids, i))
        store(out, i, prefix_word(arena, starts, entry, word))
        if entry < 0 and load(ids, i) != WORD_MIN:
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
        fit(op, target, a, b, c, lanes, room, block, m)
    elif op == SAME:
        same(target, a, b, lanes, room, block, m)
    elif ADD_REAL <= op <= DIVIDE_REAL:
        compute_real(op, target, a, b, lanes, room, block, m)
    elif op in (REAL, SINGLE):
        round_real(op, target, a, lanes, room, block, m)
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
