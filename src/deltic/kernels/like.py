"""The operation LIKE on texts of a lane: compiled into `evaluation.evaluate`. Texts are found by their ids (`nested_words.py`).

A pattern is a list of pieces, between which any text may be: how many they are, then of each its bytes and these, eight to a word, the
first lowest. The first piece begins the text and the last one ends it, so a pattern that begins or ends with % has an empty piece there.
"""

from __future__ import annotations

from deltic.kernels.compiler import part
from deltic.kernels.memory import Words, load, load_byte
from deltic.kernels.nested_words import STRINGS_ARENA, STRINGS_STARTS, entry_of_id, request_ahead

NO_TEXT = -1
"""Instead of whether a text matches: the id is absent."""


@part
def is_piece(code: Words, at: int, length: int, source: int) -> bool:
    """Whether the bytes at an address are those of a piece."""
    i = 0
    while i < length and load_byte(source + i) == (code[at + (i >> 3)] >> (8 * (i & 7))) & 255:
        i += 1
    return i == length


@part
def matches(code: Words, at: int, source: int, end: int) -> bool:
    """Whether the bytes from `source` to `end` match the pattern at word `at`. Each piece between takes the first place that it fits."""
    pieces, length = code[at], code[at + 1]
    if length > end - source or not is_piece(code, at + 2, length, source):
        return False
    source += length
    if pieces == 1:
        return source == end
    at += 2 + ((length + 7) >> 3)
    for _ in range(pieces - 2):
        length = code[at]
        while source + length <= end and not is_piece(code, at + 1, length, source):
            source += 1
        source += length
        if source > end:
            return False
        at += 1 + ((length + 7) >> 3)
    length = code[at]
    return source + length <= end and is_piece(code, at + 1, length, end - length)


@part
def text_matches(code: Words, at: int, state: Words, ids: int, i: int, n: int) -> int:
    """Whether text i of n matches the pattern at word `at`, or NO_TEXT."""
    request_ahead(state, ids, i, n)
    entry = entry_of_id(state, load(ids, i))
    if entry < 0:
        return NO_TEXT
    starts, arena = state[STRINGS_STARTS], state[STRINGS_ARENA]
    return int(matches(code, at, arena + load(starts, entry), arena + load(starts, entry + 1)))
