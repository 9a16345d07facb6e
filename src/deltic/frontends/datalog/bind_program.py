"""Binds a program: a table for each input relation, and a view for each other relation, materialized if it is an output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from deltic.errors import CatalogError, Span, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr.functions.signature import constant
from deltic.expr.nodes import Column, Expr, Value
from deltic.frontends.datalog.applications import check_application
from deltic.frontends.datalog.bind_body import UNIT, BodyBinder
from deltic.frontends.datalog.declarations import BoundTerm, DatalogRelation, Declarations, check_comparable
from deltic.frontends.datalog.function_checks import check_functions
from deltic.frontends.datalog.indexes import index_plan
from deltic.frontends.datalog.inspections import Inspection, inspections
from deltic.frontends.datalog.kinds import Constructor, Kind, PlainKind, UnionKind, kind_of, option, stored
from deltic.frontends.datalog.patterns import by_name
from deltic.frontends.datalog.strata import USE, dependencies, recursive, strata
from deltic.frontends.datalog.streams import DatalogStreams, check_index, check_streams, delayed, fed_back
from deltic.frontends.datalog.tree import (
    AtomTerm,
    DatalogRule,
    FieldTerm,
    IndexDeclaration,
    InspectTerm,
    Item,
    Term,
    TupleTerm,
    VariableTerm,
)
from deltic.frontends.datalog.validity import checked_input
from deltic.frontends.datalog.values import optional, part
from deltic.frontends.statements import BoundView, CreateSink, CreateTable, CreateView, Namespace, Rebind, Statement
from deltic.plan.columns import reference
from deltic.plan.monotone import check_monotone
from deltic.plan.nodes import ITERATION_LIMIT, Distinct, Plan, Project, Reference, Table, Values, union_of
from deltic.plan.recursion import as_declared, components, finished, has_base
from deltic.plan.signs import as_view
from deltic.schema import Field, Schema, StreamSchema, TableSchema


class DatalogBinder:
    """A program whose declarations are valid, and whose recursions are stratified. Raises subclasses of QueryError."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.declarations = Declarations(items)
        for applied in self.declarations.applied:
            check_application(applied, self.declarations)
        self.dependencies = dependencies(self.declarations.rules)
        self._rules: dict[str, list[tuple[DatalogRule, AtomTerm]]] = {name: [] for name in self.declarations.relations}
        for rule in self.declarations.rules:
            for head in rule.heads:
                self._check_head(head)
                self._rules[head.name].append((rule, head))
        derived = [name for name, relation in self.declarations.relations.items() if not relation.is_input]
        self.strata = strata(derived, self.dependencies, self._unwritten())
        self.recursive = recursive(derived, self.dependencies)

    def _check_head(self, head: AtomTerm) -> None:
        relation = self.declarations.relation_named(head.name)
        if relation is None:
            remedy = did_you_mean(head.name, self.declarations.relations) or f"declare it: relation {head.name}(…)"
            raise UnknownName(f"there is no relation {head.name}", span=head.place, remedy=remedy)
        if relation.is_input:
            remedy = "derive another relation from it and from these rules"
            raise Unsupported(f"the input relation {head.name} is the head of a rule", span=head.place, remedy=remedy)
        if head.delay or head.differentiated:
            raise Unsupported("the head of a rule is delayed or differentiated", span=head.span, remedy="delay atoms of the body")

    def _unwritten(self) -> set[str]:
        """The relations that stand for aggregates of Soufflé."""
        relations = self.declarations.relations.items()
        return {name for name, relation in relations if relation.declaration is not None and not relation.declaration.is_written}

    def warnings(self) -> list[tuple[str, Span]]:
        """Relations that nothing derives, or that nothing reads; attributes, none of which has an effect."""
        read = {one.relation for one in self.dependencies if one.relation != one.head}
        empty = self._empty()
        warnings = [(f"the attribute {one.name} has no effect", one.span) for one in self.declarations.attributes if not one.has_effect]
        for name, relation in self.declarations.relations.items():
            declared = relation.declaration
            assert declared is not None
            if name in empty:
                cause = "every rule that derives it reads an empty relation" if self._rules[name] else "no rule derives it"
                warnings.append((f"the relation {name} is empty: {cause}", declared.span))
            elif declared.role == "internal" and name not in read and "." not in name:  # an instance need not use all of its component
                warnings.append((f"nothing reads the relation {name}, and it is not an output", declared.span))
            elif declared.role == "input" and name not in read:
                warnings.append((f"nothing reads the input relation {name}", declared.span))
        return warnings

    def _empty(self) -> set[str]:
        """The relations that are empty whatever the inputs are."""
        empty = {name for name, relation in self.declarations.relations.items() if not relation.is_input}
        while True:
            now = {name for name in empty if all(any(one.name in empty for one in _atoms(rule)) for rule, _ in self._rules[name])}
            if now == empty:
                return empty
            empty = now

    def statements(self, namespace: Namespace) -> Iterator[Statement]:
        """Tables and views in order. Each is bound when it is requested, after the caller has added the previous ones to the namespace."""
        check_functions(self.declarations, namespace)
        for relation in self.declarations.relations.values():
            if relation.is_input:
                table = self.table(relation)
                existing = namespace.relation(relation.name)
                declared = relation.declaration
                assert declared is not None
                if existing is None:
                    places = {column.name.lower(): column.span for column in declared.columns}
                    yield CreateTable(table, False, declared.span, declared.connector, places=places)
                else:
                    _check_same(relation, table, existing)
        for group in self.strata:
            calls: set[str] = set()
            plans = self.plans(group, namespace, calls)
            reads = self._reads(group)
            for name in group:
                declared = self.declarations.relations[name].declaration
                assert declared is not None
                materialized = declared.role == "output"
                rebind = self._rebinding(group, name)
                yield CreateView(name, plans[name], materialized, False, False, rebind, declared.span, reads, tuple(sorted(calls)))
                if materialized and declared.connector is not None:
                    yield CreateSink(f"{name}_sink", name, declared.connector, False, declared.span, declared.span)
            yield from self._inspections(group, namespace)
        for index in self.declarations.indexes.values():
            check_index(index, self.declarations)
            rebind = self._index_rebinding(index)
            bound = rebind(namespace)
            yield CreateView(index.name, bound.plan, True, False, False, rebind, index.span, bound.depends_on)

    def _inspections(self, group: tuple[str, ...], namespace: Namespace) -> Iterator[Statement]:
        """A view for each Inspect in the rules of the group, whose relations the namespace has."""
        for one in (one for name in group for one in inspections(name, [rule for rule, _ in self._rules[name]])):
            rebind = self._inspection_rebinding(one)
            bound = rebind(namespace)
            yield CreateView(one.view, bound.plan, True, False, False, rebind, one.span, bound.depends_on, bound.calls, one)

    def _inspection_rebinding(self, inspection: Inspection) -> Rebind:
        reads = {dependency.relation for dependency in dependencies([inspection.rule])}

        def rebind(namespace: Namespace) -> BoundView:
            calls: set[str] = set()
            plan = inspection.plan(self._inspected(inspection.rule, namespace, calls))
            return BoundView(plan, tuple(sorted(reads)), tuple(sorted(calls)))

        return rebind

    def _inspected(self, rule: DatalogRule, namespace: Namespace, calls: set[str]) -> list[tuple[InspectTerm, Plan, BoundTerm]]:
        body = BodyBinder(self.declarations, namespace, lambda atom: self._read(atom, {}, namespace), calls, rule.join)
        body.add_all(rule.body)
        return body.inspected

    def _index_rebinding(self, index: IndexDeclaration) -> Rebind:
        def rebind(namespace: Namespace) -> BoundView:
            plan = index_plan(index, self.declarations, lambda atom: self._read(atom, {}, namespace), namespace)
            return BoundView(plan, (index.atom.name,))

        return rebind

    def _rebinding(self, group: tuple[str, ...], name: str) -> Rebind:
        def rebind(namespace: Namespace) -> BoundView:
            calls: set[str] = set()
            plan = self.plans(group, namespace, calls)[name]
            return BoundView(plan, self._reads(group), tuple(sorted(calls)))

        return rebind

    def _reads(self, group: tuple[str, ...]) -> tuple[str, ...]:
        """The relations that the group reads, without its own."""
        return tuple(sorted({one.relation for one in self.dependencies if one.head in group} - set(group)))

    def table(self, relation: DatalogRelation) -> TableSchema:
        """The table of an input relation: its primary key is the declared one; of a set, all columns."""
        schema = Schema(tuple(Field(name, stored(kind), False) for name, kind in relation.columns))
        declared = relation.declaration
        assert declared is not None
        if declared.kind == "stream":
            if declared.key is not None:
                remedy = "leave it out: a stream holds the rows of one transaction"
                raise Unsupported("a stream has no primary key", span=declared.key[1].span, remedy=remedy)
            return StreamSchema(relation.name, schema)
        if declared.key is None:
            return TableSchema(relation.name, schema, () if relation.is_multiset else tuple(range(len(schema))))
        return TableSchema(relation.name, schema, self._key(relation, *declared.key))

    def _key(self, relation: DatalogRelation, variable: str, term: Term) -> tuple[int, ...]:
        names = [name for name, _ in relation.columns]
        positions = []
        for item in term.items if isinstance(term, TupleTerm) else (term,):
            of_row = isinstance(item, FieldTerm) and isinstance(item.value, VariableTerm) and item.value.name == variable
            if not isinstance(item, FieldTerm) or not of_row or item.name not in names:
                expected = f"columns of {relation.name}: ({variable}.{names[0]})"
                raise Unsupported("the primary key is not a column", span=item.span, expected=expected)
            check_comparable(dict(relation.columns)[item.name], "a primary key", item.span)
            positions.append(names.index(item.name))
        return tuple(dict.fromkeys(positions))

    # relations

    def plans(self, group: tuple[str, ...], namespace: Namespace, calls: set[str]) -> dict[str, Plan]:
        """The plan of each relation of a group; others are read from the namespace."""
        streams = DatalogStreams(self.declarations, namespace)
        for rule in dict.fromkeys(rule for name in group for rule, _ in self._rules[name]):
            check_streams(rule, streams, self.recursive)
        schemas = {name: self._declared(name) for name in group}
        while True:
            bodies = {name: self._body(name, schemas, namespace, calls) for name in group}
            wider = {name: schemas[name].with_nulls_of(body.schema) for name, body in bodies.items()}
            if wider == schemas:
                break
            schemas = wider
        bodies = {name: as_declared(body, schemas[name]) for name, body in bodies.items()}
        for name in group:
            if name not in streams and not has_base(bodies, name):  # an empty stream is one, too
                bodies[name] = Values((), schemas[name])
        for component in components(bodies):
            _check_monotone({name: bodies[name] for name in component})
        limits = dict.fromkeys(group, self._iterations(group))
        return {name: as_view(plan, f"relation {name}") for name, plan in fed_back(finished(bodies, limits)).items()}

    def _iterations(self, group: tuple[str, ...]) -> int:
        """The most iterations of the recursion of the group: the least that a hint gives."""
        limits = [rule.iterations for name in group for rule, _ in self._rules[name] if rule.iterations is not None]
        for _, span in limits:
            if not self.recursive & set(group):
                remedy = "remove the hint"
                raise Unsupported(f"the relation {group[0]} is not recursive, so it has no iterations", span=span, remedy=remedy)
        return min((limit for limit, _ in limits), default=ITERATION_LIMIT)

    def _declared(self, name: str) -> Schema:
        return Schema(tuple(Field(column, stored(kind), False) for column, kind in self.declarations.relations[name].columns))

    def _body(self, name: str, schemas: Mapping[str, Schema], namespace: Namespace, calls: set[str]) -> Plan:
        """The union of the relation's rules."""
        relation = self.declarations.relations[name]
        declared = relation.declaration
        assert declared is not None
        facts: list[tuple[Value, ...]] = []
        parts: list[Plan] = []
        for rule, head in self._rules[name]:
            if relation.is_multiset and name in self.recursive:
                raise Unsupported(f"the multiset {name} is recursive", span=head.place, remedy="make it a relation, which is a set")
            columns, plan = self._rule(rule, head, relation, schemas, namespace, calls)
            values = [constant(expr) for _, expr in columns] if plan is UNIT else [None]
            if all(value is not None for value in values):
                facts.append(tuple(value.value for value in values if value is not None))
            else:
                parts.append(Project(plan, columns))
        if facts or not parts:
            parts.insert(0, Values(tuple(facts), self._declared(name)))
        whole = union_of(parts)
        return whole if relation.is_multiset else Distinct(whole)

    def _rule(
        self,
        rule: DatalogRule,
        head: AtomTerm,
        relation: DatalogRelation,
        schemas: Mapping[str, Schema],
        namespace: Namespace,
        calls: set[str],
    ) -> tuple[tuple[tuple[str, Expr], ...], Plan]:
        """(the columns of the head over the rows of the body, the body)."""
        body = BodyBinder(self.declarations, namespace, lambda atom: self._read(atom, schemas, namespace), calls, rule.join)
        (head,) = body.add_all(rule.body, (head,))
        values = _head(head, relation, body)
        return tuple((name, value.expr) for (name, _), value in zip(relation.columns, values, strict=True)), body.plan

    def _read(self, atom: AtomTerm, schemas: Mapping[str, Schema], namespace: Namespace) -> tuple[Plan, DatalogRelation]:
        """The rows of an atom's relation."""
        relation = self.declarations.relation_named(atom.name)
        if relation is not None and atom.name in schemas:
            name = f"{atom.name}-{atom.delay}" if atom.delay else atom.name
            return Reference(name, schemas[atom.name], atom.place), relation
        plan, relation = self._of_namespace(atom, relation, namespace)
        return delayed(atom, plan), relation

    def _of_namespace(self, atom: AtomTerm, relation: DatalogRelation | None, namespace: Namespace) -> tuple[Plan, DatalogRelation]:
        """The rows of a relation of a lower stratum, or of the session."""
        source = namespace.relation(atom.name)
        if source is None:
            names = (*self.declarations.relations, *namespace.names())
            if atom.name[:1].isupper():  # as DDlog writes relations
                names = tuple(one[:1].upper() + one[1:] for one in names)
            remedy = did_you_mean(atom.name, names)
            raise UnknownName.of_relation(atom.name, f"there is no relation {atom.name}", span=atom.place, remedy=remedy)
        plan = Table(source, atom.place) if isinstance(source, TableSchema) else source
        if relation is None:
            return _of_session(atom.name, plan)
        if [field.type for field in plan.schema] != [stored(kind) for _, kind in relation.columns]:
            raise TypeMismatch(f"the session's relation {atom.name} has other columns than the program declares", span=atom.place)
        return (_in_range(plan, relation) if relation.is_input else plan), relation


