"""Calls of users' functions: those in SQL as what they return, those in Python as calls of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr import Cast, Expr, Literal, cast
from deltic.expr.functions.signature import check_count
from deltic.expr.nodes import PythonFunction
from deltic.frontends.sql import tree
from deltic.frontends.sql.literals import check_literal
from deltic.frontends.sql.scope import Body, Scope
from deltic.frontends.statements import PythonAggregate, PythonScalar, PythonTable, SqlScalar, SqlTable
from deltic.schema import NULL, Schema, Type

if TYPE_CHECKING:
    from deltic.frontends.sql.bind_expression import ExpressionBinder

NOTHING: Final = Scope((), Schema(()))


@dataclass(frozen=True, slots=True)
class BodyParameter:
    """A parameter of a function. default: its value where a call leaves it out; None if every call gives it."""

    name: str
    type: Type
    default: tree.Expression | None


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """What a function in SQL returns, an expression over its parameters alone. result: its type; None is that of the expression."""

    parameters: tuple[BodyParameter, ...]
    result: Type | None
    expression: tree.Expression


def bind_defined(binder: ExpressionBinder, node: tree.DefinedCall) -> Expr:
    """A call of a user's function. Raises TypeMismatch for arguments that do not fit."""
    arguments = [binder.bind(argument) for argument in node.arguments]
    match node.function:
        case SqlScalar(body=FunctionBody() as body):
            assert node.body is not None
            return bind_body(binder, replace(body, expression=node.body), node.name, arguments, node.span)
        case PythonScalar() as scalar:
            return _python(scalar, arguments, node.span)
        case PythonTable() | SqlTable():
            raise Unsupported(f"{node.name}() is a table function, which is not allowed here", span=node.span, expected="LATERAL, or FROM")
    raise AssertionError(node.function)


def bind_body(binder: ExpressionBinder, body: FunctionBody, name: str, arguments: Sequence[Expr], span: Span) -> Expr:
    """What the body is for these arguments: they stand where it has its parameters."""
    least = sum(parameter.default is None for parameter in body.parameters)
    check_count(name, arguments, least, len(body.parameters), span)
    inner = replace(binder, scope=NOTHING, clause="a function", aliases={}, aliases_first=True, keys=None, collector=None, body=None)
    inner = replace(inner, lambdas=({},) * len(binder.lambdas))  # they cannot be read, but a lambda in the body is within them
    given = [*arguments, *(inner.bind(one.default) for one in body.parameters[len(arguments) :] if one.default is not None)]
    values = {one.name: fitted(value, one.type) for one, value in zip(body.parameters, given, strict=True)}
    bound = replace(inner, aliases={word.lower(): (value,) for word, value in values.items()}, body=Body(name, values)).bind(
        body.expression
    )
    return bound if body.result is None else cast(bound, body.result, span)


def fitted(value: Expr, type: Type) -> Expr:
    """The argument of a parameter of this type."""
    converted = cast(value, type, value.span)
    if isinstance(converted, Cast) and isinstance(converted.argument, Literal):
        check_literal(converted, converted.argument)
    return converted


def _python(scalar: PythonScalar, arguments: Sequence[Expr], span: Span) -> Expr:
    check_arguments(scalar, arguments, span)
    function = replace(scalar.function, parameters=(None,) * len(arguments))
    return PythonFunction(function, tuple(arguments), 0, scalar.type, True, span)


def check_arguments(function: PythonScalar | PythonAggregate | PythonTable, arguments: Sequence[Expr], span: Span) -> None:
    """Raises TypeMismatch for another number of arguments than a function in Python takes, and for NULLs that have no type."""
    check_count(function.name, arguments, function.least, function.most, span)
    for position, argument in enumerate(arguments, 1):
        if argument.type == NULL:
            message = f"argument {position} of {function.name} is only NULL and has no type"
            raise TypeMismatch(message, span=argument.span, remedy="CAST(NULL AS type)")
