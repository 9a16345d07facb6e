"""Numbers as text by a format: FORMAT_NUMBER and FORMAT_STRING."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import pyarrow as pa

from deltic.collations import BINARY_NAME
from deltic.errors import EvaluationError, Span, TypeMismatch
from deltic.expr.arrays.datum import Datum, python_value
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import ignoring, retyped, stripped, with_collation
from deltic.expr.failing import is_at_most
from deltic.expr.failures import at_row, invalid
from deltic.expr.functions.signature import TEXT, Parameter, accept, check_count, constant
from deltic.expr.nodes import Call, Expr, Value
from deltic.expr.registry import Function, Nulls, Typed
from deltic.expr.rows import number_text as rows
from deltic.schema import BINARY, INT, NULL, STRING
from deltic.types import frozen_list

_PLACES: Final = Parameter("INT or STRING", lambda t: INT if t in (INT, NULL) else None)
_NUMBER: Final = Parameter("a number", lambda t: t if t.is_numeric else INT if t == NULL else None)
_SHOWN: Final = Parameter(
    "a type without BINARYs and parts", lambda t: STRING if t == NULL else None if t == BINARY or t.is_nested or t.is_collated else t
)


def _number(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(number, places), or (number, pattern): a constant of #, 0, commas and a point."""
    check_count(name, arguments, 2, 2, span)
    value, form = accept(name, 1, arguments[0], _NUMBER, span), arguments[1]
    if form.type != STRING:
        places = accept(name, 2, form, _PLACES, span)
        return Typed((value, places), STRING, True)
    literal = constant(form)
    if literal is None or not (literal.value is None or (isinstance(literal.value, str) and rows.decimal_form(literal.value))):
        raise TypeMismatch(
            f"the pattern of {name} is not supported", span=form.span or span, expected="a constant such as '#,###.00', of # 0 , and ."
        )
    return Typed((value, literal), STRING, value.nullable or literal.nullable)


def _formatted(call: Call, value: float | Decimal | int, form: int | str) -> str | None:
    """NULL for a negative number of places."""
    if isinstance(form, str):
        made = rows.decimal_form(form)
        assert made is not None, "a pattern is checked when the call is resolved"
        return rows.format_decimal(value, made)
    if form > rows.MOST_PLACES:
        raise invalid(f"format_number: {form} places are more than {rows.MOST_PLACES}", call.span)
    return rows.format_decimal(value, rows.places_form(form)) if form >= 0 else None


def _number_can_fail(call: Call) -> bool:
    form = call.arguments[1]
    return form.type != STRING and not is_at_most(form, rows.MOST_PLACES)


def _string(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(format, value, …). Raises TypeMismatch if a constant format is invalid."""
    check_count(name, arguments, 1, None, span)
    form = accept(name, 1, arguments[0], TEXT, span)
    literal = constant(form)
    if literal is not None and isinstance(literal.value, str):
        try:
            rows.specifiers(literal.value)
        except rows.FormatFault as error:
            raise TypeMismatch(
                f"invalid format of {name}: {error}", span=arguments[0].span or span, expected="a format of Java's"
            ) from None
    values = tuple(accept(name, i, a, _SHOWN, span) for i, a in enumerate(arguments[1:], 2))
    return Typed((literal or form, *values), STRING, form.nullable)


def _filled(call: Call, form: str | None, *values: Value) -> str | None:
    if form is None:
        return None
    try:
        return rows.format_values(form, values, tuple(a.type for a in call.arguments[1:]))
    except rows.FormatFault as error:
        raise invalid(f"format_string: {error}", call.span) from None


def _filled_columns(call: Call, length: int, *columns: Datum) -> Datum:
    """Row by row: NULL is an argument like any other."""
    lists = [frozen_list(column) if isinstance(column, pa.Array) else [python_value(column)] * length for column in columns]
    results = []
    for row, values in enumerate(zip(*lists, strict=True)):
        try:
            results.append(_filled(call, *values))
        except EvaluationError as error:
            raise at_row(error, row) from None
    return pa.array(results, call.type.arrow)


def _of_format(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """The result has the collation of the format."""
    result = record.built(name, [stripped(argument) for argument in arguments], span)
    return retyped(result, with_collation(result.type, arguments[0].type.collation or BINARY_NAME)) if arguments[0].type.is_text else result


FUNCTIONS: Final = (
    Function(name="format_number", collated=ignoring, signature=_number, can_fail=_number_can_fail, rows=_formatted, arrays=per_distinct),
    Function(
        name="format_string",
        collated=_of_format,
        aliases=("printf",),
        signature=_string,
        nulls=Nulls.SEEN,
        can_fail=True,
        rows=_filled,
        arrays=_filled_columns,
    ),
)
