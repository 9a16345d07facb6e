"""Data patterns as relations of bindings: a pattern with a constant attribute reads its table, one with a variable the union of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from deltic.errors import SyntaxFailure, TypeMismatch, UnknownName
from deltic.expr import cast, resolve
from deltic.expr.nodes import Expr, Literal, Value
from deltic.frontends.edn.functions import equal
from deltic.frontends.edn.kinds import KEYWORD, LONG, EdnKind, EdnTerm, accepts, encoded, kind_of, with_kind
from deltic.frontends.edn.relation import Bindings, table_of, united
from deltic.frontends.edn.schema import EdnAttribute, EdnSchema, TableColumn, is_lookup
from deltic.frontends.edn.tree import Blank, Clause, ConstantForm, DataPattern, QueryTerm, QueryVariable
from deltic.frontends.edn.values import ListForm, LocatedForm, VectorForm, write
from deltic.plan.columns import reference
from deltic.plan.nodes import Plan, Table
from deltic.schema import BIGINT, STRING


@dataclass(frozen=True, slots=True)
class StorePatterns:
    """The patterns over one store. read: the plan of a table or view by its name."""

    schema: EdnSchema
    read: Callable[[str], Plan]

    def facts(self, attribute: EdnAttribute) -> tuple[Plan, EdnTerm, EdnTerm]:
        """(the facts of an attribute, their entity, their value)."""
        if attribute.column is not None:
            return self._of_column(attribute, attribute.column)
        plan = self.read(self.schema.table_name(attribute))
        return plan, EdnTerm(reference(plan.schema, 0), LONG), EdnTerm(reference(plan.schema, 1), attribute.kind)

    def _of_column(self, attribute: EdnAttribute, column: TableColumn) -> tuple[Plan, EdnTerm, EdnTerm]:
        """A row whose value is NULL is no fact."""
        table = self.read(column.table)
        positions = table.schema.find(column.name)
        if not isinstance(table, Table) or not positions:
            raise UnknownName(f"table {column.table} has no column {column.name}", remedy="define the store again: session.edn_store(…)")
        key, value = (reference(table.schema, position) for position in (*table.table.key, *positions))
        terms = {"e": EdnTerm(cast(key, BIGINT), LONG), "v": EdnTerm(cast(value, attribute.kind.type), attribute.kind)}
        facts = Bindings(table, {}).projected(terms)
        return facts.plan, facts.term("e"), facts.term("v")

    def bindings(self, pattern: DataPattern) -> Bindings:
        """The rows of a pattern without lookup refs. Raises UnknownName and TypeMismatch."""
        if isinstance(pattern.attribute, ConstantForm):
            return self._of_attribute(self.schema.attribute(pattern.attribute.form), pattern)
        parts = []
        for attribute in self.schema.attributes.values():
            if _may_have(attribute, pattern.value):
                parts.append(self._of_attribute(attribute, pattern))
        if parts:
            return united(parts)
        terms = [term for term in (pattern.entity, pattern.attribute) if isinstance(term, QueryVariable)]
        return table_of((), {term.name: LONG if term is pattern.entity else KEYWORD for term in terms})

    def _of_attribute(self, attribute: EdnAttribute, pattern: DataPattern) -> Bindings:
        plan, entity, value = self.facts(attribute)
        visitor = ColumnVisitor()
        visitor.match(pattern.entity, entity, "an entity")
        if not isinstance(pattern.attribute, ConstantForm):
            visitor.match(pattern.attribute, EdnTerm(Literal(f":{attribute.name}", STRING), KEYWORD), "an attribute")
            value = with_kind(value) if isinstance(pattern.value, QueryVariable) else value
        visitor.match(pattern.value, value, f"the value of :{attribute.name}", attribute)
        return Bindings(plan, {}).filtered(visitor.conditions).projected(visitor.terms)


def _may_have(attribute: EdnAttribute, value: QueryTerm) -> bool:
    return not isinstance(value, ConstantForm) or accepts(attribute.kind, value.form)


class ColumnVisitor:
    """Collects what the terms of a pattern say of its columns: conditions on them, and the variables that they bind."""

    def __init__(self) -> None:
        self.conditions: list[Expr] = []
        self.terms: dict[str, EdnTerm] = {}

    def match(self, term: QueryTerm, column: EdnTerm, what: str, attribute: EdnAttribute | None = None) -> None:
        """Raises TypeMismatch for a constant of another kind."""
        match term:
            case QueryVariable(name) if name in self.terms:
                self.conditions.append(equal(self.terms[name], column, name, term.span))
            case QueryVariable(name):
                self.terms[name] = column
            case ConstantForm(form):
                value = attribute.value(form) if attribute is not None else constant_of(form, column.kind, what)
                literal = Literal(value, column.kind.type, form.span)
                self.conditions.append(resolve("=", [column.expr, literal], form.span))
            case Blank():
                pass


def constant_of(form: LocatedForm, kind: EdnKind, what: str) -> Value:
    """The stored value of a constant. Raises TypeMismatch."""
    if not accepts(kind, form):
        raise TypeMismatch(f"{what} is a {kind}, and {write(form)} is a {kind_of(form)}", span=form.span, expected=f"a {kind}")
    return encoded(form, kind)


def without_lookups(clauses: Sequence[Clause], schema: EdnSchema) -> Iterator[Clause]:
    """The clauses, in whose patterns a lookup ref is a variable of a pattern of its own."""
    for clause in clauses:
        if isinstance(clause, DataPattern):
            yield from _without_lookups(clause, schema)
        else:
            yield clause


def _without_lookups(pattern: DataPattern, schema: EdnSchema) -> Iterator[DataPattern]:
    attribute = schema.attribute(pattern.attribute.form) if isinstance(pattern.attribute, ConstantForm) else None
    if isinstance(pattern.entity, ConstantForm) and is_lookup(pattern.entity.form):
        variable, lookup = _lookup(pattern.entity.form, schema)
        yield lookup
        pattern = replace(pattern, entity=variable)
    if attribute is not None and attribute.is_ref and isinstance(pattern.value, ConstantForm) and is_lookup(pattern.value.form):
        variable, lookup = _lookup(pattern.value.form, schema)
        yield lookup
        pattern = replace(pattern, value=variable)
    yield pattern


def _lookup(form: LocatedForm, schema: EdnSchema) -> tuple[QueryVariable, DataPattern]:
    assert isinstance(form.value, VectorForm | ListForm)
    name, value = form.value.parts
    attribute = schema.attribute(name)
    attribute.check_unique(name.span)
    if isinstance(value.value, VectorForm | ListForm):
        raise SyntaxFailure("a lookup ref within another", span=value.span, expected="[:attribute value]")
    variable = QueryVariable(write(form), form.span)  # no other variable has a name that begins with a bracket
    return variable, DataPattern(variable, ConstantForm(name), ConstantForm(value), form.span)
