"""Calls of the session's functions in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr.functions.signature import check_count
from deltic.expr.nodes import PythonFunction
from deltic.frontends.datalog.declarations import BoundTerm
from deltic.frontends.datalog.kinds import Kind, UnionKind, kind_of, stored
from deltic.frontends.datalog.values import optional
from deltic.frontends.statements import DefinedFunction, PythonScalar, SqlScalar, SqlTable


def call_python(scalar: DefinedFunction, arguments: Sequence[BoundTerm], declared: Kind | None, span: Span) -> BoundTerm:
    """The call of a registered function. declared: the result of its extern function; None is Option of what was registered.

    An Option<T> of a T that is not an Option is None where Python returns None; for other kinds None is an error of the row.
    """
    if not isinstance(scalar, PythonScalar):
        remedy = "define it in Datalog, or register a function in Python"
        found = "is defined in SQL" if isinstance(scalar, SqlScalar | SqlTable) else "is not a function of one row's values"
        raise Unsupported(f"the function {scalar.name} {found}", span=span, remedy=remedy)
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
