"""Arguments of higher-order functions: the lambdas among them are bound over the elements of those before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deltic.errors import Span, SyntaxFailure, TypeMismatch
from deltic.expr import Expr
from deltic.expr.nodes import Lambda, LambdaVariable
from deltic.expr.registry import LambdaForm, LambdaRule
from deltic.frontends.sql import tree

if TYPE_CHECKING:
    from deltic.frontends.sql.bind_expression import ExpressionBinder

HIGHER_ORDER: Final = "transform, filter, exists, forall, aggregate, zip_with, array_sort, map_filter and the like"


def bind_arguments(binder: ExpressionBinder, name: str, nodes: Sequence[tree.Expression], rule: LambdaRule, span: Span) -> list[Expr]:
    """The arguments in order. Raises TypeMismatch for a lambda with too few or too many parameters."""
    bound: list[Expr] = []
    for node in nodes:
        form = rule(name, bound, span)
        bound.append(binder.bind(node) if form is None else _function(binder, name, node, form))
    return bound


def _function(binder: ExpressionBinder, name: str, node: tree.Expression, form: LambdaForm) -> Lambda:
    """A lambda; another expression is the body of one that reads no parameter."""
    if not isinstance(node, tree.LambdaText):
        return Lambda((), _within(binder, {}).bind(node), node.span)
    count = len(node.parameters)
    if not form.fewest <= count <= len(form.parameters):
        most = len(form.parameters)
        expected = str(most) if form.fewest == most else f"{form.fewest} to {most}"
        raise TypeMismatch(f"a lambda of {name} names {count} parameters", span=node.span, expected=f"{expected} of them")
    level = len(binder.lambdas)
    variables: dict[str, LambdaVariable] = {}
    for place, (parameter, part) in enumerate(zip(node.parameters, form.parameters, strict=False)):
        if parameter.text.lower() in variables:
            message = f"two parameters of a lambda are called {parameter.text}"
            raise SyntaxFailure(message, span=parameter.span, expected="names that differ")
        variables[parameter.text.lower()] = LambdaVariable(level, place, part.type, part.nullable, parameter.text)
    return Lambda(tuple(variables.values()), _within(binder, variables).bind(node.body), node.span)


def _within(binder: ExpressionBinder, variables: dict[str, LambdaVariable]) -> ExpressionBinder:
    return replace(binder, lambdas=(*binder.lambdas, variables))