def _check_monotone(relations: Mapping[str, Plan]) -> None:
    """Raises Unsupported, as check_monotone does, with a remedy in Datalog."""
    try:
        check_monotone(relations)
    except Unsupported as error:
        raise Unsupported(error.message, span=error.span, expected=error.expected, remedy=USE) from None


def _head(head: AtomTerm, relation: DatalogRelation, body: BodyBinder) -> list[BoundTerm]:
    """The values of the columns of a head."""
    binder = body.binder
    if head.record is None:
        terms = by_name(head.arguments, [name for name, _ in relation.columns], f"relation {head.name}", head.span)
        missing = [name for (name, _), term in zip(relation.columns, terms, strict=True) if term is None]
        if missing:
            raise TypeMismatch(f"the head {head.name} lacks its column {missing[0]}", span=head.span, expected=f".{missing[0]} = …")
        pairs = zip(terms, relation.columns, strict=True)
        return [binder.bind(term, kind) for term, (_, kind) in pairs if term is not None]
    row = binder.bind(head.record, relation.row)
    if isinstance(relation.row, UnionKind) and not relation.row.is_tagged:
        return [part(row, i, kind, head.span) for i, (_, kind) in enumerate(relation.columns)]
    return [row]


def _atoms(rule: DatalogRule) -> list[AtomTerm]:
    return [one for one in rule.body if isinstance(one, AtomTerm)]


