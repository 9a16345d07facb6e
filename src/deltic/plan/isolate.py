"""Errors as data: a view in two plans, its content without the rows that fail, and a collection of the errors.

A node is evaluated on those rows of its input on which none of its expressions fails; the others are errors, with the weights of the rows.
So errors are linear in the rows, pass through every node above unchanged, and vanish with the rows that cause them. While there are none,
the content is the view's; while there are some, it has no meaning of its own, and is kept only so that it is exact again without them.

Failures of SUM and AVG are those of their groups. What fails in other ways (other aggregates, a negative weight, a recursion that does not
converge, a user's table function) raises, as without isolation. Of a window function every row's arguments are evaluated, also those of
rows that no frame has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Final

from deltic.errors import Span
from deltic.expr import resolve
from deltic.expr.failing import can_fail
from deltic.expr.functions.element_counts import COUNTED, count_name
from deltic.expr.functions.failures import FAILURE, ROW_TEXT
from deltic.expr.nodes import Call, Case, Column, Expr, Literal, columns_of
from deltic.plan.columns import conjunction
from deltic.plan.guarded_arguments import guarded_arguments, with_guarded_arguments
from deltic.plan.join_nodes import TESTS
from deltic.plan.node import once_per_node
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    Expand,
    Filter,
    FlatMap,
    Join,
    Plan,
    Project,
    Recursion,
    Reduce,
    Table,
    TemporalFilter,
    TopK,
    Union,
    Window,
    inputs,
)
from deltic.plan.recursion import bound_to
from deltic.plan.show import show_expr
from deltic.plan.streams import keeps_ticks
from deltic.plan.tried_keys import tried_keys
from deltic.plan.walk import expressions, map_inputs, nodes
from deltic.schema import BIGINT, BOOLEAN, STRING, StreamSchema
from deltic.stacks import unbounded

_ROWS: Final = (Filter, Project, Expand, FlatMap, TopK, TemporalFilter, Reduce, Window)
"""Nodes whose expressions are evaluated on every row of their input."""
_TRIED: Final = {"sum": "try_sum", "avg": "try_avg"}
_FALSE: Final = Literal(False, BOOLEAN)


@dataclass(frozen=True, slots=True)
class Isolated:
    """A view in two plans. errors: None if no expression can fail. places: of expressions in the errors, by their text."""

    content: Plan
    errors: Plan | None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False)


def isolated(plan: Plan) -> Isolated:
    """The view's content and errors. A view over streams, or that keeps earlier ticks, is left as it is."""
    if keeps_ticks(plan) or any(isinstance(node, Table) and isinstance(node.table, StreamSchema) for node in nodes(plan)):
        return Isolated(plan, None)
    content, errors = _isolated(plan)
    if not errors:
        return Isolated(content, None)
    return Isolated(content, errors[0] if len(errors) == 1 else Union(errors), _places(errors))


Parts = tuple[Plan, tuple[Plan, ...]]
"""The content, and the collections of errors."""


@once_per_node
@unbounded
def _isolated(plan: Plan) -> Parts:
    if isinstance(plan, Recursion):
        return _of_recursion(plan)
    below = [_isolated(part) for part in inputs(plan)]
    contents = iter([content for content, _ in below])
    node = map_inputs(plan, lambda _: next(contents))
    content, errors = _node(node)
    return content, tuple(dict.fromkeys([*(error for _, part in below for error in part), *errors]))


def _node(node: Plan) -> Parts:
    """A node over contents, and its own errors."""
    match node:
        case Aggregate():
            return _of_aggregate(node)
        case Join():
            return _of_join(node)
        case FlatMap() if node.function in COUNTED:
            count = resolve(count_name(node.function), node.arguments, node.span)
            content, errors = _without_failures(node.input, (count,), node.arguments, (*node.arguments, count))
            return (replace(node, input=content) if errors else node), errors
        case _ if isinstance(node, _ROWS):
            exprs = expressions(with_guarded_arguments(node) if isinstance(node, Window) else node)
            content, errors = _without_failures(node.input, exprs, exprs)
            return (replace(node, input=content) if errors else node), errors
    return node, ()


