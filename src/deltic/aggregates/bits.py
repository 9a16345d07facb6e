"""BIT_AND, BIT_OR, BIT_XOR of integers, bit by bit in two's complement; the result has the argument's type.

The state counts the values that have each bit set; the result depends on whether that is all of them, any, or an odd number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import and_, or_, xor

from deltic.aggregates.definition import AggregateFunction, Digits, Linear, Rows, Signature, Totals
from deltic.aggregates.rules import refused
from deltic.errors import Span
from deltic.schema import INT, INTEGER_BITS, NULL, Type


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    type = INT if types[0] == NULL else types[0]
    if not type.is_integer:
        raise refused(name, type, "an integer", span)
    return Signature((type,), type)


def _state(is_set: Callable[[int, int], bool]) -> Linear:
    """is_set: whether the result has a bit, given (the number of values that have it, the number of values)."""

    def finish(totals: Totals, signature: Signature) -> int:
        sign = INTEGER_BITS[signature.result.name] - 1
        bits = sum(1 << position for position, values in totals.digits[0].items() if is_set(values, totals.count))
        return bits - (2 << sign) if bits >> sign else bits

    return Linear(lambda arguments: (Digits("bits", arguments),), finish)


def _integers(rows: Rows) -> Iterator[tuple[int, int]]:
    for (value,), weight in rows:
        assert isinstance(value, int)
        yield value, weight


def _and(rows: Rows, signature: Signature) -> int:
    return reduce(and_, (value for value, _ in _integers(rows)))


def _or(rows: Rows, signature: Signature) -> int:
    return reduce(or_, (value for value, _ in _integers(rows)))


def _xor(rows: Rows, signature: Signature) -> int:
    return reduce(xor, (value for value, weight in _integers(rows) if weight % 2), 0)


AGGREGATES = (
    AggregateFunction("bit_and", _rule, _state(lambda values, count: values == count), _and, copies=False),
    AggregateFunction("bit_or", _rule, _state(lambda values, count: values > 0), _or, copies=False),
    AggregateFunction("bit_xor", _rule, _state(lambda values, count: values % 2 == 1), _xor),
)
