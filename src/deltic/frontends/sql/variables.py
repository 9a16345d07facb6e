"""Variables of a session: DECLARE, SET VAR and DROP VARIABLE, and the names in a statement that may be of one.

A statement reads the values that variables have where it stands: they become constants of its tree, so a view keeps them when it is bound
again. As in Spark, a column of that name, also of an enclosing query, hides a variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from deltic.errors import TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr import Expr, Literal
from deltic.expr.interpreter import evaluate
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_expression import ExpressionBinder, check_bound
from deltic.frontends.sql.bind_function import fitted
from deltic.frontends.sql.scope import Scope
from deltic.frontends.sql.sql_types import sql_type
from deltic.frontends.statements import DropVariable, Namespace, SessionVariable, SetVariables, WithVariables
from deltic.schema import NULL, Schema, Type

Node = TypeVar("Node")
SCHEMAS: Final = ("system", "session")
"""What may stand before the name of a variable."""
_NO_QUERY: Final = "session.query(…) answers it; SET VAR name = :value, with args=, sets the answer"


def variables_of(catalog: Namespace) -> Mapping[str, SessionVariable]:
    """The variables of a namespace, by their names in lower case."""
    return catalog.variables() if isinstance(catalog, WithVariables) else {}


def with_variables(node: Node, variables: Mapping[str, SessionVariable]) -> Node:
    """The tree in which every name that may be of a variable has its value."""

    def valued(node: Any) -> Any:
        if not isinstance(node, tree.ColumnName):
            return node
        names = unqualified(node.parts)
        variable = variables.get(names[0].text.lower())
        return node if variable is None else replace(node, variable=tree.VariableUse(variable.value, names[1:]))

    return tree.rewritten(node, valued) if variables else node


def unqualified(names: tuple[tree.Name, ...]) -> tuple[tree.Name, ...]:
    """The names without `system.session` or `session` before them."""
    words = [name.text.lower() for name in names]
    for prefix in (list(SCHEMAS), list(SCHEMAS[1:])):
        if len(words) > len(prefix) and words[: len(prefix)] == prefix:
            return names[len(prefix) :]
    return names


def bind_variables(parsed: tree.VariableDeclaration | tree.VariableAssignments, known: Mapping[str, SessionVariable]) -> SetVariables:
    """The variables with their new values. Raises QueryError, and EvaluationError where an expression fails."""
    if isinstance(parsed, tree.VariableDeclaration):
        return _declared(parsed, known)
    return SetVariables(tuple(_set(name, node, known) for name, node in parsed.assignments), parsed.span)


def _declared(parsed: tree.VariableDeclaration, known: Mapping[str, SessionVariable]) -> SetVariables:
    first = parsed.names[0]
    for name in parsed.names:
        if name.text.lower() in known and not parsed.or_replace:
            remedy = "SET VAR gives it another value; DECLARE OR REPLACE VARIABLE declares it again"
            raise Unsupported(f"the variable {name.text} is declared already", span=name.span, remedy=remedy)
    type = None if parsed.type is None else sql_type(parsed.type).read
    if type is None and parsed.default is None:
        expected = f"DECLARE VARIABLE {first.text} INT, or DECLARE VARIABLE {first.text} = expression"
        raise TypeMismatch("a variable requires a type or a value", span=first.span, expected=expected)
    if parsed.default is None:
        assert type is not None
        default: Expr = Literal(None, type, derived=True)
    else:
        default = constant(parsed.default, type)
    return SetVariables(tuple(SessionVariable(name.text, default, default) for name in parsed.names), first.span)


def _set(name: tree.Name, node: tree.Expression | None, known: Mapping[str, SessionVariable]) -> SessionVariable:
    variable = known.get(name.text.lower())
    if variable is None:
        remedy = did_you_mean(name.text, [one.name for one in known.values()]) or f"DECLARE VARIABLE {name.text} type, before it"
        raise UnknownName(f"there is no variable {name.text!r}", span=name.span, remedy=remedy)
    return replace(variable, value=variable.default if node is None else constant(node, variable.value.type))


def constant(node: tree.Expression, type: Type | None) -> Expr:
    """The value of an expression without rows, cast to a type."""
    for part in tree.walk(node):
        if isinstance(part, tree.QUERIES):
            raise Unsupported("a subquery is not supported in the value of a variable", span=node.span, remedy=_NO_QUERY)
    bound = ExpressionBinder(Scope((), Schema(())), "a variable").bind(node)
    if type is None and bound.type == NULL:
        raise TypeMismatch("a variable that is only NULL has no type", span=node.span, remedy="DECLARE VARIABLE name type")
    converted = bound if type is None else fitted(bound, type)
    check_bound(converted, node.span)
    value = evaluate(converted, ())
    return converted if converted.type.is_nested else Literal(value, converted.type, node.span, derived=True)


def dropped(name: tree.Name, if_exists: bool) -> DropVariable:
    """DROP VARIABLE."""
    return DropVariable(name.text, if_exists, name.span)
