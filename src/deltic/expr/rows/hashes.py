"""Murmur3 (x86, 32 bits) and XXH64 of one value, from a seed, as Spark's HASH and XXHASH64 compute them.

Both take Spark's layout of a value: four bytes of BOOLEAN to INT, FLOAT, DATE and a year-month INTERVAL, eight of BIGINT, DOUBLE,
TIMESTAMP, TIME (nanoseconds), a day-time INTERVAL and DECIMAL of at most 18 digits, the unscaled number's bytes of a longer one, UTF-8 of
a string, BINARY as it is. Spark's Murmur3 mixes the bytes after the last whole word one by one, each as a signed word.
"""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Final, assert_never

from deltic.expr.nodes import Value
from deltic.expr.rows.arithmetic import wrapped
from deltic.expr.rows.casts import EPOCH, MICROSECOND
from deltic.schema import BIGINT, FLOAT, INT, Type
from deltic.times import NANOSECONDS, micros_of

SEED: Final = 42
_32: Final = 2**32 - 1
_64: Final = 2**64 - 1
_SHORT_DECIMAL: Final = 18  # digits
_WIDE: Final = Context(prec=80)
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def layout(value: Value, type: Type) -> bytes:
    """The bytes that are hashed, least significant first; those of a long DECIMAL are Java's BigInteger, most significant first."""
    match value:
        case bool():
            return int(value).to_bytes(4, "little")
        case int():
            return value.to_bytes(8 if type == BIGINT else 4, "little", signed=True)
        case float():
            value = math.nan if math.isnan(value) else value + 0.0
            return struct.pack("<f" if type == FLOAT else "<d", value)
        case str():
            return value.encode()
        case bytes():
            return value
        case Decimal():
            units = int(value.scaleb(type.scale, _WIDE))
            if type.precision <= _SHORT_DECIMAL:
                return units.to_bytes(8, "little", signed=True)
            return units.to_bytes(((units if units >= 0 else ~units).bit_length() // 8) + 1, "big", signed=True)
        case datetime.datetime():
            return ((value.replace(tzinfo=datetime.UTC) - EPOCH) // MICROSECOND).to_bytes(8, "little", signed=True)
        case datetime.timedelta():
            return (value // MICROSECOND).to_bytes(8, "little", signed=True)
        case datetime.time():
            return (micros_of(value) * NANOSECONDS).to_bytes(8, "little")
        case datetime.date():
            return (value.toordinal() - EPOCH.toordinal()).to_bytes(4, "little", signed=True)
        case tuple():
            raise AssertionError("nested values are hashed by their parts")
        case None:
            raise AssertionError("NULL has no bytes")
        case _:
            assert_never(value)


def of_parts(run: Callable[[Value, Type, int], int]) -> Callable[[Value, Type, int], int]:
    """The hash of a nested value: of its parts in turn, each from the hash before it; NULL leaves that as it is."""

    def hashed(value: Value, type: Type, seed: int) -> int:
        if not isinstance(value, tuple):
            return run(value, type, seed)
        types = [part.type for part in type.parts] if type.name == "STRUCT" else [type.parts[0].type] * len(value)
        for part, kind in zip(value, types, strict=True):
            seed = seed if part is None else hashed(part, kind, seed)
        return seed

    return hashed


def murmur3(value: Value, type: Type, seed: int) -> int:
    """The 32 bits as a signed integer.

    >>> from deltic.schema import STRING
    >>> murmur3("a", STRING, SEED)
    1485273170
    """
    data = layout(value, type)
    whole = len(data) - len(data) % 4
    words = [*struct.unpack(f"<{whole // 4}I", data[:whole]), *(byte - 256 * (byte > 127) for byte in data[whole:])]
    state = seed & _32
    for word in words:
        mixed = _rotated(word * 0xCC9E2D51 & _32, 15, 32) * 0x1B873593 & _32
        state = _rotated(state ^ mixed, 13, 32) * 5 + 0xE6546B64 & _32
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & _32
    state = (state ^ state >> 13) * 0xC2B2AE35 & _32
    return wrapped(state ^ state >> 16, INT)


def xxhash64(value: Value, type: Type, seed: int) -> int:
    """The 64 bits as a signed integer.

    >>> from deltic.schema import STRING
    >>> xxhash64("a", STRING, SEED)
    -8582455328737087284
    """
    data, seed = layout(value, type), seed & _64
    position = len(data) - len(data) % 32
    state = (_stripes(data[:position], seed) if position else seed + _P5) + len(data)
    for (word,) in struct.iter_unpack("<Q", data[position : (words := position + (len(data) - position) // 8 * 8)]):
        state = _rotated((state ^ _round(0, word)) & _64, 27, 64) * _P1 + _P4
    if len(data) - words >= 4:
        (word,) = struct.unpack_from("<I", data, words)
        state = _rotated((state ^ word * _P1) & _64, 23, 64) * _P2 + _P3
        words += 4
    for byte in data[words:]:
        state = _rotated((state ^ byte * _P5) & _64, 11, 64) * _P1
    state &= _64
    state = (state ^ state >> 33) * _P2 & _64
    state = (state ^ state >> 29) * _P3 & _64
    return wrapped(state ^ state >> 32, BIGINT)


def _stripes(data: bytes, seed: int) -> int:
    """Blocks of 32 bytes, in four lanes."""
    lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
    for words in struct.iter_unpack("<4Q", data):
        lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
    state = sum(_rotated(lane & _64, by, 64) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
    for lane in lanes:
        state = (state ^ _round(0, lane)) * _P1 + _P4 & _64
    return state


def _round(lane: int, word: int) -> int:
    return _rotated(lane + word * _P2 & _64, 31, 64) * _P1 & _64


def _rotated(value: int, by: int, bits: int) -> int:
    return (value << by | value >> bits - by) & (1 << bits) - 1
