"""Makes the tree of a query from its form. Every error has its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltic.errors import QueryError, SyntaxFailure, TypeMismatch, UnknownName, Unsupported
from deltic.frontends.edn.parse_clause import binding, clauses_of, is_symbol, is_variable, parts_of, term, variable
from deltic.frontends.edn.parse_pull import pull_term
from deltic.frontends.edn.tree import (
    AggregateTerm,
    Binding,
    EdnQuery,
    FindElement,
    FindOrder,
    FindShape,
    PullTerm,
    QueryVariable,
    RuleBranch,
)
from deltic.frontends.edn.values import Keyword, ListForm, LocatedForm, MapForm, Symbol, VectorForm, write

EXAMPLE: Final = "{:find [?e] :where [[?e :person/name]]}"
_CLAUSES: Final = ("find", "keys", "strs", "syms", "in", "with", "where", "rules", "order-by", "limit", "offset")
_SCALARS: Final = ("limit", "offset")
_ORDER: Final = "[[?x :asc] [(count ?y) :desc]]"
MOST_ROWS: Final = 2**31 - 1
"""The most that :limit and :offset can be together."""
_REFUSED: Final = {
    "timeout": "a view has no timeout",
}


def parse_query(form: LocatedForm, rules: LocatedForm | None = None) -> EdnQuery:
    """The query of a form: a map, or a vector of keywords and what follows them. rules: those that % stands for. Raises QueryError."""
    clauses = _clauses(form)
    for name in ("find", "where"):
        if name not in clauses and not (name == "where" and "in" in clauses):
            raise SyntaxFailure(f"the query has no :{name}", span=form.span, expected=EXAMPLE)
    find, shape = _find(clauses["find"], form)
    inputs, takes_rules = _inputs(clauses.get("in", []))
    with_ = tuple(variable(one) for one in clauses.get("with", []))
    branches = _rules([*clauses.get("rules", []), *(parts_of(rules, "rules") if rules is not None else [])])
    if takes_rules and rules is None:
        raise QueryError("the query takes rules (%), and none are given", span=form.span, remedy="session.edn(query, rules='[…]')")
    if rules is not None and not takes_rules:
        raise QueryError("the query does not take the rules that are given", span=form.span, remedy="add % to :in")
    where = tuple(clauses_of(clauses.get("where", [])))
    order = tuple(_order(one, find) for one in _order_parts(clauses.get("order-by", [])))
    limit = _row_count("limit", 1, clauses["limit"], form) if "limit" in clauses else None
    offset = _row_count("offset", 0, clauses["offset"], form) if "offset" in clauses else 0
    if limit is not None and limit + offset > MOST_ROWS:
        raise SyntaxFailure(":limit and :offset are too large", span=clauses["limit"][0].span, expected=f"together at most {MOST_ROWS}")
    return EdnQuery(find, shape, _names(find, clauses), with_, inputs, takes_rules, where, branches, order, limit, offset, form.span)


def _clauses(form: LocatedForm) -> dict[str, list[LocatedForm]]:
    """What follows each keyword."""
    clauses: dict[str, list[LocatedForm]] = {}
    pairs: list[tuple[LocatedForm, str, list[LocatedForm]]] = []
    if isinstance(form.value, MapForm):
        for key, value in form.value.pairs:
            name = _clause_name(key)
            pairs.append((key, name, [value] if name in _SCALARS else list(parts_of(value, "clauses"))))
    elif isinstance(form.value, VectorForm):
        for one in form.value.parts:
            if isinstance(one.value, Keyword):
                pairs.append((one, _clause_name(one), []))
            elif not pairs:
                raise SyntaxFailure("the query does not begin with :find", span=one.span, expected=EXAMPLE)
            else:
                pairs[-1][2].append(one)
    else:
        raise SyntaxFailure("the query is neither a map nor a vector", span=form.span, expected=EXAMPLE)
    for key, name, parts in pairs:
        if name in clauses:
            raise SyntaxFailure(f"{write(key)} occurs twice", span=key.span)
        clauses[name] = parts
    return clauses


def _clause_name(key: LocatedForm) -> str:
    """Raises Unsupported and UnknownName."""
    name = write(key)[1:]
    if name in _REFUSED:
        raise Unsupported(f"{write(key)} is not supported", span=key.span, remedy=_REFUSED[name])
    if name not in _CLAUSES:
        raise UnknownName(f"a query has no {write(key)}", span=key.span, expected=", ".join(f":{one}" for one in _CLAUSES))
    return name


def _find(parts: list[LocatedForm], query: LocatedForm) -> tuple[tuple[FindElement, ...], FindShape]:
    if not parts:
        raise SyntaxFailure(":find has no elements", span=query.span, expected="?x or (count ?x)")
    if len(parts) == 2 and is_symbol(parts[1], "."):
        return (_element(parts[0]),), "scalar"
    inner = parts[0].value.parts if len(parts) == 1 and isinstance(parts[0].value, VectorForm) else ()
    if len(inner) == 2 and is_symbol(inner[1], "..."):
        return (_element(inner[0]),), "collection"
    if inner:
        return tuple(map(_element, inner)), "tuple"
    return tuple(map(_element, parts)), "relation"


def _element(form: LocatedForm) -> FindElement:
    if is_variable(form):
        return variable(form)
    if not isinstance(form.value, ListForm) or not form.value.parts or not isinstance(form.value.parts[0].value, Symbol):
        raise SyntaxFailure(f"{write(form)} is not an element of :find", span=form.span, expected="?x or (count ?x)")
    function, *arguments = form.value.parts
    if is_symbol(function, "pull"):
        return pull_term(form, arguments)
    if not arguments or not is_variable(arguments[-1]):
        raise SyntaxFailure(f"{write(function)} requires a variable", span=form.span, expected=f"({write(function)} ?x)")
    return AggregateTerm(write(function), tuple(term(one) for one in arguments), form.span)


def _order_parts(forms: list[LocatedForm]) -> Sequence[LocatedForm]:
    """Those of a vector of vectors, or of vectors in a row."""
    inner = forms[0].value.parts if len(forms) == 1 and isinstance(forms[0].value, VectorForm) else ()
    return inner if inner and isinstance(inner[0].value, VectorForm) else forms


def _order(form: LocatedForm, find: tuple[FindElement, ...]) -> FindOrder:
    """One part of :order-by."""
    parts = form.value.parts if isinstance(form.value, VectorForm) else ()
    if len(parts) not in (1, 2):
        raise SyntaxFailure(f"{write(form)} is not an order", span=form.span, expected=_ORDER)
    if len(parts) == 2 and parts[1].value not in (Keyword("asc"), Keyword("desc")):
        raise SyntaxFailure(f"{write(parts[1])} is not a direction", span=parts[1].span, expected=":asc or :desc")
    element = _element(parts[0])
    if isinstance(element, PullTerm) or element not in find:
        expected = "one that is not pulled" if isinstance(element, PullTerm) else "an element of :find"
        raise SyntaxFailure(f"{write(parts[0])} does not order rows", span=parts[0].span, expected=expected)
    return FindOrder(find.index(element), len(parts) == 2 and parts[1].value == Keyword("desc"), parts[0].span)


def _row_count(name: str, least: int, parts: list[LocatedForm], query: LocatedForm) -> int:
    """The number of :limit or :offset."""
    value = parts[0].value if len(parts) == 1 else None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST_ROWS:
        raise SyntaxFailure(f":{name} is not a count of rows", span=parts[0].span if parts else query.span, expected=f":{name} 10")
    return value


def _names(find: tuple[FindElement, ...], clauses: dict[str, list[LocatedForm]]) -> tuple[str, ...]:
    """The columns: those of :keys, or else the variables without ?, before which an aggregate has its name."""
    given = [name for name in ("keys", "strs", "syms") if name in clauses]
    if given:
        forms = clauses[given[0]]
        if len(given) > 1 or len(forms) != len(find):
            remedy = f"one of :{', :'.join(given)}" if len(given) > 1 else "as many names as elements of :find"
            raise SyntaxFailure(f":{given[0]} does not name the columns", span=forms[0].span if forms else None, expected=remedy)
        names = [write(one).strip(':"') for one in forms]
    else:
        names = list(map(_name, find))
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        seen[name.lower()] = seen.get(name.lower(), 0) + 1
        if seen[name.lower()] > 1:
            if given:
                raise SyntaxFailure(f"two columns have the name {name}", span=clauses[given[0]][i].span, expected="different names")
            names[i] = f"{name}-{seen[name.lower()]}"
    return tuple(names)


def _name(one: FindElement) -> str:
    match one:
        case QueryVariable():
            return one.name[1:]
        case PullTerm():
            return one.variable.name[1:]
        case AggregateTerm():
            variable = one.arguments[-1]
            return f"{one.function}-{variable.name[1:] if isinstance(variable, QueryVariable) else ''}"


def _inputs(forms: list[LocatedForm]) -> tuple[tuple[Binding, ...], bool]:
    bindings: list[Binding] = []
    takes_rules = False
    for form in forms:
        if is_symbol(form, "$"):
            continue
        if is_symbol(form, "%"):
            takes_rules = True
        elif isinstance(form.value, Symbol) and form.value.name.startswith("$"):
            raise Unsupported(f"the source {write(form)} is not supported", span=form.span, remedy="a query reads one store, $")
        else:
            bindings.append(binding(form))
    return tuple(bindings), takes_rules


def _rules(forms: Sequence[LocatedForm]) -> dict[str, tuple[RuleBranch, ...]]:
    rules: dict[str, tuple[RuleBranch, ...]] = {}
    for form in forms:
        branch = _rule(form)
        branches = rules.get(branch.name, ())
        if branches and len(branches[0].variables) != len(branch.variables):
            expected = f"{len(branches[0].variables)}, as its first definition has"
            raise TypeMismatch(f"rule {branch.name} has {len(branch.variables)} variables", span=branch.span, expected=expected)
        rules[branch.name] = (*branches, branch)
    return rules


def _rule(form: LocatedForm) -> RuleBranch:
    head, *body = parts_of(form, "a rule, [(name ?x …) clause …]")
    if not isinstance(head.value, ListForm) or not head.value.parts or not isinstance(head.value.parts[0].value, Symbol):
        raise SyntaxFailure("the rule has no head", span=head.span, expected="[(name ?x …) clause …]")
    name, *arguments = head.value.parts
    required: list[QueryVariable] = []
    if arguments and isinstance(arguments[0].value, VectorForm):
        required = [variable(one) for one in arguments[0].value.parts]
        arguments = arguments[1:]
    variables = (*required, *(variable(one) for one in arguments))
    if not variables or len({one.name for one in variables}) < len(variables):
        raise SyntaxFailure("the head of a rule requires different variables", span=head.span, expected="[(name ?x …) clause …]")
    if not body:
        raise SyntaxFailure("the rule has no clauses", span=form.span, expected="[(name ?x …) clause …]")
    return RuleBranch(write(name), variables, tuple(required), tuple(clauses_of(body)), head.span)
