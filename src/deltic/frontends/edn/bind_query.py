"""Binds a query to the plan of a view, and its inputs to tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from deltic.aggregates import aggregate_function
from deltic.errors import DataError, QueryError, Span, SyntaxFailure, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr import cast, resolve
from deltic.expr.nodes import Expr, Literal
from deltic.frontends.edn.bind_body import ClauseScope, InputClause, unbound
from deltic.frontends.edn.bind_rules import RuleBinder
from deltic.frontends.edn.functions import ORDERED
from deltic.frontends.edn.grounding import rows_of, shaped
from deltic.frontends.edn.kinds import BIGDEC, BIGINT_KIND, DOUBLE_KIND, KEYWORD, KINDS, LONG, NUMBERS, EdnKind, EdnTerm, collection_of
from deltic.frontends.edn.patterns import StorePatterns
from deltic.frontends.edn.pull import PullLevel, levels_of
from deltic.frontends.edn.pull_plan import pull_plan
from deltic.frontends.edn.relation import UNIT, Bindings
from deltic.frontends.edn.schema import REF, EdnSchema
from deltic.frontends.edn.tree import (
    AggregateTerm,
    Binding,
    Clause,
    ConstantForm,
    DataPattern,
    EdnQuery,
    FindElement,
    NotClause,
    OrClause,
    PullTerm,
    QueryVariable,
    rules_of,
)
from deltic.frontends.edn.values import LocatedForm
from deltic.frontends.statements import Namespace
from deltic.plan.columns import reference
from deltic.plan.nodes import Aggregate, AggregateCall, Order, Plan, Project, SetOperation, Table, TopK
from deltic.plan.signs import as_view
from deltic.schema import BIGINT, DOUBLE, INT, Field, Schema, TableSchema

AGGREGATES = ("count", "count-distinct", "sum", "min", "max", "avg", "median", "variance", "stddev", "distinct")
_MOMENTS = {"avg": "avg", "median": "median", "variance": "var_pop", "stddev": "stddev_pop"}


@dataclass(frozen=True, slots=True)
class QueryInput:
    """An input of a query: a table of the values of its variables, each with its kind."""

    binding: Binding
    table: TableSchema
    kinds: tuple[EdnKind, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.binding.terms if isinstance(one, QueryVariable))


@dataclass(frozen=True, slots=True)
class QueryPull:
    """A pull in :find. column: that of its entities in the view. name: of the view of what its levels show."""

    column: int
    name: str
    levels: tuple[PullLevel, ...]

    @property
    def has_rows(self) -> bool:
        """Whether it shows more than numbers of entities: if not, there is no view."""
        return any(level.slots for level in self.levels)


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query's plan. kinds: of its columns. reads: the relations that it reads, sorted."""

    plan: Plan
    kinds: tuple[EdnKind, ...]
    reads: tuple[str, ...]


def query_inputs(
    query: EdnQuery, view: str, schema: EdnSchema, declared: Mapping[str, str], values: Sequence[LocatedForm] = ()
) -> tuple[QueryInput, ...]:
    """The inputs of a query; kinds are declared by the variable's name, or else those of the first pattern that has the variable.

    values: what the inputs are going to have, whose kinds are those of variables that no pattern has. Raises UnknownName and QueryError.
    """
    names = [term.name for one in query.inputs for term in one.terms if isinstance(term, QueryVariable)]
    if len(set(names)) < len(names):
        raise SyntaxFailure(":in binds a variable twice", span=query.inputs[0].span, expected="different variables")
    if unknown := [name for name in declared if name not in names]:
        raise UnknownName(f"the query has no input {unknown[0]}", remedy=did_you_mean(unknown[0], names))
    given = _given_kinds(query, values) if values else {}
    inputs: list[QueryInput] = []
    for i, binding in enumerate(query.inputs):
        variables = [term for term in binding.terms if isinstance(term, QueryVariable)]
        if not variables:
            raise Unsupported("a blank in :in", span=binding.span, expected="a variable")
        kinds = tuple(_input_kind(one, query, schema, declared, given) for one in variables)
        columns = tuple(Field(one.name[1:], kind.type, False) for one, kind in zip(variables, kinds, strict=True))
        table = TableSchema(f"{view} input {i + 1}", Schema(columns), tuple(range(len(columns))))
        inputs.append(QueryInput(binding, table, kinds))
    return tuple(inputs)


