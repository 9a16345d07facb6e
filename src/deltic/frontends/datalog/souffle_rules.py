"""Rules of Soufflé's dialect as those of DDlog's.

- An argument of an atom that is an expression becomes a variable that is equal to it.
- `range(a, b)` becomes a variable of its numbers, which the body enumerates.
- The literals of a body are ordered: a literal stands where its variables are bound, and `x = e` binds x.
- An aggregate becomes a relation of its result for each value of the variables that it shares with the rule. COUNT and SUM are 0 where the
  aggregate's body has no rows, for the values that the rule's other literals have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from deltic.errors import Span, Unsupported
from deltic.frontends.datalog.rewriting import T, mapped, parts_of_kind, replaced
from deltic.frontends.datalog.tree import (
    AssignmentTerm,
    AtomTerm,
    CallTerm,
    ConstantTerm,
    ConstructorTerm,
    ConversionTerm,
    DatalogColumn,
    DatalogRule,
    IfTerm,
    NamedTypeTerm,
    OperationTerm,
    RelationDeclaration,
    SouffleAggregateTerm,
    Term,
    TupleTerm,
    TypeDeclaration,
    TypeTerm,
    VariableTerm,
    WildcardTerm,
)

PATTERNS: Final = (VariableTerm, WildcardTerm, ConstantTerm, ConstructorTerm, TupleTerm)
_RESULTS: Final = {"len": "s64", "bigint": "s64", "substring": "string", "to_string": "string"}
_FUNCTIONS: Final = {"count": "count", "sum": "sum", "min": "min", "max": "max", "mean": "avg"}


class Rules:
    """The rules and the relations that they need. columns: of the declared relations."""

    def __init__(self, columns: Mapping[str, Sequence[DatalogColumn]], types: Mapping[str, TypeDeclaration]) -> None:
        self.columns, self.types = dict(columns), types
        self.relations: list[RelationDeclaration] = []
        self.rules: list[DatalogRule] = []
        self._numbers = count(1)
        self._head = ""

    def add(self, heads: Iterable[AtomTerm], body: Sequence[Term], span: Span) -> None:
        """A rule whose body has aggregates and is in any order."""
        ranges: list[Term] = []
        heads = [self._without_ranges(one, ranges) for one in heads]
        self._head = heads[0].name
        plain = [*self._flattened(body), *ranges]
        aggregates = list(dict.fromkeys(parts_of_kind(tuple(plain), SouffleAggregateTerm)))
        outer = [one for one in plain if not parts_of_kind(one, SouffleAggregateTerm)]
        names: dict[SouffleAggregateTerm, Term] = {}
        atoms: list[Term] = []
        for aggregate in aggregates:
            result = VariableTerm(self._fresh("aggregate"), aggregate.span)
            names[aggregate] = result
            atoms.append(self._relation(aggregate, outer, plain, result))
        whole = [*atoms, *(replaced(one, names) for one in plain)]
        self.rules.append(DatalogRule(tuple(heads), tuple(ordered(whole)), span))

    def _fresh(self, word: str) -> str:
        """A name that no program can spell."""
        return f"{word} {next(self._numbers)}"

    def _flattened(self, body: Sequence[Term]) -> list[Term]:
        """Positive atoms without expressions as arguments."""
        literals: list[Term] = []
        for one in body:
            term = self._without_ranges(one, literals)
            if not isinstance(term, AtomTerm):
                literals.append(term)
                continue
            arguments = []
            for name, argument in term.arguments:
                if not isinstance(argument, PATTERNS):
                    variable = VariableTerm(self._fresh("argument"), argument.span)
                    literals.append(OperationTerm("==", (variable, argument), argument.span))
                    argument = variable
                arguments.append((name, argument))
            literals.append(AtomTerm(term.name, tuple(arguments), term.span, term.place))
        return literals

    # ranges

    def _without_ranges(self, term: T, added: list[Term]) -> T:
        """The term with a variable for each range outside of its aggregates; adds the literals that bind these. Raises Unsupported."""
        ranges: dict[CallTerm, Term] = {}
        result: T = mapped(term, lambda part: part if isinstance(part, SouffleAggregateTerm) else self._range(part, ranges, added))
        if ranges and isinstance(term, OperationTerm) and term.operator == "not":
            remedy = "x = range(…) before it, and x in the atom"
            raise Unsupported("range in a negated atom is not supported", span=next(iter(ranges)).span, remedy=remedy)
        return result

    def _range(self, part: object, ranges: dict[CallTerm, Term], added: list[Term]) -> Term | None:
        """A variable of the numbers from the first, without the end: upwards, downwards if the end is less, or by a constant step."""
        if not isinstance(part, CallTerm) or part.name != "range":
            return None
        if part not in ranges:
            span = part.span
            first, end, *steps = (self._without_ranges(one, added) for one in part.arguments)
            step = next((one.value for one in steps if isinstance(one, ConstantTerm)), None)
            size = abs(step) if isinstance(step, int) else 1
            zero, rises = ConstantTerm(0, "integer", span), OperationTerm("<", (first, end), span)
            up = zero if step is not None and step != size else _quotient(OperationTerm("-", (end, first), span), size)
            down = zero if step is not None and step == size else _quotient(OperationTerm("-", (first, end), span), size)
            bounds = (zero, IfTerm(rises, up, down, span), ConstantTerm(1, "integer", span))
            number, value = (VariableTerm(self._fresh("range"), span) for _ in range(2))
            numbers = AtomTerm("FlatMap", ((None, CallTerm("range_vec", bounds, span)),), span, span)
            added.append(OperationTerm("==", (number, numbers), span))
            moved = OperationTerm("*", (number, ConstantTerm(size, "integer", span)), span)
            above, below = (OperationTerm(operator, (first, moved), span) for operator in "+-")
            added.append(OperationTerm("==", (value, IfTerm(rises, above, below, span)), span))
            ranges[part] = value
        return ranges[part]

    # aggregates

    def _relation(self, aggregate: SouffleAggregateTerm, outer: Sequence[Term], body: Sequence[Term], result: VariableTerm) -> AtomTerm:
        """The atom that gives the aggregate's result; adds its relation."""
        span = aggregate.span
        inner = self._flattened(aggregate.body)
        if parts_of_kind(tuple(inner), SouffleAggregateTerm):
            raise Unsupported("an aggregate in an aggregate is not supported", span=span, remedy="a relation of its own")
        rule_variables = variables([one for one in body if not parts_of_kind(one, SouffleAggregateTerm)])
        shared = [name for name in variables(inner) if name in rule_variables]
        types = self._types([*outer, *inner])
        undeclared = next((one.name for one in parts_of_kind(tuple(inner), AtomTerm) if one.name not in self.columns), None)
        value: Term = aggregate.value or ConstantTerm(1, "integer", span)
        kind: TypeTerm = NamedTypeTerm({"count": "s64", "mean": "double"}.get(aggregate.function, ""), (), span)
        kind = kind if isinstance(kind, NamedTypeTerm) and kind.name else self._type(value, types, span, undeclared)
        columns = tuple(DatalogColumn(name, self._type(VariableTerm(name, span), types, span, undeclared), span) for name in shared)
        local, aggregated = VariableTerm(self._fresh("result"), span), VariableTerm(self._fresh("result"), span)
        columns = (*columns, DatalogColumn(local.name, kind, span))
        groups = self._declare(columns, span)
        keys = TupleTerm(tuple(VariableTerm(name, span) for name in shared), span)
        call = CallTerm(_FUNCTIONS[aggregate.function], (CallTerm("group_by", (value, keys), span),), span)
        converted = aggregated if aggregate.function in ("min", "max") else ConversionTerm(aggregated, kind, span)
        rule = [*ordered(inner), AssignmentTerm(replace(aggregated, new=True), call, span)]
        rule.append(AssignmentTerm(replace(local, new=True), converted, span))
        self.rules.append(DatalogRule((_atom(groups, [*shared], local, span),), tuple(rule), span))
        if aggregate.function in ("min", "max", "mean"):
            return _atom(groups, shared, result, span)
        whole = self._declare(columns, span)
        self.rules.append(DatalogRule((_atom(whole, shared, local, span),), (_atom(groups, shared, local, span),), span))
        absent = OperationTerm("not", (_atom(groups, shared, WildcardTerm(span), span),), span)
        zero = ConstantTerm(0, "integer", span)
        head = _atom(whole, shared, zero, span)
        self.rules.append(DatalogRule((head,), (*(ordered(outer, complete=False) if shared else ()), absent), span))
        return _atom(whole, shared, result, span)

    def _declare(self, columns: tuple[DatalogColumn, ...], span: Span) -> str:
        """A relation for the rule. Its name has that of the head, which no other program in a session derives."""
        name = self._fresh(f"{self._head} aggregate")
        self.columns[name] = columns
        self.relations.append(RelationDeclaration("internal", "relation", name, columns, None, None, span, is_written=False))
        return name

    def _types(self, body: Sequence[Term]) -> dict[str, TypeTerm]:
        """The types of variables, by the columns at whose place they stand and the terms to which they are equal."""
        types: dict[str, TypeTerm] = {}
        for atom in parts_of_kind(tuple(body), AtomTerm):
            for (_, argument), column in zip(atom.arguments, self.columns.get(atom.name, ()), strict=False):
                if isinstance(argument, VariableTerm):
                    types.setdefault(argument.name, column.type)
        for term in body:
            match term:
                case OperationTerm(operator="==", operands=(VariableTerm(name=name), value)) if name not in types:
                    type = _type_of(value, types, term.span)
                    types.update({} if type is None else {name: type})
        return types

    def _type(self, term: Term, types: Mapping[str, TypeTerm], span: Span, undeclared: str | None) -> TypeTerm:
        """undeclared: a relation of the aggregate whose columns the program does not declare."""
        type = _type_of(term, types, span)
        if type is None:
            declared = f"the program does not declare {undeclared}; read it by a relation that it declares: r(x) :- {undeclared}(…, x)."
            remedy = declared if undeclared else "read it from an atom of the aggregate"
            raise Unsupported("the type of a value in an aggregate is not known", span=term.span, remedy=remedy)
        return type


