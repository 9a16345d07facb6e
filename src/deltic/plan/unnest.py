"""Unnesting: a dependent join becomes joins of relations, whatever its right side is (Neumann and Kemper 2015).

The right side is evaluated at once for the domain: the distinct values of the outer columns that it reads. The domain is pushed down in it
(plan/push_domain.py) to where nothing depends on the left side any more, and the result is joined with the left side by these values.

The domain is not needed
- if the right side depends on the left only in its last filters: they become the join's condition;
- for an aggregate without GROUP BY over rows that equalities select: it is grouped by their other sides.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from deltic.errors import Span
from deltic.expr import Column, Expr, can_fail, case, columns_of, resolve
from deltic.expr.functions.comparison import check_ordered
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import TRUE, Literal, OuterColumn, calls_python, outer_columns
from deltic.plan.aggregates import aggregate_value
from deltic.plan.columns import (
    all_columns,
    columns_of_all,
    conjunction,
    conjuncts,
    is_not_null,
    map_children,
    map_columns,
    named_columns,
    reference,
    remap,
    shift,
    substitute,
)
from deltic.plan.equalities import null_safe, split
from deltic.plan.nodes import Aggregate, AggregateCall, Distinct, Filter, Join, Plan, Project
from deltic.plan.push_domain import Domain, depends, outer_of, over_nothing, pushed, surely_evaluates
from deltic.plan.subquery_nodes import DependentJoin, outer_number
from deltic.plan.walk import map_expressions, map_inputs
from deltic.schema import BOOLEAN, Field, Schema

_TESTS: Final = ("semi", "anti", "not_in", "mark")
"""The kinds that test which rows there are, not how many."""
_OF_LEFT_ROWS: Final = (*_TESTS, "left")
"""The kinds of joins of which a query further out has all left rows for each of its values."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of `plan` that pass `parts`, as `columns`: expressions over the plan that may read OuterColumns."""

    plan: Plan
    parts: tuple[Expr, ...]
    columns: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class _Outer:
    """The expressions over the left side, by number."""

    values: dict[int, Expr]

    def into(self, expr: Expr) -> Expr:
        """The expression over rows that begin with the left side's columns, without OuterColumns of this join."""
        if isinstance(expr, OuterColumn):
            return replace(self.values[expr.number], span=expr.span) if expr.number in self.values else expr
        return map_children(expr, self.into)


def unnest(join: DependentJoin) -> Plan:
    """A plan without the dependent join; OuterColumns of queries further out remain.

    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, TableSchema
    >>> t, u = (Table(TableSchema(n, Schema((Field("a", BIGINT), Field("b", BIGINT))))) for n in "tu")
    >>> own, outer = Column(0, BIGINT, True, "a"), OuterColumn(1, BIGINT, True, "a")
    >>> rows = Filter(u, resolve("=", [own, outer]))
    >>> print(show(unnest(DependentJoin(t, rows, "semi", ((1, own),)))))
    Join semi on a#0 = a#0
      Table t (a, b)
      Table u (a, b)
    >>> least = Aggregate(rows, (), (("least", AggregateCall("min", (Column(1, BIGINT, True, "b"),), BIGINT, True)),))
    >>> print(show(unnest(DependentJoin(t, least, "inner", ((1, own),)))))
    Project a#0, b#1, least#3
      Join left on a#0 = a#0
        Table t (a, b)
        Aggregate by a#2: least := min(b#1)
          Filter is_not_null(a#2)
            Project a#0, b#1, a#0
              Table u (a, b)
    """
    if join.kind == "mark" and join.condition is not None:
        return unnest(_with_condition_inside(join))
    read = {one.number for one in outer_of(join.right)}
    outer = _Outer({number: expr for number, expr in join.outer if number in read})
    rows = _parted(join, outer)
    if not depends(rows.plan, outer.values):
        direct = _direct(join, rows, outer)
        if direct is not None:
            return direct
    if any(_is_map(one) for one in outer_of(join.right) if one.number in read):
        return unnest(_by_entries(join, read))
    if isinstance(rows.plan, Aggregate) and not rows.plan.keys:
        return _of_one_row(join, rows, rows.plan, outer)
    return _by_domain(join, outer)


