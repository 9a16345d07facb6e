"""What is in an ARRAY: elements found, removed, compared and ordered, and sets of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays import collections as arrays
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.arrays.nested import size
from deltic.expr.collating import as_is, choosing, comparing, passing
from deltic.expr.functions.comparison import check_ordered
from deltic.expr.functions.signature import (
    INTEGER,
    PLAIN_TEXT,
    Parameter,
    TypeRule,
    accept,
    accept_each,
    any_nullable,
    check_count,
    constant,
    wrong_type,
)
from deltic.expr.nodes import Expr, Literal
from deltic.expr.registry import Function, Typed
from deltic.expr.rows import collections as rows
from deltic.expr.typing import cast, tightest_type
from deltic.schema import BIGINT, BOOLEAN, INT, NULL, STRING, VARIANT, Type
from deltic.types import array_type

ARRAY: Final = Parameter("ARRAY", lambda t: t if t.name == "ARRAY" else None)
ARRAY_OR_NULL: Final = Parameter("ARRAY", lambda t: array_type(NULL) if t == NULL else t if t.name == "ARRAY" else None)
_FLAG: Final = Parameter("BOOLEAN", lambda t: BOOLEAN if t in (BOOLEAN, NULL) else None)
_TRUE: Final = Literal(True, BOOLEAN)


def element_type(array: Expr) -> Type:
    return array.type.parts[0].type


def with_value(name: str, array: Expr, value: Expr, span: Span | None, *, position: int = 2) -> tuple[Expr, Expr]:
    """An ARRAY and a value, cast so that the value can be an element. Raises TypeMismatch."""
    array = accept(name, 1, array, ARRAY, span)
    common = tightest_type(element_type(array), value.type)
    if common is None:
        raise wrong_type(name, position, value, element_type(array).sql, span)
    return cast(array, array_type(common)), cast(value, common)


def _searching(result: Type | None, *, null_typed: bool) -> TypeRule:
    """(array, value), compared with each other. result: None is the array's type. null_typed: whether the value may be a bare NULL."""

    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
        check_count(name, arguments, 2, 2, span)
        if arguments[1].type == NULL and not null_typed:
            raise TypeMismatch(
                f"argument 2 of {name} is only NULL and has no type", span=arguments[1].span or span, remedy="CAST(NULL AS type)"
            )
        array, value = with_value(name, arguments[0], arguments[1], span)
        check_ordered(name, value.type, span)
        return Typed((array, value), result or array.type, result == BOOLEAN or array.nullable or value.nullable)

    return rule


def two_arrays(name: str, arguments: Sequence[Expr], span: Span | None) -> tuple[Expr, ...]:
    """Two ARRAYs cast to their common type, whose elements can be compared."""
    check_count(name, arguments, 2, 2, span)
    left, right = accept_each(name, arguments, ARRAY, span)
    common = tightest_type(left.type, right.type)
    if common is None:
        expected = f"two ARRAYs of one type, found {left.type.sql} and {right.type.sql}"
        raise TypeMismatch(f"the arguments of {name} have no common type", span=span, expected=expected)
    check_ordered(name, common, span)
    return cast(left, common), cast(right, common)


def _set_of_two(result: Type | None) -> TypeRule:
    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
        both = two_arrays(name, arguments, span)
        return Typed(both, result or both[0].type, result is not None or any_nullable(both))

    return rule


def of_array(result: Callable[[Type], Type], *, ordered: bool = False, nullable: bool = False) -> TypeRule:
    """One ARRAY. ordered: its elements are compared. nullable: the result can be NULL where the array is not."""

    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
        check_count(name, arguments, 1, 1, span)
        array = accept(name, 1, arguments[0], ARRAY_OR_NULL, span)
        if ordered:
            check_ordered(name, array.type, span)
        return Typed((array,), result(array.type), nullable or array.nullable)

    return rule


_best: Final = of_array(lambda t: t.parts[0].type, ordered=True, nullable=True)


def _sorted(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(array[, whether ascending]): the latter is a constant."""
    check_count(name, arguments, 1, 2, span)
    array = accept(name, 1, arguments[0], ARRAY_OR_NULL, span)
    check_ordered(name, array.type, span)
    ascending = constant(accept(name, 2, arguments[1], _FLAG, span)) if len(arguments) > 1 else _TRUE
    if ascending is None:
        raise TypeMismatch(f"argument 2 of {name} is not a constant", span=arguments[1].span or span, expected="TRUE or FALSE")
    return Typed((array, ascending), array.type, array.nullable or ascending.nullable)


def _joined(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(array, delimiter[, text for NULL])."""
    check_count(name, arguments, 2, 3, span)
    array = accept(name, 1, arguments[0], ARRAY_OR_NULL, span)
    if (element := element_type(array)).is_nested or element == VARIANT:
        raise TypeMismatch(f"argument 1 of {name} has the wrong type", span=span, expected=f"ARRAY<STRING>, found {array.type.sql}")
    texts = [accept(name, i, a, PLAIN_TEXT, span) for i, a in enumerate(arguments[1:], 2)]
    taken = (cast(array, array_type(STRING)), *texts)
    return Typed(taken, STRING, any_nullable(taken))


def _got(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 2, 2, span)
    array = accept(name, 1, arguments[0], ARRAY, span)
    return Typed((array, accept(name, 2, arguments[1], INTEGER, span)), element_type(array), True)


def _plain(name: str, signature: TypeRule, of_row: Callable[..., Any], **more: Any) -> Function:
    return Function(name=name, signature=signature, can_fail=False, rows=of_row, arrays=more.pop("arrays", per_distinct), **more)


FUNCTIONS: Final = (
    _plain(
        "array_contains",
        _searching(BOOLEAN, null_typed=False),
        rows.contains,
        arrays=arrays.contains,
        ignores_sign_of_zero=True,
        collated=comparing,
    ),
    _plain("array_position", _searching(BIGINT, null_typed=True), rows.position, ignores_sign_of_zero=True, collated=comparing),
    _plain("array_remove", _searching(None, null_typed=True), rows.remove, collated=choosing),
    _plain("array_compact", of_array(lambda t: t), rows.compact, collated=as_is),
    _plain("array_distinct", of_array(lambda t: t, ordered=True), rows.distinct, collated=choosing),
    _plain("array_union", _set_of_two(None), rows.union, collated=choosing),
    _plain("array_intersect", _set_of_two(None), rows.intersect, collated=choosing),
    _plain("array_except", _set_of_two(None), rows.without, collated=choosing),
    _plain("arrays_overlap", _set_of_two(BOOLEAN), rows.overlap, ignores_sign_of_zero=True, collated=comparing),
    _plain("array_min", _best, rows.best(lambda sign: sign < 0), collated=as_is),
    _plain("array_max", _best, rows.best(lambda sign: sign > 0), collated=as_is),
    _plain("array_size", of_array(lambda t: INT), lambda call, elements: len(elements), arrays=size, collated=as_is),
    _plain("sort_array", _sorted, rows.sort, collated=as_is),
    _plain("array_join", _joined, rows.joined, collated=passing),
    _plain("get", _got, lambda call, elements, i: elements[i] if 0 <= i < len(elements) else None, arrays=arrays.get, collated=as_is),
    _plain("reverse_array", of_array(lambda t: t), lambda call, elements: elements[::-1], named=False, collated=as_is),
)
