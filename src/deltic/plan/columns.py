"""Columns of expressions: shifting, remapping and substituting their positions, and splitting and forming conjunctions.

Invariant: a Column has the type and nullability of the field that it reads (`agrees` checks a plan). So a column that moves to another
input takes that input's nullability. The nodes above keep theirs, which may then be wider than needed, never narrower.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from deltic.errors import Span
from deltic.expr.failing import can_fail
from deltic.expr.functions.signature import flattened
from deltic.expr.nodes import (
    TRUE,
    Call,
    Case,
    Cast,
    Column,
    Constants,
    Expr,
    Lambda,
    LambdaVariable,
    Literal,
    OuterColumn,
    PythonFunction,
    calls_python,
    children,
    columns_of,
    distinct_parts,
    size_of,
)
from deltic.plan.nodes import Filter, Join, MultiwayJoin, Plan, Project, inputs
from deltic.plan.walk import expressions, nodes
from deltic.schema import BOOLEAN, Schema

_FEW: Final = 500
"""Nodes that expressions may have as trees, however much of them is shared."""


def map_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with `change` applied to each of its direct parts; the same object if nothing changes."""
    old = children(expr)
    new = tuple([change(part) for part in old])
    if all(map(operator.is_, old, new)):
        return expr
    match expr:
        case Column() | OuterColumn() | Literal() | Constants() | LambdaVariable():
            return expr
        case Lambda():
            return replace(expr, body=new[0])
        case Call() | PythonFunction():
            return replace(expr, arguments=new)
        case Cast():
            return replace(expr, argument=new[0])
        case Case():
            return replace(expr, branches=tuple(zip(new[:-1:2], new[1::2], strict=True)), otherwise=new[-1])


def extended(plan: Plan, computed: Iterable[tuple[str, Expr]]) -> Project:
    """The rows with more columns after their own."""
    return Project(plan, (*named_columns(plan.schema), *computed))


def is_mostly_shared(exprs: Sequence[Expr]) -> bool:
    """Whether the expressions are much larger as trees than as a graph, and large."""
    size = sum(map(size_of, exprs))
    return size > _FEW and size > 4 * sum(1 for _ in distinct_parts(exprs))


def map_columns(expr: Expr, change: Callable[[Column], Expr]) -> Expr:
    """The expression with every Column replaced by the result of `change`; a shared part stays shared."""
    done: dict[int, Expr] = {}

    def mapped(part: Expr) -> Expr:
        if isinstance(part, Column):
            return change(part)
        if (after := done.get(id(part))) is None:
            after = done[id(part)] = map_children(part, mapped)
        return after

    return mapped(expr)


def shift(expr: Expr, by: int) -> Expr:
    """Every position moved by `by`."""
    return map_columns(expr, lambda column: replace(column, index=column.index + by))


def remap(expr: Expr, positions: Mapping[int, int], schema: Schema) -> Expr:
    """Every position i becomes positions[i], a column of `schema`, and takes that column's nullability."""

    def move(column: Column) -> Column:
        position = positions[column.index]
        nullable = schema[position].nullable
        if position == column.index and nullable == column.nullable:
            return column
        return replace(column, index=position, nullable=nullable)

    return map_columns(expr, move)


def substitute(expr: Expr, by: Sequence[Expr]) -> Expr:
    """Every Column i becomes by[i], with the column's place in the text if it has none."""

    def put(column: Column) -> Expr:
        target = by[column.index]
        return replace(target, span=column.span) if target.span is None and column.span is not None else target

    return map_columns(expr, put)


def below_projection(plan: Filter, project: Project) -> Project:
    """The filter of a projection as a projection of the filter's own input: its errors stay, those of other columns on other rows go."""
    exprs = [expr for _, expr in project.columns]
    return replace(project, input=Filter(project.input, substitute(plan.predicate, exprs)))


def formed_below(plan: Filter, project: Project, form: Callable[[Plan], Plan]) -> Plan:
    """What `form` makes of the filter below its projection, which then follows; the filter if that is nothing, or if it calls Python."""
    if calls_python(plan.predicate):
        return plan
    below = below_projection(plan, project)
    formed = form(below.input)
    return plan if formed is below.input else replace(below, input=formed)


def reference(schema: Schema, index: int, span: Span | None = None) -> Column:
    """The column at `index` of an input with `schema`. span: of what reads it, for the errors of what is made of it."""
    field = schema[index]
    return Column(index, field.type, field.nullable, field.name, span)