def _is_map(value: Expr | Field) -> bool:
    return value.type.name == "MAP"


def _by_entries(join: DependentJoin, read: Collection[int]) -> DependentJoin:
    """The join with the outer MAPs as ARRAYs of their entries, which have an equality. read: the numbers of the outer columns."""
    outer = dict(join.outer)
    entries: dict[int, Expr] = {}
    for one in sorted((one for one in outer_of(join.right) if _is_map(one) and one.number in read), key=lambda one: one.number):
        outer[one.number] = value = resolve("map_entries", [outer[one.number]], one.span)
        check_ordered(f"a subquery that reads {one.name}", value.type, one.span)
        own = OuterColumn(one.number, value.type, value.nullable, one.name, one.span)
        entries[one.number] = resolve("map_from_entries", [own], one.span)

    def change(expr: Expr) -> Expr:
        if isinstance(expr, OuterColumn):
            return entries.get(expr.number, expr)
        return map_children(expr, change)

    def changed(plan: Plan) -> Plan:
        return map_inputs(map_expressions(plan, change), changed) if depends(plan, entries) else plan

    return replace(join, right=changed(join.right), outer=tuple(outer.items()))


def _with_condition_inside(join: DependentJoin) -> DependentJoin:
    """A mark whose condition is a filter of the right side, in which the left columns are OuterColumns."""
    assert join.condition is not None
    width, added = len(join.left.schema), dict[int, OuterColumn]()

    def inside(column: Column) -> Expr:
        if column.index >= width:
            return replace(column, index=column.index - width)
        if column.index not in added:
            added[column.index] = OuterColumn(outer_number(), column.type, column.nullable, column.name, column.span)
        return replace(added[column.index], span=column.span)

    right = Filter(join.right, map_columns(join.condition, inside))
    own = tuple((outer.number, reference(join.left.schema, i)) for i, outer in added.items())
    return replace(join, right=right, outer=(*join.outer, *own), condition=None)


def _parted(join: DependentJoin, outer: _Outer) -> _Rows:
    """The right side without its last projections, and without its last filters as far as they depend on the left side."""
    plan = join.right
    columns: tuple[Expr, ...] = all_columns(plan.schema)
    parts: tuple[Expr, ...] = ()
    while True:
        match plan:
            case Project() if join.kind in _TESTS or depends(plan, outer.values):
                below = [expr for _, expr in plan.columns]
                columns = tuple(substitute(expr, below) for expr in columns)
                parts = tuple(substitute(part, below) for part in parts)
            case Filter() if depends(plan, outer.values):
                parts = (*conjuncts(plan.predicate), *parts)
            case Distinct() if join.kind in _TESTS:
                pass
            case _:
                return _with_own_filter(_Rows(plan, parts, columns), outer, join.kind)
        plan = plan.input


def _with_own_filter(rows: _Rows, outer: _Outer, kind: str) -> _Rows:
    """With the conditions that do not read the left side as a filter; one that can fail stays after those that it follows.

    Those that read a query further out stay where all left rows are there for each of its values: they are tested on matches.
    """
    own: list[Expr] = []
    rest: list[Expr] = []
    for part in rows.parts:
        free = outer.into(part) is part and not (kind in _OF_LEFT_ROWS and outer_columns(part))
        (own if free and not (rest and can_fail(part)) else rest).append(part)
    return replace(rows, plan=Filter(rows.plan, conjunction(own)), parts=tuple(rest)) if own else rows


def _condition(join: DependentJoin, rows: _Rows, outer: _Outer) -> tuple[list[Expr], list[Expr]]:
    """(the conditions, the right columns) over the left side's columns followed by those of `rows.plan`."""
    width = len(join.left.schema)
    columns = [outer.into(shift(expr, width)) for expr in rows.columns]
    parts = [outer.into(shift(part, width)) for part in rows.parts]
    if join.condition is not None:
        whole = [*(reference(join.left.schema, i) for i in range(width)), *columns]
        parts += conjuncts(substitute(join.condition, whole))
    return parts, columns


