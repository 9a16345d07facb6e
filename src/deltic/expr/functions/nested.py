"""ARRAY, MAP and STRUCT: making them, their parts, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays import nested as arrays
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import agreed_values, agreeing, as_is, retyped
from deltic.expr.functions.comparison import common_arguments
from deltic.expr.functions.signature import INTEGER, Parameter, accept, check_count, constant, takes, wrong_type
from deltic.expr.nodes import Call, Column, Expr, LambdaVariable, Literal, OuterColumn, Value
from deltic.expr.registry import Function, Nulls, Rewrite, Typed, resolve
from deltic.expr.rows import nested as rows
from deltic.expr.typing import cast, common_type, tightest_type
from deltic.schema import INT, NULL, STRING, Field, Type
from deltic.types import array_type, map_type, struct

COLLECTION: Final = Parameter("ARRAY or MAP", lambda t: t if t.name in ("ARRAY", "MAP") else None)
_SIZED: Final = Parameter("ARRAY or MAP", lambda t: array_type(NULL) if t == NULL else COLLECTION.accept(t))
MAP: Final = Parameter("MAP", lambda t: t if t.name == "MAP" else None)


def _array(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    if not arguments:
        return Typed((), array_type(NULL), False)
    taken = common_arguments(name, arguments, common_type([a.type for a in arguments]), span)
    return Typed(taken, array_type(taken[0].type), False)


def _map(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """key, value, key, value, …"""
    if not arguments:
        expected = "map(key, value, …); map_filter(map(1, 'a'), (k, v) -> false) is an empty MAP<INT, STRING>"
        raise TypeMismatch("an empty MAP has no types of keys and values", span=span, expected=expected)
    if len(arguments) % 2:
        raise TypeMismatch(f"{name} takes keys and values in turn, found {len(arguments)} arguments", span=span)
    keys = common_arguments(name, arguments[::2], common_type([a.type for a in arguments[::2]]), span)
    values = common_arguments(name, arguments[1::2], common_type([a.type for a in arguments[1::2]]), span)
    check_key(keys[0].type, keys[0].span or span)
    both = tuple(part for pair in zip(keys, values, strict=True) for part in pair)
    return Typed(both, map_type(keys[0].type, values[0].type), False)


def _map_of_texts(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """The keys are of one collation, and so are the values."""
    keys, values = agreed_values(name, arguments[::2], span), agreed_values(name, arguments[1::2], span)
    paired = [part for pair in zip(keys, values, strict=False) for part in pair]
    return record.built(name, [*paired, *arguments[len(paired) :]], span)


def check_key(type: Type, span: Span | None) -> None:
    """Raises TypeMismatch for what is no key of a MAP: a NULL, a MAP or a VARIANT, and what has one of these two in it."""
    if type == NULL:
        raise TypeMismatch("the key of a MAP cannot be NULL", span=span, expected="a key with a type, found VOID")
    if not type.is_ordered:
        raise TypeMismatch(f"the key of a MAP cannot be {type.sql}", span=span, expected="a type without a MAP or a VARIANT")


def _struct(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """Fields called as the columns are, or col1, col2, … by their places."""
    check_count(name, arguments, 1, None, span)
    names = [name_of(a) or f"col{i}" for i, a in enumerate(arguments, 1)]
    return _of_fields(names, arguments, span)


def name_of(expr: Expr) -> str:
    """The name that a column, a field or a parameter of a lambda gives to a field that is made of it; "" for other expressions."""
    match expr:
        case Column() | OuterColumn() | LambdaVariable():
            return expr.name
        case Call(function="field", arguments=(value, Literal(value=int(index)))):
            inner = value.type.parts[0].type if value.type.name == "ARRAY" else value.type
            return inner.parts[index].name
        case _:
            return ""


def _named_struct(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """name, value, name, value, …: the names are constants."""
    if len(arguments) % 2 or not arguments:
        raise TypeMismatch(f"{name} takes names and values in turn, found {len(arguments)} arguments", span=span)
    names = []
    for argument in arguments[::2]:
        word = constant(argument)
        if word is None or not isinstance(word.value, str):
            raise TypeMismatch(f"the name of a field of {name} is not a constant", span=argument.span or span, expected="a STRING")
        names.append(word.value)
    return _of_fields(names, arguments[1::2], span)


def _of_fields(names: Sequence[str], values: Sequence[Expr], span: Span | None) -> Expr:
    try:
        type = struct(tuple(Field(name, value.type) for name, value in zip(names, values, strict=True)))
    except ValueError as error:
        raise TypeMismatch(str(error), span=span, expected="names that differ") from None
    return Call("make_struct", tuple(values), type, False, span)


def _field(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """(value, name): a field of a STRUCT, of each STRUCT of an ARRAY, or the value of a MAP under the name."""
    check_count(name, arguments, 2, 2, span)
    value, word = arguments
    assert isinstance(word, Literal) and isinstance(word.value, str)
    if value.type.name == "MAP":
        return resolve("subscript", [value, word], span)
    inner = value.type.parts[0].type if value.type.name == "ARRAY" else value.type
    if inner.name != "STRUCT":
        expected, remedy = "a STRUCT, or an ARRAY or MAP of them", f"v:{word.value} reads a VARIANT" if inner.name == "VARIANT" else None
        raise TypeMismatch(f"{value.type.sql} has no field {word.value}", span=span, expected=expected, remedy=remedy)
    positions = [i for i, part in enumerate(inner.parts) if part.name.lower() == word.value.lower()]
    if not positions:
        fields = ", ".join(part.name for part in inner.parts)
        raise TypeMismatch(f"{inner.sql} has no field {word.value}", span=word.span or span, expected=f"one of {fields}")
    type = inner.parts[positions[0]].type
    nullable = value.nullable or value.type.name == "STRUCT"
    index = Literal(positions[0], INT)
    return Call("field", (value, index), type if value.type.name == "STRUCT" else array_type(type), nullable, span)


def _subscript(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    """value[index]: an element of an ARRAY by its place from 0, the value of a MAP under a key, a field of a STRUCT by its name."""
    check_count(name, arguments, 2, 2, span)
    value, index = arguments
    if value.type.name == "STRUCT" and isinstance(index, Literal) and index.type == STRING:
        return resolve("field", [value, index], span)
    return _part(name, value, index, span)


def _part(name: str, value: Expr, index: Expr, span: Span | None) -> Typed:
    accept(name, 1, value, COLLECTION, span)
    if value.type.name == "ARRAY":
        return Typed((value, accept(name, 2, index, INTEGER, span)), value.type.parts[0].type, True)
    key = value.type.parts[0].type
    if name == "[]" and isinstance(index, Literal) and index.type == STRING and key.is_text:
        index = retyped(index, key)  # any other text must have the collation of the keys
    common = common_type([key, index.type]) if name == "[]" else tightest_type(key, index.type)
    if common is None or (common != key and name == "[]"):
        raise wrong_type(name, 2, index, key.sql, span)
    return Typed((value, cast(index, common)), value.type.parts[1].type, True)


def _element_at(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 2, 2, span)
    return _part(name, arguments[0], arguments[1], span)


def _is_array(call: Call) -> bool:
    return call.arguments[0].type.name == "ARRAY"


def _lookup(place: Callable[[Call, int, int], int | None]) -> Callable[..., Value]:
    """place: (call, index, length) → the position in an ARRAY; None for NULL."""

    def of_row(call: Call, value: tuple[Any, ...], index: Any) -> Value:
        if not _is_array(call):
            return rows.value_under(call, value, index)
        position = place(call, index, len(value))
        element: Value = None if position is None else value[position]
        return element

    return of_row


def _of_map(part: int) -> Callable[[str, Sequence[Expr], Span | None], Typed]:
    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
        check_count(name, arguments, 1, 1, span)
        value = accept(name, 1, arguments[0], MAP, span)
        return Typed((value,), array_type(value.type.parts[part].type), value.nullable)

    return rule


def _parts(name: str, part: int) -> Function:
    return Function(
        name=name,
        signature=_of_map(part),
        can_fail=False,
        rows=lambda call, value: tuple(entry[part] for entry in value),
        arrays=per_distinct,
        collated=as_is,
    )


def _place(name: str, place: Callable[[Call, int, int], int | None], *, named: bool) -> Function:
    run = _lookup(place)
    return Function(
        name=name,
        named=named,
        signature=_element_at if named else _subscript,
        can_fail=_is_array,  # no cast of a MAP's keys to the tightest type can fail
        rows=run,
        arrays=arrays.element(place),
        collated=as_is,
    )


FUNCTIONS: Final = (
    Function(
        name="array",
        collated=agreeing,
        signature=_array,
        nulls=Nulls.SEEN,
        can_fail=False,
        rows=lambda call, *values: values,
        arrays=arrays.array,
    ),
    Function(
        name="map",
        collated=_map_of_texts,
        signature=_map,
        nulls=Nulls.SEEN,
        can_fail=True,
        rows=rows.make_map,
        arrays=arrays.make_map,
    ),
    Rewrite(name="struct", build=_struct),
    Rewrite(name="named_struct", build=_named_struct),
    Function(
        name="make_struct",
        collated=as_is,
        named=False,
        signature=_struct,
        nulls=Nulls.SEEN,
        can_fail=False,
        rows=lambda call, *values: values,
        arrays=arrays.make_struct,
    ),
    Function(name="field", collated=as_is, named=False, signature=_field, can_fail=False, rows=rows.field, arrays=arrays.field),
    _place("subscript", rows.place_from_0, named=False),
    _place("element_at", rows.place_from_1, named=True),
    _place("try_element_at", rows.place_or_null, named=True),
    Function(
        name="size",
        collated=as_is,
        aliases=("cardinality",),
        signature=takes([_SIZED], INT),
        can_fail=False,
        rows=rows.size,
        arrays=arrays.size,
    ),
    _parts("map_keys", 0),
    _parts("map_values", 1),
)
