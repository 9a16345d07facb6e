"""Literals of Spark Connect's messages as those of SQL's syntax tree."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from typing import Final

import pyspark.sql.connect.proto as pb

from deltic.errors import Span, Unsupported
from deltic.frontends.dataframes.types import type_of
from deltic.frontends.sql import tree
from deltic.frontends.sql.parse_statement import parse_type
from deltic.schema import Type

_SUFFIXES: Final = {"integer": "", "long": "L", "short": "S", "byte": "Y"}
_ARRAYS: Final = {"bools": "boolean", "ints": "integer", "longs": "long", "floats": "float", "doubles": "double", "strings": "string"}
_EPOCH: Final = date(1970, 1, 1)


def literal(message: pb.Expression.Literal, span: Span) -> tree.Expression:
    """The literal. Raises Unsupported for a kind that Deltic does not have."""
    kind = message.WhichOneof("literal_type")
    match kind:
        case "null":
            typed = message.null.WhichOneof("kind") not in (None, "null")
            null = tree.KeywordExpression("NULL", span)
            return cast_call(null, type_of(message.null, span), span) if typed else null
        case "boolean":
            return tree.KeywordExpression(str(message.boolean).upper(), span)
        case "integer" | "long" | "short" | "byte":
            return tree.NumberText(f"{getattr(message, kind)}{_SUFFIXES[kind]}", span)
        case "float" | "double":
            return _float(getattr(message, kind), kind, span)
        case "string":
            return tree.StringText(message.string, span)
        case "binary":
            return tree.TypedText(tree.Name("X", span), message.binary.hex(), span)
        case "decimal":
            return tree.NumberText(f"{message.decimal.value}BD", span)  # PySpark's message has the type DECIMAL(10,0) for all
        case "date":
            return tree.TypedText(tree.Name("DATE", span), (_EPOCH + timedelta(days=message.date)).isoformat(), span)
        case "timestamp" | "timestamp_ntz":
            return _cast(_moment(getattr(message, kind)) + ("Z" if kind == "timestamp" else ""), kind.upper(), span)
        case "time":
            moment = _moment(message.time.nano // 1000)[11:]
            return _cast(moment, f"TIME({message.time.precision if message.time.HasField('precision') else 6})", span)
        case "day_time_interval":
            return _cast(_seconds(message.day_time_interval), "INTERVAL DAY TO SECOND", span)
        case "year_month_interval":
            months = abs(message.year_month_interval)
            sign = "-" if message.year_month_interval < 0 else ""
            return _cast(f"{sign}{months // 12}-{months % 12}", "INTERVAL YEAR TO MONTH", span)
        case "array":
            return tree.FunctionCall("array", tuple(literal(part, span) for part in message.array.elements), False, None, False, span)
        case "specialized_array":
            return _specialized(message.specialized_array, span)
        case "map":
            pairs = [part for pair in zip(message.map.keys, message.map.values, strict=True) for part in pair]
            return tree.FunctionCall("map", tuple(literal(part, span) for part in pairs), False, None, False, span)
        case "struct":
            return _struct(message, span)
        case _:
            raise Unsupported(f"a literal of type {kind} is not supported", span=span, remedy="another type")


def _moment(microseconds: int) -> str:
    return (datetime(1970, 1, 1) + timedelta(microseconds=microseconds)).isoformat(sep=" ", timespec="microseconds")


def _seconds(microseconds: int) -> str:
    """An interval in the form of INTERVAL '…' DAY TO SECOND."""
    rest, micros = divmod(abs(microseconds), 1_000_000)
    minutes, seconds = divmod(rest, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{'-' if microseconds < 0 else ''}{days} {hours:02}:{minutes:02}:{seconds:02}.{micros:06}"


def _float(value: float, kind: str, span: Span) -> tree.Expression:
    if math.isfinite(value):
        return tree.NumberText(f"{value!r}{kind[0].upper()}", span)
    name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return _cast(name, kind.upper(), span)


def _specialized(message: pb.Expression.Literal.SpecializedArray, span: Span) -> tree.Expression:
    kind = message.WhichOneof("value_type")
    assert kind is not None
    elements = [literal(pb.Expression.Literal(**{_ARRAYS[kind]: value}), span) for value in getattr(message, kind).values]
    return tree.FunctionCall("array", tuple(elements), False, None, False, span)


def _struct(message: pb.Expression.Literal, span: Span) -> tree.Expression:
    described = message.data_type if message.HasField("data_type") else message.struct.struct_type
    names = [field.name for field in described.struct.fields]
    parts = zip(names, message.struct.elements, strict=True)
    arguments = [part for name, value in parts for part in (tree.StringText(name, span), literal(value, span))]
    return tree.FunctionCall("named_struct", tuple(arguments), False, None, False, span)


def _cast(text: str, type: str, span: Span) -> tree.Expression:
    return tree.CastCall(tree.StringText(text, span), parse_type(type, "<type>"), False, span)


def cast_call(operand: tree.Expression, type: Type, span: Span, *, lenient: bool = False) -> tree.Expression:
    """CAST(operand AS type), or TRY_CAST if lenient."""
    return tree.CastCall(operand, parse_type(type.sql, "<type>"), lenient, span)
