"""Kernels over strings: hashing, the table id → bytes, gathering bytes, and the words that strings sort by.

A string is a run of bytes in an Arrow buffer: `data` is the address of the buffer, `offsets` that of the int32 or (`wide`) int64 offsets
where each string begins and ends. The table uses open addressing over ids: `slots` holds entry numbers + 1 (0: free), entry e has ids[e]
and the bytes arena[starts[e]:starts[e + 1]]. Entries are only ever added, and a slot is written last, so that a thread may look up earlier
entries while another adds some. The hash is SipHash-1-3 under a secret key, the same on every machine (little-endian, as Arrow is);
exchanges and the radix index have other hashes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.intake import BUFFERS, CHILDREN, LENGTH, NULLS, OFFSET
from deltic.kernels.memory import WORD_MIN, Words, address_of, copy_bytes, load, load_byte, load_int32, load_unaligned, prefetch, store

PREFIX_BYTES = 24
"""Strings shorter than this are determined, and ordered, by the words of `prefix_word`."""
LONG = PREFIX_BYTES + 1
"""The lowest byte of the last of these words, of all others."""
COLLISION, INVALID, FULL = -1, -2, -3
AHEAD = 8
"""How many strings ahead memory is requested: a large table is in no cache, and each string has its own places in it."""
MEMO_BITS = 7
MEMO, REMEMBERED, TRIAL = 1 << MEMO_BITS, 5, 256
"""Strings that are remembered while a column is hashed, the words for each (length, two words of its ends, where it begins, id), and among
how many strings they must pay."""
NUMBER, PLACE, WIDE_OFFSETS, CHECK, COLUMN = range(5)
"""Words of a column of strings in a frame: its number there, the position of its word in a row, whether its offsets are int64, what is
checked of its strings. And how many words that are."""
NOTHING, BOUNDS, UTF8 = range(3)
"""What is checked of strings: nothing; that each lies between the column's first offset and its last; that it is UTF-8, too."""
HIGH_BITS = -0x7F7F7F7F7F7F7F80
"""The highest bit of each byte."""
ENTRIES, NEEDED, KNOWN, NEW = range(4)
"""Words of a table's counters: how many entries; the bytes of a string for which there is no room; the entry and the new string that
collide."""


@part
def _offset(offsets: int, wide: int, i: int) -> int:
    return load_unaligned(offsets + 8 * i) if wide else load_int32(offsets + 4 * i)


@part
def _last(address: int, length: int) -> int:
    """The bytes after the last whole word of a string, length mod 8 of them, as a word, the first lowest. Reads no byte outside of it."""
    rest = length & 7
    if rest == 0:
        return np.uint64(0)
    if length >= 8:
        return np.uint64(load_unaligned(address + length - 8)) >> np.uint64(64 - 8 * rest)
    if rest >= 4:
        low = np.uint64(load_int32(address)) & np.uint64(0xFFFFFFFF)
        high = np.uint64(load_int32(address + rest - 4)) & np.uint64(0xFFFFFFFF)
        return low | high << np.uint64(8 * rest - 32)
    middle = rest >> 1
    first = np.uint64(load_byte(address)) | np.uint64(load_byte(address + middle)) << np.uint64(8 * middle)
    return first | np.uint64(load_byte(address + rest - 1)) << np.uint64(8 * rest - 8)


@part
def _rotated(word: int, bits: int) -> int:
    return word << np.uint64(bits) | word >> np.uint64(64 - bits)