def _given_kinds(query: EdnQuery, values: Sequence[LocatedForm]) -> dict[str, EdnKind]:
    """Those of the values of inputs. Raises DataError, TypeMismatch."""
    if len(values) != len(query.inputs):
        names = (" ".join(one.name for one in binding.terms if isinstance(one, QueryVariable)) for binding in query.inputs)
        raise DataError(f"{len(values)} values for {len(query.inputs)} inputs", expected=", ".join(names) or "no values")
    rows = [(binding, value) for binding, value in zip(query.inputs, values, strict=True) if shaped(value, binding)]
    return {name: kind for binding, value in rows for name, kind in rows_of(value, binding).kinds.items()}


def _input_kind(
    variable: QueryVariable, query: EdnQuery, schema: EdnSchema, declared: Mapping[str, str], given: Mapping[str, EdnKind]
) -> EdnKind:
    name = declared.get(variable.name)
    if name is not None:
        bare = name.removeprefix(":").removeprefix("db.type/")
        if bare not in KINDS and bare != REF.removeprefix("db.type/"):
            raise UnknownName(f"there is no kind {name} of values", span=variable.span, expected=", ".join(KINDS))
        return KINDS.get(bare, LONG)
    kind = _kind_in(query.where, variable, query, schema, set())
    if kind is not None or variable.name in given:
        return kind or given[variable.name]
    raise QueryError(
        f"the kind of the input {variable.name} is not known: no data pattern has it",
        span=variable.span,
        expected=f"input_kinds={{'{variable.name}': 'long'}}, or another of {', '.join(KINDS)}",
    )


def _kind_in(
    clauses: Sequence[Clause], variable: QueryVariable, query: EdnQuery, schema: EdnSchema, seen: set[tuple[str, int]]
) -> EdnKind | None:
    """That of the first pattern that has the variable, also in the rules that it is an argument of. seen: the arguments looked at."""
    for pattern in _patterns(clauses):
        if pattern.entity == variable:
            return LONG
        if pattern.attribute == variable:
            return KEYWORD
        if pattern.value == variable and isinstance(pattern.attribute, ConstantForm):
            return schema.attribute(pattern.attribute.form).kind
    for call in rules_of(tuple(clauses)):
        for i, argument in enumerate(call.arguments):
            if argument != variable or (call.name, i) in seen:
                continue
            seen.add((call.name, i))
            for branch in query.rules.get(call.name, ()):
                if i < len(branch.variables) and (kind := _kind_in(branch.clauses, branch.variables[i], query, schema, seen)):
                    return kind
    return None


def _patterns(clauses: Sequence[Clause]) -> Iterator[DataPattern]:
    for clause in clauses:
        match clause:
            case DataPattern():
                yield clause
            case NotClause():
                yield from _patterns(clause.clauses)
            case OrClause():
                for branch in clause.branches:
                    yield from _patterns(branch)
            case _:
                pass


def query_pulls(query: EdnQuery, view: str, schema: EdnSchema) -> tuple[QueryPull, ...]:
    """The pulls of a query. Raises subclasses of QueryError, with the place."""
    pulls = [(i, one) for i, one in enumerate(query.find) if isinstance(one, PullTerm)]
    return tuple(QueryPull(column, f"{view} pull {i + 1}", levels_of(one.pattern, schema)) for i, (column, one) in enumerate(pulls))


def bind_pull(pull: QueryPull, schema: EdnSchema, namespace: Namespace, view: str) -> BoundQuery:
    """The plan of what a pull shows of the entities in the view of its query."""
    reads: set[str] = set()
    read = _reader(namespace, reads)
    query = read(view)
    roots = Bindings(query, {}).projected({"e": EdnTerm(reference(query.schema, pull.column), LONG)})
    plan = pull_plan(pull.levels, roots, StorePatterns(schema, read))
    assert plan is not None
    return BoundQuery(as_view(plan, f"query {view}"), (), tuple(sorted(reads)))


def bind_facts(schema: EdnSchema, namespace: Namespace) -> BoundQuery:
    """The plan of all facts of a store: e, a and v, of which a and v are texts in EDN."""
    reads: set[str] = set()
    e, a, v = (QueryVariable(name) for name in "eav")
    facts = StorePatterns(schema, _reader(namespace, reads)).bindings(DataPattern(e, a, v, None))
    return BoundQuery(facts.plan, tuple(facts.kinds.values()), tuple(sorted(reads)))


