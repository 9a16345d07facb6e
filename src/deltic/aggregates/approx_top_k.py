"""APPROX_TOP_K(x[, k[, items]]): an ARRAY of (item, count) of the k most frequent values, NULL among them, the most frequent ones first.

It is exact: among values that occur equally often the least come first, NULL last. `items`, how many Spark tracks, changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

from deltic.aggregates.definition import AggregateFunction, Commonest, Rows, Signature
from deltic.aggregates.rules import refused, refused_argument
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import normalized, order_key
from deltic.schema import BIGINT, BOOLEAN, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, Field, Type
from deltic.types import array_type, struct

_DEFAULT: Final = 5
_MOST: Final = 100_000


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    item = types[0]
    if not item.is_numeric and item.plain not in (BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING):
        raise refused(name, item, "a number, a BOOLEAN, a STRING, a DATE or a TIMESTAMP", span)
    for position, type in enumerate(types[1:], 2):
        if not type.is_integer:
            raise refused_argument(name, position, type, "an integer", span)
    result = array_type(struct((Field("item", item.plain), Field("count", BIGINT))))
    return Signature((item.plain, *(INT for _ in types[1:])), result, nullable=False)


def _is_count(value: Value) -> bool:
    return isinstance(value, int) and 0 < value <= _MOST


def _reference(rows: Rows, signature: Signature) -> Value:
    counts: Counter[Hashable] = Counter()
    values: dict[Hashable, Value] = {}
    limit = _DEFAULT
    for (value, *constants), weight in rows:
        counts[order_key(value)] += weight
        values[order_key(value)] = normalized(value)
        if constants:
            assert isinstance(constants[0], int)
            limit = constants[0]
    first = sorted((key for key, count in counts.items() if count), key=lambda key: (-counts[key], values[key] is None, key))
    return tuple((values[key], counts[key]) for key in first[:limit])


_COUNTED: Final = {
    1: (f"the number of values, from 1 to {_MOST}", _is_count),
    2: ("a number of items, from 1", lambda value: isinstance(value, int) and value > 0),
}
_ONE: Final = AggregateFunction("approx_top_k", _rule, Commonest(values=_DEFAULT), _reference, optional=frozenset({0}))
AGGREGATES = (
    AggregateFunction(
        "approx_top_k",
        _rule,
        Commonest(limit=1),
        _reference,
        parameters=(1, 3),
        optional=frozenset({0}),
        constants=_COUNTED,
        variants={1: _ONE},
    ),
)