@part
def _round(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    """SipRound of "SipHash: a fast short-input PRF" (Aumasson and Bernstein, 2012), section 2."""
    v0 += v1
    v2 += v3
    v1 = _rotated(v1, 13) ^ v0
    v3 = _rotated(v3, 16) ^ v2
    v0 = _rotated(v0, 32) + v3
    v2 += v1
    v3 = _rotated(v3, 21) ^ v0
    v1 = _rotated(v1, 17) ^ v2
    return v0, v1, _rotated(v2, 32), v3


@part
def _siphash(address: int, length: int, key0: int, key1: int) -> int:
    """SipHash-1-3 of a string."""
    v0, v1 = np.uint64(key0) ^ np.uint64(0x736F6D6570736575), np.uint64(key1) ^ np.uint64(0x646F72616E646F6D)
    v2, v3 = np.uint64(key0) ^ np.uint64(0x6C7967656E657261), np.uint64(key1) ^ np.uint64(0x7465646279746573)
    for i in range(length >> 3):
        word = np.uint64(load_unaligned(address + 8 * i))
        v0, v1, v2, v3 = _round(v0, v1, v2, v3 ^ word)
        v0 ^= word
    word = _last(address, length) | np.uint64(length) << np.uint64(56)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3 ^ word)
    v0 ^= word
    v2 ^= np.uint64(0xFF)
    for _ in range(3):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@part
def _equal(left: int, right: int, length: int) -> bool:
    for i in range(length >> 3):
        if load_unaligned(left + 8 * i) != load_unaligned(right + 8 * i):
            return False
    return _last(left, length) == _last(right, length)


@part
def _home(mask: int, id_: int) -> int:
    """The position from which on the slot of an id is sought."""
    return np.int64(np.uint64(id_) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) & mask


@part
def find(slots: int, mask: int, ids: int, id_: int) -> int:
    """The position of the slot of `id_`, or of the free one for it."""
    position = _home(mask, id_)
    while True:
        entry = load(slots, position)
        if entry == 0 or load(ids, entry - 1) == id_:
            return position
        position = (position + 1) & mask


@part
def request(i: int, n: int, wanted: int, slots: int, mask: int, ids: int, starts: int, arena: int) -> None:
    """Requests memory for the strings after string i of n: the slot of one, the entry of a nearer one, the bytes of a still nearer one."""
    if i + 3 * AHEAD < n:
        prefetch(slots, _home(mask, load(wanted, i + 3 * AHEAD)))
    if i + 2 * AHEAD < n:
        entry = load(slots, _home(mask, load(wanted, i + 2 * AHEAD)))
        prefetch(ids, entry - 1)
        prefetch(starts, entry - 1)
    if i + AHEAD < n:
        entry = load(slots, _home(mask, load(wanted, i + AHEAD)))
        if entry > 0:
            prefetch(arena + load(starts, entry - 1), 0)


@part
def _ends(address: int, length: int) -> tuple[int, int]:
    """Two words that determine a string of up to 16 bytes of which the length is known: its first bytes, and its last."""
    if length < 8:
        return np.int64(_last(address, length)), np.int64(0)
    return load_unaligned(address), load_unaligned(address + length - 8)


@part
def _place(first: int, last: int, length: int) -> int:
    """Where the memo has a string with these ends."""
    mixed = (np.uint64(first) ^ _rotated(np.uint64(last), 19)) + np.uint64(length)
    return REMEMBERED * np.int64(mixed * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - MEMO_BITS))


@part
def _character(address: int, end: int) -> int:
    """How many bytes the character has that begins at `address` and not with an ASCII byte; 0 if it is not UTF-8 (RFC 3629, section 4)."""
    first, second = load_byte(address), load_byte(address + 1) if address + 1 < end else np.int64(0)
    least, most = 0x80, 0xBF
    if 0xC2 <= first < 0xE0:
        length = 2
    elif 0xE0 <= first < 0xF0:
        length = 3
        least, most = 0xA0 if first == 0xE0 else 0x80, 0x9F if first == 0xED else 0xBF
    elif 0xF0 <= first < 0xF5:
        length = 4
        least, most = 0x90 if first == 0xF0 else 0x80, 0x8F if first == 0xF4 else 0xBF
    else:
        return np.int64(0)
    if address + length > end or second < least or second > most:
        return np.int64(0)
    for i in range(2, length):
        if load_byte(address + i) & 0xC0 != 0x80:
            return np.int64(0)
    return np.int64(length)


@part
def is_utf8(address: int, length: int) -> bool:
    place, end = address, address + length
    while place < end:
        if place + 8 <= end and load_unaligned(place) & HIGH_BITS == 0:
            place += 8
        elif load_byte(place) < 0x80:
            place += 1
        else:
            character = _character(place, end)
            if character == 0:
                return False
            place += character
    return True


