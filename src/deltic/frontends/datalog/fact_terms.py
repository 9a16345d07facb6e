"""Values of structs, tuples, Vecs, Sets and Maps in files of facts: terms without variables, as `shown_value` writes them."""

from __future__ import annotations

from typing import Any

from deltic.errors import Span, TypeMismatch
from deltic.expr.functions.signature import constant
from deltic.frontends.datalog.bind_term import TermBinder
from deltic.frontends.datalog.declarations import BoundTerm, Declarations
from deltic.frontends.datalog.grammar import grammar, parsed
from deltic.frontends.datalog.kinds import Kind, stored
from deltic.frontends.datalog.parse import Converter
from deltic.frontends.statements import Namespace
from deltic.types import Type


def value_of_term(text: str, place: str, kind: Kind, declarations: Declarations, namespace: Namespace) -> Any:
    """The value, as frames take it. place: the name of the text in errors. Raises subclasses of QueryError."""
    (tree,) = parsed(grammar("ddlog.lark"), text, place, "terms").children
    term = Converter(text, place).term(tree)
    return constant_value(TermBinder(declarations, namespace, {}, set()).bind(term, kind), term.span)


def constant_value(term: BoundTerm, span: Span) -> Any:
    """The value of a constant, as frames take it. Raises TypeMismatch."""
    literal = constant(term.expr)
    if literal is None:
        raise TypeMismatch("the value cannot be computed", span=span)
    return _plain(literal.value, stored(term.kind))


def _plain(value: Any, type: Type) -> Any:
    """A frozen value of the type as Python has it: a STRUCT as a dict, an ARRAY as a list, a MAP as pairs."""
    if value is None:
        return None
    if type.name == "STRUCT":
        return {field.name: _plain(one, field.type) for field, one in zip(type.parts, value, strict=True)}
    if type.name == "ARRAY":
        return [_plain(one, type.parts[0].type) for one in value]
    if type.name == "MAP":
        return [tuple(_plain(one, part.type) for one, part in zip(entry, type.parts, strict=True)) for entry in value]
    return value
