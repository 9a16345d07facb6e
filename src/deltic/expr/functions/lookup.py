"""IN, and CASE over many constants: one probe of a hash table per row, for any number of constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import EvaluationError, Span, TypeMismatch
from deltic.expr.arrays.compare import compare
from deltic.expr.arrays.datum import Datum, dense, nulls_of, truths
from deltic.expr.arrays.lookup import membership, positions
from deltic.expr.collating import comparing
from deltic.expr.columns import Frame, assembled, on_arrays, value_of, value_on, value_where
from deltic.expr.failing import can_fail
from deltic.expr.functions.comparison import check_ordered, filled_members
from deltic.expr.functions.signature import any_nullable, check_count
from deltic.expr.interpreter import Row, evaluate
from deltic.expr.nodes import Call, Constants, Expr, Literal, Value
from deltic.expr.registry import Function, Nulls, Typed
from deltic.expr.rows.casts import cast_value
from deltic.expr.rows.ordering import equal
from deltic.expr.typing import cast, compared_type, type_names
from deltic.schema import BOOLEAN, NULL, Type

_NULL: Final = pa.scalar(None, pa.bool_())


def _members(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(value, items): the items are one Constants, followed by NULL if they contain it, or expressions."""
    check_count(name, arguments, 2, None, span)
    arguments = filled_members(arguments[0], arguments[1:])
    common = compared_type(list(dict.fromkeys(a.type for a in arguments)))
    if common is None:
        listed = len(arguments) == 2 and arguments[1].type.name == "ARRAY" and arguments[0].type.name != "ARRAY"
        remedy = "array_contains(list, x)" if listed else "cast them to one type"
        raise TypeMismatch(f"{name} cannot compare {type_names(arguments)}", span=span, expected="one type", remedy=remedy)
    check_ordered(name, common, span)
    value = cast(arguments[0], common)
    constants = _constants(arguments[1:], common)
    if constants is None:
        converted = (value, *(cast(a, common) for a in arguments[1:]))
        return Typed(converted, BOOLEAN, any_nullable(converted))
    null = (Literal(None, common),) if any(a.nullable for a in arguments[1:]) else ()
    return Typed((value, constants, *null), BOOLEAN, value.nullable or bool(null))


def _constants(items: Sequence[Expr], type: Type) -> Constants | None:
    """Literals as constants of a type; None if an item is not a literal or the type does not hold it."""
    values: list[Value] = []
    for item in items:
        if not isinstance(item, Literal):
            return None
        try:
            plain = item.type == type or item.value is None or item.type == NULL
            values.append(item.value if plain else cast_value(item.value, item.type, type))
        except EvaluationError:
            return None
    return Constants.of(values, type)


def _in(call: Call, row: Row) -> Value:
    value = evaluate(call.arguments[0], row)
    if value is None:
        return None
    unknown = False
    for argument in call.arguments[1:]:
        if isinstance(argument, Constants):
            if any(equal(value, item) for item in argument.values):
                return True
        elif (item := evaluate(argument, row)) is None:
            unknown = True
        elif equal(value, item):
            return True
    return None if unknown else False


def _in_columns(call: Call, frame: Frame) -> Datum:
    value, first = value_of(call.arguments[0], frame), call.arguments[1]
    if isinstance(first, Constants):
        array = dense(value, frame.length)
        members = membership(first, array)
        if len(call.arguments) > 2:  # NULL is one of the items
            return pc.if_else(members, True, _NULL)
        return pc.if_else(pc.is_valid(array), members, _NULL) if array.null_count else members
    result: Datum = pc.if_else(pc.is_valid(value), pa.scalar(False), pa.scalar(None, pa.bool_()))
    type = call.arguments[0].type
    for item in call.arguments[1:]:
        open_rows = ~(truths(result, frame.length) | nulls_of(value))
        given = value_where(item, frame, open_rows) if can_fail(item) else value_of(item, frame)
        same = on_arrays(lambda n, a, b: compare("equal", type, a, b), frame.length, BOOLEAN, value, given)
        result = pc.or_kleene(result, same)
    return result


def _lookup(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(subject, constants, otherwise, a value for each constant), of one type."""
    subject, constants, *values = arguments
    assert isinstance(constants, Constants) and constants.type == subject.type and len(values) == len(constants.values) + 1
    return Typed(tuple(arguments), values[0].type, any_nullable(values))


def _chosen(call: Call, row: Row) -> Value:
    subject, constants, otherwise, *values = call.arguments
    assert isinstance(constants, Constants)
    value = evaluate(subject, row)
    matches = (i for i, constant in enumerate(constants.values) if value is not None and equal(value, constant))
    i = next(matches, None)
    return evaluate(otherwise if i is None else values[i], row)


def _chosen_columns(call: Call, frame: Frame) -> Datum:
    """Evaluates each value on the rows that choose it."""
    subject, constants, *values = call.arguments
    assert isinstance(constants, Constants)
    chosen, which = np.unique(positions(constants, dense(value_of(subject, frame), frame.length)) + 1, return_inverse=True)
    present = [values[i] for i in chosen]
    if all(isinstance(value, Literal) for value in present):
        literals = pa.array([value.value for value in present if isinstance(value, Literal)], call.type.arrow)
        return literals.take(pa.array(which))
    order = np.argsort(which, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(which, minlength=len(present)))[:-1])
    return assembled([(part, value_on(value, frame, part)) for part, value in zip(rows, present, strict=True)], frame.length)


FUNCTIONS: Final = (
    Function(
        name="in",
        collated=comparing,
        named=False,
        signature=_members,
        nulls=Nulls.LAZY,
        can_fail=False,
        ignores_sign_of_zero=True,
        rows=_in,
        arrays=_in_columns,
    ),
    Function(
        name="lookup",
        named=False,
        signature=_lookup,
        nulls=Nulls.LAZY,
        can_fail=False,
        rows=_chosen,
        arrays=_chosen_columns,
    ),
)
