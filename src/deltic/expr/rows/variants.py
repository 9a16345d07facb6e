"""VARIANT on one row: casts from and to it, the part at a path, and its schema. Values are the parts of deltic.variant_bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from deltic.errors import CastFailure, Span
from deltic.expr.failures import malformed
from deltic.expr.nodes import Value
from deltic.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Field,
    Type,
    decimal,
)
from deltic.stacks import unbounded
from deltic.types import array_type, quoted
from deltic.variant_bytes import Parts, Single, VariantPlace, Writer, folded, name_order
from deltic.variant_json import text_of
from deltic.variants import Variant

ScalarCast = Callable[[Value, Type, Type], Value]
"""(value, source, target) -> the value. Raises CastFailure."""
_SCALARS: Final = {
    **{"BOOLEAN": BOOLEAN, "BIGINT": BIGINT, "STRING": STRING, "DOUBLE": DOUBLE, "FLOAT": FLOAT, "BINARY": BINARY, "DATE": DATE},
    **{"TIMESTAMP": TIMESTAMP, "TIMESTAMP_NTZ": TIMESTAMP_NTZ, "NULL": NULL},
}
_LONG: Final = 2**63
_MOST_DIGITS: Final = 38
_SECOND: Final = 1_000_000
_STEP: Final = re.compile(r"\.([^.\[]+)|\['([^']*)'\]|\[\"([^\"]*)\"\]|\[([0-9]+)\]")
_GREATEST_INDEX: Final = 2**31 - 1


def written(value: Value, type: Type) -> Variant:
    """A value of SQL as a VARIANT: ARRAYs as arrays, STRUCTs and MAPs with keys of STRING as objects."""
    writer = Writer()
    _write(writer, value, type)
    return Variant(*writer.result)


def _write(writer: Writer, value: Any, type: Type) -> None:
    if value is None:
        writer.scalar(None)
    elif type == VARIANT:
        writer.place(VariantPlace(*value))
    elif not type.is_nested:
        writer.scalar(Single(value) if type == FLOAT else value)
    else:
        writer.begin(is_object=type.name != "ARRAY")
        if type.name == "STRUCT":
            for part, one in zip(type.parts, value, strict=True):
                writer.name(part.name)
                _write(writer, one, part.type)
        for one in value if type.name != "STRUCT" else ():
            if type.name == "MAP":
                writer.name(one[0])
            _write(writer, one[1] if type.name == "MAP" else one, type.parts[-1].type)
        writer.end()


def read(place: VariantPlace, target: Type, cast: ScalarCast, span: Span | None, *, lenient: bool) -> Value:
    """A part of a VARIANT cast to a type. Raises CastFailure.

    lenient: what cannot be cast is NULL, also within an ARRAY, MAP or STRUCT.
    """
    if target == VARIANT:
        writer = Writer()
        writer.place(place)
        return Variant(*writer.result)
    kind = place.kind
    if kind == "NULL":
        return None
    try:
        if not target.is_nested:
            return _scalar(place, kind, target, cast, span)
        if kind == ("ARRAY" if target.name == "ARRAY" else "OBJECT"):
            return _nested(place, target, cast, span, lenient=lenient)
    except CastFailure:
        if lenient:
            return None
        raise
    if lenient:
        return None
    raise malformed(text_of(place), VARIANT, target, span)


def _nested(place: VariantPlace, target: Type, cast: ScalarCast, span: Span | None, *, lenient: bool) -> Value:
    types = [part.type for part in target.parts]
    if target.name == "ARRAY":
        return tuple(read(element, types[0], cast, span, lenient=lenient) for element in place.elements)
    if target.name == "MAP":
        return tuple((name, read(item, types[1], cast, span, lenient=lenient)) for name, item in place.fields)
    fields = dict(place.fields)
    places = [fields.get(part.name) for part in target.parts]
    return tuple(None if one is None else read(one, type, cast, span, lenient=lenient) for one, type in zip(places, types, strict=True))


def _scalar(place: VariantPlace, kind: str, target: Type, cast: ScalarCast, span: Span | None) -> Value:
    """Raises CastFailure."""
    if kind in ("OBJECT", "ARRAY"):
        if target == STRING:
            return text_of(place)
        raise malformed(text_of(place), VARIANT, target, span)
    value: Value = place.scalar
    source = _decimal_type(place.scalar) if kind == "DECIMAL" else _SCALARS[kind]
    if source == target:
        return value
    beyond = target == TIMESTAMP and isinstance(value, int | Decimal) and not -_LONG <= Fraction(value) * _SECOND < _LONG
    result: Value = None
    if not beyond and _has_cast(source, target):
        with suppress(CastFailure):
            result = cast(value, source, target)
    if result is None:
        raise malformed(text_of(place), VARIANT, target, span)
    return result


def _decimal_type(value: Decimal) -> Type:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return decimal(max(len(digits), -exponent), -exponent)


def _has_cast(source: Type, target: Type) -> bool:
    """As can_cast of expr/typing.py, between scalars."""
    if STRING in (source, target):
        return True
    if source.is_numeric:
        return target.is_numeric or target in (BOOLEAN, TIMESTAMP)
    if source == BOOLEAN:
        return target.is_numeric
    moments = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    return source in moments and (target in moments or (source == TIMESTAMP and target.is_numeric))


@lru_cache(maxsize=256)
def steps(path: str) -> tuple[str | int, ...] | None:
    """The steps of a path; None if it is malformed.

    >>> steps("$.a['b c'][0]")
    ('a', 'b c', 0)
    """
    way: list[str | int] = []
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None or (step[4] and int(step[4]) > _GREATEST_INDEX):
            return None
        position = step.end()
        way.append(int(step[4]) if step[4] else next(name for name in step.groups() if name is not None))
    return tuple(way) if path.startswith("$") else None


def part_at(place: VariantPlace, way: Sequence[str | int]) -> VariantPlace | None:
    """The part that the steps lead to; None if there is none."""
    for step in way:
        part: VariantPlace | None = None
        if isinstance(step, str):
            part = place.field(step) if place.kind == "OBJECT" else None
        elif place.kind == "ARRAY":
            elements = place.elements
            part = elements[step] if step < len(elements) else None
        if part is None:
            return None
        place = part
    return place


def exploded(value: Parts) -> tuple[tuple[str | None, Variant], ...]:
    """(the name, the part) of each field of an object, (NULL, the part) of each element of an array; nothing of other values."""
    place = VariantPlace(*value)
    match place.kind:
        case "OBJECT":
            return tuple((name, Variant(*part.parts)) for name, part in place.fields)
        case "ARRAY":
            return tuple((None, Variant(*part.parts)) for part in place.elements)
        case _:
            return ()


def schema_of(value: Parts) -> Type:
    """The type of a value; of an object a STRUCT, VARIANT where elements of an array have no common type."""
    return folded(VariantPlace(*value), _schema_of_scalar, _schema_of_array, _struct)


def _schema_of_scalar(place: VariantPlace) -> Type:
    return _decimal_type(place.scalar) if place.kind == "DECIMAL" else _SCALARS[place.kind]


def _schema_of_array(elements: list[Type]) -> Type:
    common = NULL
    for element in elements:
        common = merged(common, element)
    return array_type(common)


def _struct(fields: list[tuple[str, Type]]) -> Type:
    """Of names that may differ in nothing but case."""
    return Type("STRUCT", parts=tuple(Field(name, type) for name, type in fields))


@unbounded
def schema_text(type: Type) -> str:
    """As Spark writes the schema of a VARIANT: an object is no STRUCT, since it has no order."""
    if type.name == "STRUCT":
        return f"OBJECT<{', '.join(f'{quoted(part.name)}: {schema_text(part.type)}' for part in type.parts)}>"
    return f"ARRAY<{schema_text(type.parts[0].type)}>" if type.name == "ARRAY" else type.sql


@unbounded
def merged(left: Type, right: Type) -> Type:
    """The type of what has one of two schemas, as Spark's JsonInferSchema has it; VARIANT if there is no other."""
    if (tightest := _tightest(left, right)) is not None:
        return tightest
    if left.name == right.name == "ARRAY":
        return array_type(merged(left.parts[0].type, right.parts[0].type))
    if left.name == right.name == "STRUCT":
        return _merged_structs(left, right)
    if left.is_numeric and right.is_numeric:
        return DOUBLE if left.is_float or right.is_float else _wider_decimal(_as_decimal(left), _as_decimal(right))
    return VARIANT


