"""MODE: the most frequent value; of several such values the least, or the first in the order of WITHIN GROUP (ORDER BY x).

Spark returns any of them, unless there is an order or the second argument is TRUE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from deltic.aggregates.any_value import any_rule
from deltic.aggregates.definition import AggregateFunction, Commonest, Rows, Signature
from deltic.aggregates.rules import without_map
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import normalized, order_key
from deltic.schema import Type


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    without_map(name, types[0], span)
    return any_rule(name, types, span)


def _reference(rows: Rows, signature: Signature) -> Value:
    counts: Counter[Hashable] = Counter()
    values: dict[Hashable, Value] = {}
    for row, weight in rows:
        counts[order_key(row[0])] += weight
        values[order_key(row[0])] = normalized(row[0])
    most = max(counts.values())
    common = sorted((values[key] for key, count in counts.items() if count == most), key=order_key)
    return common[-1 if signature.directions and signature.directions[0][0] else 0]


AGGREGATES = (
    AggregateFunction(
        "mode",
        _rule,
        Commonest(),
        _reference,
        parameters=(1, 2),
        constants={1: ("TRUE or FALSE, whether the least of several is returned", lambda value: isinstance(value, bool))},
        within="value",
    ),
)
