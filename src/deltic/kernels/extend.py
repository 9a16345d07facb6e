"""The kernel of worst-case optimal joins: one more word for many prefixes, from several spines at once.

A prefix is a row of words bound so far. An atom is a spine whose leading columns, its key, are bound by the prefix; it allows the words
that its next column has under the key. The result is what all atoms allow. For each prefix the atom with the fewest rows under its key
proposes words, in order, and the others are searched for them by galloping; so a prefix costs the least number of rows times logarithms,
however many rows the others have.

Directories are those of `merge.py`, one after another in one array; an atom is a row of ATOM words that says where its batches are. Where
an atom's last column is bound (a leaf), its weight is a factor, summed over the batches; elsewhere a word is allowed if any batch has it,
whatever its weights.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, address_of, choose, load, prefetch, product_overflows
from deltic.kernels.merge import BATCH_ROWS, DIRECTORY_HEADER
from deltic.kernels.read import BLOCK, LARGE, TOUCHED, seek_block

DIRECTORY, BATCHES, COLUMNS, WEIGHTS, KEY, KEYS, ATOM = range(7)
"""Words of an atom: the position of its first entry in the directories, and how many entries; columns and weights of its rows; how many
words its key has, and the position of their columns in the table of keys. And how many words that are."""

PLAIN, WHOLE, HIGH, LOW = range(4)
"""What a product of weights is multiplied with: nothing, the word that is bound, or the word's limbs (LOW follows HIGH): word = high · 2^32
+ low, 0 ≤ low < 2^32; the products' low limbs are kept in that range too."""

ENTRY, FIRST, END, SPAN = range(4)
"""Words of a span, the rows of one batch under a prefix: the entry of the batch in the directories, the first row, their end. And how many
words that are."""

COLUMN, ROW, ROW_END, BATCH, CURSOR = range(5)
"""Words of a cursor: the address of the column that it reads, the next row, the end of its rows, the entry of its batch. And how many words
that are."""

KIND, FACTOR = range(2)
"""Words of a wanted weight: what the product is multiplied with; from FACTOR on for each atom which of its weights is a factor, -1 for
none."""

ALIKE = 3
"""If the longer of two lists has at most so many times the rows of the shorter, they are merged; else one is searched for the words of the
other."""

WORD_MAX = 2**63 - 1
MASK = (1 << 32) - 1


@part
def advance(column: int, start: int, end: int, word: int) -> tuple[int, int]:
    """(the first row of the sorted column[start:end] with a word >= `word`, words compared); O(log of the distance)."""
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
        less = load(column, middle) < word
        low, high = choose(less, middle + 1, low), choose(less, high, middle)
    return low, touched


@part
def accumulate(sums: Words, wraps: Words, w: int, word: int) -> None:
    """sums[w] += word, modulo 2^64; wraps[w] counts by how many times 2^64 it is off."""
    total = sums[w]
    partial = total + word
    if ((partial ^ total) & (partial ^ word)) < 0:
        wraps[w] += 1 if word > 0 else -1
    sums[w] = partial


@part
def add_limbs(weight: int, word: int, sums: Words, wraps: Words, w: int) -> bool:
    """Adds the limbs of weight · word to sums w and w + 1; False on overflow."""
    high, low = word >> 32, word & MASK
    above, below = weight >> 32, weight & MASK
    if product_overflows(weight, high):
        return False
    product = np.uint64(below) * np.uint64(low)
    accumulate(sums, wraps, w, weight * high)
    accumulate(sums, wraps, w, above * low + np.int64(product >> np.uint64(32)))
    accumulate(sums, wraps, w + 1, np.int64(product & np.uint64(MASK)))
    return True


@part
def add_weight(kind: int, weight: int, word: int, sums: Words, wraps: Words, w: int) -> bool:
    """Adds a product of weights, multiplied as `kind` says, to sum w; False on overflow. LOW adds nothing: HIGH adds both limbs."""
    if kind == PLAIN:
        accumulate(sums, wraps, w, weight)
    elif kind == WHOLE:
        if product_overflows(weight, word):
            return False
        accumulate(sums, wraps, w, weight * word)
    elif kind == HIGH:
        return add_limbs(weight, word, sums, wraps, w)
    return True


