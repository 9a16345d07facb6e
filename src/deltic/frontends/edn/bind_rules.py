"""Rules as relations of their arguments.

A rule that does not call itself is bound where it is called, as (or-join …) over its definitions: alone if that is possible, or else from
the arguments of the call. Rules that call one another are recursions, which are complete by themselves: a recursive rule binds all its
variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deltic.errors import Span, TypeMismatch, UnknownName, UnsafeRule, Unsupported, did_you_mean
from deltic.frontends.edn.bind_body import ClauseBinder, ClauseScope, MissingVariables, caller_terms
from deltic.frontends.edn.kinds import ANY, EdnKind
from deltic.frontends.edn.patterns import StorePatterns
from deltic.frontends.edn.relation import UNIT, Bindings, united
from deltic.frontends.edn.tree import QueryVariable, RuleBranch, RuleClause, rules_of
from deltic.plan.monotone import check_monotone
from deltic.plan.nodes import ITERATION_LIMIT, Plan, Reference
from deltic.plan.recursion import components, finished
from deltic.schema import Field, Schema


class _NotTyped(Exception):
    """A definition calls a rule whose kinds are not known yet."""


class RuleBinder:
    """The rules of a query. `body` binds clauses that may call them."""

    def __init__(self, rules: Mapping[str, Sequence[RuleBranch]], patterns: StorePatterns) -> None:
        self.rules = rules
        self.body = ClauseBinder(patterns, self.read)
        self._reach = {name: self._reached(name) for name in rules}
        self._alone: dict[str, Bindings] = {}
        """The rows of rules that have been bound without arguments."""
        self._kinds: dict[str, tuple[EdnKind, ...] | None] = {}
        """Of the rules of the recursion that is being bound."""

    def _reached(self, name: str) -> set[str]:
        """The rules that a rule calls, also through others."""
        reached: set[str] = set()
        waiting = [name]
        while waiting:
            called = {one.name for branch in self.rules[waiting.pop()] for one in rules_of(branch.clauses)} & self.rules.keys()
            waiting += called - reached
            reached |= called
        return reached

    def read(self, clause: RuleClause, bindings: Bindings, scope: ClauseScope) -> Bindings | MissingVariables:
        """The rows of a rule, as columns 0, 1, …, or the variables of the caller that it requires."""
        branches = self._branches(clause)
        if clause.name in self._kinds:
            return self._reference(clause, scope)
        if clause.name in self._alone:
            return self._alone[clause.name]
        if clause.name in self._reach[clause.name]:
            self._recursion(clause)
            return self._alone[clause.name]
        whole = [self._definition(branch, UNIT) for branch in branches]
        if all(isinstance(one, Bindings) for one in whole):
            self._alone[clause.name] = united([one for one in whole if isinstance(one, Bindings)])
            return self._alone[clause.name]
        parts: list[Bindings] = []
        for branch in branches:
            names = [one.name for one in branch.variables]
            part = self._definition(branch, caller_terms(clause.arguments, names, bindings))
            if isinstance(part, MissingVariables):
                return _of_caller(part, names, clause)
            parts.append(part)
        return united(parts)

    def _branches(self, clause: RuleClause) -> Sequence[RuleBranch]:
        if clause.name not in self.rules:
            remedy = did_you_mean(clause.name, self.rules) or f"define it: [({clause.name} ?x …) clause …]"
            raise UnknownName(f"there is no rule {clause.name}", span=clause.span, remedy=remedy)
        branches = self.rules[clause.name]
        if len(clause.arguments) != len(branches[0].variables):
            expected = f"{len(branches[0].variables)}: ({clause.name} {' '.join(one.name for one in branches[0].variables)})"
            raise TypeMismatch(f"rule {clause.name} has {len(clause.arguments)} arguments", span=clause.span, expected=expected)
        return branches

    def _definition(self, branch: RuleBranch, caller: Bindings) -> Bindings | MissingVariables:
        names = [one.name for one in branch.variables]
        if lacking := [one for one in branch.required if one.name not in caller.kinds]:
            return MissingVariables(tuple(lacking))
        kinds, self._kinds = self._kinds, {}
        try:
            part = self.body.closed(branch.clauses, names, caller, ClauseScope(frozenset(names)))
        finally:
            self._kinds = kinds
        return part if isinstance(part, MissingVariables) else _numbered(part, names)

    # recursion

    def _recursion(self, clause: RuleClause) -> None:
        """Binds the rules that call one another and the rule of the clause."""
        group = [name for name in self.rules if name in self._reach[clause.name] and clause.name in self._reach[name]]
        around = self._kinds
        kinds: dict[str, tuple[EdnKind, ...] | None] = dict.fromkeys(group)
        try:
            while True:
                self._kinds = kinds
                bodies = {name: self._body(name) for name in group}
                now = {name: None if body is None else tuple(body.kinds.values()) for name, body in bodies.items()}
                if now == kinds:
                    break
                kinds = now
        finally:
            self._kinds = around
        empty = next((name for name, body in bodies.items() if body is None), None)
        if empty is not None:
            branch = self.rules[empty][0]
            raise UnsafeRule(f"every definition of the rule {empty} calls itself", span=branch.span, remedy="add one that does not")
        plans = {_reference_name(name): body.distinct().plan for name, body in bodies.items() if body is not None}
        for component in components(plans):
            check_monotone({name: plans[name] for name in component})
        denoted = finished(plans, dict.fromkeys(plans, ITERATION_LIMIT))
        for name, body in bodies.items():
            assert body is not None
            self._alone[name] = Bindings(denoted[_reference_name(name)], body.kinds)

    def _body(self, name: str) -> Bindings | None:
        """The definitions of a rule of a recursion whose kinds are known; None if there is none."""
        parts: list[Bindings] = []
        for branch in self.rules[name]:
            names = [one.name for one in branch.variables]
            try:
                part = self.body.closed(branch.clauses, names, UNIT, ClauseScope(frozenset(names)))
            except _NotTyped:
                continue
            if isinstance(part, MissingVariables) or branch.required:
                lacking = part.variables[0] if isinstance(part, MissingVariables) else branch.required[0]
                raise Unsupported(
                    f"the recursive rule {name} requires its caller to bind {lacking.name}",
                    span=lacking.span or branch.span,
                    expected="a definition that binds all variables of its head",
                    remedy=f"add a data pattern that has {lacking.name}",
                )
            parts.append(_numbered(part, names))
        kinds = self._kinds[name]
        if not parts:
            return None
        body = united(parts)
        if kinds is not None and any(one == ANY != two for one, two in zip(kinds, body.kinds.values(), strict=True)):
            raise Unsupported(f"the kinds of rule {name} alternate", span=self.rules[name][0].span, expected="one kind for each variable")
        return body

    def _reference(self, clause: RuleClause, scope: ClauseScope) -> Bindings:
        """A rule of the recursion that is being bound, as of the previous iteration."""
        if scope.negated:
            remedy = "negate a rule that does not call this one"
            raise Unsupported(f"the rule {clause.name} depends on itself through negation", span=clause.span, remedy=remedy)
        kinds = self._kinds[clause.name]
        if kinds is None:
            raise _NotTyped
        schema = Schema(tuple(Field(str(i), kind.type, False) for i, kind in enumerate(kinds)))
        plan: Plan = Reference(_reference_name(clause.name), schema, clause.span)
        return Bindings(plan, {str(i): kind for i, kind in enumerate(kinds)})


def _reference_name(rule: str) -> str:
    return f"rule {rule}"


def _numbered(bindings: Bindings, names: Sequence[str]) -> Bindings:
    return bindings.projected({str(i): bindings.term(name) for i, name in enumerate(names)})


def _of_caller(part: MissingVariables, names: Sequence[str], clause: RuleClause) -> MissingVariables:
    """The arguments of a call for the variables that a rule requires. Raises UnsafeRule for a blank."""
    variables: list[QueryVariable] = []
    for one in part.variables:
        term = clause.arguments[names.index(one.name)]
        if not isinstance(term, QueryVariable):
            span: Span | None = term.span or clause.span
            raise UnsafeRule(
                f"the rule {clause.name} requires {one.name} to be bound", span=span, expected="a bound variable or a constant"
            )
        variables.append(term)
    return MissingVariables(tuple(variables))