@part
def _hash_column(
    data: int, offsets: int, wide: int, n: int, validity: int, bit: int, key0: int, key1: int, bits: int, check: int, out: int, firsts: int
) -> int:
    """As `hash_strings`, whose results are at these addresses; INVALID if a check finds that a string is no value."""
    end = _offset(offsets, wide, n) if check != NOTHING else np.int64(0)
    memo = np.empty(REMEMBERED * MEMO, np.int64)
    for place in range(MEMO):
        memo[REMEMBERED * place] = -1
    uses_memo, repeated, m, place = True, 0, 0, np.int64(0)
    for i in range(n):
        position = bit + i
        if validity and not (load_byte(validity + (position >> 3)) >> (position & 7)) & 1:
            store(out, i, WORD_MIN)
            store(firsts, i, WORD_MIN)
            continue
        start = _offset(offsets, wide, i)
        length = _offset(offsets, wide, i + 1) - start
        if check != NOTHING and (length < 0 or start + length > end):
            return np.int64(INVALID)
        if uses_memo:
            first, last = _ends(data + start, length)
            place = _place(first, last, length)
            same = memo[place] == length and memo[place + 1] == first and memo[place + 2] == last
            if same and (length <= 16 or _equal(data + memo[place + 3], data + start, length)):
                store(out, i, memo[place + 4])
                store(firsts, i, WORD_MIN)
                repeated += 1
                continue
            memo[place], memo[place + 1], memo[place + 2], memo[place + 3] = length, first, last, start
        if check == UTF8 and not is_utf8(data + start, length):
            return np.int64(INVALID)
        hashed = np.int64(_siphash(data + start, length, key0, key1))
        id_ = hashed if bits == 64 else hashed & ((np.int64(1) << bits) - 1)
        id_ = np.int64(0) if id_ == WORD_MIN else id_
        if uses_memo:
            memo[place + 4] = id_
            uses_memo = i % TRIAL != TRIAL - 1 or 4 * repeated >= i
        store(out, i, id_)
        store(firsts, i, id_)
        m = i + 1
    return m


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64[::1], int64[::1])")
def hash_strings(
    data: int, offsets: int, wide: int, n: int, validity: int, bit: int, key0: int, key1: int, bits: int, out: Words, first: Words
) -> int:
    """out[i] = the last `bits` bits of the hash of string i, 0 instead of the NULL marker; the marker where it is NULL.

    It is NULL where bit `bit` + i of the bits at `validity` is 0; none is if `validity` is 0. key0, key1: the low and high half of the key.
    first[i] = out[i], but the marker where string i is known to equal an earlier one. Returns m such that there are only markers from
    first[m] on. A memo of MEMO strings finds most repetitions in a column of few different strings, for less than the hash costs; where
    less than one in four repeats it is given up after TRIAL strings or a few more.
    """
    return _hash_column(data, offsets, wide, n, validity, bit, key0, key1, bits, NOTHING, address_of(out), address_of(first))


@part
def _insert_column(
    data: int,
    offsets: int,
    wide: int,
    begin: int,
    wanted: int,
    n: int,
    slots: Words,
    ids: Words,
    starts: Words,
    room: Words,
    arena: Any,
    used: Words,
) -> int:
    """As `insert`; wanted: the address of n ids."""
    mask = len(slots) - 1
    slot_table, id_table, bytes_at, start_table = address_of(slots), address_of(ids), address_of(arena), address_of(starts)
    for i in range(begin, n):
        id_ = load(wanted, i)
        request(i, n, wanted, slot_table, mask, id_table, start_table, bytes_at)
        if id_ == WORD_MIN:
            continue
        start = _offset(offsets, wide, i)
        length = _offset(offsets, wide, i + 1) - start
        position = find(slot_table, mask, id_table, id_)
        entry = slots[position] - 1
        if entry >= 0:
            if starts[entry + 1] - starts[entry] != length or not _equal(bytes_at + starts[entry], data + start, length):
                used[KNOWN], used[NEW] = entry, i
                return np.int64(COLLISION)
            continue
        entry = used[ENTRIES]
        if entry >= room[0] or starts[entry] + length > room[1]:
            used[NEEDED] = length
            return np.int64(FULL - i)
        copy_bytes(bytes_at + starts[entry], data + start, length)
        starts[entry + 1] = starts[entry] + length
        ids[entry] = id_
        slots[position] = entry + 1
        used[ENTRIES] = entry + 1
    return np.int64(n)


