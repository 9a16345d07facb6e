"""The kernel of worst-case optimal joins: one more word for many prefixes, from several spines at once.

A prefix is a row of words bound so far. Each atom is a spine whose rows begin, under the prefix's key, with some of these words; what it
has in its next column there are the words that it allows. The result is what all atoms allow. For each prefix the atom with the fewest
rows under its key proposes, in order, and the others are galloped into; so the cost of a prefix is the least number of rows times
logarithms, whatever the others have.

Directories are those of `merge.py`, laid one behind the other in one array; an atom is a row of ATOM words that says where its batches
are. Where an atom's last column is bound (a leaf), its weight enters, summed over the batches; elsewhere a word is there if any batch has
it, whatever the weights.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, address_of, choose, load, prefetch, product_overflows
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.read import BLOCK, LARGE, TOUCHED, seek_block

AT, BATCHES, COLUMNS, WEIGHTS, KEY, KEYS_AT, ATOM = range(7)
"""Words of an atom: where its batches are in the directories, and how many; columns and weights of its rows; how many words its key has,
and where in the table of keys they are. And how many words that are."""

PLAIN, WHOLE, HIGH, LOW = range(4)
"""What a product of weights is multiplied with: nothing, the word that is bound, or the word's limbs (LOW follows HIGH): word = high · 2^32
+ low, 0 ≤ low < 2^32; the products' low limbs are kept in that range too."""

ALIKE = 3
"""Up to so many times as many rows are merged rather than searched."""

WORD_MAX = 2**63 - 1
MASK = (1 << 32) - 1


@part
def advance(column: int, start: int, end: int, word: int) -> tuple[int, int]:
    """(the first place in the sorted column[start:end] with a word >= `word`, words compared); the logarithm of the way."""
    if start >= end or load(column, start) >= word:
        return start, 1
    step = touched = 1
    while start + step < end and load(column, start + step) < word:
        start += step
        step *= 2
        touched += 1
    low = start + 1
    high = min(start + step, end)
    while low < high:
        middle = (low + high) >> 1
        touched += 1
        if load(column, middle) < word:
            low = middle + 1
        else:
            high = middle
    return low, touched


@part
def accumulate(sums: Words, wraps: Words, at: int, word: int) -> None:
    """sums[at] += word, modulo 2^64; wraps[at] says how often it went round."""
    total = sums[at]
    partial = total + word
    if ((partial ^ total) & (partial ^ word)) < 0:
        wraps[at] += 1 if word > 0 else -1
    sums[at] = partial


@part
def add_limbs(weight: int, word: int, sums: Words, wraps: Words, at: int) -> bool:
    """Adds the limbs of weight · word at `at` and `at` + 1; False on overflow."""
    high, low = word >> 32, word & MASK
    above, below = weight >> 32, weight & MASK
    if product_overflows(weight, high):
        return False
    product = np.uint64(below) * np.uint64(low)
    accumulate(sums, wraps, at, weight * high)
    accumulate(sums, wraps, at, above * low + np.int64(product >> np.uint64(32)))
    accumulate(sums, wraps, at + 1, np.int64(product & np.uint64(MASK)))
    return True


@part
def add_weight(kind: int, weight: int, word: int, sums: Words, wraps: Words, at: int) -> bool:
    """Adds a product of weights, times what `kind` says, at `at`; False on overflow."""
    if kind == PLAIN:
        accumulate(sums, wraps, at, weight)
    elif kind == WHOLE:
        if product_overflows(weight, word):
            return False
        accumulate(sums, wraps, at, weight * word)
    elif kind == HIGH:
        return add_limbs(weight, word, sums, wraps, at)
    return True


@part
def carry_low(wanted: Words, sums: Words, wraps: Words) -> bool:
    """Carries what low limbs have beyond 32 bits; False if a sum does not fit."""
    for w in range(len(wanted)):
        if wanted[w, 0] == LOW and wraps[w] == 0:
            accumulate(sums, wraps, w - 1, sums[w] >> 32)
            sums[w] &= MASK
    whole = True
    for w in range(len(wanted)):
        whole &= wraps[w] == 0
    return whole