@lru_cache(maxsize=4096)
@unbounded
def _tightest(left: Type, right: Type) -> Type | None:
    """Spark's findTightestCommonType: case does not count in names of fields. Kept, since `merged` asks for each level again."""
    if right in (left, NULL):
        return left
    if left == NULL:
        return right
    for family in ((BIGINT, FLOAT, DOUBLE), (DATE, TIMESTAMP_NTZ, TIMESTAMP)):
        if left in family and right in family:
            return max(left, right, key=family.index)
    if BIGINT in (left, right) and (left.is_decimal or right.is_decimal):
        exact = left if left.is_decimal else right
        return exact if exact.precision - exact.scale >= _AS_DECIMAL.precision else None
    names = [[part.name.lower() for part in type.parts] for type in (left, right)]
    if left.name != right.name or left.name not in ("ARRAY", "STRUCT") or names[0] != names[1]:
        return None
    types = [_tightest(a.type, b.type) for a, b in zip(left.parts, right.parts, strict=True)]
    parts = [Field(part.name, type) for part, type in zip(left.parts, types, strict=True) if type is not None]
    return Type(left.name, parts=tuple(parts)) if len(parts) == len(types) else None


_AS_DECIMAL: Final = decimal(20, 0)
"""What holds every BIGINT."""


def _as_decimal(type: Type) -> Type:
    return type if type.is_decimal else _AS_DECIMAL


def _merged_structs(left: Type, right: Type) -> Type:
    types = {part.name: part.type for part in left.parts}
    for part in right.parts:
        types[part.name] = merged(types.get(part.name, NULL), part.type)
    return _struct(sorted(types.items(), key=lambda field: name_order(field[0])))


def _wider_decimal(left: Type, right: Type) -> Type:
    scale, whole = max(left.scale, right.scale), max(left.precision - left.scale, right.precision - right.scale)
    return decimal(whole + scale, scale) if whole + scale <= _MOST_DIGITS else DOUBLE