def _of_session(name: str, plan: Plan) -> tuple[Plan, DatalogRelation]:
    """A table or view of SQL: columns that may be NULL are Options."""
    columns: list[tuple[str, Kind]] = []
    exprs: list[tuple[str, Expr]] = []
    for i, column in enumerate(plan.schema):
        kind = kind_of(column.type) or PlainKind(column.type.sql, column.type)
        expr: Expr = reference(plan.schema, i)
        if stored(kind) != column.type:  # a DECIMAL(38,0) under another name, or a STRUCT with names in another case
            kind = PlainKind(column.type.sql, column.type)
        columns.append((column.name, option(kind) if column.nullable else kind))
        exprs.append((column.name, optional(expr, kind, None).expr if column.nullable else expr))
    row = UnionKind(name, (), (Constructor(name, tuple(columns)),))
    rows = plan if all(isinstance(expr, Column) for _, expr in exprs) else Project(plan, tuple(exprs))
    return rows, DatalogRelation(name, tuple(columns), row)


def _in_range(plan: Plan, relation: DatalogRelation) -> Plan:
    """The rows of an input; a value that is not of its column's type fails the tick."""
    columns = []
    for i, (name, kind) in enumerate(relation.columns):
        assert relation.declaration is not None
        span = relation.declaration.columns[i].span if relation.declaration.columns else relation.declaration.span
        column: Expr = replace(reference(plan.schema, i), span=span)
        columns.append((name, checked_input(column, kind, f"{relation.name}.{name}", span)))
    return Project(plan, tuple(columns)) if any(not isinstance(expr, Column) for _, expr in columns) else plan


def _check_same(relation: DatalogRelation, table: TableSchema, existing: TableSchema | Plan) -> None:
    declared = relation.declaration
    assert declared is not None
    if not isinstance(existing, TableSchema):
        raise CatalogError(f"{relation.name} is a view of the session", span=declared.span, remedy="read it without declaring it")
    if isinstance(existing, StreamSchema) != relation.is_stream:
        what, expected = ("table", "relation") if relation.is_stream else ("stream", "stream")
        raise CatalogError(f"the session has a {what} {existing.name}", span=declared.span, expected=f"input {expected} {relation.name}(…)")
    if declared.connector is not None:
        remedy = "leave the attribute out: the table has the source that it was declared with"
        raise CatalogError(f"the session has a table {existing.name}", span=declared.connector.span, remedy=remedy)
    if [(f.name.lower(), f.type, f.nullable) for f in existing.schema] != [(f.name.lower(), f.type, f.nullable) for f in table.schema]:
        columns = ", ".join(f"{f.name} {f.type}{'' if f.nullable else ' NOT NULL'}" for f in existing.schema)
        raise CatalogError(
            f"the session has a table {existing.name} with other columns",
            span=declared.span,
            expected=columns,
            remedy="read it without declaring it",
        )
