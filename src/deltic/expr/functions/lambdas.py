"""Higher-order functions: TRANSFORM, FILTER, AGGREGATE and the like, whose arguments are lambdas over the elements of ARRAYs and MAPs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any, Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.collating import as_is
from deltic.expr.failures import invalid
from deltic.expr.functions import lambdas_on_columns as arrays
from deltic.expr.functions.array_elements import ARRAY, element_type
from deltic.expr.functions.comparison import check_ordered
from deltic.expr.functions.nested import MAP, check_key
from deltic.expr.functions.signature import Parameter, accept, any_nullable, check_count
from deltic.expr.interpreter import Row, applied, evaluate
from deltic.expr.nodes import Call, Expr, Lambda, Value
from deltic.expr.registry import Function, LambdaForm, LambdaRule, Nulls, Typed
from deltic.expr.rows.collated_text import key_for
from deltic.expr.rows.collections import compact, in_order
from deltic.expr.rows.maps import joined_entries, of_entries
from deltic.expr.typing import cast, common_type_without_text
from deltic.schema import BOOLEAN, INT, NULL, Field, Type
from deltic.types import array_type, map_type

Signature = Callable[[str, Sequence[Expr], Span | None], Typed]


def _body(argument: Expr) -> Lambda:
    assert isinstance(argument, Lambda)
    return argument


def _element(array: Expr) -> Field:
    return Field("element", element_type(array))


def _over_elements(most: int) -> LambdaRule:
    """(array, lambda): over the element, and its position from 0."""

    def rule(name: str, bound: Sequence[Expr], span: Span | None) -> LambdaForm | None:
        if len(bound) != 1:
            return None
        parts = (_element(accept(name, 1, bound[0], ARRAY, span)), Field("position", INT, False))
        return LambdaForm(parts[:most], 1)

    return rule


def _over_entries(name: str, bound: Sequence[Expr], span: Span | None) -> LambdaForm | None:
    """(map, lambda): over the key and the value."""
    return LambdaForm(accept(name, 1, bound[0], MAP, span).type.parts, 2) if len(bound) == 1 else None


def _over_two_arrays(name: str, bound: Sequence[Expr], span: Span | None) -> LambdaForm | None:
    if len(bound) != 2:
        return None
    return LambdaForm(tuple(_element(accept(name, i, a, ARRAY, span)) for i, a in enumerate(bound, 1)), 2)


def _over_two_maps(name: str, bound: Sequence[Expr], span: Span | None) -> LambdaForm | None:
    """(map, map, lambda): over the key and the two values."""
    if len(bound) != 2:
        return None
    left, right = (accept(name, i, a, MAP, span).type for i, a in enumerate(bound, 1))
    return LambdaForm((Field("key", _key_of_two(name, left, right, span), False), left.parts[1], right.parts[1]), 3)


def _over_state(name: str, bound: Sequence[Expr], span: Span | None) -> LambdaForm | None:
    """(array, start, merge[, finish]): merge is over the state and an element, finish over the last state."""
    if len(bound) == 2:
        return LambdaForm((Field("state", bound[1].type), _element(accept(name, 1, bound[0], ARRAY, span))), 2)
    return LambdaForm((Field("state", bound[1].type),), 1) if len(bound) == 3 else None


def _over_pairs(name: str, bound: Sequence[Expr], span: Span | None) -> LambdaForm | None:
    """(array, comparator): over two elements."""
    return LambdaForm((_element(accept(name, 1, bound[0], ARRAY, span)),) * 2, 2) if len(bound) == 1 else None


def _key_of_two(name: str, left: Type, right: Type, span: Span | None) -> Type:
    common = common_type_without_text(left.parts[0].type, right.parts[0].type)
    if common is None:
        expected = f"MAPs with keys of one type, found {left.sql} and {right.sql}"
        raise TypeMismatch(f"the arguments of {name} have no common type", span=span, expected=expected)
    return common


def _returning(name: str, position: int, argument: Expr, type: Type, span: Span | None) -> Lambda:
    """The lambda, whose value is of this type. Raises TypeMismatch."""
    function = _body(argument)
    if function.type != type:
        place = function.body.span or span
        raise TypeMismatch(f"the lambda of {name} is not {type.sql}", span=place, expected=f"{type.sql}, found {function.type.sql}")
    return function


def _condition(name: str, argument: Expr, span: Span | None) -> Lambda:
    function = _body(argument)
    if function.type == NULL:
        function = Lambda(function.parameters, cast(function.body, BOOLEAN), function.span)
    return _returning(name, 2, function, BOOLEAN, span)


def _of(parameter: Parameter, result: Callable[[Expr, Lambda], Type], *, condition: bool = False, nullable: bool = False) -> Signature:
    """(array or map, lambda)."""

    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
        check_count(name, arguments, 2, 2, span)
        value = accept(name, 1, arguments[0], parameter, span)
        function = _condition(name, arguments[1], span) if condition else _body(arguments[1])
        return Typed((value, function), result(value, function), value.nullable or nullable)

    return rule


def _with_keys(value: Expr, function: Lambda) -> Type:
    check_key(function.type, function.body.span)
    return map_type(function.type, value.type.parts[1].type)


def _aggregated(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(array, start, merge[, finish])."""
    check_count(name, arguments, 3, 4, span)
    array, start = accept(name, 1, arguments[0], ARRAY, span), arguments[1]
    merge = _returning(name, 3, arguments[2], start.type, span)
    functions = (merge, *map(_body, arguments[3:]))
    return Typed((array, start, *functions), functions[-1].type, True)


