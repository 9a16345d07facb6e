"""Functions of users in SQL: CREATE FUNCTION, and which calls are of them.

A function in SQL is a macro: a call binds its body with the arguments in place of the parameters, so the type and whether it can be NULL
follow from the arguments. No function of a user hides a builtin one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from deltic.aggregates import is_aggregate
from deltic.errors import CatalogError, QueryError, Span, UnknownName, Unsupported, most_like
from deltic.expr import Column, known_functions
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_aggregate import UNSUPPORTED, aggregate_of
from deltic.frontends.sql.bind_call import REFUSED, TABLE_FUNCTIONS, UNSUPPORTED_CALLS, callable_names
from deltic.frontends.sql.bind_expression import ExpressionBinder, check_bound
from deltic.frontends.sql.bind_function import NOTHING, BodyParameter, FunctionBody, bind_body, fitted
from deltic.frontends.sql.bind_query import bind_tree
from deltic.frontends.sql.bind_subquery import Subqueries
from deltic.frontends.sql.bind_time import CLOCK, TODAY
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.lateral_macros import lateral
from deltic.frontends.sql.named_arguments import Parameters, has_names, in_order
from deltic.frontends.sql.sql_types import sql_type
from deltic.frontends.sql.table_macros import TableBody, expanded, unknown_arguments, varying
from deltic.frontends.statements import (
    CreateFunction,
    DefinedFunction,
    Namespace,
    PythonAggregate,
    PythonScalar,
    PythonTable,
    SqlScalar,
    SqlTable,
)

Node = TypeVar("Node")
_OTHERS = frozenset((*TABLE_FUNCTIONS, *REFUSED, *CLOCK, *TODAY, *UNSUPPORTED_CALLS))


def create_function(node: tree.FunctionDefinition, namespace: Namespace) -> CreateFunction:
    """CREATE FUNCTION. Raises QueryError where the body is not valid over its parameters, or leads back to the function."""
    check_name(node.name.text, node.name.span)
    if isinstance(node.result, tree.TableResult):
        return _create_table_function(node, node.result, namespace)
    assert not isinstance(node.body, tree.QUERIES)
    body = FunctionBody(_parameters(node), None if node.result is None else sql_type(node.result).read, node.body)
    for part in tree.walk(node.body, lambda part: not isinstance(part, tree.QUERIES)):
        if isinstance(part, tree.FunctionCall) and aggregate_of(part):
            remedy = "aggregate where the function is called"
            raise Unsupported("an aggregate in a function is not supported", span=part.span, remedy=remedy)
    expression, calls = _body_of(node, node.body, namespace)
    unknown = [Column(i, one.type, True, one.name) for i, one in enumerate(body.parameters)]
    binder = ExpressionBinder(NOTHING, "a function", subqueries=Subqueries(Environment(namespace), bind_tree))
    check_bound(bind_body(binder, replace(body, expression=expression), node.name.text, unknown, node.body.span), node.body.span)
    return CreateFunction(SqlScalar(node.name.text, body, calls), node.or_replace, node.if_not_exists, node.name.span)


def _create_table_function(node: tree.FunctionDefinition, result: tree.TableResult, namespace: Namespace) -> CreateFunction:
    """CREATE FUNCTION … RETURNS TABLE. Its query is bound once with NULL for each parameter."""
    _parameters(node)
    assert isinstance(node.body, tree.QUERIES)
    body = TableBody(node.name, node.parameters, result.columns, node.body)
    query, calls = _body_of(node, expanded(body, unknown_arguments(body), namespace, node.span), namespace)
    bind_tree(query, Environment(namespace))
    return CreateFunction(SqlTable(node.name.text, body, calls), node.or_replace, node.if_not_exists, node.name.span)


def _body_of(node: tree.FunctionDefinition, body: Node, namespace: Namespace) -> tuple[Node, tuple[str, ...]]:
    """The body of a new function with calls as of `marked`; the names of the functions that it calls itself. Raises CatalogError."""
    functions = namespace.functions()
    calls = _Calls(namespace, functions, set(), set())
    inlined = _marked(body, calls) if functions else body
    if node.name.text.lower() in calls.used:
        raise CatalogError(f"the function {node.name.text} would call itself", span=node.body.span, remedy="WITH RECURSIVE repeats a query")
    return inlined, tuple(sorted(calls.direct))


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
        type = sql_type(part.type).read
        if part.default is not None:
            check_bound(fitted(ExpressionBinder(NOTHING, "a default").bind(part.default), type), part.default.span)
        parameters.append(BodyParameter(part.name.text, type, part.default))
    return tuple(parameters)


def marked(node: Node, namespace: Namespace) -> tuple[Node, tuple[str, ...]]:
    """The tree with calls of the namespace's functions as DefinedCall; the names of these functions, and of those that they call."""
    functions = namespace.functions()
    used: set[str] = set()
    return (_marked(node, _Calls(namespace, functions, used, set())) if functions else node), tuple(sorted(used))


