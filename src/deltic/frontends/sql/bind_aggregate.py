"""Aggregates, and expressions over keys and aggregates onto the columns of an Aggregate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr import Column, Expr, argument_type, cast, result_type
from deltic.frontends.sql import tree
from deltic.frontends.sql.scope import AGGREGATED, OUTER
from deltic.plan.columns import map_children
from deltic.plan.nodes import AggregateCall, AggregateFunction
from deltic.schema import BIGINT

if TYPE_CHECKING:
    from deltic.frontends.sql.bind_expression import ExpressionBinder

FUNCTIONS: Final[dict[str, AggregateFunction]] = {"count": "count", "sum": "sum", "avg": "avg", "mean": "avg", "min": "min", "max": "max"}
_KNOWN: Final = "COUNT, SUM, AVG, MIN, MAX"
_ORDERED: Final = "ORDER BY … LIMIT n keeps the first n rows; MIN and MAX have an order"
_LISTED: Final = "the rows themselves, or COUNT(DISTINCT x)"
UNSUPPORTED: Final = {
    **dict.fromkeys(("first", "first_value", "last", "last_value", "any_value", "nth_value", "max_by", "min_by", "mode"), _ORDERED),
    **dict.fromkeys(("collect_list", "collect_set", "array_agg", "listagg", "string_agg"), _LISTED),
    **dict.fromkeys(("row_number", "rank", "dense_rank", "ntile", "lag", "lead", "percent_rank", "cume_dist"), _ORDERED),
    **dict.fromkeys(("stddev", "std", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop"), "SUM(x), SUM(x * x) and COUNT(x)"),
    **dict.fromkeys(("skewness", "kurtosis", "corr", "covar_pop", "covar_samp", "regr_slope", "regr_r2"), "sums of products"),
    **dict.fromkeys(("median", "percentile", "percentile_approx", "approx_percentile", "percentile_cont"), "MIN and MAX"),
    **dict.fromkeys(("approx_count_distinct", "count_min_sketch", "hll_sketch_agg"), "COUNT(DISTINCT x), which is exact"),
    **dict.fromkeys(("count_if", "try_sum", "try_avg", "bool_and", "bool_or", "every", "some", "any"), "COUNT(*) FILTER (WHERE …)"),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor", "histogram_numeric", "grouping", "grouping_id", "product"), _KNOWN),
}


class Collector:
    """The aggregates of one SELECT, each once; a column of index AGGREGATED + i stands for the i-th."""

    def __init__(self) -> None:
        self.calls: list[AggregateCall] = []

    def add(self, call: AggregateCall) -> Column:
        """The column that stands for the aggregate."""
        if call not in self.calls:
            self.calls.append(call)
        at = self.calls.index(call)
        return Column(AGGREGATED + at, call.type, call.nullable, call.function, call.span)


def aggregate_of(node: object) -> str | None:
    """The aggregate's name, where the node is a call of one."""
    if isinstance(node, tree.FunctionCall) and (node.name in FUNCTIONS or node.name in UNSUPPORTED):
        return node.name
    return None


def has_aggregate(node: tree.Expression) -> bool:
    """Whether an aggregate is in the node, subqueries aside."""
    return any(aggregate_of(part) for part in tree.walk(node, lambda part: not isinstance(part, tree.QUERIES)))


def bind_aggregate(binder: ExpressionBinder, node: tree.FunctionCall) -> Expr:
    """The column that stands for a call of an aggregate, which the binder's collector takes."""
    name, span = node.name, node.span
    if name in UNSUPPORTED:
        raise Unsupported(f"the aggregate {name.upper()} is not supported", span=span, expected=_KNOWN, remedy=UNSUPPORTED[name])
    if binder.collector is None:
        raise Unsupported(f"an aggregate is not allowed in {binder.clause}", span=span, remedy=_elsewhere(binder.clause))
    rows = replace(binder, clause=f"the argument of {name.upper()}", aliases={}, keys=None, collector=None)
    arguments = _arguments(rows, node)
    condition = None if node.condition is None else replace(rows, clause="FILTER").condition(node.condition)
    return binder.collector.add(_aggregate(FUNCTIONS[name], arguments, node.distinct, condition, span))


def _elsewhere(clause: str) -> str:
    if clause == "WHERE":
        return "HAVING tests aggregates"
    return "aggregate in a subquery of FROM first"


def _arguments(binder: ExpressionBinder, call: tree.FunctionCall) -> tuple[Expr, ...]:
    """The arguments bound; () for COUNT(*)."""
    match call.arguments:
        case (tree.Star(qualifier=None, excluded=()),) if call.name == "count":
            return tuple(binder.scope.column(c) for c in binder.scope.star(None)) if call.distinct else ()
        case ():
            expected = "COUNT(*) or COUNT(x)"
            raise TypeMismatch(f"{call.name.upper()} requires an argument", span=call.span, expected=expected)
        case arguments:
            return tuple(binder.bind(part) for part in arguments)


def _aggregate(
    function: AggregateFunction, arguments: tuple[Expr, ...], distinct: bool, condition: Expr | None, span: Span
) -> AggregateCall:
    if function == "count":
        return AggregateCall(function, arguments, BIGINT, False, distinct, condition, span)
    if len(arguments) != 1:
        raise TypeMismatch(f"{function.upper()} requires one argument", span=span, expected=f"1, found {len(arguments)}")
    taken = cast(arguments[0], argument_type(function, arguments[0].type, span), span)
    type, nullable = result_type(function, taken.type, span)
    # MIN and MAX do not care for copies, so that plans with and without DISTINCT are one.
    return AggregateCall(function, (taken,), type, nullable, distinct and function in ("sum", "avg"), condition, span)


def onto(expr: Expr, keys: Sequence[Expr], outputs: Sequence[Expr], clause: str) -> Expr:
    """`expr` over the rows of an Aggregate: what equals keys[i] becomes outputs[i], the j-th aggregate outputs[len(keys) + j].

    Raises where a column is left that is neither. Columns of the enclosing query stay.
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
    return map_children(expr, lambda part: onto(part, keys, outputs, clause))
