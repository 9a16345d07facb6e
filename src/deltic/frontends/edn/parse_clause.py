"""The clauses of queries and rules, from their forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from deltic.errors import SyntaxFailure, Unsupported
from deltic.frontends.edn.tree import (
    Binding,
    Blank,
    Clause,
    ConstantForm,
    DataPattern,
    FunctionClause,
    NotClause,
    OrClause,
    QueryTerm,
    QueryVariable,
    RuleClause,
)
from deltic.frontends.edn.values import ListForm, LocatedForm, Symbol, VectorForm, write

_SHAPE: Final = "[?e :attribute ?v], [(predicate ?x)], [(function ?x) ?y], (not …), (or …) or (rule ?x)"


def is_symbol(form: LocatedForm, name: str) -> bool:
    """Whether the form is this symbol."""
    return form.value == Symbol(name)


def is_variable(form: LocatedForm) -> bool:
    """Whether the form is a variable."""
    return isinstance(form.value, Symbol) and form.value.name.startswith("?") and len(form.value.name) > 1


def variable(form: LocatedForm) -> QueryVariable:
    """Raises SyntaxFailure."""
    if not is_variable(form):
        raise SyntaxFailure(f"{write(form)} is not a variable", span=form.span, expected="?name")
    return QueryVariable(write(form), form.span)


def parts_of(form: LocatedForm, what: str) -> Sequence[LocatedForm]:
    """The parts of a vector or list. Raises SyntaxFailure."""
    parts = form.value.parts if isinstance(form.value, VectorForm | ListForm) else None
    if not parts:
        raise SyntaxFailure(
            f"{write(form)} is {'not a vector' if parts is None else 'empty'}", span=form.span, expected=f"a vector of {what}"
        )
    return parts


def term(form: LocatedForm) -> QueryTerm:
    """A variable, a blank or a constant."""
    if is_variable(form):
        return variable(form)
    if is_symbol(form, "_"):
        return Blank(form.span)
    if isinstance(form.value, ListForm):
        remedy = "bind it first: [(function …) ?x]"
        raise Unsupported("a call within a clause", span=form.span, expected="a variable or a constant", remedy=remedy)
    return ConstantForm(form)


def clause(form: LocatedForm) -> Clause:
    """One clause. Raises SyntaxFailure and Unsupported."""
    match form.value:
        case VectorForm(parts) if parts and isinstance(parts[0].value, ListForm):
            return _function(form, parts)
        case VectorForm(parts) if parts:
            return _pattern(form, parts)
        case ListForm(parts) if parts and isinstance(parts[0].value, Symbol):
            called = _of_store(parts)
            if not called or not isinstance(called[0].value, Symbol):
                raise SyntaxFailure(f"{write(form)} is not a clause", span=form.span, expected=_SHAPE)
            return _compound(form, write(called[0]), called[1:])
        case _:
            raise SyntaxFailure(f"{write(form)} is not a clause", span=form.span, expected=_SHAPE)


def clauses_of(forms: Sequence[LocatedForm]) -> Iterator[Clause]:
    """Several clauses. Those of (and …) are among them."""
    for form in forms:
        parts = form.value.parts if isinstance(form.value, ListForm) else ()
        if parts and is_symbol(parts[0], "and"):
            if len(parts) == 1:
                raise SyntaxFailure("(and) has no clauses", span=form.span, expected=_SHAPE)
            yield from clauses_of(parts[1:])
        else:
            yield clause(form)


def _of_store(parts: Sequence[LocatedForm]) -> Sequence[LocatedForm]:
    """The parts of a clause without $. Raises Unsupported for another source."""
    if is_symbol(parts[0], "$"):
        return parts[1:]
    if isinstance(parts[0].value, Symbol) and parts[0].value.name.startswith("$"):
        raise Unsupported(f"the source {write(parts[0])} is not supported", span=parts[0].span, remedy="a query reads one store, $")
    return parts


def _pattern(form: LocatedForm, parts: Sequence[LocatedForm]) -> DataPattern:
    parts = _of_store(parts)
    while len(parts) > 3 and is_symbol(parts[-1], "_"):
        parts = parts[:-1]
    if len(parts) > 3:
        remedy = "leave it out: facts have no transaction"
        raise Unsupported("a data pattern with a transaction", span=parts[3].span, expected="[entity attribute value]", remedy=remedy)
    if not parts:
        raise SyntaxFailure("the data pattern is empty", span=form.span, expected="[?e :attribute ?v]")
    terms = [_checked(term(one)) for one in parts]
    terms += [Blank(form.span)] * (3 - len(terms))
    return DataPattern(terms[0], terms[1], terms[2], form.span)


def _checked(one: QueryTerm) -> QueryTerm:
    if isinstance(one, ConstantForm) and isinstance(one.form.value, Symbol):
        remedy = f"?{write(one.form)} is a variable"
        raise SyntaxFailure(f"{write(one.form)} is neither a variable nor a value", span=one.span, remedy=remedy)
    return one


def _function(form: LocatedForm, parts: Sequence[LocatedForm]) -> FunctionClause:
    assert isinstance(parts[0].value, ListForm)
    call = parts[0].value.parts
    if not call or not isinstance(call[0].value, Symbol):
        raise SyntaxFailure("the call has no function", span=parts[0].span, expected="[(function ?x …) ?y]")
    if is_variable(call[0]):
        raise Unsupported("a function that is a variable", span=call[0].span, expected="the name of a function")
    if len(parts) > 2:
        raise SyntaxFailure("a clause has one call and one binding", span=parts[2].span, expected="[(function ?x …) ?y]")
    bound = binding(parts[1]) if len(parts) == 2 else None
    return FunctionClause(write(call[0]), tuple(term(one) for one in call[1:]), bound, form.span)


def _compound(form: LocatedForm, name: str, parts: Sequence[LocatedForm]) -> Clause:
    match name:
        case "not" | "not-join":
            variables = None if name == "not" else tuple(map(variable, _variables(form, parts)))
            inner = parts if name == "not" else parts[1:]
            if not inner:
                raise SyntaxFailure(f"({name}) has no clauses", span=form.span, expected=_SHAPE)
            return NotClause(tuple(clauses_of(inner)), variables, form.span)
        case "or" | "or-join":
            return _or(form, name, parts)
        case _:
            return RuleClause(name, tuple(_checked(term(one)) for one in parts), form.span)


def _or(form: LocatedForm, name: str, parts: Sequence[LocatedForm]) -> OrClause:
    required: tuple[QueryVariable, ...] = ()
    variables: tuple[QueryVariable, ...] | None = None
    if name == "or-join":
        listed = _variables(form, parts)
        if isinstance(listed[0].value, VectorForm):
            required, listed = tuple(map(variable, parts_of(listed[0], "variables"))), listed[1:]
        variables = (*required, *map(variable, listed))
        parts = parts[1:]
    if not parts:
        raise SyntaxFailure(f"({name}) has no clauses", span=form.span, expected=_SHAPE)
    return OrClause(tuple(tuple(clauses_of((branch,))) for branch in parts), variables, required, form.span)


def _variables(form: LocatedForm, parts: Sequence[LocatedForm]) -> Sequence[LocatedForm]:
    if not parts or not isinstance(parts[0].value, VectorForm):
        raise SyntaxFailure("the clause has no variables", span=form.span, expected="(or-join [?x …] …) or (not-join [?x …] …)")
    return parts_of(parts[0], "variables")


def binding(form: LocatedForm) -> Binding:
    """What a result or an input is bound to. Raises SyntaxFailure."""
    expected = "?x, [?x ?y], [?x ...] or [[?x ?y]]"
    if is_variable(form) or is_symbol(form, "_"):
        return Binding("scalar", (_bound(form),), form.span)
    if not isinstance(form.value, VectorForm) or not form.value.parts:
        raise SyntaxFailure(f"{write(form)} is not a binding", span=form.span, expected=expected)
    parts = form.value.parts
    if len(parts) == 2 and is_symbol(parts[1], "..."):
        return Binding("collection", (_bound(parts[0]),), form.span)
    if len(parts) == 1 and isinstance(parts[0].value, VectorForm) and parts[0].value.parts:
        return Binding("relation", tuple(map(_bound, parts[0].value.parts)), form.span)
    return Binding("tuple", tuple(map(_bound, parts)), form.span)


def _bound(form: LocatedForm) -> QueryVariable | Blank:
    return Blank(form.span) if is_symbol(form, "_") else variable(form)