@part
def carry_low(wanted: Words, sums: Words, wraps: Words) -> bool:
    """Carries what low limbs have above 32 bits; False if a sum leaves 64 bits."""
    for w in range(len(wanted)):
        if wanted[w, KIND] == LOW and wraps[w] == 0:
            accumulate(sums, wraps, w - 1, sums[w] >> 32)
            sums[w] &= MASK
    within = True
    for w in range(len(wanted)):
        within &= wraps[w] == 0
    return within


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
    """Finds the rows of the live prefixes first + living[j] in one atom: (how many remain live, what was inspected).

    slots[i]: in how many batches prefix i has rows; sizes[i]: how many rows; spans[s, :, i]: its span s.
    """
    key = atom[KEY]
    stride = DIRECTORY_HEADER + atom[COLUMNS] + atom[WEIGHTS]
    hits, low, high = scratch[0], scratch[1], scratch[2]
    for c in range(key):
        for j in range(alive):
            buffer[c, j] = load(keys[atom[KEYS] + c], first + living[j])
    for j in range(alive):
        slots[living[j]] = sizes[living[j]] = 0
    touched = 0
    for b in range(atom[BATCHES]):
        entry = atom[DIRECTORY] + b * stride
        listed, inspected = seek_block(directories, entry, table, key, 0, alive, hits, low, high)
        touched += inspected
        column = directories[entry + DIRECTORY_HEADER + key]
        large = directories[entry + BATCH_ROWS] >= LARGE
        for h in range(listed):
            i = living[hits[h]]
            s = slots[i]
            spans[s, ENTRY, i] = entry
            spans[s, FIRST, i] = low[h]
            spans[s, END, i] = high[h]
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
    """The first row of the sorted column[start:end], which is not empty, with a word >= `word`, or end.

    Without branches, so that the processor searches for several words at a time.
    """
    rows = end - start
    while rows > 1:
        half = rows >> 1
        start += choose(load(column, start + half - 1) < word, half, 0)
        rows -= half
    return start + np.int64(load(column, start) < word)


@part
def add_pair(
    directories: Words, atoms: Words, wanted: Words, a: int, left: int, x: int, b: int, right: int, y: int, sums: Words, wraps: Words
) -> bool:
    """Adds the products of the weights of row x of leaf a and row y of leaf b, in the batches of entries left, right; False on overflow."""
    word = load(directories[left + DIRECTORY_HEADER + atoms[a, KEY]], x)
    for w in range(len(wanted)):
        one = load(directories[left + DIRECTORY_HEADER + atoms[a, COLUMNS] + wanted[w, FACTOR + a]], x)
        other = load(directories[right + DIRECTORY_HEADER + atoms[b, COLUMNS] + wanted[w, FACTOR + b]], y)
        if product_overflows(one, other) or not add_weight(wanted[w, KIND], one * other, word, sums, wraps, w):
            return False
    return True


@part
def next_common(left: int, x: int, x_end: int, right: int, y: int, y_end: int) -> tuple[int, int, int]:
    """The first rows of left[x:x_end] and right[y:y_end] with equal words, and what was compared; x_end if there are none.

    Both ascend, each word once, and left has no more rows than right. Columns are addresses: arrays would count references at each call.
    """
    few, many = x_end - x, y_end - y
    if many > ALIKE * few:
        steps = 1
        while many >> steps:
            steps += 1
        for row in range(x, x_end):
            word = load(left, row)
            match = search(right, y, y_end, word)
            if match < y_end and load(right, match) == word:
                return row, match, (row + 1 - x) * steps
        return x_end, y_end, few * steps
    start = x + y
    while x < x_end and y < y_end:
        one, other = load(left, x), load(right, y)
        if one == other:
            return x, y, x + y + 1 - start
        x += np.int64(one < other)
        y += np.int64(one > other)
    return x_end, y_end, x + y - start


