"""The type of a JSON text, as Spark's JsonInferSchema infers it."""

from __future__ import annotations

from typing import Any, Final

from deltic.expr.rows.json_text import JsonObject
from deltic.expr.rows.json_values import Number, read
from deltic.stacks import roomy
from deltic.types import BIGINT, BOOLEAN, DEEPEST, DOUBLE, NULL, STRING, Field, Type, array_type, decimal, struct

_LONGEST: Final = 38
_LONG: Final = decimal(20, 0)


class NestedType(ValueError):
    """JSON whose type is nested more deeply than a type may be."""


@roomy
def inferred(text: str) -> str:
    """The type as `Type.sql` writes it; STRING for text without a value.

    Raises MalformedJson, NestedType, and ValueError for two fields of one name.
    """
    if not text.strip():
        return STRING.sql
    value = read(text)
    if _levels(value) > DEEPEST:
        raise NestedType(f"JSON of more than {DEEPEST} levels of objects and arrays")
    type = _type_of(value)
    if (shaped := _shaped(type)) is not None:
        return shaped.sql
    if type.name == "ARRAY" and type.parts[0].type.name == "STRUCT":
        return array_type(struct(())).sql
    return (struct(()) if type.name == "STRUCT" else STRING).sql


def _levels(value: Any) -> int:
    """Of objects and arrays."""
    levels, parts = 0, [value]
    while parts := [part for part in parts if isinstance(part, list | JsonObject)]:
        levels += 1
        parts = [inner for part in parts for inner in (part if isinstance(part, list) else (one for _, one in part.pairs))]
    return levels


def _type_of(value: Any) -> Type:
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case Number():
            return _number(value)
        case list():
            element = NULL
            for one in value:
                element = _common(element, _type_of(one))
            return array_type(element)
        case JsonObject():
            fields = sorted(value.pairs, key=lambda pair: pair[0].encode("utf-16-be", "surrogatepass"))
            return struct(tuple(Field(name, _type_of(part)) for name, part in fields))
        case _:
            return STRING


def _number(number: Number) -> Type:
    if not number.whole:
        return DOUBLE
    digits = len(number.text.lstrip("-").lstrip("0")) or 1
    if digits < _LONG.precision and -(2**63) <= int(number.text) < 2**63:
        return BIGINT
    return decimal(digits, 0) if digits <= _LONGEST else DOUBLE


def _common(left: Type, right: Type) -> Type:
    if right in (left, NULL):
        return left
    if left == NULL:
        return right
    if left.is_numeric and right.is_numeric:
        if DOUBLE in (left, right):
            return DOUBLE
        a, b = (_LONG if one == BIGINT else one for one in (left, right))
        return decimal(max(a.precision, b.precision), 0)
    if left.name == right.name == "ARRAY":
        return array_type(_common(left.parts[0].type, right.parts[0].type))
    if left.name == right.name == "STRUCT":
        types = {part.name: part.type for part in left.parts}
        for part in right.parts:
            types[part.name] = _common(types.get(part.name, NULL), part.type)
        named = sorted(types.items(), key=lambda pair: pair[0].encode("utf-16-be", "surrogatepass"))
        return struct(tuple(Field(name, type) for name, type in named))
    return STRING


def _shaped(type: Type) -> Type | None:
    """STRING for what is only NULL; None for a STRUCT without fields."""
    if type == NULL:
        return STRING
    if type.name == "ARRAY":
        element = _shaped(type.parts[0].type)
        return None if element is None else array_type(element)
    if type.name == "STRUCT":
        parts = [(part.name, _shaped(part.type)) for part in type.parts]
        fields = tuple(Field(name, shaped) for name, shaped in parts if shaped is not None)
        return struct(fields) if fields else None
    return type
