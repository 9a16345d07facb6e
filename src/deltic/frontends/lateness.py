"""LATENESS of a column, as the front ends declare it: when rows of a table are late, or too far ahead."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from deltic.errors import CircuitError, Span, TypeMismatch, Unsupported, did_you_mean
from deltic.expr.nodes import Literal
from deltic.frontends.sql.delays import FORM, delay_us
from deltic.schema import BIGINT, DATE, TIMESTAMP, Lateness, Schema, TableSchema, Type

MICROSECOND: Final = timedelta(microseconds=1)
MOST: Final = timedelta(days=3_652_058)
"""The length of the calendar."""
MOST_UNITS: Final = (1 << 63) - 1
COLUMNS: Final = "a column of type TIMESTAMP, DATE or a whole number"
Delay = timedelta | str | int


def in_sql(table: TableSchema, column: int, delay: Literal, ahead: Literal | None, span: Span) -> TableSchema:
    """The table with the lateness of a column, which becomes NOT NULL. span: the place of the column."""
    field = table.schema[column]
    if not _has_order_of_time(field.type):
        remedy = "convert the column first, or add one of these types"
        raise TypeMismatch(f"LATENESS of column {field.name}, which is {field.type.sql}", span=span, expected=COLUMNS, remedy=remedy)
    if table.key:
        remedy = f"leave out the PRIMARY KEY, or make {table.name} a stream"
        raise Unsupported("LATENESS in a table with a PRIMARY KEY: an upsert could replace a row that is late", span=span, remedy=remedy)
    units = [_units("LATENESS", delay, field.type)] + ([] if ahead is None else [_units("AHEAD", ahead, field.type)])
    return _with_lateness(table, Lateness(column, *units))


def _units(word: str, delay: Literal, type_: Type) -> int:
    """The delay in microseconds, or in units of a whole number. Raises TypeMismatch."""
    if type_.is_integer:
        if delay.type == BIGINT and isinstance(delay.value, int) and delay.value <= MOST_UNITS:
            return delay.value
        expected = f"{word} 100, for example: a whole number, as the column is {type_.sql}"
    else:
        if isinstance(delay.value, timedelta) and timedelta() <= delay.value <= MOST:
            return delay.value // MICROSECOND
        expected = f"an INTERVAL of days or less, not negative and at most {MOST.days:,} DAYS"
    raise TypeMismatch(f"invalid {word}", span=delay.span, expected=expected)


def in_python(table: TableSchema, column: str, delay: Delay, ahead: Delay | None) -> TableSchema:
    """The table with the lateness of a column, which becomes NOT NULL. Raises CircuitError."""
    positions = table.schema.find(column)
    if not positions:
        remedy = did_you_mean(column, table.schema.names)
        raise CircuitError(f"input {table.name} has a lateness of {column!r}, which is not a column of it", remedy=remedy)
    if not _has_order_of_time(type_ := table.schema[positions[0]].type):
        raise CircuitError(f"input {table.name} has a lateness of {column}, which is {type_.sql}", expected=COLUMNS)
    if table.key:
        raise CircuitError(f"input {table.name} has a key and a lateness", remedy="leave out the key, or use circuit.stream")
    units = [_units_in_python(f"the lateness of {table.name}.{column}", delay, type_)]
    units += [] if ahead is None else [_units_in_python(f"ahead, of input {table.name},", ahead, type_)]
    return _with_lateness(table, Lateness(positions[0], *units))


def _units_in_python(what: str, delay: Delay, type_: Type) -> int:
    if type_.is_integer:
        units = delay if isinstance(delay, int) and not isinstance(delay, bool) else None
        most, form = MOST_UNITS, f"a whole number, as the column is {type_.sql}"
    else:
        units = delay // MICROSECOND if isinstance(delay, timedelta) else delay_us(delay) if isinstance(delay, str) else None
        most, form = MOST // MICROSECOND, f"a timedelta, or {FORM}"
    if units is None or not 0 <= units <= most:
        raise CircuitError(f"{what} is {delay!r}", expected=form)
    return units


def _has_order_of_time(type_: Type) -> bool:
    return type_ in (TIMESTAMP, DATE) or type_.is_integer


def _with_lateness(table: TableSchema, lateness: Lateness) -> TableSchema:
    fields = [replace(field, nullable=field.nullable and i != lateness.column) for i, field in enumerate(table.schema)]
    return replace(table, schema=Schema(tuple(fields)), lateness=lateness)
