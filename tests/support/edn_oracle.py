"""What queries and transactions of EDN mean, over a set of datoms in memory: each binding by itself, in the plainest way.

Shares the parser and the kinds of values with the front end, nothing else. A value is (the name of its kind, the value): 1 and True differ.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from decimal import Context, localcontext
from fractions import Fraction
from typing import Any, TypeAlias

from deltic.frontends.edn.kinds import kind_of
from deltic.frontends.edn.parse import parse_query
from deltic.frontends.edn.read import read
from deltic.frontends.edn.tree import (
    AggregateTerm,
    Binding,
    Clause,
    ConstantForm,
    DataPattern,
    EdnQuery,
    FindElement,
    FunctionClause,
    NotClause,
    OrClause,
    PullTerm,
    QueryTerm,
    QueryVariable,
    RuleBranch,
    RuleClause,
    rules_of,
    variables_of,
)
from deltic.frontends.edn.values import LocatedForm, form_of, write
from edn_calls import Typed, called

Datoms: TypeAlias = set[tuple[int, str, Typed]]
Env: TypeAlias = dict[str, Typed]

EXACT = Context(prec=100)


class NotBound(Exception):
    """A clause requires variables that are not bound yet."""


def typed(value: Any) -> Typed:
    """A value of Python with its kind."""
    form = form_of(value)
    return kind_of(form).name, write(form) if kind_of(form).name in ("any", "keyword") else value


def untyped(value: Typed) -> Any:
    """The value of Python."""
    return read(value[1]).value if value[0] in ("any", "keyword") else value[1]


def answer(query: str, datoms: Datoms, inputs: Sequence[Any] = (), rules: str | None = None) -> list[tuple[Any, ...]]:
    """The rows of a query, typed, in no order; of a query with :with, as often as they occur."""
    tree = parse_query(read(query), None if rules is None else read(rules))
    oracle = Oracle(datoms, tree.rules)
    envs: list[Env] = [{}]
    for one, value in zip(tree.inputs, inputs, strict=True):
        envs = [{**env, **row} for env in envs for row in _rows(one, value)]
    found = [env for start in envs for env in oracle.solve(tree.where, start, frozenset())]
    variables = list(map(_variable, tree.find))
    names = list(dict.fromkeys([*variables, *(one.name for one in tree.with_)]))
    rows = {tuple(env[name] for name in names) for env in found}
    if not any(isinstance(one, AggregateTerm) for one in tree.find):
        return _first([tuple(row[names.index(name)] for name in variables) for row in rows], tree)
    keys = [name for name, one in zip(variables, tree.find, strict=True) if isinstance(one, QueryVariable)]
    groups: dict[tuple[Typed, ...], list[tuple[Typed, ...]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[names.index(name)] for name in keys), []).append(row)
    return [
        tuple(
            group[keys.index(name)] if isinstance(one, QueryVariable) else _aggregate(one, [row[names.index(name)] for row in members])
            for name, one in zip(variables, tree.find, strict=True)
        )
        for group, members in groups.items()
    ]


def _variable(one: FindElement) -> str:
    """The name of the variable that an element of :find is of."""
    variable = one.arguments[-1] if isinstance(one, AggregateTerm) else one.variable if isinstance(one, PullTerm) else one
    assert isinstance(variable, QueryVariable)
    return variable.name


def _constant(one: QueryTerm) -> LocatedForm:
    assert isinstance(one, ConstantForm)
    return one.form


def _first(rows: list[tuple[Typed, ...]], tree: EdnQuery) -> list[tuple[Typed, ...]]:
    """Those that :limit and :offset keep, whose places in :order-by are different."""
    for one in reversed(tree.order):
        rows.sort(key=lambda row: row[one.element][1], reverse=one.descending)
    return rows[tree.offset :][: tree.limit]


def _rows(binding: Binding, value: Any) -> list[Env]:
    rows = value if binding.shape == "relation" else [(one,) for one in value] if binding.shape == "collection" else [value]
    rows = [(value,)] if binding.shape == "scalar" else rows
    names = [term.name for term in binding.terms if isinstance(term, QueryVariable)]
    return [dict(zip(names, map(typed, row), strict=True)) for row in rows]


def _aggregate(one: AggregateTerm, values: list[Typed]) -> Typed:
    bare = [value for _, value in values]
    if len(one.arguments) == 2:
        assert isinstance(one.arguments[0], ConstantForm)
        count: Any = one.arguments[0].form.value
        return "vector", tuple(sorted(bare)[:count] if one.function == "min" else sorted(bare)[-count:])
    match one.function:
        case "count":
            return "long", len(values)
        case "count-distinct":
            return "long", len(set(values))
        case "distinct":
            return "set", tuple(map(untyped, dict.fromkeys(values)))
        case "sum":
            with localcontext(EXACT):
                return typed(sum(bare))
        case "min" | "max":
            return typed({"min": min, "max": max}[one.function](bare))
        case "avg" | "variance" | "stddev" if any(abs(value) == math.inf for value in bare):
            return "double", sum(bare) if one.function == "avg" else math.nan
        case "avg":
            return "double", float(statistics.mean(map(Fraction, bare)))
        case "median":
            return "double", float(statistics.median(bare))
        case "variance":
            return "double", float(statistics.pvariance(bare))
        case _:
            return "double", statistics.pstdev(bare)


class Oracle:
    """datoms: (entity, attribute without colon, typed value)."""

    def __init__(self, datoms: Datoms, rules: dict[str, tuple[RuleBranch, ...]]) -> None:
        self.datoms, self.rules = datoms, rules
        self.tables: dict[str, set[tuple[Typed, ...]]] = {}
        """The rows of recursive rules."""
        self._defined: dict[tuple[int, frozenset[tuple[str, Typed]]], list[tuple[Typed, ...]]] = {}
        """The rows of a branch of a rule for what was bound when it was called."""
        self._constants: dict[int, Typed] = {}
        """The value of each constant of the query."""
        calls = {name: {one.name for branch in branches for one in rules_of(branch.clauses)} for name, branches in rules.items()}
        while any(more - calls[name] for name in calls for more in [set().union(*(calls[one] for one in calls[name]))]):
            calls = {name: set().union(calls[name], *(calls[one] for one in calls[name])) for name in calls}
        recursive = [name for name in rules if name in calls[name]]
        for name in sorted(recursive, key=lambda name: len(calls[name])):
            self._fill([one for one in recursive if one in calls[name] and name in calls[one]])

    def _fill(self, group: list[str]) -> None:
        for name in group:
            self.tables.setdefault(name, set())
        while True:
            now = {name: {row for branch in self.rules[name] for row in self._definition(branch, {})} for name in group}
            if all(now[name] == self.tables[name] for name in group):
                return
            self.tables.update(now)
            self._defined.clear()

    def _definition(self, branch: RuleBranch, start: Env) -> list[tuple[Typed, ...]]:
        call = id(branch), frozenset(start.items())
        if call not in self._defined:
            self._defined[call] = self._computed(branch, start)
        return self._defined[call]

    def _computed(self, branch: RuleBranch, start: Env) -> list[tuple[Typed, ...]]:
        names = [one.name for one in branch.variables]
        found = self.solve(branch.clauses, start, frozenset(names))
        for env in found:
            if any(name not in env for name in names):
                raise NotBound(branch.name)
        return [tuple(env[name] for name in names) for env in found]

    def solve(self, clauses: Sequence[Clause], env: Env, interface: frozenset[str]) -> list[Env]:
        """The bindings of the clauses that agree with `env`."""
        if not clauses:
            return [env]
        rank = {DataPattern: 1, FunctionClause: 0, RuleClause: 2, OrClause: 2, NotClause: 3}
        for clause in sorted(clauses, key=lambda one: rank[type(one)]):
            if isinstance(clause, NotClause) and any(not isinstance(one, NotClause) for one in clauses):
                break
            try:
                found = list(self._matches(clause, env, interface))
            except NotBound:
                continue
            rest = [one for one in clauses if one is not clause]
            return [done for one in found for done in self.solve(rest, one, interface)]
        raise NotBound(str(clauses))

    def _matches(self, clause: Clause, env: Env, interface: frozenset[str]) -> Iterator[Env]:
        match clause:
            case DataPattern():
                for entity, attribute, value in self.datoms:
                    yield from self._unified(
                        env, [(clause.entity, ("long", entity)), (clause.attribute, ("keyword", f":{attribute}")), (clause.value, value)]
                    )
            case FunctionClause():
                yield from self._function(clause, env)
            case OrClause():
                if clause.variables is None:
                    names = {one.name for part in clause.branches[0] if not isinstance(part, NotClause) for one in variables_of(part)}
                else:
                    names = {one.name for one in clause.variables}
                if any(one.name not in env for one in clause.required):
                    raise NotBound("required")
                start = {name: value for name, value in env.items() if name in names}
                for branch in clause.branches:
                    for done in self.solve(branch, start, frozenset(names)):
                        if any(name not in done for name in names):
                            raise NotBound("or")
                        yield {**env, **{name: done[name] for name in names}}
            case NotClause():
                inside = {one.name for part in clause.clauses for one in variables_of(part)}
                names = {one.name for one in clause.variables} if clause.variables is not None else inside & {*env, *interface}
                if names - env.keys():
                    raise NotBound("not")
                start = {name: env[name] for name in names}
                if not self.solve(clause.clauses, start, frozenset(names)):
                    yield env
            case RuleClause():
                if clause.name in self.tables:
                    for row in self.tables[clause.name]:
                        yield from self._unified(env, list(zip(clause.arguments, row, strict=True)))
                    return
                for branch in self.rules[clause.name]:
                    start = {}
                    for term, variable in zip(clause.arguments, branch.variables, strict=True):
                        if isinstance(term, ConstantForm):
                            start[variable.name] = self._value(term)
                        elif isinstance(term, QueryVariable) and term.name in env:
                            start[variable.name] = env[term.name]
                    if any(one.name not in start for one in branch.required):
                        raise NotBound(branch.name)
                    for row in self._definition(branch, start):
                        yield from self._unified(env, list(zip(clause.arguments, row, strict=True)))

    def _unified(self, env: Env, pairs: list[tuple[QueryTerm, Typed]]) -> Iterator[Env]:
        new = dict(env)
        for term, value in pairs:
            if isinstance(term, QueryVariable):
                if new.setdefault(term.name, value) != value:
                    return
            elif isinstance(term, ConstantForm) and self._value(term) != value:
                return
        yield new

    def _value(self, term: ConstantForm) -> Typed:
        if id(term) not in self._constants:
            self._constants[id(term)] = typed(term.form.value)
        return self._constants[id(term)]

    def _function(self, clause: FunctionClause, env: Env) -> Iterator[Env]:
        if any(isinstance(one, QueryVariable) and one.name not in env for one in clause.arguments):
            raise NotBound(clause.function)
        if clause.function in ("missing?", "get-else"):
            entity, attribute, *default = clause.arguments[1:]
            number = env[entity.name][1] if isinstance(entity, QueryVariable) else _constant(entity).value
            name = write(_constant(attribute))[1:]
            held = [value for one, other, value in self.datoms if (one, other) == (number, name)]
            if clause.function == "missing?":
                yield from [] if held else [env]
            else:
                assert clause.binding is not None
                value = held[0] if held else typed(_constant(default[0]).value)
                yield from self._unified(env, [(clause.binding.terms[0], value)])
            return
        if clause.function == "ground":
            assert clause.binding is not None
            for row in _rows_of_constant(_constant(clause.arguments[0]), clause.binding):
                yield from self._unified(env, list(zip(clause.binding.terms, row, strict=True)))
            return
        values = [env[one.name] if isinstance(one, QueryVariable) else typed(_constant(one).value) for one in clause.arguments]
        if clause.function == "untuple":
            assert clause.binding is not None
            yield from self._unified(env, list(zip(clause.binding.terms, values[0][1], strict=True)))
            return
        result = called(clause.function, values)
        if result is None:
            return
        if clause.binding is None:
            if result == ("boolean", True):
                yield env
        else:
            yield from self._unified(env, [(clause.binding.terms[0], result)])


def _rows_of_constant(form: LocatedForm, binding: Binding) -> list[list[Typed]]:
    parts: Any = form.value
    rows = (
        [[form]]
        if binding.shape == "scalar"
        else [[one] for one in parts.parts]
        if binding.shape == "collection"
        else [one.value.parts for one in parts.parts]
    )
    return [[typed(one.value) for one in row] for row in rows]


class Facts:
    """Datoms that operations with numbers of entities change, one after the other. many: attributes of cardinality many."""

    def __init__(self, many: Sequence[str], refs: Sequence[str], unique: Sequence[str], components: Sequence[str]) -> None:
        self.many, self.refs, self.unique, self.components = many, refs, unique, components
        self.datoms: Datoms = set()

    def apply(self, operation: Sequence[Any]) -> bool:
        """Whether the operation is permitted."""
        name, entity, *rest = operation
        if name == ":db/retractEntity":
            own = {one for one in self.datoms if one[0] == entity}
            parts = [value[1] for _, attribute, value in own if attribute in self.components]
            self.datoms -= own | {one for one in self.datoms if one[1] in self.refs and one[2] == ("long", entity)}
            return all([self.apply((name, part)) for part in parts])
        attribute = rest[0][1:]
        values = [None if one is None else typed(one) for one in rest[1:]]
        held = {one for one in self.datoms if one[:2] == (entity, attribute)}
        if name == ":db/retract":
            self.datoms -= {one for one in held if not values or one[2] == values[0]}
            return True
        if name == ":db/cas":
            old, value = values
            if held if old is None else (entity, attribute, old) not in held:
                return False
            self.datoms -= {one for one in held if one[2] == old}
            values = [value]
        (new_value,) = values
        assert new_value is not None
        new = (entity, attribute, new_value)
        if new in self.datoms:
            return True
        if attribute in self.unique and any(one[1:] == new[1:] for one in self.datoms):
            return False
        if attribute not in self.many:
            self.datoms -= held
        self.datoms.add(new)
        return True