@kernel("int64(int64, int64, int64, int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1])")
def insert(
    data: int,
    offsets: int,
    wide: int,
    begin: int,
    wanted: Words,
    slots: Words,
    ids: Words,
    starts: Words,
    room: Words,
    arena: Any,
    used: Words,
) -> int:
    """Verifies strings begin … n, whose ids are `wanted` (NULL is skipped), against the table, or enters them.

    used[ENTRIES] counts entries; room is (entries, bytes). Returns n; FULL - i if there is no room for the used[NEEDED] bytes of string i;
    COLLISION if entry used[KNOWN] and string used[NEW] share an id and differ.
    """
    return _insert_column(data, offsets, wide, begin, address_of(wanted), len(wanted), slots, ids, starts, room, arena, used)


@kernel(
    "int64(int64, int64[::1], int64, int64, int64, int64, int64, int64, int64, int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1],"
    " int64[::1])"
)
def intern_frame(
    frame: int,
    plan: Words,
    begin: int,
    target: int,
    total: int,
    row: int,
    key0: int,
    key1: int,
    bits: int,
    slots: Words,
    ids: Words,
    starts: Words,
    room: Words,
    arena: Any,
    used: Words,
) -> int:
    """`hash_strings` and `insert` for columns `begin` and following of a plan. Returns how many there are; FULL - c if there is no room for
    a string of column c, or COLLISION if one of column used[NEW] differs from one with its id: the column then is to be begun again;
    INVALID if one is no value.

    frame: the address of the ArrowArray of a struct. plan: COLUMN words for each column. target: the address of pending rows, word after
    word, `total` of each; the ids go to those from `row` on.
    """
    n, start, children, columns = load(frame, LENGTH), load(frame, OFFSET), load(frame, CHILDREN), len(plan) // COLUMN
    firsts = np.empty(n, np.int64)
    for c in range(begin, columns):
        column, wide = load(children, plan[COLUMN * c + NUMBER]), plan[COLUMN * c + WIDE_OFFSETS]
        buffers, bit = load(column, BUFFERS), start + load(column, OFFSET)
        validity = load(buffers, 0) if load(column, NULLS) != 0 else 0
        offsets, data = load(buffers, 1) + (8 if wide else 4) * bit, load(buffers, 2)
        out = target + 8 * (total * plan[COLUMN * c + PLACE] + row)
        m = _hash_column(data, offsets, wide, n, validity, bit, key0, key1, bits, plan[COLUMN * c + CHECK], out, address_of(firsts))
        if m == INVALID:
            return np.int64(INVALID)
        done = _insert_column(data, offsets, wide, 0, address_of(firsts), m, slots, ids, starts, room, arena, used)
        if done == COLLISION:
            used[NEW] = c
            return np.int64(COLLISION)
        if done < 0:
            return np.int64(FULL - c)
    return np.int64(columns)


@kernel("void(int64[::1], int64[::1], int64)")
def rehash(slots: Words, ids: Words, entries: int) -> None:
    """Fills empty slots with all entries."""
    mask = len(slots) - 1
    slot_table, id_table = address_of(slots), address_of(ids)
    for entry in range(entries):
        if entry + 3 * AHEAD < entries:
            prefetch(slot_table, _home(mask, ids[entry + 3 * AHEAD]))
        slots[find(slot_table, mask, id_table, ids[entry])] = entry + 1


