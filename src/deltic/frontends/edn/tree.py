"""Queries as a tree, whose nodes have their places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

from deltic.errors import Span
from deltic.frontends.edn.values import LocatedForm


@dataclass(frozen=True, slots=True)
class QueryVariable:
    """?name, with the question mark."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Blank:
    """_"""

    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ConstantForm:
    """A value; of an entity, also a lookup ref."""

    form: LocatedForm

    @property
    def span(self) -> Span | None:
        return self.form.span


QueryTerm: TypeAlias = QueryVariable | Blank | ConstantForm


@dataclass(frozen=True, slots=True)
class DataPattern:
    """[entity attribute value]; terms that are left out are blanks."""

    entity: QueryTerm
    attribute: QueryTerm
    value: QueryTerm
    span: Span | None = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FunctionClause:
    """[(function argument …)], a predicate, or [(function argument …) binding]. binding: None of a predicate."""

    function: str
    arguments: tuple[QueryTerm, ...]
    binding: Binding | None
    span: Span | None = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NotClause:
    """(not …) and (not-join […] …). variables: of the latter."""

    clauses: tuple[Clause, ...]
    variables: tuple[QueryVariable, ...] | None
    span: Span | None = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OrClause:
    """(or …) and (or-join […] …). variables: of the latter; required: those that are bound outside."""

    branches: tuple[tuple[Clause, ...], ...]
    variables: tuple[QueryVariable, ...] | None
    required: tuple[QueryVariable, ...]
    span: Span | None = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RuleClause:
    """(rule argument …)"""

    name: str
    arguments: tuple[QueryTerm, ...]
    span: Span | None = field(compare=False, repr=False)


Clause: TypeAlias = DataPattern | FunctionClause | NotClause | OrClause | RuleClause


@dataclass(frozen=True, slots=True)
class Binding:
    """?x, [?x …] as a tuple, [?x ...] as a collection, or [[?x …]] as a relation."""

    shape: OneOf["scalar", "tuple", "collection", "relation"]
    terms: tuple[QueryVariable | Blank, ...]
    span: Span | None = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RuleBranch:
    """One definition of a rule. required: variables that are bound by the caller, which come first."""

    name: str
    variables: tuple[QueryVariable, ...]
    required: tuple[QueryVariable, ...]
    clauses: tuple[Clause, ...]
    span: Span | None = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AggregateTerm:
    """(function argument …) in :find; the last argument is a variable."""

    function: str
    arguments: tuple[QueryTerm, ...]
    span: Span | None = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PullSpec:
    """An attribute of a pull pattern. attribute: as it is written, perhaps :ns/_name. key: that of :as. nested: a pattern, how often the
    pattern around it recurs, or "..." for as often as there are entities."""

    attribute: LocatedForm
    key: LocatedForm | None = None
    default: LocatedForm | None = None
    limit: int | None = None
    nested: PullPattern | int | OneOf["..."] | None = None

    @property
    def span(self) -> Span | None:
        return self.attribute.span


@dataclass(frozen=True, slots=True)
class PullPattern:
    """[attribute …]. has_wildcard: whether it has *, all attributes."""

    specs: tuple[PullSpec, ...]
    has_wildcard: bool
    span: Span | None = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PullTerm:
    """(pull ?e [attribute …]) in :find."""

    variable: QueryVariable
    pattern: PullPattern
    span: Span | None = field(compare=False, repr=False)


FindElement: TypeAlias = QueryVariable | AggregateTerm | PullTerm
FindShape: TypeAlias = OneOf["relation", "collection", "tuple", "scalar"]


@dataclass(frozen=True, slots=True)
class FindOrder:
    """A part of :order-by: an element of :find, by its position."""

    element: int
    descending: bool
    span: Span | None = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EdnQuery:
    """A query. names: of its columns. inputs: those of :in. takes_rules: whether :in has %. limit: the most rows, if it has one.
    offset: how many of the first rows are left out."""

    find: tuple[FindElement, ...]
    shape: FindShape
    names: tuple[str, ...]
    with_: tuple[QueryVariable, ...]
    inputs: tuple[Binding, ...]
    takes_rules: bool
    where: tuple[Clause, ...]
    rules: dict[str, tuple[RuleBranch, ...]]
    order: tuple[FindOrder, ...]
    limit: int | None
    offset: int
    span: Span | None


def variables_of(clause: Clause) -> Iterator[QueryVariable]:
    """The variables of a clause that are also of the clauses around it; those of a negation include all that it names."""
    match clause:
        case DataPattern():
            yield from (one for one in (clause.entity, clause.attribute, clause.value) if isinstance(one, QueryVariable))
        case FunctionClause():
            terms = (*clause.arguments, *(() if clause.binding is None else clause.binding.terms))
            yield from (one for one in terms if isinstance(one, QueryVariable))
        case RuleClause():
            yield from (one for one in clause.arguments if isinstance(one, QueryVariable))
        case NotClause():
            inner = (one for part in clause.clauses for one in variables_of(part))
            yield from inner if clause.variables is None else clause.variables
        case OrClause():
            inner = (one for branch in clause.branches for part in branch for one in variables_of(part))
            yield from inner if clause.variables is None else clause.variables


def rules_of(clauses: tuple[Clause, ...]) -> Iterator[RuleClause]:
    """The calls of rules in clauses."""
    for clause in clauses:
        match clause:
            case RuleClause():
                yield clause
            case NotClause():
                yield from rules_of(clause.clauses)
            case OrClause():
                for branch in clause.branches:
                    yield from rules_of(branch)
            case _:
                pass