def _type_of(term: Term, types: Mapping[str, TypeTerm], span: Span) -> TypeTerm | None:
    """The type of a value over variables of these types; None if it is not known."""
    match term:
        case VariableTerm():
            return types.get(term.name)
        case ConstantTerm():
            return NamedTypeTerm({"integer": "s64", "float": "double", "string": "string", "bool": "bool"}[term.kind], (), span)
        case OperationTerm(operator="++"):
            return NamedTypeTerm("string", (), span)
        case OperationTerm(operands=operands):
            return _type_of(next((one for one in operands if not isinstance(one, ConstantTerm)), operands[0]), types, span)
        case ConversionTerm():
            return term.type
        case IfTerm():
            return _type_of(term.then, types, span)
        case AtomTerm(name="FlatMap", arguments=((_, CallTerm(arguments=(_, end, _))),)):
            return _type_of(end, types, span)
        case CallTerm() if term.name in _RESULTS:
            return NamedTypeTerm(_RESULTS[term.name], (), span)
        case CallTerm() if term.arguments:
            return _type_of(term.arguments[0], types, span)
        case _:
            return None


def _quotient(distance: Term, size: int) -> Term:
    """How many steps of a size begin within a distance that is not negative."""
    if size == 1:
        return distance
    span = distance.span
    zero, one, step = (ConstantTerm(value, "integer", span) for value in (0, 1, size))
    before = OperationTerm("/", (OperationTerm("-", (distance, one), span), step), span)
    return IfTerm(OperationTerm(">", (distance, zero), span), OperationTerm("+", (before, one), span), zero, span)