@part
def add_pairs(
    directories: Words, atoms: Words, wanted: Words, spans: Words, slots: Words, i: int, first: int, second: int, sums: Words, wraps: Words
) -> tuple[bool, int]:
    """Adds the weights of all words that the leaves `first` and `second` both have under prefix i: (False on overflow, words compared)."""
    touched = 0
    for s in range(slots[first, i]):
        for t in range(slots[second, i]):
            fewer = spans[first, s, END, i] - spans[first, s, FIRST, i] <= spans[second, t, END, i] - spans[second, t, FIRST, i]
            a, m, b, n = (first, s, second, t) if fewer else (second, t, first, s)
            left, x, x_end = spans[a, m, ENTRY, i], spans[a, m, FIRST, i], spans[a, m, END, i]
            right, y, y_end = spans[b, n, ENTRY, i], spans[b, n, FIRST, i], spans[b, n, END, i]
            left_words, right_words = (
                directories[left + DIRECTORY_HEADER + atoms[a, KEY]],
                directories[right + DIRECTORY_HEADER + atoms[b, KEY]],
            )
            x, y, compared = next_common(left_words, x, x_end, right_words, y, y_end)
            touched += compared
            while x < x_end:
                if not add_pair(directories, atoms, wanted, a, left, x, b, right, y, sums, wraps):
                    return False, touched
                x, y, compared = next_common(left_words, x + 1, x_end, right_words, y + 1, y_end)
                touched += compared
    return True, touched


@part
def open_cursors(
    directories: Words, atoms: Words, spans: Words, slots: Words, proposer: int, i: int, cursors: Words, begins: Words, ranked: Words
) -> None:
    """Opens the cursors of prefix i, those of the proposer first.

    ranked[r]: the atom at rank r; its cursors are begins[r] to begins[r + 1].
    """
    count = 0
    for r in range(len(atoms)):
        a = proposer if r == 0 else r - np.int64(r <= proposer)
        ranked[r] = a
        begins[r] = count
        for s in range(slots[a, i]):
            entry = spans[a, s, ENTRY, i]
            cursors[count, COLUMN] = directories[entry + DIRECTORY_HEADER + atoms[a, KEY]]
            cursors[count, ROW] = spans[a, s, FIRST, i]
            cursors[count, ROW_END] = spans[a, s, END, i]
            cursors[count, BATCH] = entry
            count += 1
    begins[len(atoms)] = count


@part
def least_word(cursors: Words, start: int, end: int) -> tuple[bool, int]:
    """(whether one of the cursors has a row, the least word of their rows)."""
    exists = False
    least = 0
    for q in range(start, end):
        if cursors[q, ROW] < cursors[q, ROW_END]:
            word = load(cursors[q, COLUMN], cursors[q, ROW])
            least = min(least, word) if exists else word
            exists = True
    return exists, least


@part
def advance_cursors(cursors: Words, start: int, end: int, word: int) -> int:
    """Moves the cursors to their first rows with a word >= `word`; returns the words compared."""
    touched = 0
    for q in range(start, end):
        cursors[q, ROW], compared = advance(cursors[q, COLUMN], cursors[q, ROW], cursors[q, ROW_END], word)
        touched += compared
    return touched


@part
def skip_word(cursors: Words, start: int, end: int, word: int) -> int:
    """Moves the cursors past their rows with `word`; returns the words compared."""
    if word < WORD_MAX:
        return advance_cursors(cursors, start, end, word + 1)
    for q in range(start, end):
        cursors[q, ROW] = cursors[q, ROW_END]
    return 0


@part
def leaf_weight(directories: Words, cursors: Words, start: int, end: int, word: int, column: int) -> tuple[bool, int]:
    """(False on overflow, the sum of a weight over the cursors' rows that have `word`). column: the position of the weight in an entry."""
    total = wraps = 0
    for q in range(start, end):
        row = cursors[q, ROW]
        if row < cursors[q, ROW_END] and load(cursors[q, COLUMN], row) == word:
            more = load(directories[cursors[q, BATCH] + column], row)
            partial = total + more
            if ((partial ^ total) & (partial ^ more)) < 0:
                wraps += 1 if more > 0 else -1
            total = partial
    return wraps == 0, total


