"""Three-valued logic, and functions that return one of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow.compute as pc

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays.datum import Datum, choosable, nulls_of, truths
from deltic.expr.collating import agreeing
from deltic.expr.columns import Frame, value_of, value_where
from deltic.expr.failing import can_fail
from deltic.expr.functions.comparison import common_arguments
from deltic.expr.functions.signature import CONDITION, REAL, accept, accept_each, any_nullable, check_count, flattened, takes
from deltic.expr.interpreter import Row, evaluate
from deltic.expr.nodes import Call, Expr, Literal, Value
from deltic.expr.registry import Builder, Function, Nulls, Rewrite, Signature, Typed, resolve
from deltic.expr.typing import case, cast, common_type
from deltic.schema import BOOLEAN, FLOAT, INT, NULL, STRING


def _conditions(function: str) -> Signature:
    """The signature of AND and OR: two or more conditions; nested calls of the same function are flattened."""

    def signature(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
        check_count(name, arguments, 2, None, span)
        if all(a.type == STRING for a in arguments):
            raise TypeMismatch(f"{name} does not accept STRING and STRING", span=span, expected="BOOLEAN")
        converted = accept_each(name, arguments, CONDITION, span)
        return Typed(flattened(function, converted), BOOLEAN, any_nullable(converted))

    return signature


def _connective(stops_at: bool) -> Callable[[Call, Row], Value]:
    """The row form of AND, which stops at FALSE, or OR, which stops at TRUE: arguments after that are not evaluated."""

    def rows(call: Call, row: Row) -> Value:
        unknown = False
        for argument in call.arguments:
            value = evaluate(argument, row)
            if value is stops_at:
                return stops_at
            unknown = unknown or value is None
        return None if unknown else not stops_at

    return rows


def _connective_of_columns(stops_at: bool) -> Callable[[Call, Frame], Datum]:
    combine = pc.or_kleene if stops_at else pc.and_kleene

    def arrays(call: Call, frame: Frame) -> Datum:
        left = value_of(call.arguments[0], frame)
        for right in call.arguments[1:]:
            if can_fail(right):
                stopped = truths(left if stops_at else pc.invert(left), frame.length)
                if stopped.all():
                    return left
                left = combine(left, value_where(right, frame, ~stopped) if stopped.any() else value_of(right, frame))
            else:
                left = combine(left, value_of(right, frame))
        return left

    return arrays


def _is(value: bool, negated: bool) -> Builder:
    """IS [NOT] TRUE, IS [NOT] FALSE."""

    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 1, 1, span)
        argument = accept(name, 1, arguments[0], CONDITION, span)
        same = Call("same", (argument, Literal(value, BOOLEAN)), BOOLEAN, False, span)
        return Call("not", (same,), BOOLEAN, False, span) if negated else same

    return build


def _choice(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    """The first argument that is not NULL."""
    check_count(name, arguments, 1, None, span)
    converted = common_arguments(name, arguments, common_type([a.type for a in arguments]), span)
    return converted[0] if len(converted) == 1 else Typed(converted, converted[0].type, all(a.nullable for a in converted))


def _coalesce(call: Call, row: Row) -> Value:
    return next((value for argument in call.arguments if (value := evaluate(argument, row)) is not None), None)


def _coalesce_columns(call: Call, frame: Frame) -> Datum:
    result = value_of(call.arguments[0], frame)
    for argument in call.arguments[1:]:
        missing = nulls_of(result)
        if missing is False:
            return result
        guarded = isinstance(missing, np.ndarray) and can_fail(argument)
        value = value_where(argument, frame, np.asarray(missing)) if guarded else value_of(argument, frame)
        result = pc.coalesce(result, choosable(value, frame.length, call.type))
    return result


def _nvl(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 2, 2, span)
    return resolve("coalesce", arguments, span, written=name)


def _if(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 3, 3, span)
    condition, then, otherwise = arguments
    return case([(condition, then)], otherwise, span)


def _nvl2(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 3, 3, span)
    present = Call("is_not_null", (arguments[0],), BOOLEAN, False, span)
    return case([(present, arguments[1])], arguments[2], span)


def _nullif(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 2, 2, span)
    equal = resolve("equal", arguments, span, written=name)
    return case([(equal, Literal(None, NULL))], arguments[0], span)


def _nanvl(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """The second argument where the first is NaN; both are FLOAT, or are cast to DOUBLE."""
    check_count(name, arguments, 2, 2, span)
    singles = arguments[0].type == FLOAT and arguments[1].type in (FLOAT, NULL)
    value, other = (cast(a, FLOAT) if singles else accept(name, i, a, REAL, span) for i, a in enumerate(arguments, 1))
    return case([(resolve("isnan", [value], span), other)], value, span)


def _nullifzero(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 1, 1, span)
    return resolve("nullif", [arguments[0], Literal(0, INT)], span, written=name)


def _zeroifnull(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 1, 1, span)
    return resolve("coalesce", [arguments[0], Literal(0, INT)], span, written=name)


FUNCTIONS: Final = (
    Rewrite(name="nanvl", build=_nanvl),
    Rewrite(name="nullifzero", build=_nullifzero),
    Rewrite(name="zeroifnull", build=_zeroifnull),
    Function(
        name="and",
        named=False,
        signature=_conditions("and"),
        nulls=Nulls.LAZY,
        can_fail=False,
        rows=_connective(False),
        arrays=_connective_of_columns(False),
    ),
    Function(
        name="or",
        named=False,
        signature=_conditions("or"),
        nulls=Nulls.LAZY,
        can_fail=False,
        rows=_connective(True),
        arrays=_connective_of_columns(True),
    ),
    Function(
        name="not",
        symbols=("!",),
        named=False,
        signature=takes([CONDITION], BOOLEAN),
        can_fail=False,
        rows=lambda call, value: not value,
        arrays=lambda call, length, value: pc.invert(value),
    ),
    Rewrite(name="is_true", named=False, build=_is(True, False)),
    Rewrite(name="is_not_true", named=False, build=_is(True, True)),
    Rewrite(name="is_false", named=False, build=_is(False, False)),
    Rewrite(name="is_not_false", named=False, build=_is(False, True)),
    Function(
        name="coalesce",
        collated=agreeing,
        signature=_choice,
        nulls=Nulls.LAZY,
        can_fail=False,
        rows=_coalesce,
        arrays=_coalesce_columns,
    ),
    Rewrite(name="nvl", aliases=("ifnull",), build=_nvl),
    Rewrite(name="if", build=_if),
    Rewrite(name="nvl2", build=_nvl2),
    Rewrite(name="nullif", build=_nullif),
)