def _direct(join: DependentJoin, rows: _Rows, outer: _Outer) -> Plan | None:
    """The join with rows that do not depend on the left side; None if what it selects of them does in a way that a join has not."""
    left, right, width = join.left, rows.plan, len(join.left.schema)
    parts, columns = _condition(join, rows, outer)
    keys, residual = split(conjunction(parts), width)
    match join.kind:
        case "semi" | "anti":
            return Join(left, right, join.kind, keys, residual, span=join.span)
        case "not_in":
            assert join.value is not None
            value = substitute(join.value[1], rows.columns)
            return (
                None
                if outer.into(value) is not value
                else Join(left, right, "not_in", keys, residual, (join.value[0], value), span=join.span)
            )
        case "mark":
            compared = [] if residual is None else [residual]
            if any(can_fail(expr) for pair in keys for expr in pair):
                compared += [key for key, _ in keys]
            read = columns_of_all(compared)
            return None if any(i < width and _is_map(left.schema[i]) for i in read) else _marked(left, right, keys, residual, join.span)
        case "inner":
            return _selected(Join(left, right, "inner", keys, residual, span=join.span), left.schema, join.right.schema, columns)
        case "left":
            if not all(isinstance(expr, Column) for expr in rows.columns):
                return None
            joined = Join(left, right, "left", keys, residual, span=join.span)
            own = [reference(joined.schema, expr.index) for expr in columns if isinstance(expr, Column)]
            return _selected(joined, left.schema, join.right.schema, own)


def _selected(joined: Plan, left: Schema, right: Schema, columns: Sequence[Expr]) -> Plan:
    """The left columns, and `columns` under the names of the right ones."""
    own = named_columns(joined.schema, range(len(left)))
    return Project(joined, (*own, *zip(right.names, columns, strict=True)))


def _marked(left: Plan, right: Plan, keys: Sequence[tuple[Expr, Expr]], residual: Expr | None, span: Span | None) -> Plan:
    """Each left row, and whether it has a match: an outer join with the distinct keys that there are.

    Keys that can fail are compared in a semi-join of the distinct values that they read, which evaluates them on pairs.
    """
    if residual is None and not any(can_fail(expr) for pair in keys for expr in pair):
        matches = Distinct(Project(right, tuple((f"k{i}", key) for i, (_, key) in enumerate(keys))))
        return _flagged(left, matches, tuple((key, reference(matches.schema, i)) for i, (key, _) in enumerate(keys)))
    width = len(left.schema)
    compared = [key for key, _ in keys] + ([] if residual is None else [residual])
    read = sorted(i for i in columns_of_all(compared) if i < width)
    span_of_test = residual.span if residual is not None else span
    for i in read:
        check_ordered("a subquery that reads it", left.schema[i].type, span_of_test)
    values = distinct_values(left, named_columns(left.schema, read))
    places = {old: new for new, old in enumerate(read)}
    both = Schema(values.schema.fields + right.schema.fields)
    moved = places | {width + i: len(read) + i for i in range(len(right.schema))}
    own_keys = tuple((remap(key, places, values.schema), other) for key, other in keys)
    pairs = Join(values, right, "semi", own_keys, None if residual is None else remap(residual, moved, both), span=span)
    outer = [reference(left.schema, i) for i in read]
    return _flagged(left, pairs, null_safe(outer, [reference(pairs.schema, i) for i in range(len(read))]))


def _flagged(left: Plan, matches: Plan, keys: tuple[tuple[Expr, Expr], ...]) -> Plan:
    """The left rows, and whether there is one of `matches`, at most one of which has its keys."""
    named = named_columns(matches.schema)
    joined = Join(left, Project(matches, (*named, ("mark", TRUE))), "left", keys)
    own = named_columns(joined.schema, range(len(left.schema)))
    mark = is_not_null(reference(joined.schema, len(joined.schema) - 1))
    return Project(joined, (*own, ("mark", mark)))