@dataclass(frozen=True, slots=True)
class _Calls:
    """namespace: of the tree. functions: those of the namespace. used: collects those that are called, directly or not. direct: those that
    are called in the tree itself. left: on the right of LEFT JOIN."""

    namespace: Namespace
    functions: Mapping[str, DefinedFunction]
    used: set[str]
    direct: set[str]
    left: bool = False

    @property
    def within(self) -> _Calls:
        """Of the body of a function that is called."""
        return replace(self, direct=set())


def _marked(node: Any, calls: _Calls) -> Any:
    if isinstance(node, tuple):
        parts = tuple(_marked(part, calls) for part in node)
        return node if all(new is old for new, old in zip(parts, node, strict=True)) else parts
    if not tree.is_node(node):
        return node
    if isinstance(node, (tree.JoinClause, *tree.QUERIES)):
        calls = replace(calls, left=isinstance(node, tree.JoinClause) and node.kind.startswith("LEFT"))
    changed = {}
    for field in fields(node):
        old = getattr(node, field.name)
        if (new := _marked(old, calls)) is not old:
            changed[field.name] = new
    inlined = replace(node, **changed) if changed else node
    if isinstance(inlined, tree.TableCall) and isinstance(inlined.call, tree.DefinedCall) and isinstance(inlined.call.function, SqlTable):
        return _table(inlined, inlined.call, inlined.call.function, calls)
    if not isinstance(inlined, tree.FunctionCall):
        return inlined
    if inlined.name not in calls.functions:
        _check_known(inlined, calls.functions)
        return inlined
    return _called(inlined, calls)


def parameters_of(function: DefinedFunction) -> Parameters:
    """The parameters that a call may name."""
    match function:
        case SqlScalar(body=FunctionBody() as body):
            return [(one.name, one.default) for one in body.parameters]
        case SqlTable(body=TableBody() as table):
            return [(one.name.text, one.default) for one in table.parameters]
        case PythonScalar() | PythonAggregate() | PythonTable():
            return [(name, None) for name in function.parameters]
    raise AssertionError(function)


def _table(node: tree.TableCall, call: tree.DefinedCall, function: SqlTable, calls: _Calls) -> tree.DefinedTable | tree.DefinedLateral:
    """A call of a table function in SQL in FROM, as its query."""
    assert isinstance(function.body, TableBody)
    if node.lateral and any(next(varying(argument), None) for argument in call.arguments):
        beside = lateral(function.body, call.arguments, calls.namespace, node.alias, call.span, left=calls.left)
        return replace(beside, query=_marked(beside.query, calls.within))
    query = expanded(function.body, call.arguments, calls.namespace, call.span)
    return tree.DefinedTable(_marked(query, calls.within), function.name, node.alias, node.span)


def _check_known(call: tree.FunctionCall, functions: Mapping[str, DefinedFunction]) -> None:
    """Raises UnknownName for a name that is most like that of a user's function; other unknown names are found where they are bound."""
    users = [function.name for function in functions.values()]
    if not is_builtin(call.name) and (like := most_like(call.name, [*users, *callable_names()])) in users:
        raise UnknownName(f"there is no function {call.name}", span=call.span, remedy=f"did you mean {like!r}?")


def _called(call: tree.FunctionCall, calls: _Calls) -> tree.DefinedCall | tree.FunctionCall:
    function = calls.functions[call.name]
    calls.used.add(call.name)
    calls.direct.add(call.name)
    if has_names(call.arguments):
        call = replace(call, arguments=in_order(function.name, call.arguments, parameters_of(function), call.span))
    if isinstance(function, PythonAggregate):
        return replace(call, function=function)
    if call.distinct or call.condition is not None:
        raise Unsupported("DISTINCT and FILTER belong to aggregates", span=call.span, remedy="leave it out")
    if not isinstance(function, SqlScalar):
        return tree.DefinedCall(function.name, function, None, call.arguments, call.span)
    assert isinstance(function.body, FunctionBody)
    body = _marked(function.body.expression, calls.within)
    return tree.DefinedCall(function.name, function, body, call.arguments, call.span)