@part
def add_match(
    directories: Words, atoms: Words, wanted: Words, cursors: Words, begins: Words, ranked: Words, word: int, sums: Words, wraps: Words
) -> bool:
    """Adds the products of the leaves' weights of `word`, which all atoms have; False on overflow."""
    for w in range(len(wanted)):
        if wanted[w, KIND] == LOW:
            continue
        product = 1
        for r in range(len(atoms)):
            a = ranked[r]
            if wanted[w, FACTOR + a] < 0:
                continue
            column = DIRECTORY_HEADER + atoms[a, COLUMNS] + wanted[w, FACTOR + a]
            within, weight = leaf_weight(directories, cursors, begins[r], begins[r + 1], word, column)
            if not within or product_overflows(product, weight):
                return False
            product *= weight
        if not add_weight(wanted[w, KIND], product, word, sums, wraps, w):
            return False
    return True


@part
def next_match(cursors: Words, begins: Words, atoms: int) -> tuple[bool, int, int]:
    """Leapfrogs to the next word that all atoms have: (whether there is one, the word, what was inspected)."""
    touched = 0
    exists, word = least_word(cursors, begins[0], begins[1])
    while exists:
        touched += begins[1]
        agreed = True
        for r in range(1, atoms):
            touched += advance_cursors(cursors, begins[r], begins[r + 1], word)
            exists, least = least_word(cursors, begins[r], begins[r + 1])
            if not exists:
                return False, 0, touched
            if least != word:
                touched += advance_cursors(cursors, begins[0], begins[1], least)
                agreed = False
                break
        if agreed:
            return True, word, touched
        exists, word = least_word(cursors, begins[0], begins[1])
    return False, 0, touched


@part
def with_room(out: Words, written: int) -> Words:
    """The output with room for one more row."""
    if written < out.shape[1]:
        return out
    larger = np.empty((out.shape[0], 2 * out.shape[1]), np.int64)
    larger[:, :written] = out
    return larger


@part
def write_row(out: Words, written: int, prefix: int, word: int, sums: Words, wanted: int) -> int:
    """Writes (prefix, word, weights) unless weights are wanted and all are 0; returns the number of rows after it."""
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
    """The words that all atoms allow after each of n prefixes, with the products of the leaves' weights.

    keys: the addresses of the atoms' key columns. wanted: a row for each weight of the output. summed: 0 to write a row (prefix, word,
    weights) for each word; 1 to write one row (prefix, 0, the weights summed over all words) for each prefix. Rows whose weights are all 0
    are omitted, except where no weight is wanted. Returns (rows written, the rows by column); -1 for the former on overflow. Prefixes
    ascend, and words under each.
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
    spans = np.empty((count, room, SPAN, BLOCK), np.int64)
    cursors = np.empty((count * room, CURSOR), np.int64)
    begins = np.empty(count + 1, np.int64)
    ranked = np.empty(count, np.int64)
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
                within, compared = add_pairs(directories, atoms, wanted, spans, slots, i, proposer, 1 - proposer, sums, wraps)
                touched += compared
                if not within:
                    return -1, out
            else:
                open_cursors(directories, atoms, spans, slots, proposer, i, cursors, begins, ranked)
                while True:
                    exists, word, inspected = next_match(cursors, begins, count)
                    touched += inspected
                    if not exists:
                        break
                    if not add_match(directories, atoms, wanted, cursors, begins, ranked, word, sums, wraps):
                        return -1, out
                    if not summed:
                        if not carry_low(wanted, sums, wraps):
                            return -1, out
                        out = with_room(out, written)
                        written = write_row(out, written, first + i, word, sums, weights)
                        for w in range(weights):
                            sums[w] = wraps[w] = 0
                    touched += skip_word(cursors, begins[0], begins[1], word)
            if summed:
                if not carry_low(wanted, sums, wraps):
                    return -1, out
                written = write_row(out, written, first + i, 0, sums, weights)
    report[TOUCHED] = touched
    return written, out
