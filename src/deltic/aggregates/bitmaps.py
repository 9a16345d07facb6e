"""BITMAP_CONSTRUCT_AGG of positions; BITMAP_OR_AGG, BITMAP_AND_AGG of bitmaps: BINARYs of 4,096 bytes.

A bitmap has 32,768 positions; the bit of position p is that of 2^(p mod 8) in byte p div 8. A shorter bitmap has zeros after its end,
and a longer one counts up to 4,096 bytes. Without rows no bit is set, or for BITMAP_AND_AGG all are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import and_, or_
from typing import Final

from deltic.aggregates.definition import AggregateFunction, Listed, Rows, Signature
from deltic.aggregates.rules import refused
from deltic.errors import EvaluationError, Span
from deltic.schema import BIGINT, BINARY, NULL, STRING, Type

BYTES: Final = 4096
POSITIONS: Final = 8 * BYTES
_ALL: Final = (1 << POSITIONS) - 1


def _of_positions(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    if not types[0].is_numeric and types[0] not in (STRING, NULL):
        raise refused(name, types[0], "a number, the position of a bit", span)
    return Signature((BIGINT,), BINARY, nullable=False)


def _of_bitmaps(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    if types[0] not in (BINARY, NULL):
        raise refused(name, types[0], "BINARY", span)
    return Signature((BINARY,), BINARY, nullable=False)


def _constructed(rows: Rows, signature: Signature) -> bytes:
    bits = 0
    for (position,), _ in rows:
        assert isinstance(position, int)
        if not 0 <= position < POSITIONS:
            message = f"bitmap_construct_agg: the position {position} is not in 0 to {POSITIONS - 1}"
            raise EvaluationError(message, remedy="bitmap_bit_position(n) is the position of n in its bucket, bitmap_bucket_number(n)")
        bits |= 1 << position
    return bits.to_bytes(BYTES, "little")


def _bitmaps(rows: Rows) -> Iterator[int]:
    for (bitmap,), _ in rows:
        assert isinstance(bitmap, bytes)
        yield int.from_bytes(bitmap[:BYTES], "little")


def _merged(operation: Callable[[int, int], int], start: int) -> Callable[[Rows, Signature], bytes]:
    return lambda rows, signature: reduce(operation, _bitmaps(rows), start).to_bytes(BYTES, "little")


AGGREGATES = (
    AggregateFunction("bitmap_construct_agg", _of_positions, Listed(), _constructed, copies=False, always_distinct=True),
    AggregateFunction("bitmap_or_agg", _of_bitmaps, Listed(), _merged(or_, 0), copies=False),
    AggregateFunction("bitmap_and_agg", _of_bitmaps, Listed(), _merged(and_, _ALL), copies=False),
)
