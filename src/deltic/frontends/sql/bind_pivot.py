"""Binds PIVOT as one Aggregate with a FILTER for each value, and UNPIVOT as a row for each number of a list of columns.

Both read their relation once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from deltic.errors import AmbiguousName, Span, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr import Expr, Literal, case, cast, columns_of, common_type, resolve
from deltic.expr.functions.comparison import check_ordered
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import user_functions
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_aggregate import Collector, onto
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_function import fitted
from deltic.frontends.sql.bind_grouping import SET_NUMBER, GroupingSets
from deltic.frontends.sql.naming import expression_name
from deltic.frontends.sql.scope import AGGREGATED, Scope, ScopeColumn, ScopedRelation
from deltic.plan.columns import conjunction, reference
from deltic.plan.nodes import Aggregate, AggregateCall, Filter, FlatMap, Plan, Project
from deltic.schema import BIGINT, BOOLEAN, INT, STRING, Schema, Type

_NO_COLUMNS: Final = Schema(())
_NUMBER: Final = "number"
_PRESENT: Final = AggregateCall("count", (), BIGINT, False)
"""The number of rows of a group that have a value."""


def bind_pivot(node: tree.PivotedTable, below: ScopedRelation) -> ScopedRelation:
    """A row for each group of the columns that are neither pivoted nor aggregated, with columns for each value."""
    binder = ExpressionBinder(below.scope, "PIVOT", collector=Collector())
    pivoted = _row([replace(binder, collector=None).bind(column) for column in node.columns], node.columns)
    check_ordered("PIVOT", pivoted.type, node.columns[0].span)
    values = [_value(value, pivoted, len(node.columns)) for value in node.values]
    _check_different(values, node)
    bound = [_aggregate(item, binder) for item in node.aggregates]
    assert binder.collector is not None
    calls = [GroupingSets().call(call, below.plan) for call in binder.collector.calls]
    read = {i for call in calls for expr in (*call.arguments, *_filter_of(call)) for i in columns_of(expr)} | columns_of(pivoted)
    groups = [column for column in below.scope.star(None) if column.index not in read]
    keys = [below.scope.column(column) for column in groups]
    for key, column in zip(keys, groups, strict=True):
        check_ordered(f"PIVOT, which groups by {column.name},", key.type, node.span)
    filtered: list[AggregateCall] = []
    for value in values:
        is_value = resolve("<=>", [pivoted, value])
        filtered += [replace(call, filter=conjunction([*_filter_of(call), is_value])) for call in (*calls, _PRESENT)]
    named = tuple((f"{call.function}{i}", call) for i, call in enumerate(filtered, 1))
    plan = Aggregate(below.plan, tuple((column.name, key) for column, key in zip(groups, keys, strict=True)), named)
    columns: list[tuple[str, Expr]] = [(column.name, reference(plan.schema, i)) for i, column in enumerate(groups)]
    guarded = all(_is_guarded(expr.type) for expr in bound)
    for i, written in enumerate(node.values):
        first = len(keys) + i * (len(calls) + 1)
        outputs = [reference(plan.schema, first + j) for j in range(len(calls) + 1)]
        is_present = resolve(">", [outputs[-1], Literal(0, BIGINT)])
        for item, expr in zip(node.aggregates, bound, strict=True):
            result = onto(expr, (), outputs, "PIVOT")
            columns.append((_name(written, item, node), case([(is_present, result)], None) if guarded else result))
    return _named(Project(plan, tuple(columns)), groups, node.alias, below.scope)


def _filter_of(call: AggregateCall) -> list[Expr]:
    return [] if call.filter is None else [call.filter]


def _row(values: Sequence[Expr], columns: Sequence[tree.ColumnName]) -> Expr:
    """The value, or a STRUCT of several."""
    if len(values) == 1:
        return values[0]
    names = [Literal(column.parts[-1].text, STRING) for column in columns]
    return resolve("named_struct", [part for pair in zip(names, values, strict=True) for part in pair])


def _value(node: tree.PivotValue, pivoted: Expr, count: int) -> Expr:
    """The constant, of the type of the pivoted column."""
    binder = ExpressionBinder(Scope((), _NO_COLUMNS), "a value of PIVOT")
    inner = tree.unnest(node.value)
    parts = inner.items if isinstance(inner, tree.RowValue) else (node.value,)
    if len(parts) != count:
        raise TypeMismatch("a value of PIVOT does not fit its columns", span=node.span, expected=f"{count} values, found {len(parts)}")
    bound = [binder.bind(part) for part in parts]
    for part in bound:
        if columns_of(part) or any(user_functions(part)):
            raise TypeMismatch("a value of PIVOT is not constant", span=part.span, expected="a literal")
    if count > 1:
        names = [Literal(part.name, STRING) for part in pivoted.type.parts]
        bound = [resolve("named_struct", [each for pair in zip(names, bound, strict=True) for each in pair])]
    value = evaluate(fitted(bound[0], pivoted.type), ())
    if isinstance(value, float) and math.isnan(value):
        raise Unsupported("NaN is not supported as a value of PIVOT", span=node.span, remedy="pivot by isnan(x), in a subquery of FROM")
    return Literal(value, pivoted.type, node.span)


def _check_different(values: Sequence[Expr], node: tree.PivotedTable) -> None:
    for i, value in enumerate(values):
        if value in values[:i]:
            raise TypeMismatch("a value of PIVOT is listed twice", span=node.values[i].span, expected="different values")


def _aggregate(item: tree.SelectItem, binder: ExpressionBinder) -> Expr:
    """The expression over aggregates. Raises TypeMismatch if it reads a column outside of them."""
    bound = GroupingSets().resolved(binder.bind(item.expression), SET_NUMBER)
    if not columns_of(bound) or any(i < AGGREGATED for i in columns_of(bound)):
        message = "PIVOT reads a column outside of aggregates" if columns_of(bound) else "PIVOT without an aggregate"
        raise TypeMismatch(message, span=item.span, expected="aggregates, such as SUM(x)")
    return bound


def _is_guarded(type: Type) -> bool:
    """Whether Spark computes a value of this type only where a group has rows with the pivoted value; else COUNT is 0 there."""
    return type.is_numeric or type == BOOLEAN


def _name(value: tree.PivotValue, item: tree.SelectItem, node: tree.PivotedTable) -> str:
    """That of the value, and with several aggregates that of the aggregate after it."""
    name = value.name.text if value.name is not None else _text(value)
    if len(node.aggregates) == 1:
        return name
    return f"{name}_{item.names[0].text if item.names else expression_name(item.expression)}"


def _text(value: tree.PivotValue) -> str:
    """The value as a cast to STRING gives it, before its cast to the type of the column."""
    binder = ExpressionBinder(Scope((), _NO_COLUMNS), "a value of PIVOT")
    inner = tree.unnest(value.value)
    if isinstance(inner, tree.RowValue):
        parts = [binder.bind(part) for part in inner.items]
        bound = resolve("struct", parts)
    else:
        bound = binder.bind(value.value)
    text = evaluate(cast(bound, STRING, value.span), ())
    assert text is None or isinstance(text, str)
    return "null" if text is None else text


def bind_unpivot(node: tree.UnpivotedTable, below: ScopedRelation) -> ScopedRelation:
    """Each row once for each element of IN: the other columns, the element's name, and the values of its columns."""
    listed = [[_column(column, below.scope) for column in element.columns] for element in node.columns]
    used = {column.index for element in listed for column in element}
    kept = [column for column in below.scope.star(None) if column.index not in used]
    types = [common_value_type([below.scope.column(element[i]).type for element in listed], node.span) for i in range(len(node.values))]
    numbers = tuple(Literal(i, INT) for i in range(len(listed)))
    plan: Plan = FlatMap(below.plan, "array", numbers, (_NUMBER,), span=node.span)
    number = reference(plan.schema, len(plan.schema) - 1)

    def chosen(values: Sequence[Expr]) -> Expr:
        *others, last = values
        return case([(resolve("=", [number, numbers[i]]), value) for i, value in enumerate(others)], last) if others else last

    names = [Literal(_element_name(element), STRING) for element in node.columns]
    columns: list[tuple[str, Expr]] = [(column.name, below.scope.column(column)) for column in kept]
    columns.append((node.name.text, chosen(names)))
    for i, value in enumerate(node.values):
        columns.append((value.text, chosen([cast(below.scope.column(element[i]), types[i], node.span) for element in listed])))
    plan = Project(plan, tuple(columns))
    if not node.include_nulls:
        tests = [resolve("is_not_null", [reference(plan.schema, len(kept) + 1 + i)]) for i in range(len(node.values))]
        plan = Filter(plan, tests[0] if len(tests) == 1 else resolve("or", tests))
    return _named(plan, kept, node.alias, below.scope)