def bind_query(query: EdnQuery, inputs: Sequence[QueryInput], schema: EdnSchema, namespace: Namespace, view: str) -> BoundQuery:
    """The plan of a query over a store. Raises subclasses of QueryError, with the place."""
    reads: set[str] = set()
    read = _reader(namespace, reads)
    rules = RuleBinder(query.rules, StorePatterns(schema, read))
    parts = [InputClause(_input_rows(one, read), one.binding.span) for one in inputs]
    bindings, missing = rules.body.solve((*parts, *query.where), UNIT, ClauseScope())
    if missing:
        unbound(missing[0])
    plan, kinds = _find_plan(query, bindings)
    plan = _limited(query, plan, kinds)
    return BoundQuery(as_view(plan, f"query {view}"), kinds, tuple(sorted(reads)))


def _reader(namespace: Namespace, reads: set[str]) -> Callable[[str], Plan]:
    def read(name: str) -> Plan:
        relation = namespace.relation(name)
        if relation is None:
            raise UnknownName(f"there is no table {name}", remedy="define the store again: session.edn_store(…)")
        reads.add(name)
        return Table(relation) if isinstance(relation, TableSchema) else relation

    return read


def _input_rows(one: QueryInput, read: Callable[[str], Plan]) -> Bindings:
    return Bindings(read(one.table.name), dict(zip(one.names, one.kinds, strict=True)))


def _find_plan(query: EdnQuery, bindings: Bindings) -> tuple[Plan, tuple[EdnKind, ...]]:
    """(the plan of :find over the bindings, the kinds of its columns)."""
    variables = list(map(_variable, query.find))
    for one in (*variables, *query.with_):
        if one.name not in bindings.kinds:
            unbound(one)
    for element, one in zip(query.find, variables, strict=True):
        if isinstance(element, PullTerm) and bindings.kinds[one.name] != LONG:
            kind = bindings.kinds[one.name]
            raise TypeMismatch(f"{one.name} is a {kind}, and not an entity", span=one.span, expected="an entity or a reference")
    rows = bindings.keep(list(dict.fromkeys(one.name for one in (*variables, *query.with_)))).distinct()
    if not any(isinstance(one, AggregateTerm) for one in query.find):
        columns = tuple((name, rows.term(one.name).expr) for name, one in zip(query.names, variables, strict=True))
        return Project(rows.plan, columns), tuple(rows.kinds[one.name] for one in variables)
    keys = list(dict.fromkeys(_variable(one).name for one in query.find if not isinstance(one, AggregateTerm)))
    calls = [_aggregate(one, rows) for one in query.find if isinstance(one, AggregateTerm)]
    key_columns: tuple[tuple[str, Expr], ...] = tuple((name, rows.term(name).expr) for name in keys) or (("", Literal(1, INT)),)
    grouped = Aggregate(rows.plan, key_columns, tuple((str(i), one.call) for i, one in enumerate(calls)))
    finished: list[tuple[str, Expr]] = []
    kinds: list[EdnKind] = []
    remaining = iter(range(len(calls)))
    for name, element in zip(query.names, query.find, strict=True):
        if not isinstance(element, AggregateTerm):
            key = _variable(element).name
            finished.append((name, reference(grouped.schema, keys.index(key))))
            kinds.append(rows.kinds[key])
        else:
            i = next(remaining)
            finished.append((name, calls[i].finish(reference(grouped.schema, len(key_columns) + i))))
            kinds.append(calls[i].kind)
    return Project(grouped, tuple(finished)), tuple(kinds)


def _limited(query: EdnQuery, plan: Plan, kinds: Sequence[EdnKind]) -> Plan:
    """The rows that :limit and :offset keep: the first by :order-by, and those of one place there by the whole row.

    Raises TypeMismatch.
    """
    for one in query.order:
        if (kind := kinds[one.element]) not in ORDERED:
            remedy = "declare the :db/valueType of its attribute" if kind == KINDS["any"] else None
            expected = ", ".join(map(str, ORDERED))
            raise TypeMismatch(f"values of kind {kind} have no order", span=one.span, expected=expected, remedy=remedy)
    order = tuple(Order(reference(plan.schema, one.element), one.descending) for one in query.order)
    first = plan if query.limit is None else TopK(plan, order, query.offset + query.limit)
    return first if not query.offset else SetOperation(first, TopK(plan, order, query.offset), "except_all")


