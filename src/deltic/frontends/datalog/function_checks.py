"""Checks the functions that a program declares, also those that no rule calls."""

from __future__ import annotations

from deltic.expr.nodes import Column
from deltic.frontends.datalog.bind_term import TermBinder
from deltic.frontends.datalog.declarations import BoundTerm, Declarations
from deltic.frontends.datalog.functions import is_generic
from deltic.frontends.datalog.kinds import stored
from deltic.frontends.datalog.rewriting import parts_of_kind
from deltic.frontends.datalog.tree import CallTerm, FunctionDeclaration
from deltic.frontends.statements import Namespace


def check_functions(declarations: Declarations, namespace: Namespace) -> None:
    """Binds each body over arguments of the declared types. Raises as `TermBinder.bind`.

    Those of generic functions are bound where they are called, and so are those that call extern functions which are not registered.
    """
    for function in declarations.functions.values():
        if function.body is None or any(is_generic(one.type) for one in function.parameters) or is_generic(function.type):
            continue
        if _is_registered(function, declarations, namespace, set()):
            kinds = [declarations.kind(one.type) for one in function.parameters]
            values = {
                one.name: BoundTerm(Column(i, stored(kind), False, one.name), kind)
                for i, (one, kind) in enumerate(zip(function.parameters, kinds, strict=True))
            }
            binder = TermBinder(declarations, namespace, values, set(), (function.name,))
            binder.bind(function.body, None if function.type is None else declarations.kind(function.type))


def _is_registered(function: FunctionDeclaration, declarations: Declarations, namespace: Namespace, seen: set[str]) -> bool:
    """Whether all extern functions that it calls, directly or not, are registered."""
    if function.name in seen:
        return True
    seen.add(function.name)
    if function.body is None:
        return function.name.lower() in namespace.functions()
    called = (declarations.functions.get(call.name) for call in parts_of_kind(function.body, CallTerm))
    return all(_is_registered(one, declarations, namespace, seen) for one in called if one is not None)
