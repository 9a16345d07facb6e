"""Indexes: a view of a relation's rows whose first columns are those of the index, by which `lookup` finds them."""

from __future__ import annotations

from dataclasses import replace

from deltic.errors import TypeMismatch, Unsupported
from deltic.frontends.datalog.bind_body import BodyBinder, ReadRelation
from deltic.frontends.datalog.declarations import Declarations, check_comparable
from deltic.frontends.datalog.patterns import by_name
from deltic.frontends.datalog.tree import ConstantTerm, IndexDeclaration, Term, VariableTerm, WildcardTerm
from deltic.frontends.statements import Namespace
from deltic.plan.columns import reference
from deltic.plan.nodes import Aggregate, Plan
from deltic.plan.signs import as_view


def index_plan(index: IndexDeclaration, declarations: Declarations, read: ReadRelation, namespace: Namespace) -> Plan:
    """The rows of the indexed relation, grouped by all columns: groups are looked up by the first of their keys. Raises QueryError."""
    atom = index.atom
    relation = declarations.relation_named(atom.name)
    if atom.record is not None or atom.delay or atom.differentiated or relation is None:
        remedy = f"index {index.name}(x: T) on R(x, _)"
        raise Unsupported("an index is on a relation of the program, as it is now", span=atom.span, remedy=remedy)
    for column, kind in relation.columns:
        check_comparable(kind, f"the column {column} of an indexed relation", atom.span)
    names = {one.name: declarations.kind(one.type) for one in index.columns}
    columns = [name for name, _ in relation.columns]
    given = by_name(atom.arguments, columns, f"relation {atom.name}", atom.span)
    first: dict[str, str] = {}
    terms: list[tuple[str | None, Term]] = []
    for (column, kind), term in zip(relation.columns, given, strict=True):
        if isinstance(term, VariableTerm) and term.name in names:
            if names[term.name] != kind:
                raise TypeMismatch(f"{term.name} is {names[term.name]} in the index and {kind} in {atom.name}", span=term.span)
            first.setdefault(term.name, column)
        elif not isinstance(term, WildcardTerm | ConstantTerm | None):
            raise Unsupported("an argument of an indexed atom is a variable of the index, a constant or _", span=term.span)
        constant = isinstance(term, ConstantTerm) and term is not None
        terms.append((column, term if constant and term is not None else VariableTerm(column, atom.span)))
    missing = [one for one in index.columns if one.name not in first]
    if missing:
        raise TypeMismatch(f"the atom of index {index.name} does not have {missing[0].name}", span=atom.span)
    body = BodyBinder(declarations, namespace, read, set())
    body.add(replace(atom, arguments=tuple(terms)))
    order = [*(first[one.name] for one in index.columns), *(name for name in body.kinds if name not in first.values())]
    variables = list(body.kinds)
    keys = tuple((name, reference(body.plan.schema, variables.index(name))) for name in order)
    return as_view(Aggregate(body.plan, keys, ()), f"index {index.name}")