@dataclass(frozen=True, slots=True)
class _Aggregated:
    """An aggregate, and what makes its result a value of its kind."""

    call: AggregateCall
    kind: EdnKind
    finish: Callable[[Expr], Expr]


def _variable(one: FindElement) -> QueryVariable:
    """The variable that an element of :find is of."""
    match one:
        case QueryVariable():
            return one
        case PullTerm():
            return one.variable
        case AggregateTerm():
            variable = one.arguments[-1]
            assert isinstance(variable, QueryVariable)
            return variable


def _aggregate(one: AggregateTerm, rows: Bindings) -> _Aggregated:
    """Raises UnknownName, Unsupported and TypeMismatch."""
    if one.function in ("rand", "sample"):
        remedy = "a view has the same rows whenever it is computed"
        raise Unsupported(f"{one.function} is not supported", span=one.span, remedy=remedy)
    if one.function not in AGGREGATES:
        raise UnknownName(f"there is no aggregate {one.function}", span=one.span, remedy=did_you_mean(one.function, AGGREGATES))
    value = rows.term(_variable(one).name)
    if len(one.arguments) == 2 and one.function in ("min", "max"):
        return _extremes(one, value.expr, value.kind)
    if len(one.arguments) > 1:
        raise TypeMismatch(f"{one.function} has {len(one.arguments)} arguments", span=one.span, expected="one variable")
    match one.function:
        case "count":
            return _Aggregated(AggregateCall("count", (), BIGINT, False, span=one.span), LONG, lambda expr: expr)
        case "count-distinct":
            call = AggregateCall("count", (value.expr,), BIGINT, False, distinct=True, span=one.span)
            return _Aggregated(call, LONG, lambda expr: expr)
        case "distinct":
            kind = collection_of("set", value.kind)
            return _Aggregated(_call("collect_set", [value.expr], one.span), kind, lambda expr: resolve("sort_array", [expr], one.span))
        case "min" | "max":
            _check(one, value.kind, ORDERED)
            return _Aggregated(_call(one.function, [value.expr], one.span), value.kind, lambda expr: expr)
        case "sum":
            _check(one, value.kind, (*NUMBERS, BIGINT_KIND, BIGDEC))
            return _Aggregated(_call("sum", [value.expr], one.span), value.kind, lambda expr: cast(expr, value.kind.type, one.span))
        case _:
            _check(one, value.kind, NUMBERS)
            call = _call(_MOMENTS[one.function], [value.expr], one.span)
            return _Aggregated(call, DOUBLE_KIND, lambda expr: cast(expr, DOUBLE, one.span))


def _extremes(one: AggregateTerm, value: Expr, kind: EdnKind) -> _Aggregated:
    """The n least or greatest values of a group, ascending."""
    count = one.arguments[0]
    if not isinstance(count, ConstantForm) or not isinstance(count.form.value, int) or isinstance(count.form.value, bool):
        raise TypeMismatch(f"the count of {one.function} is not a constant", span=count.span, expected=f"({one.function} 3 ?x)")
    if not 1 <= count.form.value < 2**31:
        raise TypeMismatch(f"the count of {one.function} is out of range", span=count.span, expected="1 or more")
    _check(one, kind, ORDERED)
    call = _call(f"{one.function}_by", [value, value, Literal(count.form.value, INT)], one.span)
    return _Aggregated(call, collection_of("vector", kind), lambda expr: resolve("sort_array", [expr], one.span))


def _check(one: AggregateTerm, kind: EdnKind, kinds: Sequence[EdnKind]) -> None:
    if kind not in kinds:
        remedy = "declare the :db/valueType of its attribute" if kind == KINDS["any"] else None
        expected = ", ".join(map(str, kinds))
        raise TypeMismatch(f"{one.function} does not accept values of kind {kind}", span=one.span, expected=expected, remedy=remedy)


def _call(function: str, arguments: Sequence[Expr], span: Span | None) -> AggregateCall:
    signature = aggregate_function(function).of(len(arguments)).rule(function, [one.type for one in arguments], span)
    taken = tuple(cast(one, type, span) for one, type in zip(arguments, signature.arguments, strict=True))
    return AggregateCall(function, taken, signature.result, signature.nullable, span=span)