@part
def seek_atom(
    directories: Words,
    atom: Words,
    keys: Words,
    first: int,
    living: Words,
    alive: int,
    buffer: Words,
    table: Words,
    scratch: Words,
    slots: Words,
    sizes: Words,
    spans: Words,
) -> tuple[int, int]:
    """Where the living prefixes first + living[j] have rows: (how many still live, what was inspected).

    slots[i]: in how many batches prefix i has rows; sizes[i]: how many rows; spans[s, :, i]: its span s as (batch, first row, end).
    """
    key = atom[KEY]
    stride = DIRECTORY_HEADER + atom[COLUMNS] + atom[WEIGHTS]
    who, low, high = scratch[0], scratch[1], scratch[2]
    for c in range(key):
        for j in range(alive):
            buffer[c, j] = load(keys[atom[KEYS_AT] + c], first + living[j])
    for j in range(alive):
        slots[living[j]] = sizes[living[j]] = 0
    touched = 0
    for b in range(atom[BATCHES]):
        at = atom[AT] + b * stride
        found, inspected = seek_block(directories, at, table, key, 0, alive, who, low, high)
        touched += inspected
        column = directories[at + DIRECTORY_HEADER + key]
        large = directories[at] >= LARGE
        for h in range(found):
            i = living[who[h]]
            s = slots[i]
            spans[s, 0, i] = at
            spans[s, 1, i] = low[h]
            spans[s, 2, i] = high[h]
            slots[i] = s + 1
            sizes[i] += high[h] - low[h]
            if large:
                prefetch(column, low[h])
    kept = 0
    for j in range(alive):
        i = living[j]
        living[kept] = i
        kept += np.int64(slots[i] > 0)
    return kept, touched


@part
def search(column: int, start: int, end: int, word: int) -> int:
    """The first place in the sorted column[start:end], which is not empty, with a word >= `word`.

    Without branches, so that the processor looks for several words at a time.
    """
    rows = end - start
    while rows > 1:
        half = rows >> 1
        start += choose(load(column, start + half - 1) < word, half, 0)
        rows -= half
    return start + np.int64(load(column, start) < word)


@part
def add_pair(
    directories: Words, atoms: Words, wanted: Words, mine: int, at: int, x: int, other: int, to: int, y: int, sums: Words, wraps: Words
) -> bool:
    """Adds the products of the weights of row x of the leaf `mine` and row y of the leaf `other`; False on overflow."""
    word = load(directories[at + DIRECTORY_HEADER + atoms[mine, KEY]], x)
    for w in range(len(wanted)):
        left = load(directories[at + DIRECTORY_HEADER + atoms[mine, COLUMNS] + wanted[w, 1 + mine]], x)
        right = load(directories[to + DIRECTORY_HEADER + atoms[other, COLUMNS] + wanted[w, 1 + other]], y)
        if product_overflows(left, right) or not add_weight(wanted[w, 0], left * right, word, sums, wraps, w):
            return False
    return True


@part
def next_common(ours: int, x: int, x_end: int, theirs: int, y: int, y_end: int) -> tuple[int, int, int]:
    """The first rows of ours[x:x_end] and theirs[y:y_end] with one word, and what was compared; x_end where there is none.

    Both ascend, each word once; ours are not the more. It takes no arrays: what is called this often has no time to count references.
    """
    few, many = x_end - x, y_end - y
    if many > ALIKE * few:
        steps = 1
        while many >> steps:
            steps += 1
        for row in range(x, x_end):
            word = load(ours, row)
            place = search(theirs, y, y_end, word)
            if place < y_end and load(theirs, place) == word:
                return row, place, (row + 1 - x) * steps
        return x_end, y_end, few * steps
    start = x + y
    while x < x_end and y < y_end:
        word, match = load(ours, x), load(theirs, y)
        if word == match:
            return x, y, x + y + 1 - start
        x += np.int64(word < match)
        y += np.int64(word > match)
    return x_end, y_end, x + y - start


@part
def add_pairs(
    directories: Words, atoms: Words, wanted: Words, spans: Words, slots: Words, i: int, first: int, second: int, sums: Words, wraps: Words
) -> tuple[bool, int]:
    """Adds the weights of all words that the leaves `first` and `second` both have under prefix i: (False on overflow, compared)."""
    touched = 0
    for s in range(slots[first, i]):
        for t in range(slots[second, i]):
            fewer = spans[first, s, 2, i] - spans[first, s, 1, i] <= spans[second, t, 2, i] - spans[second, t, 1, i]
            mine, a, other, b = (first, s, second, t) if fewer else (second, t, first, s)
            at, x, x_end = spans[mine, a, 0, i], spans[mine, a, 1, i], spans[mine, a, 2, i]
            to, y, y_end = spans[other, b, 0, i], spans[other, b, 1, i], spans[other, b, 2, i]
            ours, theirs = directories[at + DIRECTORY_HEADER + atoms[mine, KEY]], directories[to + DIRECTORY_HEADER + atoms[other, KEY]]
            x, y, compared = next_common(ours, x, x_end, theirs, y, y_end)
            touched += compared
            while x < x_end:
                if not add_pair(directories, atoms, wanted, mine, at, x, other, to, y, sums, wraps):
                    return False, touched
                x, y, compared = next_common(ours, x + 1, x_end, theirs, y + 1, y_end)
                touched += compared
    return True, touched


