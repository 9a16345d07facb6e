"""Types of Spark Connect's messages."""

from __future__ import annotations

from typing import Final

import pyspark.sql.connect.proto as pb

from deltic.errors import Span, Unsupported
from deltic.kinds import DAY_TIME, YEAR_MONTH
from deltic.schema import Field, Schema, Type, decimal
from deltic.types import PLAIN, array_type, interval, limited, map_type, struct, text, time_type

_PLAIN: Final = {
    "null": "VOID",
    "binary": "BINARY",
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP_NTZ",
    "variant": "VARIANT",
}
_KINDS: Final = {name: kind for kind, name in _PLAIN.items()}


def type_of(message: pb.DataType, span: Span | None) -> Type:
    """The type of a message. Raises Unsupported for a type that Deltic does not have."""
    kind = message.WhichOneof("kind")
    match kind:
        case str() if kind in _PLAIN:
            return PLAIN[_PLAIN[kind]]
        case "string":
            return text(message.string.collation)
        case "decimal":
            return decimal(message.decimal.precision, message.decimal.scale)
        case "char" | "var_char":
            return limited("CHAR" if kind == "char" else "VARCHAR", getattr(message, kind).length)
        case "time":
            return time_type(message.time.precision if message.time.HasField("precision") else 6)
        case "day_time_interval" | "year_month_interval":
            fields: tuple[str, ...] = DAY_TIME if kind == "day_time_interval" else YEAR_MONTH
            part = getattr(message, kind)
            first = part.start_field if part.HasField("start_field") else 0
            return interval(fields[first], fields[part.end_field if part.HasField("end_field") else len(fields) - 1])
        case "array":
            return array_type(type_of(message.array.element_type, span))
        case "map":
            return map_type(type_of(message.map.key_type, span), type_of(message.map.value_type, span))
        case "struct":
            return struct(tuple(Field(part.name, type_of(part.data_type, span)) for part in message.struct.fields))
        case _:
            raise Unsupported(f"the type {kind} is not supported", span=span, remedy="cast it to another type")


def message_of(type: Type) -> pb.DataType:
    """The message of a type."""
    message = pb.DataType()
    match type.name:
        case name if name in _KINDS:
            getattr(message, _KINDS[name]).SetInParent()
        case "STRING":
            message.string.collation = type.collation or "UTF8_BINARY"
        case "DECIMAL":
            message.decimal.precision, message.decimal.scale = type.precision, type.scale
        case "CHAR" | "VARCHAR":
            getattr(message, "char" if type.name == "CHAR" else "var_char").length = type.precision
        case "TIME":
            message.time.precision = type.precision
        case "ARRAY":
            message.array.element_type.CopyFrom(message_of(type.parts[0].type))
            message.array.contains_null = True
        case "MAP":
            message.map.key_type.CopyFrom(message_of(type.parts[0].type))
            message.map.value_type.CopyFrom(message_of(type.parts[1].type))
            message.map.value_contains_null = True
        case "STRUCT":
            message.CopyFrom(row_message(Schema(type.parts)))
        case _:
            _set_interval(message, type)
    return message


def _set_interval(message: pb.DataType, type: Type) -> None:
    fields: tuple[str, ...] = DAY_TIME if type.is_day_time else YEAR_MONTH
    part = message.day_time_interval if type.is_day_time else message.year_month_interval
    part.start_field, part.end_field = (fields.index(name) for name in type.fields)


def row_message(schema: Schema) -> pb.DataType:
    """The message of the type of rows."""
    message = pb.DataType()
    message.struct.SetInParent()
    for field in schema:
        message.struct.fields.add(name=field.name, data_type=message_of(field.type), nullable=field.nullable)
    return message
