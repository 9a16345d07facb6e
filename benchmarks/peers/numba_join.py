"""numba: a program for this one query, without an engine. The floor of what the same loops can do in Python.

A hash table from customer to (region, count, sum): count and sum ride as the customer's weight, so that an order touches its customer
and its region, and a customer who moves carries them over. Orders are not kept, nothing can be undone, no row is checked.
"""

from __future__ import annotations

import numba
import numpy as np

from benchmarks.checks import Change, Words
from benchmarks.engine import Answer

REGIONS = 1 << 10
Tick = tuple[Change, Change]
View = tuple[Words, Words, Words]


@numba.njit("int64(int64[:, ::1], int64)")
def slot_of(table: Words, customer: int) -> int:
    """The slot of a customer's entry (used, customer, region, count, sum) in an open-addressing table of 2^k slots."""
    mask = len(table) - 1
    slot = int((customer * np.int64(-7046029254386353131)) >> 20) & mask
    while table[slot, 0] != 0 and table[slot, 1] != customer:
        slot = (slot + 1) & mask
    table[slot, 0] = 1
    table[slot, 1] = customer
    return slot


@numba.njit("void(int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[::1])")
def move_customers(table: Words, view: Words, weight: Words, customer: Words, region: Words) -> None:
    """Takes a customer's count and sum from the old region to the new one."""
    for i in range(len(weight)):
        slot = slot_of(table, customer[i])
        view[region[i], 0] += weight[i] * table[slot, 3]
        view[region[i], 1] += weight[i] * table[slot, 4]
        if weight[i] > 0:
            table[slot, 2] = region[i]


@numba.njit("void(int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[::1])")
def add_orders(table: Words, view: Words, weight: Words, customer: Words, amount: Words) -> None:
    """Adds orders to their customers and to those customers' regions."""
    for i in range(len(weight)):
        slot = slot_of(table, customer[i])
        table[slot, 3] += weight[i]
        table[slot, 4] += weight[i] * amount[i]
        view[table[slot, 2], 0] += weight[i]
        view[table[slot, 2], 1] += weight[i] * amount[i]


class Kernels:
    def __init__(self, slots: int = 1 << 20) -> None:
        self.table = np.zeros((slots, 5), np.int64)
        self.view = np.zeros((REGIONS, 2), np.int64)

    def prepare(self, orders: Change, customers: Change) -> Tick:
        return orders, customers

    def tick(self, prepared: Tick) -> View:
        (weight, _, who, paid), moves = prepared
        move_customers(self.table, self.view, *moves)
        add_orders(self.table, self.view, weight, who, paid)
        rows = np.flatnonzero(self.view[:, 0])
        return rows, self.view[rows, 0], self.view[rows, 1]

    def answer(self, read: View) -> Answer:
        return Answer(read, None)


def engine() -> Kernels:
    return Kernels()