def _of_one_row(join: DependentJoin, rows: _Rows, total: Aggregate, outer: _Outer) -> Plan:
    """The join with an aggregate without GROUP BY, of which there is one row for each left row: an outer join with its groups.

    What is computed of the aggregates, and the conditions on them, are evaluated on the left rows, as in the definition, except for
    tests of them alone that cannot fail (`_with_tests`).
    """
    domain = _domain(join, outer, total)
    below = pushed(total.input, domain)
    width, count = len(join.left.schema), len(outer.values)
    start, schema = len(total.input.schema), below.plan.schema
    keys = tuple(domain.columns(schema, start))
    calls = tuple((name, _in_place(call, domain, schema, start)) for name, call in total.aggregates)
    groups: Plan = Aggregate(below.plan, keys, calls)
    values = [outer.values[number] for number in domain.numbers]
    named = [expr for _, expr in domain.columns(groups.schema, 0)]
    rows, tests = _with_tests(rows, total)
    groups = _tested_groups(groups, count, [test for test, _ in tests])
    joined = Join(join.left, groups, "left", _by_values(values, named, below.nullable))
    columns = [reference(joined.schema, width + count + i) for i in range(len(calls) + len(tests))]
    own = [reference(joined.schema, i) for i in range(width)]
    tested = [resolve("coalesce", [column, default]) for column, (_, default) in zip(columns[len(calls) :], tests, strict=True)]
    return _tested(join, joined, rows, [*own, *over_nothing(total, columns[: len(calls)]), *tested], outer)


def _with_tests(rows: _Rows, total: Aggregate) -> tuple[_Rows, list[tuple[Expr, Expr]]]:
    """The rows with a column for each test of the aggregates alone that is one of their columns: (the test, its value without rows).

    Tests are columns of the groups, which change more rarely than what they test, such as a count.
    """
    tests: list[tuple[Expr, Expr]] = []
    columns: list[Expr] = []
    for expr in rows.columns:
        if expr.type != BOOLEAN or expr.nullable or isinstance(expr, Column) or can_fail(expr) or calls_python(expr) or outer_columns(expr):
            columns.append(expr)
            continue
        nothing = [Literal(aggregate_value(call, ()), call.type) for _, call in total.aggregates]
        columns.append(Column(len(nothing) + len(tests), BOOLEAN, False, "", expr.span))
        tests.append((expr, Literal(evaluate(substitute(expr, nothing), ()), BOOLEAN)))
    return replace(rows, columns=tuple(columns)), tests


def _tested_groups(groups: Plan, keys: int, tests: Sequence[Expr]) -> Plan:
    """The groups with the tests of their aggregates, which follow that number of keys."""
    if not tests:
        return groups
    own = [(field.name, reference(groups.schema, i)) for i, field in enumerate(groups.schema)]
    return Project(groups, (*own, *((f"test{i}", shift(test, keys)) for i, test in enumerate(tests))))


def _in_place(call: AggregateCall, domain: Domain, schema: Schema, start: int) -> AggregateCall:
    arguments = tuple(domain.in_place(argument, schema, start) for argument in call.arguments)
    return replace(call, arguments=arguments, filter=None if call.filter is None else domain.in_place(call.filter, schema, start))