def _atom(name: str, shared: Sequence[str], result: Term, span: Span) -> AtomTerm:
    arguments = (*(VariableTerm(one, span) for one in shared), result)
    return AtomTerm(name, tuple((None, one) for one in arguments), span, span)


def variables(body: Sequence[Term]) -> list[str]:
    """The variables of literals, each once."""
    return list(dict.fromkeys(one.name for one in parts_of_kind(tuple(body), VariableTerm)))


def ordered(body: Sequence[Term], *, complete: bool = True) -> list[Term]:
    """The literals in an order in which their variables are bound; constraints as soon as possible.

    What cannot be bound stands at the end, where the binder refuses it; if not `complete`, it is left out.
    """
    rest, literals = list(body), list[Term]()
    bound: set[str] = set()
    while rest:
        chosen: Term | None = next((one for one in rest if not isinstance(one, AtomTerm) and _ready(one, bound) is not None), None)
        if chosen is None:
            atoms = [one for one in rest if isinstance(one, AtomTerm)]
            chosen = next((one for one in atoms if bound & set(variables([one]))), atoms[0] if atoms else None)
        if chosen is None:
            return literals + (list(map(_unbound, rest)) if complete else [])
        rest.remove(chosen)
        ready = chosen if isinstance(chosen, AtomTerm) else _ready(chosen, bound)
        assert ready is not None
        literals.append(ready)
        bound |= set(variables([chosen]))
    return literals


def _unbound(term: Term) -> Term:
    """The literal that the binder refuses, for a variable of the program: it reads the value of one that has been made here first."""
    match term:
        case OperationTerm(operator="==", operands=(VariableTerm(is_written=False) as made, value)):
            return AssignmentTerm(made, value, term.span)
        case _:
            return term


def _ready(term: Term, bound: set[str]) -> Term | None:
    """The constraint, or x = e as an assignment of x; None if its variables are not bound."""
    missing = [name for name in variables([term]) if name not in bound]
    if not missing:
        return term
    if isinstance(term, OperationTerm) and term.operator == "==":
        for pattern, value in (term.operands, term.operands[::-1]):
            free = [name for name in variables([value]) if name not in bound]
            if not free and isinstance(pattern, VariableTerm | ConstructorTerm | TupleTerm):
                return AssignmentTerm(pattern, value, term.span)
    return None