def all_columns(schema: Schema) -> tuple[Column, ...]:
    """The columns of an input with `schema`."""
    return tuple(reference(schema, i) for i in range(len(schema)))


def named_columns(schema: Schema, positions: Iterable[int] | None = None) -> tuple[tuple[str, Column], ...]:
    """The columns of an input with `schema`, or those at `positions`, with their names: as a Project has them."""
    return tuple((schema[i].name, reference(schema, i)) for i in (range(len(schema)) if positions is None else positions))


def choose_columns(plan: Plan, positions: Iterable[int]) -> Project:
    """The columns at `positions`, in this order."""
    return Project(plan, named_columns(plan.schema, positions))


def compared(function: str, left: Expr, right: Expr) -> Call:
    """The comparison `function` of both, NULL where one is."""
    return Call(function, (left, right), BOOLEAN, left.nullable or right.nullable)


def is_equality(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function == "equal"


def is_null(expr: Expr) -> Call:
    return Call("is_null", (expr,), BOOLEAN, False)


def is_not_null(expr: Expr) -> Call:
    return Call("is_not_null", (expr,), BOOLEAN, False)


def not_null(exprs: Iterable[Expr]) -> list[Expr]:
    """IS NOT NULL of each of the expressions that can be NULL."""
    return [is_not_null(expr) for expr in exprs if expr.nullable]


def normalized(expr: Expr) -> Expr:
    """The expression as a key: 0.0 for -0.0, and one NaN."""
    return Call("normalize", (expr,), expr.type, expr.nullable) if expr.type.has_zeros else expr


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The parts of nested ANDs, in order of evaluation.

    >>> conjuncts(TRUE)
    (Literal(value=True, type=Type(name='BOOLEAN', precision=0, scale=0, parts=(), collation='')),)
    """
    if isinstance(expr, Call) and expr.function == "and":
        return tuple(part for argument in expr.arguments for part in conjuncts(argument))
    return (expr,)


def conjunction(parts: Iterable[Expr]) -> Expr:
    """AND over the parts; TRUE over none."""
    flat = tuple(each for part in parts for each in conjuncts(part))
    return Call("and", flat, BOOLEAN, any(part.nullable for part in flat)) if len(flat) > 1 else flat[0] if flat else TRUE


def disjunction(parts: Sequence[Expr], span: Span | None = None) -> Expr:
    """OR over the parts, of which there are several."""
    flat = flattened("or", parts)
    return Call("or", flat, BOOLEAN, any(part.nullable for part in flat), span)


def narrowed(condition: Expr | None, then: Expr | None) -> Expr | None:
    """TRUE where both are; None is TRUE. `then` is evaluated only where the condition is TRUE, unlike in an AND, if that is NULL."""
    if condition is None or then is None:
        return then if condition is None else condition
    if condition.nullable and can_fail(then):
        return Case(((condition, then),), Literal(False, BOOLEAN), BOOLEAN, then.nullable)
    return conjunction([condition, then])


def agrees(plan: Plan) -> bool:
    """Whether every Column of the plan exists and agrees with the field that it reads."""
    return all(_node_agrees(node) for node in nodes(plan))


def _node_agrees(node: Plan) -> bool:
    if isinstance(node, Join):
        sides = [(left, node.left.schema) for left, _ in node.keys] + [(right, node.right.schema) for _, right in node.keys]
        if node.value is not None:
            sides += [(node.value[0], node.left.schema), (node.value[1], node.right.schema)]
        if node.residual is not None:
            sides.append((node.residual, Schema(node.left.schema.fields + node.right.schema.fields)))
    elif isinstance(node, MultiwayJoin):
        sides = [(expr, node.columns) for expr in expressions(node)]
    else:
        sides = [(expr, inputs(node)[0].schema) for expr in expressions(node)]
    return all(_reads(expr, schema) for expr, schema in sides)


def _reads(expr: Expr, schema: Schema) -> bool:
    if not isinstance(expr, Column):
        return all(_reads(part, schema) for part in children(expr))
    return expr.index < len(schema) and (expr.type, expr.nullable) == (schema[expr.index].type, schema[expr.index].nullable)


def columns_of_all(exprs: Iterable[Expr]) -> frozenset[int]:
    """The positions that any of the expressions reads."""
    return frozenset().union(*(columns_of(expr) for expr in exprs))
