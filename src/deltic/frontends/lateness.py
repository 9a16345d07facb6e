"""LATENESS of a column, as the front ends declare it: the time after which rows of a table are late."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from deltic.errors import CircuitError, Span, TypeMismatch, Unsupported, did_you_mean
from deltic.expr.nodes import Literal
from deltic.frontends.sql.delays import FORM, delay_us
from deltic.schema import TIMESTAMP, Lateness, Schema, TableSchema

MICROSECOND = timedelta(microseconds=1)
MOST = timedelta(days=3_652_058)
"""The length of the calendar."""


def in_sql(table: TableSchema, column: int, interval: Literal, span: Span) -> TableSchema:
    """The table with the lateness of a column, which becomes NOT NULL. span: the place of the column."""
    field = table.schema[column]
    if field.type != TIMESTAMP:
        raise TypeMismatch(f"LATENESS of column {field.name}, which is {field.type.sql}", span=span, expected="a column of type TIMESTAMP")
    if not isinstance(interval.value, timedelta) or not timedelta() <= interval.value <= MOST:
        expected = f"an INTERVAL of days or less, not negative and at most {MOST.days:,} DAYS"
        raise TypeMismatch("invalid LATENESS", span=interval.span, expected=expected)
    if table.key:
        remedy = f"leave out the PRIMARY KEY, or make {table.name} a stream"
        raise Unsupported("LATENESS in a table with a PRIMARY KEY: an upsert could replace a row that is late", span=span, remedy=remedy)
    return _with_lateness(table, Lateness(column, interval.value // MICROSECOND))


def in_python(table: TableSchema, column: str, delay: timedelta | str) -> TableSchema:
    """The table with the lateness of a column, which becomes NOT NULL. Raises CircuitError."""
    positions = table.schema.find(column)
    if not positions:
        remedy = did_you_mean(column, table.schema.names)
        raise CircuitError(f"input {table.name} has a lateness of {column!r}, which is not a column of it", remedy=remedy)
    if (type_ := table.schema[positions[0]].type) != TIMESTAMP:
        raise CircuitError(f"input {table.name} has a lateness of {column}, which is {type_.sql}", expected="a column of type TIMESTAMP")
    microseconds = delay // MICROSECOND if isinstance(delay, timedelta) else delay_us(delay) if isinstance(delay, str) else None
    if microseconds is None or not 0 <= microseconds <= MOST // MICROSECOND:
        raise CircuitError(f"the lateness of {table.name}.{column} is {delay!r}", expected=f"a timedelta, or {FORM}")
    if table.key:
        raise CircuitError(f"input {table.name} has a key and a lateness", remedy="leave out the key, or use circuit.stream")
    return _with_lateness(table, Lateness(positions[0], microseconds))


def _with_lateness(table: TableSchema, lateness: Lateness) -> TableSchema:
    fields = [replace(field, nullable=field.nullable and i != lateness.column) for i, field in enumerate(table.schema)]
    return replace(table, schema=Schema(tuple(fields)), lateness=lateness)