def _zipped(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 3, 3, span)
    left, right = (accept(name, i, a, ARRAY, span) for i, a in enumerate(arguments[:2], 1))
    return Typed((left, right, _body(arguments[2])), array_type(arguments[2].type), any_nullable((left, right)))


def _zipped_maps(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 3, 3, span)
    maps = [accept(name, i, a, MAP, span) for i, a in enumerate(arguments[:2], 1)]
    key = _key_of_two(name, maps[0].type, maps[1].type, span)
    left, right = (cast(one, map_type(key, one.type.parts[1].type)) for one in maps)
    return Typed((left, right, _body(arguments[2])), map_type(key, arguments[2].type), any_nullable((left, right)))


def _sorted(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(array[, comparator])."""
    check_count(name, arguments, 1, 2, span)
    array = accept(name, 1, arguments[0], ARRAY, span)
    if len(arguments) == 1:
        check_ordered(name, array.type, span)
        return Typed((array,), array.type, array.nullable)
    return Typed((array, _returning(name, 2, arguments[1], INT, span)), array.type, array.nullable)


def _over(run: Callable[[Call, Row, Any, Lambda], Value]) -> Callable[[Call, Row], Value]:
    """The row form of (value, lambda); NULL for a NULL value."""

    def rows(call: Call, row: Row) -> Value:
        value = evaluate(call.arguments[0], row)
        return None if value is None else run(call, row, value, _body(call.arguments[1]))

    return rows


def _transform(call: Call, row: Row, value: tuple[Value, ...], function: Lambda) -> Value:
    return tuple(applied(function, row, one, i) for i, one in enumerate(value))


def _filter(call: Call, row: Row, value: tuple[Value, ...], function: Lambda) -> Value:
    return tuple(one for i, one in enumerate(value) if applied(function, row, one, i) is True)


def _search(stops_at: bool) -> Callable[[Call, Row, Any, Lambda], Value]:
    """EXISTS, which stops at TRUE, and FORALL, which stops at FALSE; NULL if a test was NULL and none stopped it."""

    def rows(call: Call, row: Row, value: tuple[Value, ...], function: Lambda) -> Value:
        unknown = False
        for one in value:
            test = applied(function, row, one)
            if test is stops_at:
                return stops_at
            unknown = unknown or test is None
        return None if unknown else not stops_at

    return rows


def _map_filter(call: Call, row: Row, value: tuple[tuple[Value, Value], ...], function: Lambda) -> Value:
    return tuple(entry for entry in value if applied(function, row, *entry) is True)


def _transform_keys(call: Call, row: Row, value: tuple[tuple[Value, Value], ...], function: Lambda) -> Value:
    keys = [applied(function, row, *entry) for entry in value]
    return of_entries(call, zip(keys, (item for _, item in value), strict=True))


def _transform_values(call: Call, row: Row, value: tuple[tuple[Value, Value], ...], function: Lambda) -> Value:
    return tuple((entry[0], applied(function, row, *entry)) for entry in value)


def _sort(call: Call, row: Row, value: tuple[Value, ...], function: Lambda | None) -> Value:
    """By a comparator, or ascending with NULLs last."""
    if function is None:
        present = in_order(compact(call, value), key_for(call.type.parts[0].type))
        return (*present, *(None,) * (len(value) - len(present)))

    def compare(left: Value, right: Value) -> int:
        sign = applied(function, row, left, right)
        if not isinstance(sign, int):
            raise invalid("the comparator of array_sort is NULL; it must be an INT for every two elements", call.span)
        return sign

    return tuple(sorted(value, key=cmp_to_key(compare)))


def _sort_rows(call: Call, row: Row) -> Value:
    value: Any = evaluate(call.arguments[0], row)
    return None if value is None else _sort(call, row, value, _body(call.arguments[1]) if len(call.arguments) > 1 else None)


def _aggregate(call: Call, row: Row) -> Value:
    value: Any = evaluate(call.arguments[0], row)
    if value is None:
        return None
    state = evaluate(call.arguments[1], row)
    for one in value:
        state = applied(_body(call.arguments[2]), row, state, one)
    return applied(_body(call.arguments[3]), row, state) if len(call.arguments) > 3 else state


def _two(call: Call, row: Row) -> tuple[Any, Any] | None:
    left = evaluate(call.arguments[0], row)
    right = None if left is None else evaluate(call.arguments[1], row)
    return None if left is None or right is None else (left, right)


def _zip_with(call: Call, row: Row) -> Value:
    """A shorter ARRAY is filled with NULLs."""
    if (both := _two(call, row)) is None:
        return None
    longest = max(map(len, both))
    left, right = (one + (None,) * (longest - len(one)) for one in both)
    return tuple(applied(_body(call.arguments[2]), row, *pair) for pair in zip(left, right, strict=True))


def _map_zip_with(call: Call, row: Row) -> Value:
    if (both := _two(call, row)) is None:
        return None
    entries = joined_entries(*both, call.type.parts[0].type)
    return tuple((key, applied(_body(call.arguments[2]), row, key, a, b)) for key, a, b in entries)


Form = Callable[..., Any]


def _function(name: str, signature: Signature, lambdas: LambdaRule, run: Form, on_columns: Form, **more: Any) -> Function:
    can_fail = more.pop("can_fail", False)
    return Function(
        name=name, signature=signature, lambdas=lambdas, nulls=Nulls.LAZY, can_fail=can_fail, rows=run, arrays=on_columns, **more
    )


def _same(value: Expr, function: Lambda) -> Type:
    return value.type


def _elements_of(value: Expr, function: Lambda) -> Type:
    return array_type(function.type)


def _truth(value: Expr, function: Lambda) -> Type:
    return BOOLEAN


FUNCTIONS: Final = (
    _function("transform", _of(ARRAY, _elements_of), _over_elements(2), _over(_transform), arrays.transform, collated=as_is),
    _function("filter", _of(ARRAY, _same, condition=True), _over_elements(2), _over(_filter), arrays.select, collated=as_is),
    *(
        _function(
            name,
            _of(ARRAY, _truth, condition=True, nullable=True),
            _over_elements(1),
            _over(_search(stops_at)),
            arrays.search(stops_at),
            collated=as_is,
        )
        for name, stops_at in (("exists", True), ("forall", False))
    ),
    _function("aggregate", _aggregated, _over_state, _aggregate, arrays.aggregate, aliases=("reduce",), collated=as_is),
    _function("zip_with", _zipped, _over_two_arrays, _zip_with, arrays.zip_with, collated=as_is),
    _function("array_sort", _sorted, _over_pairs, _sort_rows, arrays.by_row, can_fail=lambda call: len(call.arguments) > 1, collated=as_is),
    _function("map_filter", _of(MAP, _same, condition=True), _over_entries, _over(_map_filter), arrays.select, collated=as_is),
    _function(
        "transform_keys", _of(MAP, _with_keys), _over_entries, _over(_transform_keys), arrays.transform_keys, can_fail=True, collated=as_is
    ),
    _function(
        "transform_values",
        _of(MAP, lambda value, function: map_type(value.type.parts[0].type, function.type)),
        _over_entries,
        _over(_transform_values),
        arrays.transform_values,
        collated=as_is,
    ),
    _function("map_zip_with", _zipped_maps, _over_two_maps, _map_zip_with, arrays.map_zip_with, collated=as_is),
)
