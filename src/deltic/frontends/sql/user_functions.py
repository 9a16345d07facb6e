"""Functions of users in SQL: CREATE FUNCTION, and which calls are of them.

A function in SQL is a macro: a call binds its body with the arguments in place of the parameters, so the type and whether it can be NULL
follow from the arguments. No function of a user hides a builtin one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from deltic.aggregates import is_aggregate
from deltic.errors import CatalogError, QueryError, Span, UnknownName, Unsupported, most_like
from deltic.expr import Column, known_functions
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_aggregate import UNSUPPORTED, aggregate_of
from deltic.frontends.sql.bind_call import COLLECTIONS, OTHER_TABLE_FUNCTIONS, REFUSED, TABLE_FUNCTIONS
from deltic.frontends.sql.bind_expression import ExpressionBinder, check_bound
from deltic.frontends.sql.bind_function import NOTHING, BodyParameter, FunctionBody, bind_body
from deltic.frontends.sql.bind_time import CLOCK
from deltic.frontends.sql.sql_types import sql_type
from deltic.frontends.statements import CreateFunction, Namespace, ScalarFunction, SqlScalar

Node = TypeVar("Node")
_OTHERS = frozenset((*TABLE_FUNCTIONS, *OTHER_TABLE_FUNCTIONS, *COLLECTIONS, *REFUSED, *CLOCK, "window"))


def create_function(node: tree.FunctionDefinition, namespace: Namespace) -> CreateFunction:
    """CREATE FUNCTION. Raises QueryError where the body is not valid over its parameters, or leads back to the function."""
    check_name(node.name.text, node.name.span)
    body = FunctionBody(_parameters(node), None if node.result is None else sql_type(node.result), node.body)
    for part in tree.walk(node.body):
        if isinstance(part, tree.QUERIES):
            remedy = "join its rows where the function is called"
            raise Unsupported("a subquery in a function is not supported", span=part.span, remedy=remedy)
        if isinstance(part, tree.FunctionCall) and aggregate_of(part):
            remedy = "aggregate where the function is called"
            raise Unsupported("an aggregate in a function is not supported", span=part.span, remedy=remedy)
    expression, calls = marked(node.body, namespace)
    if node.name.text.lower() in calls:
        raise CatalogError(f"the function {node.name.text} would call itself", span=node.body.span, remedy="WITH RECURSIVE repeats a query")
    unknown = [Column(i, one.type, True, one.name) for i, one in enumerate(body.parameters)]
    binder = ExpressionBinder(NOTHING, "a function")
    check_bound(bind_body(binder, replace(body, expression=expression), node.name.text, unknown, node.body.span), node.body.span)
    return CreateFunction(SqlScalar(node.name.text, body, calls), node.or_replace, node.if_not_exists, node.name.span)


def check_name(name: str, span: Span | None) -> None:
    """Raises CatalogError for the name of a builtin function."""
    if is_builtin(name.lower()):
        raise CatalogError(f"{name} is a builtin function", span=span, remedy="give the function another name")


def is_builtin(lower: str) -> bool:
    """Whether the name, in lower case, is of a function of Spark's that is known here, supported or not."""
    return lower in known_functions() or lower in _OTHERS or is_aggregate(lower) or lower in UNSUPPORTED


def _parameters(node: tree.FunctionDefinition) -> tuple[BodyParameter, ...]:
    parameters: list[BodyParameter] = []
    for part in node.parameters:
        if part.name.text.lower() in (one.name.lower() for one in parameters):
            raise QueryError(f"the parameter {part.name.text!r} is defined twice", span=part.name.span, remedy="give it another name")
        if part.default is None and parameters and parameters[-1].default is not None:
            raise QueryError(f"the parameter {part.name.text!r} has no default, and follows one that has", span=part.name.span)
        parameters.append(BodyParameter(part.name.text, sql_type(part.type), part.default))
    return tuple(parameters)


def marked(node: Node, namespace: Namespace) -> tuple[Node, tuple[str, ...]]:
    """The tree with calls of the namespace's functions as DefinedCall; the names of these functions, and of those that they call."""
    known = namespace.functions()
    used: set[str] = set()
    return (_marked(node, known, used) if known else node), tuple(sorted(used))


def _marked(node: Any, known: Mapping[str, ScalarFunction], used: set[str]) -> Any:
    if isinstance(node, tuple):
        parts = tuple(_marked(part, known, used) for part in node)
        return node if all(new is old for new, old in zip(parts, node, strict=True)) else parts
    if not tree.is_node(node):
        return node
    changed = {}
    for field in fields(node):
        old = getattr(node, field.name)
        if (new := _marked(old, known, used)) is not old:
            changed[field.name] = new
    found = replace(node, **changed) if changed else node
    if not isinstance(found, tree.FunctionCall):
        return found
    if found.name not in known:
        _check_known(found, known)
        return found
    return _called(found, known, used)


def _check_known(call: tree.FunctionCall, known: Mapping[str, ScalarFunction]) -> None:
    """Raises UnknownName for a name that is most like that of a user's function; other unknown names are found where they are bound."""
    users = [function.name for function in known.values()]
    if not is_builtin(call.name) and (like := most_like(call.name, [*users, *known_functions()])) in users:
        raise UnknownName(f"there is no function {call.name}", span=call.span, remedy=f"did you mean {like!r}?")


def _called(call: tree.FunctionCall, known: Mapping[str, ScalarFunction], used: set[str]) -> tree.DefinedCall:
    function = known[call.name]
    used.add(call.name)
    if call.distinct or call.condition is not None:
        raise Unsupported("DISTINCT and FILTER belong to aggregates", span=call.span, remedy="leave it out")
    if not isinstance(function, SqlScalar):
        return tree.DefinedCall(function.name, function, None, call.arguments, call.span)
    assert isinstance(function.body, FunctionBody)
    body = _marked(function.body.expression, known, used)
    return tree.DefinedCall(function.name, function, body, call.arguments, call.span)