def _tested(join: DependentJoin, joined: Plan, rows: _Rows, values: Sequence[Expr], outer: _Outer) -> Plan:
    """The result of the join. values: over `joined`, the columns of each left row, and those of the only row of `rows.plan` beside it."""
    parts, columns = ([substitute(expr, values) for expr in exprs] for exprs in _condition(join, rows, outer))
    left, width = join.left.schema, len(join.left.schema)
    own = named_columns(joined.schema, range(len(left)))
    holds = resolve("is_true", [conjunction(parts)]) if parts else TRUE
    match join.kind:
        case "mark":
            return Project(joined, (*own, ("mark", holds)))
        case "semi":
            return Project(Filter(joined, holds), own)
        case "anti":
            return Project(Filter(joined, resolve("not", [holds])), own)
        case "inner":
            return _selected(Filter(joined, holds) if parts else joined, left, join.right.schema, columns)
        case "left":
            kept = [case([(holds, expr)], None) for expr in columns] if parts else columns
            return _selected(joined, left, join.right.schema, kept)
        case "not_in":
            assert join.value is not None
            pair = [substitute(join.value[0], values[:width]), substitute(join.value[1], columns)]
            other = resolve("not", [resolve("=", pair)])
            return Project(Filter(joined, resolve("is_true", [resolve("or", [resolve("not", [holds]), other])])), own)


def _domain(join: DependentJoin, outer: _Outer, plan: Plan) -> Domain:
    """The distinct values of the left side that the plan reads. Raises TypeMismatch if they cannot be compared."""
    numbers = tuple(outer.values)
    places = {one.number: one for one in outer_of(join.right)}
    for number in numbers:
        one = places[number]
        check_ordered(f"a subquery that reads {one.name}", one.type, one.span)
    values = distinct_values(join.left, [(places[number].name or f"outer{i}", outer.values[number]) for i, number in enumerate(numbers)])
    return Domain(values, numbers, not surely_evaluates(plan, numbers), next((one.span for one in places.values()), None), join.span)


def distinct_values(plan: Plan, columns: Sequence[tuple[str, Expr]]) -> Distinct:
    """The distinct values of the columns. Outer joins that they do not read, of subqueries before this one, are left out."""
    names, exprs = [name for name, _ in columns], [expr for _, expr in columns]
    while True:
        match plan:
            case Project():
                exprs = [substitute(expr, [each for _, each in plan.columns]) for expr in exprs]
                plan = plan.input
            case Join(kind="left") if all(i < len(plan.left.schema) for expr in exprs for i in columns_of(expr)):
                plan = plan.left
            case _:
                return Distinct(Project(plan, tuple(zip(names, exprs, strict=True))))


def _by_values(values: Sequence[Expr], columns: Sequence[Expr], nullable: Sequence[bool]) -> tuple[tuple[Expr, Expr], ...]:
    """Keys of a join of the left side with a plan that has the columns of the domain; nullable: which of these can be NULL."""
    pairs = list(zip(values, columns, strict=True))
    plain = [pair for pair, may_be_null in zip(pairs, nullable, strict=True) if not may_be_null]
    others = [pair for pair, may_be_null in zip(pairs, nullable, strict=True) if may_be_null]
    return (*plain, *null_safe([a for a, _ in others], [b for _, b in others]))


def _by_domain(join: DependentJoin, outer: _Outer) -> Plan:
    """The join of the left side with the right side for all values of the domain, by these values."""
    domain = _domain(join, outer, join.right)
    below = pushed(join.right, domain)
    left, right, width = join.left, below.plan, len(join.left.schema)
    start = len(join.right.schema)
    named = [expr for _, expr in domain.columns(right.schema, start)]
    keys = _by_values([outer.values[number] for number in domain.numbers], named, below.nullable)
    if join.kind == "mark":
        return _marked(left, right, keys, None, join.span)
    more, residual = ((), None) if join.condition is None else split(_remapped(join.condition, left, right), width)
    value = None
    if join.value is not None:
        value = (join.value[0], remap(join.value[1], {i: i for i in range(start)}, right.schema))
    joined = Join(left, right, join.kind, (*keys, *more), residual, value)
    if join.kind in _TESTS:
        return joined
    return _selected(joined, left.schema, join.right.schema, [reference(joined.schema, width + i) for i in range(start)])


def _remapped(condition: Expr, left: Plan, right: Plan) -> Expr:
    both = Schema(left.schema.fields + right.schema.fields)
    return remap(condition, {i: i for i in range(len(both))}, both)
