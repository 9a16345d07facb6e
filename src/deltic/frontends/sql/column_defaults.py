"""DEFAULT of a column: an expression without columns, which every statement evaluates at its own time.

By Spark's rules (ResolveDefaultColumns): it is stored as any value is, and a constant that is not BOOLEAN or nested may be of any type that
can be cast to the column's, as in `day DATE DEFAULT '2024-05-01'`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from deltic.errors import EvaluationError, Span, TypeMismatch, Unsupported
from deltic.expr import Expr, Literal, cast
from deltic.expr.interpreter import evaluate
from deltic.expr.typing import can_cast
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_aggregate import aggregate_of
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.scope import Scope
from deltic.frontends.sql.statement_time import with_time
from deltic.frontends.sql.store_assignment import as_stored, may_store
from deltic.frontends.statements import ColumnDefault, Namespace, WithDefaults
from deltic.plan.show import show_expr
from deltic.schema import BOOLEAN, Field, Schema, Type

_FORM: Final = "an expression of constants and of the time, such as 0, upper('new') or current_date"
_CHECKED_AT: Final = 946_684_800_000_000
"""2000-01-01, the time at which definitions are checked, so that a script is valid at any time or at none."""


def defaults_of(catalog: Namespace, table: str) -> Mapping[str, ColumnDefault]:
    """The defaults of a table, by column in lower case."""
    one: Any = catalog
    kind: Any = type(catalog)
    return one.defaults(table) if _has_defaults(kind) else {}


@cache
def _has_defaults(kind: type) -> bool:
    """Asked once for each class, since isinstance of a protocol looks at all of its methods."""
    return issubclass(kind, WithDefaults)


def column_default(node: tree.Expression, field: Field, table: str, catalog: Namespace) -> ColumnDefault:
    """The default of a column. Raises QueryError with the place, also if it has no value that fits the column."""
    body = tree.rewritten(node, _without_variable)
    _check_form(body, catalog)
    try:
        _evaluated(with_time(body, _CHECKED_AT), field, table)
    except EvaluationError as error:
        raise TypeMismatch(f"the DEFAULT of column {field.name} fails: {error.message}", span=node.span) from error
    return ColumnDefault(body, _text(body))


def default_value(default: ColumnDefault, field: Field, table: str, now_us: int) -> Expr:
    """The constant that a statement stores, at a time in microseconds since 1970 UTC. Raises EvaluationError, with its place."""
    body: Any = default.body
    return _evaluated(with_time(body, now_us), field, table)[0]


def value_of_rows(default: ColumnDefault, field: Field, table: str) -> Literal:
    """The constant that the rows of a table get in a new column. Functions of the time in the default have one."""
    body: Any = default.body
    value, constant = _evaluated(body, field, table)
    return Literal(_limited(constant, field, body.span), value.type, body.span)


def _evaluated(node: tree.Expression, field: Field, table: str) -> tuple[Expr, Any]:
    """(the constant, its value). Raises EvaluationError, and TypeMismatch for a value that does not fit the column."""
    bound = ExpressionBinder(Scope((), Schema(())), "DEFAULT").bind(node)
    if isinstance(bound, Literal) and bound.value is None and not field.nullable:
        raise _null(field, node.span)
    value = as_stored(_converted(bound, field.type.read), field, table, node.span)
    constant = evaluate(value, ())
    if constant is None and not field.nullable:
        raise _null(field, node.span)
    _limited(constant, field, node.span)
    return (value if value.type.is_nested else Literal(constant, value.type, node.span, derived=True)), constant


def _null(field: Field, span: Span) -> TypeMismatch:
    return TypeMismatch(f"column {field.name} is NOT NULL, and its DEFAULT is NULL", span=span, remedy="another DEFAULT")


def _converted(value: Expr, type: Type) -> Expr:
    """The value as the type, if store assignment does not convert it and a cast does; else the value, which `as_stored` refuses."""
    if may_store(value.type, type) or BOOLEAN in (value.type, type) or value.type.is_nested or type.is_nested:
        return value
    if not can_cast(value.type, type):
        return value
    converted = cast(value, type, value.span)
    try:
        evaluate(converted, ())
    except EvaluationError:
        return value
    return converted


def _limited(value: Any, field: Field, span: Span) -> Any:
    """The text as a column of CHAR(n) or VARCHAR(n) keeps it. Raises TypeMismatch if it is too long."""
    if value is None or not field.type.is_limited:
        return value
    most = field.type.precision
    if value[most:].strip(" "):
        message = f"the DEFAULT of column {field.name} has {len(value)} characters"
        raise TypeMismatch(message, span=span, expected=f"at most {most}, as {field.type.sql} has")
    return value[:most].ljust(most if field.type.name == "CHAR" else 0)


def _check_form(node: tree.Expression, catalog: Namespace) -> None:
    functions = catalog.functions()
    for part in tree.walk(node, lambda part: not isinstance(part, tree.LambdaText)):
        if isinstance(part, tree.ColumnName | tree.Star):
            raise TypeMismatch("a DEFAULT reads no columns and no variables", span=part.span, expected=_FORM)
        if isinstance(part, tree.QUERIES):
            raise TypeMismatch("a DEFAULT has no subqueries", span=node.span, expected=_FORM)
        if isinstance(part, tree.OverCall) or (isinstance(part, tree.FunctionCall) and aggregate_of(part)):
            raise TypeMismatch("a DEFAULT has no aggregates and no window functions", span=part.span, expected=_FORM)
    for part in tree.walk(node):
        if isinstance(part, tree.FunctionCall) and part.name in functions:
            message = f"a DEFAULT calls no functions of your own, such as {functions[part.name].name}"
            raise Unsupported(message, span=part.span, remedy="write its expression")


def _without_variable(node: Any) -> Any:
    return replace(node, variable=None) if isinstance(node, tree.ColumnName) and node.variable is not None else node


def _text(node: tree.Expression) -> str:
    """What is written there, on one line, with the values of its parameters."""
    text, shift = node.span.text[node.span.start : node.span.end], node.span.start
    given = [part for part in tree.walk(node) if isinstance(part, tree.ParameterValue)]
    for part in sorted(given, key=lambda part: part.span.start, reverse=True):
        value: Any = part.value
        text = text[: part.span.start - shift] + show_expr(value) + text[part.span.end - shift :]
    return " ".join(text.split())
