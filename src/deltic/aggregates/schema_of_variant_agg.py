"""SCHEMA_OF_VARIANT_AGG: the schema that all VARIANTs have in common; VOID without any."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.aggregates.definition import AggregateFunction, Listed, Rows, Signature
from deltic.aggregates.rules import refused
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import total_key
from deltic.expr.rows.variants import merged, schema_of, schema_text
from deltic.schema import NULL, STRING, VARIANT, Type


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    if types[0] not in (VARIANT, NULL):
        raise refused(name, types[0], "VARIANT", span)
    return Signature((VARIANT,), STRING, nullable=False)


def _reference(rows: Rows, signature: Signature) -> Value:
    common = NULL
    for (value,), _ in sorted(rows, key=lambda row: total_key(row[0][0])):
        assert isinstance(value, tuple)
        common = merged(common, schema_of(value))
    return schema_text(common)


AGGREGATES = (AggregateFunction("schema_of_variant_agg", _rule, Listed(), _reference, distinct=False),)
