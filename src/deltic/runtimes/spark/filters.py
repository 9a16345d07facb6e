"""Filters that Spark pushes into a read: which keys to look up, and which rows to drop.

Spark evaluates each filter again on the rows it receives. So this module never drops a row that Spark would keep, and ignores filters
that it cannot evaluate exactly (comparisons of floats, since Spark's NaN is a number).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import product
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from deltic.schema import Field, Schema, Type

MOST_KEYS: Final = 1024
"""A read that names more keys than this scans."""

_COMPARISONS: Final[dict[type[Filter], Any]] = {
    EqualTo: pc.equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
}
_TEXT_TESTS: Final[dict[type[Filter], Any]] = {
    StringStartsWith: pc.starts_with,
    StringEndsWith: pc.ends_with,
    StringContains: pc.match_substring,
}


def keys(filters: Iterable[Filter], leading: Sequence[Field]) -> list[tuple[Any, ...]] | None:
    """The keys that rows must begin with, each a value for the first, or the first few, of the `leading` fields; None for all rows.

    An empty list: no row passes.
    """
    filters = list(filters)
    choices: list[list[Any]] = []
    count = 1
    for field in leading:
        values = _choices(filters, field)
        if values is None or count * len(values) > MOST_KEYS:
            break
        choices.append(values)
        count *= len(values)
    return list(product(*choices)) if choices else None


def _choices(filters: Iterable[Filter], field: Field) -> list[Any] | None:
    """The values that a filter allows for the field, the fewest of several filters; None if no filter limits them."""
    allowed = [
        values
        for f in filters
        if isinstance(f, (EqualTo, EqualNullSafe, In)) and _is_of(f, field) and (values := _values(f, field.type)) is not None
    ]
    return min(allowed, key=len) if allowed else None


def _values(f: EqualTo | EqualNullSafe | In, type_: Type) -> list[Any] | None:
    if type_.is_collated:
        return None
    given = list(f.value) if isinstance(f, In) else [f.value]
    values = [value for value in given if value is not None]
    if len(values) < len(given) and not isinstance(f, In):
        return None
    scalars = [_scalar(value, type_) for value in values]
    if any(scalar is None for scalar in scalars):
        return None
    distinct = {scalar.as_py() for scalar in scalars if scalar is not None}
    if type_.is_float and 0.0 in distinct:
        return [*(distinct - {0.0}), 0.0, -0.0]
    return list(distinct)


def passing(table: pa.Table, filters: Iterable[Filter], schema: Schema) -> pa.Table:
    """The rows that pass all filters. table: has the columns of `schema`, or some of them. O(rows · filters)."""
    for f in filters:
        if (mask := _mask(table, f, schema)) is not None:
            table = table.filter(mask)
    return table


def columns_of(filters: Iterable[Filter], schema: Schema) -> set[str]:
    """The names of the columns that `passing` reads."""
    return {field.name for f in filters for field in schema if _is_of(_inner(f), field)}


def _mask(table: pa.Table, f: Filter, schema: Schema) -> Any:
    """True where the filter holds, NULL or False elsewhere; None if it cannot be evaluated exactly."""
    inner = _inner(f)
    field = next((field for field in schema if _is_of(inner, field)), None)
    if field is None:
        return None
    mask = _holds(table.column(field.name), inner, field.type)
    return mask if mask is None or inner is f else pc.invert(mask)


def _holds(column: pa.ChunkedArray[Any], f: Filter, type_: Type) -> Any:
    if isinstance(f, IsNotNull):
        return column.is_valid()
    if isinstance(f, IsNull) or (isinstance(f, EqualNullSafe) and f.value is None):
        return column.is_null()
    if type_.is_float or type_.is_collated:
        return None
    if isinstance(f, (StringStartsWith, StringEndsWith, StringContains)):
        return _TEXT_TESTS[type(f)](column, f.value) if type_.name == "STRING" else None
    if isinstance(f, In):
        values = None if None in list(f.value) else _values(f, type_)
        return None if values is None else pc.if_else(column.is_valid(), pc.is_in(column, pa.array(values, type_.arrow)), None)
    scalar = _scalar(getattr(f, "value", None), type_)
    if scalar is None:
        return None
    if isinstance(f, EqualNullSafe):
        return pc.fill_null(pc.equal(column, scalar), False)
    return _COMPARISONS[type(f)](column, scalar) if type(f) in _COMPARISONS else None


def _scalar(value: Any, type_: Type) -> pa.Scalar[Any] | None:
    """The value as a scalar of the type; None if it is not one, or is ambiguous (a datetime without a zone)."""
    if value is None or type_.is_nested or (isinstance(value, datetime) and value.tzinfo is None):
        return None
    try:
        return pa.scalar(Decimal(value) if type_.is_decimal else value, type_.arrow)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError):
        return None


def _inner(f: Filter) -> Filter:
    return f.child if isinstance(f, Not) else f


def _is_of(f: Filter, field: Field) -> bool:
    path: tuple[str, ...] = getattr(f, "attribute", ())
    return len(path) == 1 and path[0].lower() == field.name.lower()
