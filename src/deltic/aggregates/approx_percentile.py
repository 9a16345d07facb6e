"""APPROX_PERCENTILE(x, p[, accuracy]), or PERCENTILE_APPROX: the value below or at which the share p of the values are, exactly.

Spark's result is the same where no error is allowed, in groups of fewer values than half the accuracy; its error may grow with larger ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltic.aggregates.definition import AggregateFunction, Ranked, Rows, Signature
from deltic.aggregates.percentile import FRACTION, at_ranks, fraction_type
from deltic.aggregates.rules import refused, refused_argument
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.schema import BIGINT, DATE, DOUBLE, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type
from deltic.types import array_type

_STATE = Ranked(interpolated=False)


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    type = DOUBLE if types[0] in (STRING, NULL) else types[0]
    if not type.is_numeric and not type.is_interval and type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        raise refused(name, type, "a number, DATE, TIMESTAMP or INTERVAL", span)
    fraction = fraction_type(name, types[1], span)
    if len(types) > 2 and not types[2].is_integer:
        raise refused_argument(name, 3, types[2], "an integer", span)
    return Signature((type, fraction, BIGINT)[: len(types)], array_type(type) if fraction.name == "ARRAY" else type)


def _reference(rows: Rows, signature: Signature) -> Value:
    values = at_ranks(rows, signature, _STATE.ranks(rows[0][0]))
    return values if isinstance(rows[0][0][1], tuple) else values[0]


AGGREGATES = (
    AggregateFunction(
        "approx_percentile",
        _rule,
        _STATE,
        _reference,
        aliases=("percentile_approx",),
        parameters=(2, 3),
        constants={**FRACTION, 2: ("an accuracy from 1 to 2147483647", lambda value: isinstance(value, int) and 0 < value < 1 << 31)},
    ),
)
