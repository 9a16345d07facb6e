"""Binds the clauses of a query, a rule or a branch to a plan whose rows bind their variables.

The order of clauses has no effect: each is bound as soon as the variables that it requires are, patterns first where they share a variable
with what is bound, negations last. A part of its own (a branch, a negation, a rule) is bound alone if it can be; if it requires variables
that its surroundings bind, it starts from their values there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn, TypeAlias

from deltic.errors import Span, SyntaxFailure, TypeMismatch, UnsafeRule, Unsupported
from deltic.frontends.edn.functions import call, equal, truth, untupled
from deltic.frontends.edn.grounding import grounded
from deltic.frontends.edn.kinds import EdnTerm, literal
from deltic.frontends.edn.patterns import ColumnVisitor, StorePatterns, without_lookups
from deltic.frontends.edn.relation import UNIT, Bindings, united
from deltic.frontends.edn.schema import EdnAttribute
from deltic.frontends.edn.tree import (
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
    variables_of,
)
from deltic.frontends.edn.values import write

OF_STORES: Final = ("get-else", "missing?")
NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class MissingVariables:
    """The variables that a clause requires, and that are not bound yet."""

    variables: tuple[QueryVariable, ...]


@dataclass(frozen=True, slots=True)
class InputClause:
    """An input of the query, whose rows bind its variables."""

    bindings: Bindings
    span: Span | None


Part: TypeAlias = Clause | InputClause
ReadRule: TypeAlias = "Callable[[RuleClause, Bindings, ClauseScope], Bindings | MissingVariables]"
"""The rows of a rule as columns 0, 1, …; the bindings are those of the caller. Raises UnknownName and Unsupported."""


@dataclass(frozen=True, slots=True)
class ClauseScope:
    """Where clauses stand.

    interface: the variables that they share with what is around them. outside: those around them that they do not share. beside: those of
    the clauses beside them, without negations. negated: whether a negation is around them, within the rule.
    """

    interface: frozenset[str] = NOTHING
    outside: frozenset[str] = NOTHING
    negated: bool = False
    beside: frozenset[str] = NOTHING


@dataclass(frozen=True, slots=True)
class ClauseBinder:
    """patterns: of the store. read_rule: the rows of a rule."""

    patterns: StorePatterns
    read_rule: ReadRule = field(repr=False)

    def solve(self, parts: Sequence[Part], start: Bindings, scope: ClauseScope) -> tuple[Bindings, tuple[QueryVariable, ...]]:
        """(the bindings of as many parts as can be bound, the variables that the others require)."""
        clauses = [one for one in parts if not isinstance(one, InputClause)]
        pending: list[Part] = [one for one in parts if isinstance(one, InputClause)]
        pending += without_lookups(clauses, self.patterns.schema)
        around = replace(scope, beside=frozenset(_positive(clauses)) | start.kinds.keys())
        bindings = start
        while pending:
            missing: list[QueryVariable] = []
            for part in self._order(pending, bindings):
                result = self._bound(part, bindings, around)
                if isinstance(result, Bindings):
                    pending.remove(part)
                    bindings = result
                    break
                missing += result.variables
            else:
                return bindings, tuple(missing)
        return bindings, ()

    def _order(self, pending: Sequence[Part], bindings: Bindings) -> Iterable[Part]:
        """Functions, joins with what is bound, other joins, and negations once nothing else is left."""
        functions = [one for one in pending if isinstance(one, FunctionClause)]
        joins = [one for one in pending if not isinstance(one, FunctionClause | NotClause)]
        connected = [one for one in joins if any(name in bindings.kinds for name in _names(one))]
        rest = [one for one in joins if one not in connected]
        negations = [one for one in pending if isinstance(one, NotClause)] if len(joins) + len(functions) == 0 else []
        return (*functions, *connected, *rest, *negations)

    def _bound(self, part: Part, bindings: Bindings, scope: ClauseScope) -> Bindings | MissingVariables:
        match part:
            case InputClause():
                return bindings.joined(part.bindings, part.span)
            case DataPattern():
                return bindings.joined(self.patterns.bindings(part), part.span)
            case FunctionClause():
                return self._function(part, bindings)
            case OrClause():
                return self._or(part, bindings, scope)
            case RuleClause():
                return self._rule(part, bindings, scope)
            case NotClause():
                return self._not(part, bindings, scope)

    # functions

    def _function(self, clause: FunctionClause, bindings: Bindings) -> Bindings | MissingVariables:
        required = [one for one in clause.arguments if isinstance(one, QueryVariable) and one.name not in bindings.kinds]
        if required:
            return MissingVariables(tuple(required))
        if clause.function == "ground":
            return bindings.joined(grounded(clause), clause.span)
        if clause.function in OF_STORES:
            return self._of_store(clause, bindings)
        values = [_value(one, bindings) for one in clause.arguments]
        if clause.function == "untuple":
            return self._with_parts(clause, untupled(clause.function, values, clause.span), bindings)
        result = call(clause.function, values, clause.span)
        if clause.binding is None:
            return bindings.filtered([truth(result, clause.function, clause.span)])
        return self._with_result(clause, result, bindings)

    def _with_result(self, clause: FunctionClause, result: EdnTerm, bindings: Bindings) -> Bindings:
        assert clause.binding is not None
        if clause.binding.shape != "scalar":
            remedy = "(ground …) has collections"
            raise TypeMismatch(f"the result of {clause.function} is one value", span=clause.binding.span, expected="?x", remedy=remedy)
        (target,) = clause.binding.terms
        if isinstance(target, Blank):
            return bindings
        if target.name in bindings.kinds:
            return bindings.filtered([equal(bindings.term(target.name), result, target.name, target.span)])
        return bindings.extended({target.name: result})

    def _with_parts(self, clause: FunctionClause, parts: Sequence[EdnTerm], bindings: Bindings) -> Bindings:
        """The values of a tuple, bound to as many terms."""
        if clause.binding is None or clause.binding.shape != "tuple":
            span = clause.span if clause.binding is None else clause.binding.span
            raise SyntaxFailure("the values of a tuple require a tuple of variables", span=span, expected="[(untuple ?t) [?x ?y]]")
        if len(clause.binding.terms) != len(parts):
            what = f"{len(parts)} values for {len(clause.binding.terms)} variables"
            raise TypeMismatch(what, span=clause.binding.span, expected="a variable or _ for each")
        visitor = ColumnVisitor()
        visitor.terms.update({name: bindings.term(name) for name in bindings.kinds})
        for term, part in zip(clause.binding.terms, parts, strict=True):
            visitor.match(term, part, "a value of the tuple")
        return bindings.filtered(visitor.conditions).projected(visitor.terms)

    def _of_store(self, clause: FunctionClause, bindings: Bindings) -> Bindings:
        """(missing? $ ?e :attribute) and (get-else $ ?e :attribute default)."""
        shape = "[(missing? $ ?e :attribute)]" if clause.function == "missing?" else "[(get-else $ ?e :attribute default) ?v]"
        arguments = clause.arguments
        if arguments and isinstance(arguments[0], ConstantForm) and write(arguments[0].form) == "$":
            arguments = arguments[1:]
        if len(arguments) != (2 if clause.function == "missing?" else 3) or (clause.function == "missing?") != (clause.binding is None):
            raise SyntaxFailure(f"invalid call of {clause.function}", span=clause.span, expected=shape)
        entity, name, *default = arguments
        if not isinstance(name, ConstantForm) or isinstance(entity, Blank):
            raise SyntaxFailure(f"invalid call of {clause.function}", span=clause.span, expected=shape)
        attribute = self.patterns.schema.attribute(name.form)
        lacking = bindings.without(self._entities(attribute, entity, bindings), clause.span)
        if clause.function == "missing?":
            return lacking
        if attribute.is_many:
            remedy = "missing?, and a data pattern in another branch of (or …)"
            raise Unsupported(f"get-else of :{attribute.name}, which has many values", span=name.span, remedy=remedy)
        (other,) = default
        if not isinstance(other, ConstantForm):
            raise Unsupported("a default that is not a constant", span=other.span or clause.span, expected=shape)
        result = "?get-else result"
        having = self._entities(attribute, entity, bindings, result)
        whole = united([bindings.joined(having, clause.span), lacking.extended({result: literal(other.form)})])
        bound = self._with_result(clause, whole.term(result), whole)
        return bound.keep([one for one in bound.kinds if one != result])

    def _entities(self, attribute: EdnAttribute, entity: QueryTerm, bindings: Bindings, value: str | None = None) -> Bindings:
        """The entities that have the attribute, and their values as the variable `value`."""
        target = Blank() if value is None else QueryVariable(value)
        pattern = DataPattern(entity, ConstantForm(attribute.form), target, entity.span)
        return self.patterns.bindings(pattern)

    # branches, negations and rules

    def closed(self, parts: Sequence[Clause], names: Sequence[str], around: Bindings, scope: ClauseScope) -> Bindings | MissingVariables:
        """The bindings of the names by clauses of their own, alone if they can be, or else from the values that the names have around."""
        required: list[str] = []
        while True:
            start = around.keep(required).distinct() if required else UNIT
            bindings, missing = self.solve(parts, start, scope)
            if local := [one for one in missing if one.name not in names or one.name in required]:
                unbound(local[0])
            more = list(dict.fromkeys(one.name for one in missing)) or [name for name in names if name not in bindings.kinds]
            if not more:
                return bindings.keep(names)
            if lacking := [name for name in more if name not in around.kinds]:
                return MissingVariables(tuple(QueryVariable(name, _place(parts, name)) for name in lacking))
            required += more

    def _or(self, clause: OrClause, bindings: Bindings, scope: ClauseScope) -> Bindings | MissingVariables:
        if clause.variables is None:
            names = _same_names(clause)
            inner = ClauseScope(frozenset(names), (scope.outside | scope.beside) - set(names), scope.negated)
        else:
            names = [one.name for one in clause.variables]
            inner = ClauseScope(frozenset(names), negated=scope.negated)
        if lacking := [one for one in clause.required if one.name not in bindings.kinds]:
            return MissingVariables(tuple(lacking))
        parts: list[Bindings] = []
        for branch in clause.branches:
            part = self.closed(branch, names, bindings, inner)
            if isinstance(part, MissingVariables):
                listed = {one.name: one for one in clause.variables or ()}
                return MissingVariables(tuple(one if one.span is not None else listed.get(one.name, one) for one in part.variables))
            parts.append(part)
        return bindings.joined(united(parts), clause.span)

    def _not(self, clause: NotClause, bindings: Bindings, scope: ClauseScope) -> Bindings | MissingVariables:
        inside = {one.name: one for part in clause.clauses for one in variables_of(part)}
        if clause.variables is None:
            visible = {*bindings.kinds, *scope.interface}
            shared = {name: one for name, one in inside.items() if name in visible}
            for name, one in inside.items():
                if name not in visible and name in scope.outside:
                    raise Unsupported(f"{name} of the negation is bound outside of its branch", span=one.span, remedy="use or-join")
            inner = ClauseScope(frozenset(shared), scope.outside, negated=True)
        else:
            shared = {one.name: one for one in clause.variables}
            inner = ClauseScope(frozenset(shared), negated=True)
        if lacking := [one for name, one in shared.items() if name not in bindings.kinds]:
            return MissingVariables(tuple(lacking))
        names = list(shared)
        part = self.closed(clause.clauses, names, bindings, inner)
        if isinstance(part, MissingVariables):
            return part
        return bindings.without(part, clause.span)

    def _rule(self, clause: RuleClause, bindings: Bindings, scope: ClauseScope) -> Bindings | MissingVariables:
        rows = self.read_rule(clause, bindings, scope)
        if isinstance(rows, MissingVariables):
            return rows
        visitor = ColumnVisitor()
        for i, term in enumerate(clause.arguments):
            column = rows.term(str(i))
            visitor.match(term, column, f"argument {i + 1} of {clause.name}")
        return bindings.joined(rows.filtered(visitor.conditions).projected(visitor.terms), clause.span)


def _value(term: QueryTerm, bindings: Bindings) -> EdnTerm:
    match term:
        case QueryVariable(name, span):
            value = bindings.term(name)
            return EdnTerm(replace(value.expr, span=span), value.kind)
        case ConstantForm(form):
            return literal(form)
        case Blank(span):
            raise SyntaxFailure("an argument is blank", span=span, expected="a variable or a constant")


def caller_terms(arguments: Sequence[QueryTerm], names: Sequence[str], bindings: Bindings) -> Bindings:
    """What the arguments of a call that are bound say of a rule's variables."""
    terms: dict[str, EdnTerm] = {}
    for term, name in zip(arguments, names, strict=True):
        if isinstance(term, ConstantForm):
            terms[name] = literal(term.form)
        elif isinstance(term, QueryVariable) and term.name in bindings.kinds:
            terms[name] = bindings.term(term.name)
    return bindings.projected(terms)


