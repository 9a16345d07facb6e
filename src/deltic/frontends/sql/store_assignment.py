"""Spark's ANSI store assignment: which types a column takes, and how it keeps their values."""

from __future__ import annotations

from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr import Expr, Literal, cast
from deltic.schema import NULL, STRING, Field, Type

_DATES: Final = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"))


def as_stored(value: Expr, field: Field, table: str, span: Span) -> Expr:
    """The value as a column of a table keeps it. Raises TypeMismatch, by Spark's rules of store assignment."""
    if isinstance(value, Literal) and value.value is None and not field.nullable:
        raise TypeMismatch(f"column {field.name} of table {table} is NOT NULL and gets no value", span=span, remedy="give it a value")
    type = field.type.read
    if not may_store(value.type, type):
        message = f"column {field.name} of table {table} is {type.sql}"
        raise TypeMismatch(message, span=value.span or span, expected=f"{type.sql}, found {value.type.sql}", remedy="CAST the value")
    return cast(value, type, value.span or span)


def may_store(source: Type, target: Type) -> bool:
    """Whether a value of one type may be stored as the other."""
    if source in (target, NULL) or source.plain == target.plain:
        return True
    if source.is_numeric and target.is_numeric:
        return True
    if target.plain == STRING:
        return not source.is_nested
    if {source.name, target.name} <= _DATES:
        return True
    if source.is_interval and target.is_interval:
        return source.is_day_time == target.is_day_time
    if source.name == target.name and source.is_nested and len(source.parts) == len(target.parts):
        return all(may_store(a.type, b.type) for a, b in zip(source.parts, target.parts, strict=True))
    return False
