"""Calls of functions: those of the program, whose bodies are bound over the arguments, and those of the session in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deltic.errors import Span, TypeMismatch, UnknownName, Unsupported
from deltic.expr.functions.signature import check_count
from deltic.expr.nodes import PythonFunction
from deltic.frontends.datalog.declarations import BoundTerm, Substitution, unify
from deltic.frontends.datalog.kinds import Kind, UnionKind, kind_of, stored
from deltic.frontends.datalog.tree import CallTerm, ConstantTerm, FunctionDeclaration
from deltic.frontends.datalog.values import optional
from deltic.frontends.statements import DefinedFunction, PythonScalar, SqlScalar, SqlTable

if TYPE_CHECKING:
    from deltic.frontends.datalog.bind_term import TermBinder

NESTING: Final = 60
"""How deep calls of a program's functions may be."""


def call_python(scalar: DefinedFunction, arguments: Sequence[BoundTerm], declared: Kind | None, span: Span) -> BoundTerm:
    """The call of a registered function. declared: the result of its extern function; None is Option of what was registered.

    An Option<T> of a T that is not an Option is None where Python returns None; for other kinds None is an error of the row.
    """
    if not isinstance(scalar, PythonScalar):
        remedy = "define it in Datalog, or register a function in Python"
        cause = "is defined in SQL" if isinstance(scalar, SqlScalar | SqlTable) else "is not a function of one row's values"
        raise Unsupported(f"the function {scalar.name} {cause}", span=span, remedy=remedy)
    check_count(scalar.name, arguments, scalar.least, scalar.most, span)
    function = replace(scalar.function, parameters=(None,) * len(arguments))
    values = tuple(value.expr for value in arguments)
    inner = declared.arguments[0] if isinstance(declared, UnionKind) and declared.name == "Option" else declared
    kind = kind_of(scalar.type) if inner is None else inner
    if kind is None:
        raise TypeMismatch(f"the function {scalar.name} returns {scalar.type.sql}, which Datalog does not have", span=span)
    if stored(kind) != scalar.type and declared is not None and stored(declared) == scalar.type:
        return BoundTerm(PythonFunction(function, values, 0, scalar.type, False, span), declared)
    if stored(kind) != scalar.type:
        raise TypeMismatch(
            f"the function {scalar.name} is registered with the result {scalar.type.sql}", span=span, expected=stored(kind).sql
        )
    if inner is declared and declared is not None:
        return BoundTerm(PythonFunction(function, values, 0, scalar.type, False, span), declared)
    return optional(PythonFunction(function, values, 0, scalar.type, True, span), kind, span)


def call_declared(binder: TermBinder, function: FunctionDeclaration, term: CallTerm) -> BoundTerm:
    """A call of a function of the program: its body over the arguments."""
    if len(term.arguments) != len(function.parameters):
        names = ", ".join(one.name for one in function.parameters)
        raise TypeMismatch(
            f"{function.name} takes {len(function.parameters)} arguments ({names}), found {len(term.arguments)}", span=term.span
        )
    substitution: Substitution = {}
    for parameter, argument in zip(function.parameters, term.arguments, strict=True):
        if not isinstance(argument, ConstantTerm) and is_generic(parameter.type):
            unify(parameter.type, binder.bind(argument).kind, substitution)
    kinds = []
    for parameter, argument in zip(function.parameters, term.arguments, strict=True):
        if is_generic(parameter.type):
            unify(parameter.type, binder.bind(argument).kind, substitution)
        kinds.append(binder.declarations.kind(parameter.type, substitution))
    values = [binder.bind(argument, kind) for argument, kind in zip(term.arguments, kinds, strict=True)]
    result = None if function.type is None else binder.declarations.kind(function.type, substitution)
    if function.body is None:
        scalar = binder.namespace.functions().get(function.name.lower())
        if scalar is None:
            remedy = f"session.register({function.name!r}, …), or a deltic.UDF in the program"
            raise UnknownName(f"the extern function {function.name} is not registered", span=term.span, remedy=remedy)
        binder.calls.add(function.name.lower())
        return call_python(scalar, values, result, term.span)
    if function.name in binder.around or len(binder.around) >= NESTING:
        path = " → ".join((*binder.around, function.name))
        remedy = "make it a recursive relation"
        raise Unsupported(f"the function {function.name} calls itself: {path}", span=term.span, remedy=remedy)
    given = {one.name: value for one, value in zip(function.parameters, values, strict=True)}
    inner = replace(binder, values=given, around=(*binder.around, function.name))
    return inner.bind(function.body, result)


def is_generic(type: object) -> bool:
    """Whether a type has parameters, such as 'A."""
    name = getattr(type, "name", "")
    parts = (*getattr(type, "arguments", ()), *getattr(type, "items", ()))
    return name.startswith("'") or any(is_generic(one) for one in parts)