def _element_name(element: tree.UnpivotedColumns) -> str:
    return element.name.text if element.name is not None else "_".join(column.parts[-1].text for column in element.columns)


def _column(node: tree.ColumnName, scope: Scope) -> ScopeColumn:
    *qualifier, name = (part.text for part in node.parts)
    matches = scope.find(name, qualifier[0] if qualifier else None) if len(qualifier) < 2 else ()
    if not matches:
        remedy = did_you_mean(name, [column.name for column in scope.columns])
        raise UnknownName(f"there is no column {'.'.join((*qualifier, name))!r} to unpivot", span=node.span, remedy=remedy)
    if len(matches) > 1:
        raise AmbiguousName(f"the name {name!r} is ambiguous", span=node.span, remedy="write table.column")
    return matches[0]


def common_value_type(types: Sequence[Type], span: Span) -> Type:
    """The type of a column of unpivoted values. As in Spark, a STRING has one with STRINGs alone."""
    common = common_type(types)
    if common is None or len({type == STRING or type.is_collated for type in types if type.name != "VOID"}) > 1:
        names = ", ".join(dict.fromkeys(type.sql for type in types))
        raise TypeMismatch("the columns to unpivot have no common type", span=span, expected=f"one type, found {names}", remedy="cast them")
    return common


def _named(plan: Plan, kept: Sequence[ScopeColumn], alias: tree.TableAlias | None, scope: Scope) -> ScopedRelation:
    """The relation under its alias; without one, columns that stay keep their qualifiers."""
    qualifier = None if alias is None else alias.name.text
    qualifiers = [qualifier if alias is not None else column.qualifier for column in kept]
    qualifiers += [qualifier] * (len(plan.schema) - len(kept))
    columns = tuple(ScopeColumn(field.name, of, i) for i, (field, of) in enumerate(zip(plan.schema, qualifiers, strict=True)))
    return ScopedRelation(plan, Scope(columns, plan.schema, scope.outer))
