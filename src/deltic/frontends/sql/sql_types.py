"""Resolves SQL types to those of schema.py. Only Spark's own names are types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltic.errors import TypeMismatch, Unsupported
from deltic.expr.functions.collated import known_collation
from deltic.frontends.sql import tree
from deltic.kinds import KIND_WORDS
from deltic.schema import Field, Schema, Type, decimal
from deltic.types import MOST_PLACES, NESTED, PLAIN, TIME, array_type, limited, map_type, struct, text, time_type

MAX_PRECISION: Final = 38

_REMEDIES: Final = {
    **dict.fromkeys(("TEXT", "NVARCHAR", "UUID", "ENUM", "XML"), "STRING"),
    **dict.fromkeys(("BYTEA", "BLOB", "VARBINARY"), "BINARY"),
    **dict.fromkeys(("JSON", "JSONB"), "VARIANT, or STRING"),
    **dict.fromkeys(("DATETIME", "TIMESTAMPTZ"), "TIMESTAMP"),
    **dict.fromkeys(("SERIAL", "BIGSERIAL"), "BIGINT: each row comes with its key"),
    **dict.fromkeys(("MONEY", "NUMBER"), "DECIMAL(p, s)"),
    **dict.fromkeys(("LIST", "SET"), "ARRAY<element>"),
    **dict.fromkeys(("ROW", "TUPLE"), "STRUCT<name: type, …>"),
    **dict.fromkeys(("HUGEINT", "INT128"), "DECIMAL(38, 0)"),
    **dict.fromkeys(("INT8", "INT64", "UINT32"), "BIGINT"),
    **dict.fromkeys(("UINT8", "UINT16", "INT4", "INT32"), "INT"),
    **dict.fromkeys(("FLOAT8", "FLOAT64"), "DOUBLE"),
    "BOOL": "BOOLEAN",
    "FLOAT4": "FLOAT",
    "INT2": "SMALLINT",
    "UINT64": "DECIMAL(20, 0)",
    "INTERVAL": "INTERVAL DAY TO SECOND or INTERVAL YEAR TO MONTH, or another pair of their fields",
}
EXPECTED: Final = (
    "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), STRING, "
    "CHAR(n), VARCHAR(n), BINARY, DATE, TIME, TIME(p), TIMESTAMP, TIMESTAMP_NTZ, INTERVAL …, VARIANT, ARRAY<…>, MAP<…, …> or STRUCT<…>"
)
_FORMS: Final = {"ARRAY": "ARRAY<element>", "MAP": "MAP<key, value>", "STRUCT": "STRUCT<name: type, …>"}


def read_type(node: tree.TypeName) -> Type:
    """The type of an expression: as in Spark, CHAR and VARCHAR are STRING wherever they stand in it, and limit nothing."""
    return _type(node, stored=False).read


def sql_type(node: tree.TypeName) -> Type:
    """The type. Raises Unsupported for types that Deltic does not have."""
    return _type(node, stored=True)


def _type(node: tree.TypeName, *, stored: bool) -> Type:
    kind = KIND_WORDS.get(node.word)
    if node.collation is not None:
        if kind is None or kind.name != "STRING" or node.parameters or node.parts is not None:
            raise Unsupported(f"the type {node.word} with a collation is not supported", span=node.span, expected="STRING COLLATE …")
        return text(known_collation(node.collation.text, node.collation.span).name)
    if kind is not None and kind.name in NESTED and not node.parameters:
        return _nested(node, kind.name, stored=stored)
    if kind is not None and kind.name in ("CHAR", "VARCHAR") and node.parts is None:
        return _limited(node, kind.name)
    if kind is not None and kind.name == "TIME" and node.parts is None:
        return _time(node)
    if kind is not None and kind.name == "DECIMAL" and node.parts is None:
        return _decimal(node)
    if kind is not None and node.parts is None and not node.parameters:
        return PLAIN[kind.name]
    remedy = _REMEDIES.get(node.word.partition(" ")[0])
    if kind is not None and node.parts is None and node.parameters:
        raise Unsupported(f"{node.word} with a parameter is not supported", span=node.span, expected=EXPECTED, remedy=kind.name)
    raise Unsupported(f"the type {node.word} is not supported", span=node.span, expected=EXPECTED, remedy=remedy)


def _limited(node: tree.TypeName, name: str) -> Type:
    try:
        (length,) = node.parameters
        return limited(name, int(length))
    except ValueError:
        raise TypeMismatch(f"invalid {name}", span=node.span, expected=f"{name}(n), 1 ≤ n < 2^31") from None


def _time(node: tree.TypeName) -> Type:
    try:
        (places,) = node.parameters or (str(TIME.precision),)
        return time_type(int(places))
    except ValueError:
        raise TypeMismatch("invalid TIME", span=node.span, expected=f"TIME(p), 0 ≤ p ≤ {MOST_PLACES}") from None


def _nested(node: tree.TypeName, name: str, *, stored: bool) -> Type:
    parts = node.parts or ()
    for part in parts:
        if part.required:
            message = "NOT NULL is not supported within a type: a part of a nested value may be NULL"
            raise Unsupported(message, span=part.span, remedy="leave it out, and filter the rows")
    types = [sql_type(part.type) if stored else read_type(part.type) for part in parts]
    for part, type in zip(parts, types, strict=True):
        if type.is_limited:
            raise Unsupported(f"{type.sql} within a type is not supported", span=part.span, remedy="STRING")
    if name == "STRUCT" and node.parts is not None:
        fields = tuple(Field(part.name.text, type) for part, type in zip(parts, types, strict=True) if part.name is not None)
        try:
            return struct(fields)
        except ValueError as error:
            raise TypeMismatch(str(error), span=node.span, expected="names that differ") from None
    if name == "ARRAY" and len(types) == 1:
        return array_type(*types)
    if name == "MAP" and len(types) == 2:
        if not types[0].is_ordered:
            raise TypeMismatch(
                f"the key of a MAP cannot be {types[0].sql}", span=parts[0].span, expected="a type without a MAP or a VARIANT"
            )
        return map_type(*types)
    raise TypeMismatch(f"invalid {name}", span=node.span, expected=_FORMS[name])


def _decimal(node: tree.TypeName) -> Type:
    numbers = [int(text) for text in node.parameters if text.isdigit() and len(text) < 4]
    precision, scale = (*numbers, *(10, 0)[len(numbers) :])[:2]
    if len(numbers) != len(node.parameters) or len(numbers) > 2 or not (1 <= precision <= MAX_PRECISION and scale <= precision):
        raise TypeMismatch("invalid DECIMAL", span=node.span, expected=f"DECIMAL(p, s), 1 ≤ p ≤ {MAX_PRECISION}, 0 ≤ s ≤ p")
    return decimal(precision, scale)


def schema_of(parts: Sequence[tree.TypePart]) -> Schema:
    """The columns that `parse_columns` has read. Raises TypeMismatch and Unsupported as `sql_type` does."""
    return Schema(tuple(Field(part.name.text, sql_type(part.type)) for part in parts if part.name is not None))
