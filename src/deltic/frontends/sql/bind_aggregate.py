"""Binds aggregates, and rewrites expressions over the columns of an Aggregate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deltic.aggregates import aggregate_function, is_aggregate
from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr import Call, Column, Expr, cast, children
from deltic.expr.functions.comparison import check_ordered
from deltic.expr.nodes import CHAINS, free_variables
from deltic.frontends.sql import tree
from deltic.frontends.sql.scope import AGGREGATED, OUTER
from deltic.plan.columns import map_children
from deltic.plan.nodes import AggregateCall

if TYPE_CHECKING:
    from deltic.frontends.sql.bind_expression import ExpressionBinder

_ORDERED: Final = "ORDER BY … LIMIT n keeps the first n rows; MIN and MAX have an order"
_LISTED: Final = "the rows themselves, or COUNT(DISTINCT x)"
UNSUPPORTED: Final = {
    **dict.fromkeys(("first", "first_value", "last", "last_value", "any_value", "nth_value", "mode"), _ORDERED),
    **dict.fromkeys(("collect_list", "collect_set", "array_agg", "listagg", "string_agg"), _LISTED),
    **dict.fromkeys(("row_number", "rank", "dense_rank", "ntile", "lag", "lead", "percent_rank", "cume_dist"), _ORDERED),
    **dict.fromkeys(("skewness", "kurtosis", "regr_slope", "regr_r2"), "sums of products"),
    **dict.fromkeys(("median", "percentile", "percentile_approx", "approx_percentile", "percentile_cont"), "MIN and MAX"),
    **dict.fromkeys(("approx_count_distinct", "count_min_sketch", "hll_sketch_agg"), "COUNT(DISTINCT x), which is exact"),
    **dict.fromkeys(("try_sum", "try_avg"), "SUM and AVG, whose overflow is an error"),
    **dict.fromkeys(("histogram_numeric", "grouping", "grouping_id", "product"), "COUNT, SUM, AVG, MIN and MAX"),
}


class Collector:
    """The distinct aggregates of one SELECT; a column with index AGGREGATED + i represents the i-th."""

    def __init__(self) -> None:
        self.calls: list[AggregateCall] = []

    def add(self, call: AggregateCall) -> Column:
        """The column that represents the aggregate."""
        if call not in self.calls:
            self.calls.append(call)
        position = self.calls.index(call)
        return Column(AGGREGATED + position, call.type, call.nullable, call.function, call.span)


def aggregate_of(node: object) -> str | None:
    """The aggregate's name if the node is a call of one."""
    if isinstance(node, tree.FunctionCall) and (is_aggregate(node.name) or node.name in UNSUPPORTED):
        return node.name
    return None


def has_aggregate(node: tree.Expression) -> bool:
    """Whether the node contains an aggregate outside subqueries."""
    return any(aggregate_of(part) for part in tree.walk(node, lambda part: not isinstance(part, tree.QUERIES)))


def bind_aggregate(binder: ExpressionBinder, node: tree.FunctionCall) -> Expr:
    """The column that represents an aggregate call, which is added to the binder's collector."""
    name, span = node.name, node.span
    if not is_aggregate(name):
        raise Unsupported(f"the aggregate {name.upper()} is not supported", span=span, remedy=UNSUPPORTED[name])
    if binder.collector is None:
        raise Unsupported(f"an aggregate is not allowed in {binder.clause}", span=span, remedy=_elsewhere(binder.clause))
    rows = replace(binder, clause=f"the argument of {name.upper()}", aliases={}, keys=None, collector=None)
    arguments = _arguments(rows, node)
    condition = None if node.condition is None else replace(rows, clause="FILTER").condition(node.condition)
    for argument in (*arguments, *(() if condition is None else (condition,))):
        if free_variables(argument):
            raise TypeMismatch("an aggregate cannot read a parameter of a lambda", span=argument.span, expected="columns")
    return binder.collector.add(_aggregate(name, arguments, node.distinct, condition, span))