@kernel("int64(int64, int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int64[::1])")
def locate(wanted: int, slots: Words, ids: Words, starts: Words, arena: Any, entries: Words, offsets: Words) -> int:
    """Writes the entry of each wanted id to `entries`, -1 for NULL, -2 if it is absent; returns how many are absent.

    offsets (one more than entries): those of the entries' bytes, concatenated.
    """
    mask = len(slots) - 1
    slot_table, id_table, start_table, bytes_at = address_of(slots), address_of(ids), address_of(starts), address_of(arena)
    missing = 0
    offsets[0] = offset = 0
    for i in range(len(entries)):
        id_ = load(wanted, i)
        request(i, len(entries), wanted, slot_table, mask, id_table, start_table, bytes_at)
        entry = np.int64(-1)
        if id_ != WORD_MIN:
            entry = slots[find(slot_table, mask, id_table, id_)] - 1
            if entry >= 0:
                offset += starts[entry + 1] - starts[entry]
            else:
                entry = np.int64(-2)
                missing += 1
        entries[i] = entry
        offsets[i + 1] = offset
    return missing


@kernel("void(int64, int64, int64[::1], int64[::1], uint8[::1])")
def mark(wanted: int, n: int, slots: Words, ids: Words, marks: Any) -> None:
    """marks[e] = 1 for each entry e that one of n ids has; ignores absent ids."""
    mask = len(slots) - 1
    slot_table, id_table = address_of(slots), address_of(ids)
    for i in range(n):
        if i + 2 * AHEAD < n:
            prefetch(slot_table, _home(mask, load(wanted, i + 2 * AHEAD)))
        if i + AHEAD < n:
            prefetch(id_table, load(slot_table, _home(mask, load(wanted, i + AHEAD))) - 1)
        if load(wanted, i) != WORD_MIN:
            entry = slots[find(slot_table, mask, id_table, load(wanted, i))] - 1
            if entry >= 0:
                marks[entry] = 1


@kernel("void(int64[::1], int64[::1], uint8[::1], int64[::1], uint8[::1], uint8[::1])")
def gather(entries: Words, starts: Words, arena: Any, offsets: Words, out: Any, validity: Any) -> None:
    """Copies the entries' bytes to their offsets; sets a bit in `validity` (zeros) for each entry that is not negative."""
    source, target = address_of(arena), address_of(out)
    for i in range(len(entries)):
        entry = entries[i]
        if i + AHEAD < len(entries) and entries[i + AHEAD] >= 0:
            prefetch(source + starts[entries[i + AHEAD]], 0)
        if entry >= 0:
            copy_bytes(target + offsets[i], source + starts[entry], offsets[i + 1] - offsets[i])
            validity[i >> 3] |= 1 << (i & 7)


@part
def _big_endian(address: int, length: int) -> int:
    """Up to 8 bytes as an unsigned word, the first in the highest bits, zeros after the last."""
    word = np.uint64(0)
    for i in range(length):
        word |= np.uint64(load_byte(address + i)) << np.uint64(56 - 8 * i)
    return word


@part
def prefix_word(arena: int, starts: int, entry: int, number: int) -> int:
    """One of the three words of an entry that sort like its bytes: bytes 0 to 22, zero-padded, then min(length, PREFIX_BYTES) + 1;
    WORD_MIN for entry -1. arena, starts: addresses."""
    if entry < 0:
        return WORD_MIN
    length = load(starts, entry + 1) - load(starts, entry)
    source, rest = arena + load(starts, entry) + 8 * number, max(length - 8 * number, 0)
    if number < 2:
        return np.int64(_big_endian(source, min(rest, 8))) ^ WORD_MIN
    return np.int64(_big_endian(source, min(rest, 7)) | np.uint64(min(length, PREFIX_BYTES) + 1)) ^ WORD_MIN


@kernel("void(int64[::1], int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1])")
def prefixes(entries: Words, starts: Words, arena: Any, first: Words, second: Words, third: Words) -> None:
    """The words of each entry by which it sorts."""
    source, begin = address_of(arena), address_of(starts)
    for i in range(len(entries)):
        first[i] = prefix_word(source, begin, entries[i], 0)
        second[i] = prefix_word(source, begin, entries[i], 1)
        third[i] = prefix_word(source, begin, entries[i], 2)