def _names(part: Part) -> Iterable[str]:
    if isinstance(part, InputClause):
        return part.bindings.kinds
    return [one.name for one in variables_of(part)]


def _place(parts: Sequence[Clause], name: str) -> Span | None:
    return next((one.span for part in parts for one in variables_of(part) if one.name == name), None)


def unbound(variable: QueryVariable) -> NoReturn:
    """Raises UnsafeRule."""
    raise UnsafeRule(
        f"nothing binds {variable.name}",
        span=variable.span,
        expected="a variable of a data pattern",
        remedy=f"add a data pattern that has {variable.name}, or an input: :in {variable.name}",
    )


def _same_names(clause: OrClause) -> list[str]:
    """The variables of an (or …), which all its branches bind. Raises UnsafeRule."""
    variables = [_positive(branch) for branch in clause.branches]
    for one in variables[1:]:
        for here, there in ((variables[0], one), (one, variables[0])):
            for name, variable in here.items():
                if name not in there:
                    raise UnsafeRule(
                        f"a branch of (or …) has no {name}",
                        span=variable.span,
                        expected="the same variables in each branch",
                        remedy="(or-join [?x …] …) names those that the branches share",
                    )
    return list(variables[0])


def _positive(branch: Collection[Clause]) -> dict[str, QueryVariable]:
    clauses = [one for one in branch if not isinstance(one, NotClause)]
    return {one.name: one for clause in clauses for one in variables_of(clause)}
