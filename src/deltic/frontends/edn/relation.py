"""Relations of bindings: plans whose columns are variables, none of which is NULL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from deltic.errors import Span
from deltic.expr import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.frontends.edn.kinds import ANY, BIGDEC, BIGINT_KIND, EdnKind, EdnTerm, common, with_kind
from deltic.plan.columns import conjunction, reference
from deltic.plan.nodes import Distinct, Filter, Join, Plan, Project, Union, Values
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, Field, Schema, Type

_DEFAULTS: Final[dict[Type, Any]] = {
    BIGINT: 0,
    BIGINT_KIND.type: Decimal(0),
    BIGDEC.type: Decimal(0),
    DOUBLE: 0.0,
    STRING: "",
    BOOLEAN: False,
    TIMESTAMP: datetime(1970, 1, 1, tzinfo=UTC),
}


@dataclass(frozen=True, slots=True)
class Bindings:
    """A plan whose rows bind variables. kinds: the kind of each column, by its variable's name."""

    plan: Plan
    kinds: Mapping[str, EdnKind]

    def term(self, name: str) -> EdnTerm:
        """The value of a variable."""
        return EdnTerm(reference(self.plan.schema, list(self.kinds).index(name)), self.kinds[name])

    def projected(self, terms: Mapping[str, EdnTerm]) -> Bindings:
        """These columns alone. A row whose value is NULL goes."""
        plan = self.plan
        missing = [resolve("is_not_null", [term.expr], None) for term in terms.values() if term.expr.nullable]
        if missing:
            plan = Filter(plan, conjunction(missing))
        columns = tuple((name, _never_null(term)) for name, term in terms.items())
        return Bindings(Project(plan, columns), {name: term.kind for name, term in terms.items()})

    def extended(self, terms: Mapping[str, EdnTerm]) -> Bindings:
        """With these columns after its own."""
        return self.projected({**{name: self.term(name) for name in self.kinds}, **terms})

    def keep(self, names: Sequence[str]) -> Bindings:
        """These variables alone, in this order."""
        return self if list(names) == list(self.kinds) else self.projected({name: self.term(name) for name in names})

    def distinct(self) -> Bindings:
        return Bindings(Distinct(self.plan), self.kinds)

    def filtered(self, conditions: Sequence[Expr]) -> Bindings:
        return Bindings(Filter(self.plan, conjunction(conditions)), self.kinds) if conditions else self

    def joined(self, other: Bindings, span: Span | None) -> Bindings:
        """Both, where the variables that they share are equal. Raises TypeMismatch."""
        if self == UNIT:
            return other
        plan = Join(self.plan, other.plan, "inner", self._keys(other, span))
        width, names = len(self.plan.schema), list(self.kinds)
        columns: list[tuple[str, Expr]] = []
        kinds: dict[str, EdnKind] = {}
        for i, name in enumerate([*names, *other.kinds]):
            if name in kinds:
                continue
            position, kind = i, self.kinds.get(name) or other.kinds[name]
            if kind == ANY and name in other.kinds and i < width:  # the other side may say which kind the equal value has
                position, kind = width + list(other.kinds).index(name), other.kinds[name]
            columns.append((name, reference(plan.schema, position)))
            kinds[name] = kind
        return Bindings(Project(plan, tuple(columns)), kinds)

    def without(self, other: Bindings, span: Span | None) -> Bindings:
        """The rows for which `other` has none whose shared variables are equal."""
        return Bindings(Join(self.plan, other.plan, "anti", self._keys(other, span)), self.kinds)

    def _keys(self, other: Bindings, span: Span | None) -> tuple[tuple[Expr, Expr], ...]:
        pairs = [common(self.term(name), other.term(name), name, span) for name in self.kinds if name in other.kinds]
        return tuple((left.expr, right.expr) for left, right in pairs)


UNIT: Final = Bindings(Values(((),), Schema(())), {})
"""One row without columns."""


def table_of(rows: Collection[Sequence[Any]], kinds: Mapping[str, EdnKind]) -> Bindings:
    """ConstantForm rows of stored values."""
    schema = Schema(tuple(Field(name, kind.type, False) for name, kind in kinds.items()))
    return Bindings(Values(tuple(tuple(row) for row in rows), schema), kinds)


def united(parts: Sequence[Bindings]) -> Bindings:
    """The rows of all, which have the same variables; those of different kinds become values of any kind."""
    names = list(parts[0].kinds)
    kinds = {name: _shared([part.kinds[name] for part in parts]) for name in names}
    same = [_as(part, kinds) for part in parts]
    return same[0] if len(same) == 1 else Bindings(Union(tuple(part.plan for part in same)), kinds)


def _shared(kinds: Sequence[EdnKind]) -> EdnKind:
    return kinds[0] if len(set(kinds)) == 1 else ANY


def _as(part: Bindings, kinds: Mapping[str, EdnKind]) -> Bindings:
    if list(part.kinds) == list(kinds) and all(part.kinds[name] == kind for name, kind in kinds.items()):
        return part
    terms = {name: part.term(name) for name in kinds}
    return part.projected({name: term if term.kind == kinds[name] else with_kind(term) for name, term in terms.items()})


def _never_null(term: EdnTerm) -> Expr:
    if not term.expr.nullable:
        return term.expr
    return resolve("coalesce", [term.expr, Literal(_DEFAULTS[term.kind.type], term.kind.type)], None)