def _elsewhere(clause: str) -> str:
    if clause == "WHERE":
        return "HAVING tests aggregates"
    return "aggregate in a subquery of FROM first"


def _arguments(binder: ExpressionBinder, call: tree.FunctionCall) -> tuple[Expr, ...]:
    """The bound arguments; () for COUNT(*)."""
    match call.arguments:
        case (tree.Star(qualifier=None, excluded=()),) if call.name == "count":
            return tuple(binder.scope.column(c) for c in binder.scope.star(None)) if call.distinct else ()
        case ():
            expected = "COUNT(*) or COUNT(x)"
            raise TypeMismatch(f"{call.name.upper()} requires an argument", span=call.span, expected=expected)
        case arguments:
            return tuple(binder.bind(part) for part in arguments)


def _aggregate(name: str, arguments: tuple[Expr, ...], distinct: bool, condition: Expr | None, span: Span) -> AggregateCall:
    function = aggregate_function(name)
    _check_count(name, len(arguments), *function.parameters, span)
    signature = function.rule(name, [argument.type for argument in arguments], span)
    cast_to = tuple(cast(argument, type, span) for argument, type in zip(arguments, signature.arguments, strict=True))
    if distinct:
        for argument in cast_to:
            check_ordered("DISTINCT", argument.type, argument.span or span)
    return AggregateCall(function.name, cast_to, signature.result, signature.nullable, distinct and function.copies, condition, span)


def _check_count(name: str, given: int, least: int, most: int | None, span: Span) -> None:
    if given < least or (most is not None and given > most):
        count = str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
        noun = "argument" if count == "1" else "arguments"
        raise TypeMismatch(f"{name.upper()} requires {count} {noun}", span=span, expected=f"{count}, found {given}")


def onto(expr: Expr, keys: Sequence[Expr], outputs: Sequence[Expr], clause: str) -> Expr:
    """`expr` rewritten over the rows of an Aggregate: keys[i] becomes outputs[i], the j-th aggregate outputs[len(keys) + j].

    Raises QueryError if another column remains. Columns of the enclosing query are unchanged.
    """
    if expr in keys:
        return replace(outputs[keys.index(expr)], span=expr.span)
    if isinstance(expr, Column) and expr.index < OUTER:
        if expr.index < AGGREGATED:
            raise TypeMismatch(
                f"the column {expr.name!r} of {clause} is neither aggregated nor in GROUP BY",
                span=expr.span,
                remedy=f"GROUP BY {expr.name}, or MIN({expr.name})",
            )
        return replace(outputs[len(keys) + expr.index - AGGREGATED], span=expr.span)
    if isinstance(expr, Call) and (shorter := [(part, i) for i, part in enumerate(keys) if _is_shorter(part, expr)]):
        return _chain_onto(expr, shorter, keys, outputs, clause)
    return map_children(expr, lambda part: onto(part, keys, outputs, clause))


def _is_shorter(part: Expr, chain: Call) -> bool:
    same = isinstance(part, Call) and part.function == chain.function and chain.function in CHAINS
    return same and len(children(part)) < len(chain.arguments)


def _chain_onto(expr: Call, shorter: Sequence[tuple[Expr, int]], keys: Sequence[Expr], outputs: Sequence[Expr], clause: str) -> Expr:
    """A call of AND, OR, || or + that may start with a shorter chain among the keys, as k + 1 + 2 with k + 1; the longest is replaced."""
    arguments: list[Expr] = []
    rest = expr.arguments
    by_length = sorted(shorter, key=lambda pair: -len(children(pair[0])))
    while rest:
        match = next(((part, i) for part, i in by_length if rest[: len(children(part))] == children(part)), None)
        if match is not None and (not arguments or expr.function != "add"):
            arguments.append(outputs[match[1]])
            rest = rest[len(children(match[0])) :]
        else:
            arguments.append(onto(rest[0], keys, outputs, clause))
            rest = rest[1:]
    return replace(expr, arguments=tuple(arguments))