@part
def open_cursors(
    directories: Words, atoms: Words, spans: Words, slots: Words, proposer: int, i: int, cursors: Words, begins: Words, who: Words
) -> None:
    """Lays out the cursors of prefix i, those of the proposer first: cursors[q] = (column, next row, end, batch).

    who[r]: the atom at rank r; its cursors are begins[r] to begins[r + 1].
    """
    count = 0
    for r in range(len(atoms)):
        a = proposer if r == 0 else r - np.int64(r <= proposer)
        who[r] = a
        begins[r] = count
        for s in range(slots[a, i]):
            at = spans[a, s, 0, i]
            cursors[count, 0] = directories[at + DIRECTORY_HEADER + atoms[a, KEY]]
            cursors[count, 1] = spans[a, s, 1, i]
            cursors[count, 2] = spans[a, s, 2, i]
            cursors[count, 3] = at
            count += 1
    begins[len(atoms)] = count


@part
def least_word(cursors: Words, start: int, end: int) -> tuple[bool, int]:
    """(whether one of the cursors has a row, the least word that they are at)."""
    found = False
    least = 0
    for q in range(start, end):
        if cursors[q, 1] < cursors[q, 2]:
            word = load(cursors[q, 0], cursors[q, 1])
            least = min(least, word) if found else word
            found = True
    return found, least


@part
def move_on(cursors: Words, start: int, end: int, word: int) -> int:
    """Moves the cursors to the first rows with a word >= `word`; returns the words compared."""
    touched = 0
    for q in range(start, end):
        cursors[q, 1], compared = advance(cursors[q, 0], cursors[q, 1], cursors[q, 2], word)
        touched += compared
    return touched


@part
def move_past(cursors: Words, start: int, end: int, word: int) -> int:
    """Moves the cursors past their rows with `word`, which none is beyond; returns the words compared."""
    if word < WORD_MAX:
        return move_on(cursors, start, end, word + 1)
    for q in range(start, end):
        cursors[q, 1] = cursors[q, 2]
    return 0


@part
def leaf_weight(directories: Words, cursors: Words, start: int, end: int, word: int, place: int) -> tuple[bool, int]:
    """(False on overflow, the sum of what lies at `place` in the directory for the rows at which cursors are and that have `word`)."""
    total = wraps = 0
    for q in range(start, end):
        row = cursors[q, 1]
        if row < cursors[q, 2] and load(cursors[q, 0], row) == word:
            more = load(directories[cursors[q, 3] + place], row)
            partial = total + more
            if ((partial ^ total) & (partial ^ more)) < 0:
                wraps += 1 if more > 0 else -1
            total = partial
    return wraps == 0, total


@part
def add_match(
    directories: Words, atoms: Words, wanted: Words, cursors: Words, begins: Words, who: Words, word: int, sums: Words, wraps: Words
) -> bool:
    """Adds the products of the leaves' weights at `word`, which all atoms have; False on overflow."""
    for w in range(len(wanted)):
        if wanted[w, 0] == LOW:
            continue
        product = 1
        for r in range(len(atoms)):
            a = who[r]
            if wanted[w, 1 + a] < 0:
                continue
            place = DIRECTORY_HEADER + atoms[a, COLUMNS] + wanted[w, 1 + a]
            safe, weight = leaf_weight(directories, cursors, begins[r], begins[r + 1], word, place)
            if not safe or product_overflows(product, weight):
                return False
            product *= weight
        if not add_weight(wanted[w, 0], product, word, sums, wraps, w):
            return False
    return True


@part
def next_match(cursors: Words, begins: Words, atoms: int) -> tuple[bool, int, int]:
    """Leapfrogs to the next word that all atoms have: (whether there is one, the word, what was inspected). The proposer's go first."""
    touched = 0
    found, word = least_word(cursors, begins[0], begins[1])
    while found:
        touched += begins[1]
        agreed = True
        for r in range(1, atoms):
            touched += move_on(cursors, begins[r], begins[r + 1], word)
            there, least = least_word(cursors, begins[r], begins[r + 1])
            if not there:
                return False, 0, touched
            if least != word:
                touched += move_on(cursors, begins[0], begins[1], least)
                agreed = False
                break
        if agreed:
            return True, word, touched
        found, word = least_word(cursors, begins[0], begins[1])
    return False, 0, touched


