"""Functions that make Sets, under the names of DDlog's library: set_empty, set_singleton, insert_imm, remove_imm, union; push_imm.

A Set is stored as an ARRAY in order and without duplicates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltic.errors import Span, TypeMismatch
from deltic.expr import resolve
from deltic.expr.functions.signature import check_count
from deltic.expr.nodes import Call, Expr, Literal
from deltic.frontends.datalog.declarations import BoundTerm, check_comparable
from deltic.frontends.datalog.kinds import Kind, VectorKind, stored
from deltic.frontends.datalog.tree import CallTerm
from deltic.types import array_type

if TYPE_CHECKING:
    from deltic.frontends.datalog.bind_term import TermBinder

SET: Final = "Set"
SET_EMPTY: Final = "set_empty"


def of_sets(binder: TermBinder, term: CallTerm, expected: Kind | None) -> tuple[BoundTerm, VectorKind]:
    """The first of two arguments, a Set."""
    check_count(term.name, term.arguments, 2, 2, term.span)
    value = binder.bind(term.arguments[0], expected if _is_set(expected) else None)
    if not isinstance(value.kind, VectorKind) or value.kind.name != SET:
        raise TypeMismatch(f"{term.name} does not accept {value.kind}", span=term.span, expected="a Set or a Map")
    return value, value.kind


def _is_set(kind: Kind | None) -> bool:
    return isinstance(kind, VectorKind) and kind.name == SET


def set_of(vector: BoundTerm, item: Kind, span: Span) -> BoundTerm:
    """The Set of the elements of a Vec."""
    check_comparable(item, "the type of the elements of a Set", span)
    return BoundTerm(resolve("sort_array", [resolve("array_distinct", [vector.expr], span)], span), VectorKind(item, SET))


def with_element(array: Expr, element: Expr) -> Expr:
    """The Set with the element."""
    one = Call("array", (element,), array_type(element.type), False)
    return resolve("sort_array", [resolve("array_union", [array, one], element.span)], element.span)


def without_element(array: Expr, element: Expr) -> Expr:
    """The Set without the element."""
    return resolve("array_remove", [array, element], element.span)


def union(array: Expr, other: Expr) -> Expr:
    """The elements of both Sets."""
    return resolve("sort_array", [resolve("array_union", [array, other], other.span)], other.span)


def insert_element(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    """insert_imm(s, x)."""
    value, kind = of_sets(binder, term, expected)
    return BoundTerm(with_element(value.expr, binder.bind(term.arguments[1], kind.item).expr), kind)


def remove_element(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    """remove_imm(s, x)."""
    value, kind = of_sets(binder, term, expected)
    return BoundTerm(without_element(value.expr, binder.bind(term.arguments[1], kind.item).expr), kind)


def _empty(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    check_count(term.name, term.arguments, 0, 0, term.span)
    if expected is None or not _is_set(expected):
        remedy = "write it where its type is known, or set_singleton(x)"
        raise TypeMismatch("the type of an empty Set is not known here", span=term.span, remedy=remedy)
    return BoundTerm(Literal((), stored(expected), term.span), expected)


def _singleton(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    check_count(term.name, term.arguments, 1, 1, term.span)
    item = expected.item if isinstance(expected, VectorKind) and _is_set(expected) else None
    value = binder.bind(term.arguments[0], item)
    check_comparable(value.kind, "the type of the elements of a Set", term.span)
    kind = VectorKind(value.kind, SET)
    return BoundTerm(Call("array", (value.expr,), stored(kind), False, term.span), kind)


def _union(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    value, kind = of_sets(binder, term, expected)
    other = binder.bind(term.arguments[1], kind)
    return BoundTerm(union(value.expr, other.expr), kind)


def _push(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    """push_imm(v, x)."""
    check_count(term.name, term.arguments, 2, 2, term.span)
    value = binder.bind(term.arguments[0], expected if isinstance(expected, VectorKind) and not _is_set(expected) else None)
    if not isinstance(value.kind, VectorKind) or _is_set(value.kind):
        raise TypeMismatch(f"{term.name} does not accept {value.kind}", span=term.span, expected="a Vec")
    element = binder.bind(term.arguments[1], value.kind.item)
    return BoundTerm(resolve("array_append", [value.expr, element.expr], term.span), value.kind)


SET_FUNCTIONS: Final = {
    SET_EMPTY: _empty,
    "set_singleton": _singleton,
    **dict.fromkeys(("union", "set_union"), _union),
    **dict.fromkeys(("push_imm", "vec_push_imm"), _push),
}
"""By name. insert_imm and remove_imm are those of Maps, too."""
