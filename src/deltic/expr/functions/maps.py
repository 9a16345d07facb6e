"""MAPs from MAPs, from ARRAYs and from text, and their keys and entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.arrays.nested import entries
from deltic.expr.collating import as_is
from deltic.expr.functions.array_elements import ARRAY, element_type
from deltic.expr.functions.collated import splitting_to_map
from deltic.expr.functions.comparison import check_ordered, common_arguments
from deltic.expr.functions.nested import MAP, check_key
from deltic.expr.functions.signature import ANY, PLAIN_TEXT, accept, accept_each, any_nullable, check_count, first, takes, wrong_type
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Function, Typed, resolve
from deltic.expr.rows import maps as rows
from deltic.expr.rows.splits import to_map
from deltic.expr.typing import cast, common_type, tightest_type
from deltic.schema import BOOLEAN, NULL, STRING
from deltic.types import Field, array_type, map_type, struct

SORTED: Final = "sorted_maps"
"""The function from a value to the same with the entries of each MAP in it sorted by key, as which Spark groups it."""
_COMMA: Final = Literal(",", STRING)
_COLON: Final = Literal(":", STRING)


def _concatenated(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    if not arguments:
        return Literal((), map_type(STRING, STRING), span)
    taken = accept_each(name, arguments, MAP, span)
    same = common_arguments(name, taken, common_type([one.type for one in taken]), span)
    return Typed(same, same[0].type, any_nullable(taken))


def _contains(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(map, key), compared with the keys."""
    check_count(name, arguments, 2, 2, span)
    value, key = accept(name, 1, arguments[0], MAP, span), arguments[1]
    common = tightest_type(value.type.parts[0].type, key.type)
    if common is None or key.type == NULL:
        raise wrong_type(name, 2, key, value.type.parts[0].type.sql, span)
    check_ordered(name, common, span)
    keys = resolve("map_keys", [value], value.span)
    taken = (cast(keys, array_type(common)), cast(key, common))
    return Typed(taken, BOOLEAN, any_nullable(taken))


def _from_arrays(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 2, 2, span)
    keys, values = accept_each(name, arguments, ARRAY, span)
    if isinstance(keys, Call) and keys.function == "array" and not keys.arguments:
        expected = "an ARRAY with a type, as array(1)"
        raise TypeMismatch("an empty MAP has no types of keys and values", span=keys.span or span, expected=expected)
    check_key(element_type(keys), keys.span or span)
    return Typed((keys, values), map_type(element_type(keys), element_type(values)), keys.nullable or values.nullable)


def _from_entries(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 1, 1, span)
    array = accept(name, 1, arguments[0], ARRAY, span)
    pair = element_type(array)
    if pair.name != "STRUCT" or len(pair.parts) != 2:
        raise wrong_type(name, 1, array, "an ARRAY of STRUCTs of a key and a value", span)
    check_key(pair.parts[0].type, array.span or span)
    return Typed((array,), map_type(*(part.type for part in pair.parts)), True)


def _entries(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 1, 1, span)
    value = accept(name, 1, arguments[0], MAP, span)
    entry = struct(tuple(Field(part.name, part.type) for part in value.type.parts))
    return Typed((value,), array_type(entry), value.nullable)


def _split(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(text[, between entries[, between key and value]]): the delimiters are regular expressions."""
    check_count(name, arguments, 1, 3, span)
    whole = [*arguments, *(_COMMA, _COLON)[len(arguments) - 1 :]]
    taken = tuple(accept(name, i, a, PLAIN_TEXT, span) for i, a in enumerate(whole, 1))
    return Typed(taken, map_type(STRING, STRING), any_nullable(taken))


FUNCTIONS: Final = (
    Function(name="map_concat", signature=_concatenated, can_fail=True, rows=rows.concatenated, arrays=per_distinct, collated=as_is),
    Function(
        name="map_contains_key",
        signature=_contains,
        can_fail=False,
        ignores_sign_of_zero=True,
        rows=rows.has_key,
        arrays=per_distinct,
        collated=as_is,
    ),
    Function(name="map_from_arrays", signature=_from_arrays, can_fail=True, rows=rows.from_arrays, arrays=per_distinct, collated=as_is),
    Function(name="map_from_entries", signature=_from_entries, can_fail=True, rows=rows.from_entries, arrays=per_distinct, collated=as_is),
    Function(name="map_entries", signature=_entries, can_fail=False, rows=lambda call, value: value, arrays=entries, collated=as_is),
    Function(
        name=SORTED,
        named=False,
        signature=takes([ANY], first),
        can_fail=False,
        ignores_sign_of_zero=False,
        rows=lambda call, value: rows.sorted_maps(value, call.type),
        arrays=per_distinct,
        collated=as_is,
    ),
    Function(name="str_to_map", signature=_split, can_fail=True, rows=to_map, arrays=per_distinct, collated=splitting_to_map),
)
