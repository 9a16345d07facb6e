"""Ties: rows of an arrangement whose words do not order them as the bytes of their strings do.

The words before the id of a string hold its first bytes, and the id is in no order. Rows that are equal up to there and have other ids are
tied: they are next to each other, in any order, and the rows that are not tied are in their places. texts: (the word that is a string id,
whether the string sorts descending), ascending.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deltic.circuit.terms import exact_order
from deltic.trace.counters import Counters
from deltic.trace.probe import first
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable

Words = Sequence[np.ndarray]
Texts = Sequence[tuple[int, bool]]


def tied(spine: Spine, rows: Words, texts: Texts, strings: StringTable, counters: Counters) -> np.ndarray:
    """Which rows, that may be in the arrangement or not, would be tied with one that is: O(log n) for each."""
    is_tied = np.zeros(len(rows[0]), bool)
    for text, _ in texts:
        long = np.flatnonzero(~is_tied & strings.exceeds_prefix(rows[text]))
        if long.size:
            prefixes, ids = [word[long] for word in rows[:text]], rows[text][long]
            source, columns, _ = first(spine, prefixes, None, 1, counters)
            is_tied[long[source[columns[text] != ids[source]]]] = True
            is_tied[long[first(spine, prefixes, [ids + 1], 1, counters)[0]]] = True  # ids of equal prefixes ascend
    return is_tied


def tied_with_previous(groups: np.ndarray, rows: Words, texts: Texts, strings: StringTable) -> np.ndarray:
    """Which rows are tied with the one before it. rows: sorted by their words in each group; groups: ascending."""
    is_tied, same = np.zeros(len(groups), bool), groups[1:] == groups[:-1]
    begin = 0
    for text, _ in texts:
        for word in rows[begin:text]:
            same &= word[1:] == word[:-1]
        other = np.flatnonzero(same & (rows[text][1:] != rows[text][:-1]))
        is_tied[other[strings.exceeds_prefix(rows[text][other])] + 1] = True
        begin = text
    return is_tied


def order_of_ties(groups: np.ndarray, rows: Words, texts: Texts, strings: StringTable) -> np.ndarray:
    """The order of rows, sorted by their words in each group, by the bytes of their strings: tied rows change places among themselves."""
    order = np.arange(len(groups))
    if not tied_with_previous(groups, rows, texts, strings).any():
        return order
    starts = order.copy()  # of each row that is tied, where the first row is that is equal to it up to the first id that differs
    loose, same, begin = np.zeros(len(groups), bool), groups[1:] == groups[:-1], 0
    for text, _ in texts:
        for word in rows[begin:text]:
            same &= word[1:] == word[:-1]
        heads = np.append(True, ~same)
        run = np.cumsum(heads) - 1
        other = np.flatnonzero(same & (rows[text][1:] != rows[text][:-1]))
        within = np.isin(run, run[other[strings.exceeds_prefix(rows[text][other])]])
        starts = np.where(within, np.minimum(starts, np.flatnonzero(heads)[run]), starts)
        loose |= within
        begin = text
    places = np.flatnonzero(loose)
    words = (starts[places], *(word[places] for word in rows))
    order[places] = places[exact_order(words, {text + 1: descending for text, descending in texts}, strings)]
    return order
