"""A line of CSV as a STRUCT, and a STRUCT as a line of CSV: FROM_CSV, TO_CSV, SCHEMA_OF_CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import ignoring
from deltic.expr.functions.json_values import CORRUPT, as_literal, options_in, options_of, patterns_in, schema_type
from deltic.expr.functions.signature import PLAIN_TEXT, accept, check_count, constant
from deltic.expr.nodes import Call, Expr, Literal, Value
from deltic.expr.registry import Function, Rewrite, Typed
from deltic.expr.rows import csv_text as rows
from deltic.schema import STRING, Field, Type
from deltic.types import struct

_OPTIONS: Final = ("sep", "delimiter", "dateFormat", "timestampFormat", "timestampNTZFormat", "timeFormat")


def _options(name: str, argument: Expr | None, span: Span | None) -> dict[str, str]:
    options = options_of(name, argument, _OPTIONS, span)
    separator = options.pop("delimiter", None) or options.get("sep", ",")
    if len(separator) != 1 or separator in '"\\\r\n':
        place = argument.span if argument is not None else span
        raise TypeMismatch(f"the separator of {name} is invalid", span=place or span, expected="one character, not a quote or an escape")
    return {**options, "sep": separator}


def _check(name: str, type: Type, has: Callable[[Type], bool], place: Span | None) -> None:
    """Raises an error unless it is a STRUCT of types that CSV has."""
    if type.name != "STRUCT":
        raise TypeMismatch(f"{name} does not support {type.sql}", span=place, expected="columns, a STRUCT")
    for part in type.parts:
        if part.name == CORRUPT:
            raise Unsupported(f"the column {CORRUPT} of {name} is not supported", span=place, remedy="leave it out, and keep the text")
        if not has(part.type):
            raise Unsupported(f"{name} does not support {part.type.sql}", span=place, remedy="STRING, and a cast")


def _from_csv(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(line, schema[, options])."""
    check_count(name, arguments, 2, 3, span)
    line, type = accept(name, 1, arguments[0], PLAIN_TEXT, span), schema_type(name, arguments[1], span)
    _check(name, type, rows.is_readable, arguments[1].span or span)
    options = _options(name, arguments[2] if len(arguments) > 2 else None, span)
    return Typed((line, as_literal(options)), type, line.nullable)


def _read(call: Call, line: str, options: str) -> Value:
    given = options_in(options)
    return rows.row_of(line, call.type, given["sep"], patterns_in(given))


def _to_csv(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(STRUCT[, options])."""
    check_count(name, arguments, 1, 2, span)
    value = arguments[0]
    _check(name, value.type, rows.is_writable, value.span or span)
    options = _options(name, arguments[1] if len(arguments) > 1 else None, span)
    return Typed((value, as_literal(options)), STRING, value.nullable or len(value.type.parts) == 1)


def _write(call: Call, value: tuple[Any, ...], options: str) -> str | None:
    """NULL for an empty line, that of a STRUCT whose only field is NULL."""
    given = options_in(options)
    return rows.line_of(value, call.arguments[0].type, given["sep"], patterns_in(given)) or None


def _schema(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """(line[, options]), of a constant: the type as text."""
    check_count(name, arguments, 1, 2, span)
    options = _options(name, arguments[1] if len(arguments) > 1 else None, span)
    line = constant(arguments[0])
    if line is None or not isinstance(line.value, str) or not line.value:
        raise TypeMismatch(f"argument 1 of {name} is not a constant line", span=arguments[0].span or span, expected="a STRING of CSV")
    types = rows.inferred(line.value, options["sep"])
    return Literal(struct(tuple(Field(f"_c{i}", type) for i, type in enumerate(types))).sql, STRING, span)


FUNCTIONS: Final[tuple[Function | Rewrite, ...]] = (
    Function(name="from_csv", collated=ignoring, signature=_from_csv, can_fail=False, rows=_read, arrays=per_distinct),
    Function(name="to_csv", collated=ignoring, signature=_to_csv, can_fail=False, rows=_write, arrays=per_distinct),
    Rewrite(name="schema_of_csv", build=_schema),
)