@part
def with_room(out: Words, written: int) -> Words:
    """The output with room for one row more."""
    if written < out.shape[1]:
        return out
    larger = np.empty((out.shape[0], 2 * out.shape[1]), np.int64)
    larger[:, :written] = out
    return larger


@part
def write_row(out: Words, written: int, prefix: int, word: int, sums: Words, wanted: int) -> int:
    """Writes (prefix, word, weights) unless all weights are 0; returns the rows written then."""
    live = wanted == 0
    for w in range(wanted):
        live |= sums[w] != 0
    if not live:
        return written
    out[0, written] = prefix
    out[1, written] = word
    for w in range(wanted):
        out[2 + w, written] = sums[w]
    return written + 1


@kernel("Tuple((int64, int64[:,::1]))(int64[::1], int64[:,::1], int64[::1], int64, int64[:,::1], int64, int64[::1])")
def extend(directories: Words, atoms: Words, keys: Words, n: int, wanted: Words, summed: int, report: Words) -> tuple[int, Words]:
    """The words that all atoms allow behind each of n prefixes, with the products of the leaves' weights.

    keys: the addresses of the atoms' key columns. wanted: for each weight of the output (what the product is multiplied with, then for each
    atom which of its weights is a factor, -1 for none). summed: 0 to write a row (prefix, word, weights) for each word; 1 to write one row
    (prefix, some word, the weights summed over all words) for each prefix. Rows whose weights are all 0 are left out, except where no
    weight is wanted. Returns (rows written, the rows by column); -1 for the former on overflow. Prefixes ascend, and words under each.
    """
    count, weights = len(atoms), len(wanted)
    room = most = 1
    for a in range(count):
        room = max(room, atoms[a, BATCHES])
        most = max(most, atoms[a, KEY])
    buffer = np.empty((most, BLOCK), np.int64)
    table = np.empty(most, np.int64)
    for c in range(most):
        table[c] = address_of(buffer[c])
    scratch = np.empty((3, BLOCK), np.int64)
    living = np.empty(BLOCK, np.int64)
    slots = np.empty((count, BLOCK), np.int64)
    sizes = np.empty((count, BLOCK), np.int64)
    spans = np.empty((count, room, 3, BLOCK), np.int64)
    cursors = np.empty((count * room, 4), np.int64)
    begins = np.empty(count + 1, np.int64)
    who = np.empty(count, np.int64)
    sums = np.zeros(weights, np.int64)
    wraps = np.zeros(weights, np.int64)
    out = np.empty((2 + weights, max(n, 16) if summed else max(2 * n, 16)), np.int64)
    touched = written = 0
    for first in range(0, n, BLOCK):
        alive = min(BLOCK, n - first)
        for i in range(alive):
            living[i] = i
        for a in range(count):
            if alive > 0:
                alive, inspected = seek_atom(
                    directories, atoms[a], keys, first, living, alive, buffer, table, scratch, slots[a], sizes[a], spans[a]
                )
                touched += inspected
        for j in range(alive):
            i = living[j]
            proposer = 0
            for a in range(1, count):
                proposer = a if sizes[a, i] < sizes[proposer, i] else proposer
            for w in range(weights):
                sums[w] = wraps[w] = 0
            if summed and count == 2:
                safe, compared = add_pairs(directories, atoms, wanted, spans, slots, i, proposer, 1 - proposer, sums, wraps)
                touched += compared
                if not safe:
                    return -1, out
            else:
                open_cursors(directories, atoms, spans, slots, proposer, i, cursors, begins, who)
                while True:
                    found, word, inspected = next_match(cursors, begins, count)
                    touched += inspected
                    if not found:
                        break
                    if not add_match(directories, atoms, wanted, cursors, begins, who, word, sums, wraps):
                        return -1, out
                    if not summed:
                        if not carry_low(wanted, sums, wraps):
                            return -1, out
                        out = with_room(out, written)
                        written = write_row(out, written, first + i, word, sums, weights)
                        for w in range(weights):
                            sums[w] = wraps[w] = 0
                    touched += move_past(cursors, begins[0], begins[1], word)
            if summed:
                if not carry_low(wanted, sums, wraps):
                    return -1, out
                written = write_row(out, written, first + i, 0, sums, weights)
    report[TOUCHED] = touched
    return written, out
