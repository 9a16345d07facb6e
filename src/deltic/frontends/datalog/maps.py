"""Functions of Maps, under the names of DDlog's library. None changes its argument: `insert_imm` and `remove_imm` give a new Map.

Two of them are of Sets, too. The entries of a Map are in the order in which they were added, which SQL sees; `keys` are in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltic.errors import TypeMismatch, Unsupported
from deltic.expr import cast, resolve
from deltic.expr.functions.signature import check_count
from deltic.expr.nodes import Expr, Lambda, LambdaVariable
from deltic.frontends.datalog.declarations import BoundTerm
from deltic.frontends.datalog.kinds import BOOL, Kind, MapKind, TupleKind, VectorKind, stored
from deltic.frontends.datalog.sets import insert_element, remove_element
from deltic.frontends.datalog.tree import CallTerm
from deltic.frontends.datalog.values import map_of, optional
from deltic.types import array_type

if TYPE_CHECKING:
    from deltic.frontends.datalog.bind_term import TermBinder

MAP_EMPTY: Final = "map_empty"


def elements(value: BoundTerm) -> BoundTerm | None:
    """What FlatMap makes rows of, as a Vec: of a Map its entries as tuples. None of other values."""
    if isinstance(value.kind, VectorKind):
        return value
    if not isinstance(value.kind, MapKind):
        return None
    kind = VectorKind(TupleKind((value.kind.key, value.kind.value)))
    return BoundTerm(cast(resolve("map_entries", [value.expr]), stored(kind)), kind)


def _of_map(binder: TermBinder, term: CallTerm, count: int) -> tuple[BoundTerm, MapKind]:
    check_count(term.name, term.arguments, count, count, term.span)
    value = binder.bind(term.arguments[0])
    if not isinstance(value.kind, MapKind):
        raise TypeMismatch(f"{term.name} does not accept {value.kind}", span=term.span, expected="a Map")
    return value, value.kind


def _empty(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    check_count(term.name, term.arguments, 0, 0, term.span)
    if not isinstance(expected, MapKind):
        remedy = "write it where its type is known, or write an entry: [k -> v]"
        raise TypeMismatch("the type of an empty Map is not known here", span=term.span, remedy=remedy)
    return map_of((), expected, term.span)


def map_get(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    """get(m, k): the value under the key, or None."""
    value, kind = _of_map(binder, term, 2)
    key = binder.bind(term.arguments[1], kind.key)
    return optional(resolve("try_element_at", [value.expr, key.expr], term.span), kind.value, term.span)


def contains_key(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    """Whether the Map has the key."""
    value, kind = _of_map(binder, term, 2)
    key = binder.bind(term.arguments[1], kind.key)
    return BoundTerm(resolve("map_contains_key", [value.expr, key.expr], term.span), BOOL)


def with_entry(map: Expr, key: Expr, value: Expr) -> Expr:
    """The Map with the value under the key."""
    return resolve("map_concat", [without_entry(map, key), resolve("map", [key, value], key.span)], key.span)


def without_entry(map: Expr, key: Expr) -> Expr:
    """The Map without the key."""
    of_key, of_value = map.type.parts
    one, other = LambdaVariable(0, 0, of_key.type, False, "k", key.span), LambdaVariable(0, 1, of_value.type, True, "v", key.span)
    return resolve("map_filter", [map, Lambda((one, other), resolve("!=", [one, key], key.span))], key.span)


def _insert(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    """insert_imm(m, k, v): with the value under the key instead of an old one; insert_imm(s, x) of a Set."""
    check_count(term.name, term.arguments, 2, 3, term.span)
    value = binder.bind(term.arguments[0], expected if isinstance(expected, MapKind) else None)
    if not isinstance(value.kind, MapKind):
        return insert_element(binder, term, expected)
    check_count(term.name, term.arguments, 3, 3, term.span)
    kind = value.kind
    key, item = binder.bind(term.arguments[1], kind.key), binder.bind(term.arguments[2], kind.value)
    return BoundTerm(with_entry(value.expr, key.expr, item.expr), kind)


def _remove(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    """remove_imm(m, k), of a Set remove_imm(s, x)."""
    check_count(term.name, term.arguments, 2, 2, term.span)
    value = binder.bind(term.arguments[0], expected if isinstance(expected, MapKind) else None)
    if not isinstance(value.kind, MapKind):
        return remove_element(binder, term, expected)
    return BoundTerm(without_entry(value.expr, binder.bind(term.arguments[1], value.kind.key).expr), value.kind)


def _keys(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    value, kind = _of_map(binder, term, 1)
    keys = resolve("sort_array", [resolve("map_keys", [value.expr], term.span)], term.span)
    return BoundTerm(cast(keys, array_type(stored(kind.key))), VectorKind(kind.key))


def _in_place(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    new = {"insert": "insert_imm(m, k, v)", "remove": "remove_imm(m, k)"}[term.name.removeprefix("map_")]
    raise Unsupported(f"{term.name} changes its argument, and values do not change", span=term.span, remedy=f"{new} gives a new Map")


MAP_FUNCTIONS: Final = {
    MAP_EMPTY: _empty,
    "map_get": map_get,
    "contains_key": contains_key,
    "map_contains_key": contains_key,
    **dict.fromkeys(("insert_imm", "map_insert_imm"), _insert),
    **dict.fromkeys(("remove_imm", "map_remove_imm"), _remove),
    **dict.fromkeys(("keys", "map_keys"), _keys),
    **dict.fromkeys(("insert", "map_insert", "remove", "map_remove"), _in_place),
}
"""By name. Those that other values have, too, are in BUILTINS."""