def _without_failures(input: Plan, exprs: Sequence[Expr], shown: Sequence[Expr], causes: Sequence[Expr] = ()) -> Parts:
    """The rows of `input` on which no expression fails, and the errors of the others. shown: expressions whose columns an error shows.

    causes: if not the expressions themselves, those of which the first that fails is the one that an error is of.
    """
    failing = _failing(exprs)
    if not failing:
        return input, ()
    fails = resolve("fails", failing)
    return Filter(input, resolve("not", (fails,))), (_errors(input, fails, _failing(causes or exprs), shown),)


def _failing(exprs: Sequence[Expr]) -> tuple[Expr, ...]:
    """Those that can fail."""
    return tuple(dict.fromkeys(expr for expr in exprs if can_fail(expr)))


def _errors(input: Plan, fails: Expr, failing: Sequence[Expr], shown: Sequence[Expr]) -> Plan:
    described = [part for expr in failing for part in (expr, Literal(_source(expr), STRING, _span(expr)))]
    read = sorted(frozenset().union(_identity(input), *map(columns_of, shown)))
    fields = [input.schema[i] for i in read]
    row = _row((field.name, Column(i, field.type, field.nullable, field.name)) for i, field in zip(read, fields, strict=True))
    failed = Project(
        Filter(input, fails),
        (("failure", resolve(FAILURE, described)), ("row", row)),
    )
    failure = Column(0, failed.schema[0].type, True, "failure")
    parts = (
        resolve("coalesce", (resolve("field", (failure, Literal(name, STRING))), Literal("", STRING))) for name in ("error", "expression")
    )
    error, expression = parts
    return Project(failed, (("error", error), ("expression", expression), ("row", Column(1, STRING, False, "row"))))


def _row(columns: Iterable[tuple[str, Expr]]) -> Expr:
    """The text of a row."""
    parts = [part for name, column in columns for part in (Literal(name, STRING), column)]
    return resolve(ROW_TEXT, parts)


def _identity(input: Plan) -> frozenset[int]:
    """The key of the table that has the rows."""
    while isinstance(input, Filter | Join):
        if isinstance(input, Join) and input.kind not in TESTS:
            break
        input = input.left if isinstance(input, Join) else input.input
    return frozenset(input.table.key) if isinstance(input, Table) else frozenset()


def _span(expr: Expr) -> Span | None:
    return getattr(expr, "span", None)


def _source(expr: Expr) -> str:
    """The expression as it is written, or else as a plan shows it."""
    span = _span(expr)
    return show_expr(expr) if span is None else span.written


def _places(errors: Sequence[Plan]) -> dict[str, Span]:
    literals = (part for error in errors for node in nodes(error) for expr in expressions(node) for part in _literals(expr))
    return {str(literal.value): literal.span for literal in literals if literal.span is not None}


def _literals(expr: Expr) -> Iterator[Literal]:
    """The texts of a call of `failure`."""
    if isinstance(expr, Call) and expr.function == FAILURE:
        yield from (part for part in expr.arguments[1::2] if isinstance(part, Literal))


def _of_aggregate(node: Aggregate) -> Parts:
    exprs = [expr for _, expr in node.keys]
    for _, call in node.aggregates:
        exprs += _evaluated(call)
    input, errors = _without_failures(node.input, exprs, exprs)
    node = replace(node, input=input) if errors else node
    content, failed = _without_overflows(node)
    return content, (*errors, *failed)


def _evaluated(call: AggregateCall) -> tuple[Expr, ...]:
    """The expressions of a call, each NULL on the rows on which it is not evaluated."""
    return (*(() if call.filter is None else (call.filter,)), *guarded_arguments(call))


