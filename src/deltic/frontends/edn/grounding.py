"""(ground …): constants as relations of bindings."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.errors import SyntaxFailure, TypeMismatch
from deltic.frontends.edn.kinds import ANY, EdnKind, encoded, kind_of
from deltic.frontends.edn.relation import Bindings, table_of
from deltic.frontends.edn.tree import Binding, Blank, ConstantForm, FunctionClause, QueryVariable
from deltic.frontends.edn.values import ListForm, LocatedForm, SetForm, VectorForm


def grounded(clause: FunctionClause) -> Bindings:
    """The rows of [(ground constant) binding]. Raises SyntaxFailure and TypeMismatch."""
    if len(clause.arguments) != 1 or not isinstance(clause.arguments[0], ConstantForm) or clause.binding is None:
        raise SyntaxFailure("invalid call of ground", span=clause.span, expected="[(ground [1 2 3]) [?x ...]]")
    return rows_of(clause.arguments[0].form, clause.binding)


def rows_of(form: LocatedForm, binding: Binding, kinds: Sequence[EdnKind] | None = None) -> Bindings:
    """The rows that a value has in the shape of a binding. kinds: of its columns; by default those of the values, or any.

    A variable that occurs twice has one value.
    """
    rows = shaped(form, binding)
    if kinds is None:
        column_kinds = [{kind_of(row[i]) for row in rows} for i in range(len(binding.terms))]
        kinds = [next(iter(one)) if len(one) == 1 else ANY for one in column_kinds]
    columns = {term.name: i for i, term in enumerate(binding.terms) if isinstance(term, QueryVariable)}
    if len(columns) < sum(not isinstance(term, Blank) for term in binding.terms):
        raise SyntaxFailure("the binding has a variable twice", span=binding.span, expected="different variables")
    values = [tuple(encoded(row[i], kinds[i]) for i in columns.values()) for row in rows]
    return table_of(list(dict.fromkeys(values)), {name: kinds[i] for name, i in columns.items()})


def shaped(form: LocatedForm, binding: Binding) -> list[tuple[LocatedForm, ...]]:
    """The rows of a value, each with a scalar for each term. Raises TypeMismatch."""
    rows: list[tuple[LocatedForm, ...]]
    match binding.shape:
        case "scalar":
            rows = [(form,)]
        case "collection":
            rows = [(one,) for one in _parts(form)]
        case "tuple":
            rows = [tuple(_parts(form))]
        case "relation":
            rows = [tuple(_parts(one)) for one in _parts(form)]
    for row in rows:
        if len(row) != len(binding.terms):
            span = next((one.span for one in row if one.span), form.span)
            raise TypeMismatch(f"{len(row)} values for {len(binding.terms)} variables", span=span, expected="a value for each")
        for one in row:
            kind_of(one)
    return rows


def _parts(form: LocatedForm) -> Sequence[LocatedForm]:
    if not isinstance(form.value, VectorForm | ListForm | SetForm):
        raise TypeMismatch("the value is not a collection", span=form.span, expected="a vector, a list or a set")
    return form.value.parts
