"""Signatures: parameters with Spark's implicit casts, and result types.

Invariant: a Call's arguments have exactly the types that both evaluators expect for its function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from deltic.errors import EvaluationError, Span, TypeMismatch
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Call, Expr, Literal, is_fixed
from deltic.expr.registry import Builder, Typed
from deltic.expr.typing import cast
from deltic.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, TIME, TIMESTAMP, TIMESTAMP_NTZ, VARIANT, Type, decimal

TypeRule = Callable[[str, Sequence[Expr], Span | None], Typed]
"""(the name as written, the arguments, the call's place) -> the arguments cast, and the result's type."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter. accept: the type to which an argument of a given type is cast; None refuses it. expected: the types in errors."""

    expected: str
    accept: Callable[[Type], Type | None]


def _number_as(target: Type) -> Callable[[Type], Type | None]:
    return lambda t: target if t.is_numeric or t in (STRING, NULL) else None


def _one_of(target: Type, *sources: Type) -> Callable[[Type], Type | None]:
    return lambda t: target if t in sources or t in (target, STRING, NULL) else None


def _days(t: Type) -> Type | None:
    return INT if t in (STRING, NULL) or (t.is_integer and t != BIGINT) else None


def _moment(t: Type) -> Type | None:
    return t if t in (DATE, TIMESTAMP, TIMESTAMP_NTZ) else DATE if t in (STRING, NULL) else None


INTEGER = Parameter("INT", _number_as(INT))
LONG = Parameter("BIGINT", _number_as(BIGINT))
REAL = Parameter("DOUBLE", _number_as(DOUBLE))
TEXT = Parameter("STRING", lambda t: STRING if t in (BINARY, STRING, VARIANT) or not t.has_bytes else None)
TEXT_ALONE = Parameter("STRING", lambda t: None if t in (BINARY, VARIANT) else TEXT.accept(t))
TEXT_OR_BYTES = Parameter("STRING or BINARY", lambda t: t if t == BINARY else TEXT.accept(t))
PLAIN_TEXT = Parameter("STRING", lambda t: STRING if t in (STRING, NULL) else None)
PLAIN_INTEGER = Parameter("INT", lambda t: INT if (t.is_integer and t != BIGINT) or t == NULL else None)
PLAIN_LONG = Parameter("BIGINT", lambda t: BIGINT if t.is_integer or t == NULL else None)
PLAIN_NUMBER = Parameter("a number", lambda t: t if t.is_numeric else BIGINT if t == NULL else None)
BYTES = Parameter("BINARY or STRING", lambda t: BINARY if t in (BINARY, STRING, NULL) else None)
SECONDS = Parameter("DECIMAL(16,6)", lambda t: decimal(16, 6) if t.is_numeric or t in (STRING, NULL) else None)
CONDITION = Parameter("BOOLEAN", lambda t: BOOLEAN if t in (BOOLEAN, STRING, NULL) else None)
DAY = Parameter("DATE", _one_of(DATE, TIMESTAMP, TIMESTAMP_NTZ))
INSTANT = Parameter("TIMESTAMP", _one_of(TIMESTAMP, DATE, TIMESTAMP_NTZ))
DAYS = Parameter("INT, SMALLINT or TINYINT", _days)
DAY_OR_INSTANT = Parameter("DATE or TIMESTAMP", _moment)
NUMBER = Parameter("a number", lambda t: t if t.is_numeric else DOUBLE if t in (STRING, NULL) else None)
TIME_ALONE = Parameter("TIME", lambda t: t if t.is_time else TIME if t == NULL else None)
ANY = Parameter("any type", lambda t: t)


def check_count(name: str, arguments: Sequence[object], least: int, most: int | None, span: Span | None) -> None:
    """Raises TypeMismatch unless `least` ≤ len(arguments) ≤ `most` (None: any number)."""
    if len(arguments) < least or (most is not None and len(arguments) > most):
        required = f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
        plural = "" if required == "1" else "s"
        raise TypeMismatch(f"{name} takes {required} argument{plural}, found {len(arguments)}", span=span)


def accept(name: str, position: int, argument: Expr, parameter: Parameter, span: Span | None) -> Expr:
    """The argument cast to the parameter's type. position: counted from 1. Raises TypeMismatch."""
    type = parameter.accept(argument.type)
    if type is None:
        raise wrong_type(name, position, argument, parameter.expected, span)
    return cast(argument, type)


def accept_each(name: str, arguments: Sequence[Expr], parameter: Parameter, span: Span | None) -> tuple[Expr, ...]:
    """All arguments cast to the type of one parameter. Raises TypeMismatch."""
    return tuple(accept(name, i, argument, parameter, span) for i, argument in enumerate(arguments, 1))


def wrong_type(name: str, position: int, argument: Expr, expected: str, span: Span | None) -> TypeMismatch:
    """The error for an argument that has none of the `expected` types. position: counted from 1."""
    message, expected = f"argument {position} of {name} has the wrong type", f"{expected}, found {argument.type.sql}"
    return TypeMismatch(message, span=argument.span or span, expected=expected)


def any_nullable(arguments: Sequence[Expr]) -> bool:
    return any(argument.nullable for argument in arguments)


def flattened(function: str, arguments: Sequence[Expr]) -> tuple[Expr, ...]:
    """The arguments of an associative function, with each nested call of it replaced by its arguments."""
    parts: list[Expr] = []
    for argument in arguments:
        if isinstance(argument, Call) and argument.function == function:
            parts += argument.arguments
        else:
            parts.append(argument)
    return tuple(parts)


def takes(
    parameters: Sequence[Parameter],
    result: Type | Callable[[Sequence[Type]], Type],
    *,
    defaults: Sequence[Literal] = (),
    nullable: OneOf["as arguments", "always", "never"] = "as arguments",
) -> TypeRule:
    """A signature of fixed parameters; `defaults` are those of the last ones."""

    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
        check_count(name, arguments, len(parameters) - len(defaults), len(parameters), span)
        missing = len(parameters) - len(arguments)
        whole = [*arguments, *defaults[len(defaults) - missing :]]
        converted = tuple(accept(name, i, a, p, span) for i, (a, p) in enumerate(zip(whole, parameters, strict=True), 1))
        type = result if isinstance(result, Type) else result([a.type for a in converted])
        return Typed(converted, type, nullable == "always" or (nullable == "as arguments" and any_nullable(converted)))

    return rule


def calls(function: str, rule: TypeRule) -> Builder:
    """A builder of calls of `function` with the signature `rule`."""
    return lambda name, arguments, span: rule(name, arguments, span).call(function, span)


def first(types: Sequence[Type]) -> Type:
    """The result type of a function that returns its first argument's type."""
    return types[0]


def constant(expr: Expr) -> Literal | None:
    """The value of an expression without columns, as a literal; None if it has columns or fails."""
    if isinstance(expr, Literal):
        return expr
    if not is_fixed(expr):
        return None
    try:
        return Literal(evaluate(expr, ()), expr.type, expr.span, derived=True)
    except EvaluationError:
        return None