def _without_overflows(node: Aggregate) -> Parts:
    """The groups of which every SUM and AVG fits its type, and the errors of the others."""
    tried = [i for i, (_, call) in enumerate(node.aggregates) if call.function in _TRIED and not call.type.is_float]
    if not tried:
        return node, ()
    calls, keys = list(node.aggregates), len(node.keys)
    counts = {i: keys + len(calls) + k for k, i in enumerate(tried)}
    for i in tried:
        name, call = calls[i]
        calls[i] = (name, replace(call, function=_TRIED[call.function], nullable=True))
        calls.append((f"{name} rows", replace(call, function="count", type=BIGINT, nullable=False)))
    groups = replace(node, aggregates=tuple(calls))
    columns = [Column(i, field.type, field.nullable, field.name) for i, field in enumerate(groups.schema)]
    fails = {i: _overflows(columns[keys + i], columns[counts[i]]) for i in tried}
    whole: Plan = groups
    errors = []
    for i, condition in fails.items():
        errors.append(_overflow(groups, condition, node.aggregates[i][1]))
        whole = Filter(whole, resolve("not", (condition,)))
    fields = node.schema
    values = [
        (field.name, column if column.nullable == field.nullable else _not_null(column))
        for column, field in zip(columns, fields, strict=False)
    ]
    return Project(whole, tuple(values)), tuple(errors)


def _overflows(value: Column, count: Column) -> Expr:
    return resolve("and", (resolve("is_null", (value,)), resolve(">", (count, Literal(0, BIGINT)))))


def _not_null(column: Column) -> Expr:
    """The value; it is not NULL where the group has not failed."""
    zero = timedelta(0) if column.type.is_day_time else Decimal(0).scaleb(-column.type.scale) if column.type.is_decimal else 0
    return resolve("coalesce", (column, Literal(zero, column.type)))


def _overflow(groups: Aggregate, condition: Expr, call: AggregateCall) -> Plan:
    text = f"[DELTIC-3001] an aggregate is out of range for {call.type.sql}"
    row = _row((name, Column(i, expr.type, expr.nullable, name)) for i, (name, expr) in enumerate(groups.keys))
    span = call.span
    source = call.function if span is None else span.written
    return Project(
        Filter(groups, condition), (("error", Literal(text, STRING)), ("expression", Literal(source, STRING, span)), ("row", row))
    )


def _of_join(node: Join) -> Parts:
    if node.evaluates_pairs:
        guarded, failed = _of_residual(tried_keys(node).join)
        node, failing = tried_keys(replace(node, residual=guarded.residual))  # the value of NOT IN is evaluated after the residual
        return node, (*(_errors(one.rows, resolve("fails", (one.expr,)), (one.expr,), (one.expr,)) for one in failing), *failed)
    left_exprs, right_exprs = ([pair[i] for pair in node.compared] for i in (0, 1))
    left, errors = _without_failures(node.left, left_exprs, left_exprs)
    right, more = _without_failures(node.right, right_exprs, right_exprs)
    errors += more
    if errors:
        node = replace(node, left=left, right=right)
    if node.kind == "inner" and node.residual is not None and can_fail(node.residual):
        pairs, failed = _without_failures(replace(node, residual=None), (node.residual,), (node.residual,))
        return Filter(pairs, node.residual), (*errors, *failed)
    node, failed = _of_residual(node)
    return node, (*errors, *failed)


def _of_residual(node: Join) -> tuple[Join, tuple[Plan, ...]]:
    """A join that is not inner, and whose keys cannot fail, with a residual that is not TRUE where it fails; and the errors of that."""
    if node.residual is None or not can_fail(node.residual):
        return node, ()
    matched = Join(node.left, node.right, "inner", node.keys)
    _, failed = _without_failures(matched, (node.residual,), (node.residual,))
    passes = resolve("not", (resolve("fails", (node.residual,)),))
    if node.keys:
        residual: Expr = Case(((passes, node.residual),), _FALSE, BOOLEAN, node.residual.nullable)
    else:  # whose parts look rows up
        residual = conjunction((passes, node.residual))
    return replace(node, residual=residual), failed


def _of_recursion(node: Recursion) -> Parts:
    """The errors of the bodies at the fixed point."""
    bodies = {name: _isolated(body) for name, body in node.relations}
    relations = tuple((name, content) for name, (content, _) in bodies.items())
    if not any(errors for _, errors in bodies.values()):
        return node, ()
    whole = {name: replace(node, relations=relations, result=name) for name, _ in relations}
    return whole[node.result], tuple(bound_to(error, whole) for _, errors in bodies.values() for error in errors)
