"""COUNT_MIN_SKETCH(x, eps, confidence, seed): counts of values in a table of hashes (Cormode and Muthukrishnan 2005), as Spark's BINARY.

Each value adds to one cell in each of d rows of w cells, with w = ⌈2 / eps⌉ and d = ⌈-log2(1 - confidence)⌉. The least of its cells is at
least how often it occurs, and with this confidence at most eps times the number of rows more. The hash functions depend on the seed alone,
so that a deletion takes away what the insertion added. Layout, big-endian: 1, number of rows, d, w, d multipliers, d rows of w cells.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Final

from deltic.aggregates.definition import AggregateFunction, Listed, Rows, Signature
from deltic.aggregates.rules import refused, refused_argument
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.expr.rows.arithmetic import wrapped
from deltic.expr.rows.hashes import murmur3
from deltic.schema import BIGINT, BINARY, DOUBLE, INT, NULL, STRING, Type

_VERSION: Final = 1
_PRIME: Final = 2**31 - 1
_LEAST: Final = 1e-6
_CONSTANTS: Final = {
    1: ("eps, a number from 0.000001", lambda value: isinstance(value, float) and value >= _LEAST),
    2: ("the confidence, between 0 and 1", lambda value: isinstance(value, float) and 0 < value < 1),
    3: ("the seed, an integer", lambda value: isinstance(value, int)),
}


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    value, *rest, seed = types
    if not value.is_integer and value not in (STRING, BINARY, NULL):
        raise refused(name, value, "an integer, a STRING without a collation or a BINARY", span)
    for position, type in enumerate(rest, 2):
        if not type.is_numeric:
            raise refused_argument(name, position, type, "a number", span)
    if not seed.is_integer:
        raise refused_argument(name, 4, seed, "an integer", span)
    return Signature((BIGINT if value.is_integer or value == NULL else value, DOUBLE, DOUBLE, BIGINT), BINARY)


def _multipliers(seed: int, count: int) -> list[int]:
    """`count` numbers below the prime, by Java's linear congruential generator."""
    state, drawn = (seed ^ 0x5DEECE66D) & 2**48 - 1, list[int]()
    while len(drawn) < count:
        state = (state * 0x5DEECE66D + 0xB) & 2**48 - 1
        if (number := state >> 17) < _PRIME:
            drawn.append(number)
    return drawn


def _cells(value: Value, width: int, multipliers: Sequence[int]) -> Iterator[int]:
    """The cell of a value in each row."""
    if isinstance(value, int):
        for multiplier in multipliers:
            product = wrapped(multiplier * value, BIGINT)
            yield (product + (product >> 32) & _PRIME) % width
    else:
        type = BINARY if isinstance(value, bytes) else STRING
        first = murmur3(value, type, 0)
        second = murmur3(value, type, first)
        for i in range(len(multipliers)):
            yield abs(wrapped(first + i * second, INT)) % width


def _reference(rows: Rows, signature: Signature) -> bytes:
    _, eps, confidence, seed = rows[0][0]
    assert isinstance(eps, float) and isinstance(confidence, float) and isinstance(seed, int)
    width, depth = math.ceil(2 / eps), math.ceil(-math.log1p(-confidence) / math.log(2))
    multipliers = _multipliers(wrapped(seed, INT), depth)
    table, total = [[0] * width for _ in range(depth)], 0
    for (value, *_), weight in rows:
        total += weight
        for row, cell in zip(table, _cells(value, width, multipliers), strict=True):
            row[cell] += weight
    header = struct.pack(f">iqii{depth}q", _VERSION, total, depth, width, *multipliers)
    return header + b"".join(struct.pack(f">{width}q", *row) for row in table)


AGGREGATES = (AggregateFunction("count_min_sketch", _rule, Listed(), _reference, parameters=(4, 4), constants=_CONSTANTS),)
