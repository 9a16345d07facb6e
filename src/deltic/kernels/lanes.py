"""Parts of the kernel over lanes (`scalars.py`): where a lane's words are, and its states.

lanes: the address of their table. room: that of the words which lanes may have as their own. block: the most rows of a block. m: the rows
of this one.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import part
from deltic.kernels.memory import load, store
from deltic.kernels.scalars import FAILED, LANE, PRESENT, STATE


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
